"""Instructions of HLO that are one operator."""

from __future__ import annotations

from collections.abc import Callable

from rewright import ops
from rewright.frontends.hlo.module import Instruction, Module
from rewright.frontends.hlo.reductions import reduction
from rewright.ir.errors import TypeMismatch, UnsupportedOperator
from rewright.ops.base import identity_value
from rewright.ops.functions import FUNCTIONS

ELEMENTWISE: dict[str, ops.Elementwise] = {
    record.code.hlo: ops.ELEMENTWISE[record.name] for record in FUNCTIONS.values() if record.code.hlo is not None
}
"""By opcode, the elementwise operators that are HLO instructions of their own."""
DIRECT: dict[str, Callable[[Instruction], ops.TensorOperator]] = {
    "iota": lambda i: ops.Iota(i.shape.type(), i.integers("dimensions")[0]),
    "broadcast": lambda i: ops.BroadcastInDim(i.shape.sizes, i.integers("dimensions")),
    "reverse": lambda i: ops.Reverse(tuple(sorted(i.integers("dimensions")))),
    "slice": lambda i: ops.Slice(*i.columns("slice")),
    "pad": lambda i: ops.Pad(*i.columns("padding")),
}
"""Instructions that are one operator on their operands, whatever these are."""
DOT = ("lhs_batch_dims", "rhs_batch_dims", "lhs_contracting_dims", "rhs_contracting_dims")
"""The axes of a product, in the order in which the operator has them."""


def contraction(i: Instruction) -> ops.DotGeneral:
    """The product that an instruction is."""
    return ops.DotGeneral(*(i.integers(name) for name in DOT))


def operator_of(module: Module, i: Instruction) -> ops.TensorOperator | None:
    """The operator that an instruction is; None where there is no single one."""
    if i.opcode in ELEMENTWISE:
        return ELEMENTWISE[i.opcode]
    if i.opcode in DIRECT:
        return DIRECT[i.opcode](i)
    try:
        return _READERS[i.opcode](module, i) if i.opcode in _READERS else None
    except (UnsupportedOperator, TypeMismatch):
        return None


def _constant(module: Module, i: Instruction) -> ops.TensorOperator | None:
    values = i.literal
    if not values or any(value != value for value in values) or len(values) > 4096:
        return None
    same = all(value == values[0] for value in values)
    return ops.Constant(i.shape.type(), tuple(values[:1] if same else values))


def _reduce(module: Module, i: Instruction) -> ops.TensorOperator | None:
    """A fold of one array that starts at the number that changes nothing."""
    kind = reduction(module, i)
    dtype, start = (
        i.shape.type().dtype,
        module.main.instructions[i.operands[1]].literal if len(i.operands) == 2 else None,
    )
    if not start or start[0] != identity_value(kind, dtype) or (dtype.is_integer and kind in ("maximum", "minimum")):
        return None
    return ops.Reduce(kind, i.integers("dimensions"))


_READERS: dict[str, Callable[[Module, Instruction], ops.TensorOperator | None]] = {
    "constant": _constant,
    "compare": lambda m, i: ops.Compare(i.attribute("direction")) if i.attribute("direction") else None,
    "convert": lambda m, i: ops.Convert(i.shape.type().dtype),
    "reshape": lambda m, i: ops.Reshape(i.shape.sizes),
    "transpose": lambda m, i: ops.Transpose(i.integers("dimensions")),
    "concatenate": lambda m, i: ops.Concatenate(i.integers("dimensions")[0]),
    "dot": lambda m, i: contraction(i),
    "reduce": _reduce,
}
