"""The largest of what iterations give, and what came with the first such: ``if x > m: m, p = x, q``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rewright import ops
from rewright.frontends.triton.meaning.folds.copies import Copied, dependents
from rewright.frontends.triton.meaning.folds.firsts import Kind, place_along
from rewright.frontends.triton.meaning.values import Data
from rewright.ir.dims import Dim, at_most
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ops.base import integer_limits
from rewright.ops.functions.record import Direction
from rewright.ops.reference import building as rb
from rewright.terms.claim import Claim
from rewright.terms.normal.prove import prove

if TYPE_CHECKING:
    from rewright.frontends.triton.meaning.writer import Writer

_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class First:
    """The carried values that are an extremum, and what came with the first one that was it."""

    value: int
    place: int
    kind: Kind


def first_of_step(
    graph: Graph, unknown: Mapping[int, int], ends: Mapping[int, int], numbers: Sequence[int]
) -> First | None:
    """Which carried values are an extremum and what came with it, where an iteration is proved to keep the first."""
    for place in numbers:
        for value in ends:
            if value != place and (kind := _kind(graph, unknown, ends, value, place)) is not None:
                return First(value, place, kind)
    return None


def _kind(graph: Graph, unknown: Mapping[int, int], ends: Mapping[int, int], value: int, place: int) -> Kind | None:
    other, behind = (offered(graph, ends[number], unknown[number]) for number in (value, place))
    own = unknown[value], unknown[place]
    if other is None or behind is None or graph.ancestors([other, behind]) & set(unknown.values()):
        return None
    if not graph.nodes[own[1]].type.dtype.is_integer or not all(
        _compares(graph, graph.nodes[ends[number]], {own[0], other}) for number in (value, place)
    ):
        return None
    moving = dependents(graph, own[0]) | dependents(graph, own[1])
    names = dict(zip((*own, other, behind), ("value", "place", "other", "behind"), strict=True))
    left = Copied(graph, moving | {other, behind})
    for number, end in enumerate((ends[value], ends[place])):
        left.builder.output(str(number), left.of(end, names, "now"))
    for kind in ("maximum", "minimum"):
        right = Copied(graph, moving)
        a, i, b, j = (right.input(name, graph.nodes[position].type) for position, name in names.items())
        direction: Direction = "GE" if kind == "maximum" else "LE"
        is_kept = rb.compare(right.builder, direction, a, b)
        right.builder.output("0", right.builder.add(ops.Maximum() if kind == "maximum" else ops.Minimum(), a, b))
        right.builder.output("1", right.builder.add(ops.Select(), is_kept, i, j))
        for name, own_kind in {**left.leaves, **{n: graph.nodes[p].type for p, n in names.items()}}.items():
            left.input(name, own_kind)
            right.input(name, own_kind)
        try:
            if prove(Claim(left.builder.build(), right.builder.build()), _SECONDS).status == "proved":
                return kind
        except RewrightError:
            return None
    return None


def _compares(graph: Graph, end: Node, both: set[int]) -> bool:
    """Whether a choice asks for the order of two values as they are, so that it is right at infinities too."""
    if not isinstance(end.op, ops.Select):
        return True  # it is their maximum
    test = graph.nodes[end.operands[0]]
    return isinstance(test.op, ops.Compare) and set(test.operands) == both


def offered(graph: Graph, end: int, own: int) -> int | None:
    """What an iteration may put in the place of a carried value; None where it does not choose between the two."""
    node = graph.nodes[end]
    if isinstance(node.op, ops.Select) and own in node.operands[1:]:
        (_, yes, no) = node.operands
        return no if yes == own else yes
    if isinstance(node.op, (ops.Maximum, ops.Minimum)) and own in node.operands:
        return node.operands[1 - node.operands.index(own)]
    return None


def of_iterations(
    writer: Writer, kind: Kind, axis: str, values: Data, places: Data, start: tuple[Data, Data]
) -> tuple[Data, Data]:
    """The extremum of all iterations and of the start, and what came with the first that was it.

    ``values`` has one element for each iteration along an axis, and ``places`` may have.
    """
    row = _in_row(writer, kind, values, places, axis)
    if row is not None:
        top, found = row
    else:
        top = writer.fold(kind, values, axis)
        number = place_along(writer.b, kind, values.position, values.axes.index(axis))
        found = _at(writer, places, axis, Data(number, top.axes, top.shape))
    compare = ops.Compare("GE" if kind == "maximum" else "LE")
    kept = writer.apply(compare, start[0], top)
    joined = ops.Maximum() if kind == "maximum" else ops.Minimum()
    return writer.apply(joined, start[0], top), writer.select(kept, start[1], found)


def _in_row(writer: Writer, kind: Kind, values: Data, places: Data, axis: str) -> tuple[Data, Data] | None:
    """The extremum of a row that iterations look at tile by tile, and its place; None where they do anything else."""
    b, along = writer.b, values.axes.index(axis)
    fold, total = b.node(values.position), b.node(places.position)
    if not isinstance(fold.op, ops.Reduce) or fold.op.kind != kind or not isinstance(total.op, ops.Add):
        return None
    tile, rank = fold.operands[0], b.type(fold.operands[0]).rank
    if fold.op.dimensions != (rank - 1,) or places.axes != values.axes:
        return None
    width = b.type(tile).shape[-1]
    for inner, start in (total.operands, total.operands[::-1]):
        form = b.affine(start)
        steps = tuple(width if a == along else 0 for a in range(rank - 1))
        if form is None or form.coefficients != steps or _placed(b, kind, inner, width) != tile:
            continue
        axes = (*(a for a in range(rank - 1) if a != along), along, rank - 1)
        rows = b.add(ops.Transpose(axes), tile)
        sizes = b.type(rows).shape
        row = b.add(ops.Reshape((*sizes[:-2], sizes[-2] * sizes[-1])), rows)
        place = rb.convert(b, place_along(b, kind, row, rank - 2), b.type(inner).dtype)
        left, shape = tuple(a for a in values.axes if a != axis), values.shape
        top = rb.reduce(b, kind, row, [rank - 2])
        return Data(top, left, shape), Data(rb.shift_by(b, place, form.constant), left, shape)
    return None


def _placed(b: GraphBuilder, kind: Kind, position: int, width: Dim) -> int | None:
    """The rows of which a node has the places of the first extrema, in types that hold them."""
    node = b.node(position)
    while isinstance(node.op, (ops.Convert, ops.Reshape)):
        holds = node.type.dtype.is_integer and at_most(width, integer_limits(node.type.dtype)[1]) is True
        if not holds:
            return None
        node = b.node(node.operands[0])
    if node.op != ops.TopK(1, "indices"):
        return None
    (rows,) = node.operands
    if kind == "maximum":
        return rows
    return b.node(rows).operands[0] if isinstance(b.node(rows).op, (ops.Negate, ops.Not)) else None


def _at(writer: Writer, places: Data, axis: str, number: Data) -> Data:
    """The element of an iteration whose number is known."""
    if axis not in places.axes:
        return places
    axes = tuple(name for name in writer.axes if name == axis or name in places.axes or name in number.axes)
    count = Data(rb.iota(writer.b, (*writer.sizes(axes), *places.shape), axes.index(axis)), axes, places.shape)
    is_it = writer.apply(ops.Compare("EQ"), count, number)
    zero = writer.constant(0, places.shape, writer.dtype(places))
    return writer.fold("sum", writer.select(is_it, places, zero), axis)
