"""The place of the largest element of a block: a fold of pairs of a value and a place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from rewright import ops
from rewright.frontends.triton.meaning.addresses.indices import lane
from rewright.frontends.triton.meaning.folds.combiners import combined
from rewright.frontends.triton.meaning.values import Data, Value, Whole
from rewright.frontends.triton.text import Operation
from rewright.ir.errors import RewrightError, UnsupportedOperator
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.operator import Operator
from rewright.ir.types import DType
from rewright.ops.functions.record import Direction
from rewright.ops.reference import building as rb
from rewright.terms.claim import Claim
from rewright.terms.index import variable
from rewright.terms.normal.prove import prove

if TYPE_CHECKING:
    from rewright.frontends.triton.meaning.reader import Reader

Kind = Literal["maximum", "minimum"]


def first_place(reader: Reader, op: Operation, values: tuple[Value, ...]) -> tuple[Value, Value]:
    """The largest or least element along an axis with its place, the first one among equals.

    Raises UnsupportedOperator for other folds of several blocks.
    """
    kind = _kind(reader, op)
    axis = int(op.attributes["axis"])
    if kind is None or len(values) != 2 or not _counts(values[1], axis):
        raise UnsupportedOperator("a fold of several blocks at once is read where it finds the first largest or least")
    writer, data = reader.writer, reader.writer.data(values[0])
    shape = (*data.shape[:axis], *data.shape[axis + 1 :])
    found = Data(rb.reduce(writer.b, kind, data.position, [len(data.axes) + axis]), data.axes, shape)
    place = place_along(writer.b, kind, data.position, len(data.axes) + axis)
    return found, Data(rb.convert(writer.b, place, DType.I32), data.axes, shape)


def _counts(value: Value, axis: int) -> bool:
    """Whether a block counts along an axis from zero."""
    return isinstance(value, Whole) and value.index == variable(lane(axis))


def place_along(b: GraphBuilder, kind: Kind, position: int, axis: int) -> int:
    """Where the first largest or least element along an axis is, as 64-bit integers."""
    if kind == "minimum":
        position = b.add(ops.Negate() if b.type(position).dtype.is_float else ops.Not(), position)
    last = b.type(position).rank - 1
    moved = rb.swap(b, position, axis, last)
    first = rb.swap(b, b.add(ops.TopK(1, "indices"), moved), axis, last)
    sizes = b.type(first).shape
    return rb.reshape(b, first, (*sizes[:axis], *sizes[axis + 1 :]))


_KINDS: tuple[tuple[Kind, Direction, Operator], ...] = (
    ("maximum", "GT", ops.Maximum()),
    ("minimum", "LT", ops.Minimum()),
)


def _kind(reader: Reader, op: Operation) -> Kind | None:
    """Whether a combiner is proved to keep the larger of two values, or the lesser, and of equal ones the first."""
    if len(op.regions[0].arguments) != 4:
        return None
    given, ends = combined(reader, op)
    if any(end.axes or end.shape for end in ends):
        return None
    names = dict(zip((value.position for value in given), ("value", "place", "other", "behind"), strict=True))
    left = _of_scalars(reader.writer.b.build(), [end.position for end in ends], names)
    for kind, direction, extremum in _KINDS:
        right = GraphBuilder("first")
        a, i, b, j = (right.input(name, left.nodes[position].op) for name, position in left.inputs.items())
        tie = right.add(ops.And(), rb.compare(right, "EQ", a, b), rb.compare(right, "LT", i, j))
        is_first = right.add(ops.Or(), rb.compare(right, direction, a, b), tie)
        right.output("0", right.add(extremum, a, b))
        right.output("1", right.add(ops.Select(), is_first, i, j))
        try:
            if prove(Claim(left, right.build()), _SECONDS).status == "proved":
                return kind
        except RewrightError:
            return None
    return None


def _of_scalars(graph: Graph, ends: Sequence[int], names: Mapping[int, str]) -> Graph:
    """Some nodes as a program of scalars that are inputs."""
    b = GraphBuilder("combiner")
    places = {old: b.input(name, ops.Input(name, graph.nodes[old].type)) for old, name in names.items()}
    for old in sorted(graph.ancestors(ends) - names.keys()):
        places[old] = b.add(graph.nodes[old].op, *(places[p] for p in graph.nodes[old].operands))
    for number, end in enumerate(ends):
        b.output(str(number), places[end])
    return b.build()


_SECONDS = 5.0
