"""Combiners of folds that are several operations, by what they are proved to be.

``where(a > b or a != a, a, b)`` is the larger of two numbers. The combiner is read for two scalars, and compared with a
sum, a product and extrema by the prover of rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewright import ops
from rewright.frontends.triton.meaning.folds.copies import Copied
from rewright.frontends.triton.meaning.values import DTYPES, Data, Truth
from rewright.frontends.triton.text import Operation
from rewright.ir.errors import RewrightError
from rewright.ir.graph import GraphBuilder
from rewright.ir.operator import Operator
from rewright.ir.types import DType, TensorType
from rewright.ops.base import ReductionKind
from rewright.terms.claim import Claim
from rewright.terms.normal.prove import prove

if TYPE_CHECKING:
    from rewright.frontends.triton.meaning.reader import Reader

_KINDS: dict[ReductionKind, Operator] = {
    "maximum": ops.Maximum(),
    "minimum": ops.Minimum(),
    "sum": ops.Add(),
    "product": ops.Multiply(),
}
_SECONDS = 5.0


def combined(reader: Reader, op: Operation) -> tuple[list[Data], list[Data]]:
    """What two elements are before a combiner joins them, and what it makes of them, for scalars."""
    writer, body = reader.writer, op.regions[0]
    given = [writer.unspecified((), (), DTYPES[kind.element]) for _, kind in body.arguments]
    before = dict(reader.values)
    for (name, kind), value in zip(body.arguments, given, strict=True):
        reader.values[name] = Truth((), (), value) if kind.element == "i1" else value
    try:
        ends = reader.run(body)
    finally:
        reader.values = before
    return given, [writer.data(end) for end in ends]


def kind_of(reader: Reader, op: Operation) -> ReductionKind | None:
    """What a combiner of one block is; None where it is not proved to be any."""
    given, (end,) = combined(reader, op)
    dtype = reader.writer.dtype(end)
    if dtype is DType.BOOL or end.axes or any(reader.writer.dtype(value) is not dtype for value in given):
        return None
    graph = reader.writer.b.build()
    scalar = TensorType((), dtype)
    left = Copied(graph, set(range(len(graph.nodes))))
    left.builder.output("0", left.of(end.position, dict(zip((v.position for v in given), "ab", strict=True)), "now"))
    for kind, operator in _KINDS.items():
        right = GraphBuilder("combiner")
        sides = [right.input(name, ops.Input(name, scalar)) for name in "ab"]
        right.output("0", right.add(operator, *sides))
        for name in "ab":
            left.input(name, scalar)
        try:
            if prove(Claim(left.builder.build(), right.build()), _SECONDS).status == "proved":
                return kind
        except RewrightError:
            return None
    return None
