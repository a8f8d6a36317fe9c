"""What the reductions of HLO fold with."""

from __future__ import annotations

from rewright.frontends.hlo.module import Computation, Instruction, Module
from rewright.ir.errors import UnsupportedOperator
from rewright.ops.base import ReductionKind

FOLDS: dict[str, ReductionKind] = {
    "add": "sum",
    "multiply": "product",
    "maximum": "maximum",
    "minimum": "minimum",
    "and": "and",
    "or": "or",
}


def reduction(module: Module, i: Instruction) -> ReductionKind:
    """What the computation of a reduction folds with; raises UnsupportedOperator for anything but one operator."""
    computation = module.callee(i)
    kind = _folds(computation)
    if kind is None:
        raise UnsupportedOperator("its computation is not one of sum, product, maximum, minimum, and, or")
    if computation.parameters()[0].shape.element == "pred" and kind in ("maximum", "minimum"):
        return "or" if kind == "maximum" else "and"
    return kind


def _folds(computation: Computation) -> ReductionKind | None:
    parameters = [parameter.name for parameter in computation.parameters()]
    root = computation.result()
    while (root.opcode == "copy" or computation.is_plain_bitcast(root)) and root.operands:
        root = computation.instructions[root.operands[0]]
    if len(parameters) != 2 or sorted(root.operands) != sorted(parameters):
        return None
    return FOLDS.get(root.opcode)
