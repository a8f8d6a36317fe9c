"""What the values of kernels may be, by the facts of the operators that their functions are.

Inputs are taken to be real numbers. Where one is added as it is, it may be a mask, which holds infinities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rewright import ops
from rewright.analysis.values import Setting, Values
from rewright.ir.graph import Graph
from rewright.ir.types import TensorType
from rewright.ops.facts import NOTHING, REAL, Facts, in_dtype, is_no_number, of_dtype, of_values, square
from rewright.ops.functions.intervals import reduce_facts
from rewright.optimize.scalars.expressions import Expression

MASK = replace(REAL, plus_infinity=True, minus_infinity=True)
"""What is read from an input and added as it is."""


def facts_of_call(e: Expression, operands: Sequence[Facts]) -> Facts:
    """What a function gives of arguments that are known so far: anything of its type where no operator has it."""
    op = ops.ELEMENTWISE.get(e.op)
    if op is None:
        return of_dtype(e.dtype)
    if len(operands) == 2 and e.arguments[0] is e.arguments[1] and e.dtype.is_float:
        known = operands[0]
        if isinstance(op, ops.Multiply):
            return square(known)
        if isinstance(op, ops.Subtract):  # infinity less infinity is no number
            zero = NOTHING if is_no_number(known) else of_values([0])
            return replace(zero, nan=known.nan or known.may_be_infinite)
    kinds = [TensorType((), a.dtype) for a in e.arguments]
    return in_dtype(op.facts(operands, kinds, TensorType((), e.dtype)), e.dtype)


def reals(known: Facts) -> Facts:
    """The real numbers of what a value may be."""
    return replace(known, nan=False, plus_infinity=False, minus_infinity=False)


def where_defined(found: Facts, operands: Sequence[Facts]) -> Facts:
    """The facts of a function without the places where it is undefined on real numbers."""
    return reals(found) if all(known.is_finite for known in operands) else found


class Known:
    """What expressions may be, each found once: ``tensors`` tells what is read, which is real where it does not."""

    def __init__(self, tensors: Sequence[Facts] = (), *, defined: bool = False) -> None:
        self.tensors = tensors
        self.defined = defined
        """Whether functions are taken to be defined where they are computed."""
        self.found: dict[int, Facts] = {}

    def facts(self, e: Expression) -> Facts:
        """What a value may be."""
        if e.number not in self.found:
            self.found[e.number] = self.computed(e)
        return self.found[e.number]

    def computed(self, e: Expression) -> Facts:
        """What a value may be, by what its arguments may be."""
        if e.op == "constant":
            return of_values([e.value])
        if e.op == "load":
            return self.read(e)
        if e.bound is not None:
            return self.reduced(e)
        operands = [self.facts(a) for a in e.arguments]
        found = self.applied(e, operands)
        return where_defined(found, operands) if self.defined else found

    def applied(self, e: Expression, operands: Sequence[Facts]) -> Facts:
        """What a function of values may be."""
        return facts_of_call(e, operands)

    def read(self, e: Expression) -> Facts:
        """What an element of a tensor in memory may be."""
        if 0 <= e.tensor < len(self.tensors):
            return self.tensors[e.tensor]
        return REAL if e.dtype.is_float else of_dtype(e.dtype)

    def reduced(self, e: Expression) -> Facts:
        """What a reduction may be."""
        assert e.bound is not None
        return reduce_facts(e.bound.kind, self.facts(e.arguments[0]), e.bound.size, e.dtype)


def facts_of_tensors(graph: Graph, *, defined: bool = False) -> list[Facts]:
    """What the tensors of a graph may be where inputs are real numbers, and those that are added may be masks.

    ``defined``: what they may be where the program is defined.
    """
    values = Values(graph, Setting(assumes=defined))
    for position, node in enumerate(graph.nodes):
        values.step(position)
        if isinstance(node.op, ops.Additive) and node.type.dtype.is_float:
            masks = [_is_input(graph, p) for p in node.operands]
            if any(masks):
                operands = [MASK if mask else values.facts[p] for mask, p in zip(masks, node.operands, strict=True)]
                found = node.op.facts(operands, [node.type, node.type], node.type)
                values.assume(position, replace(found, nan=found.nan and not defined))
    return [values.facts[position] for position in range(len(graph.nodes))]


def _is_input(graph: Graph, position: int) -> bool:
    """Whether a tensor is an input as it is, and no single number."""
    while isinstance(graph.nodes[position].op, (ops.View, ops.Convert)):
        position = graph.nodes[position].operands[0]
    return isinstance(graph.nodes[position].op, ops.Input) and graph.nodes[position].type.rank > 0


__all__ = ["MASK", "Known", "facts_of_call", "facts_of_tensors", "reals", "where_defined"]
