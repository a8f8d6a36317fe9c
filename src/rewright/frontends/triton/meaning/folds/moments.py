"""Means and squared deviations that are merged with their counts, as Welford and Chan do.

A state is a mean, the sum ``m2`` of squared deviations from it, and a count. That a merge is one is proved: it adds the
counts, ``mean * count`` and ``m2 + mean * mean * count`` of both. The fold of many states is then what has the sums of
these three, in whatever order they are merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING

from rewright import ops
from rewright.frontends.triton.meaning.folds.combiners import combined
from rewright.frontends.triton.meaning.folds.copies import Copied, dependents
from rewright.frontends.triton.meaning.values import Data, Value
from rewright.frontends.triton.meaning.writer import Writer
from rewright.frontends.triton.text import Operation
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import TensorType
from rewright.ops.reference import building as rb
from rewright.terms.claim import Claim
from rewright.terms.normal.prove import prove

if TYPE_CHECKING:
    from rewright.frontends.triton.meaning.reader import Reader

_SECONDS = 5.0
_PREFIX = "fact:"
COUNTS = "what Welford's merge at line {} counts are whole numbers from zero on"


@dataclass(frozen=True, slots=True)
class Moments:
    """Which of three values is the mean, which ``m2`` and which the count."""

    mean: int
    m2: int
    count: int

    def of(self, values: Sequence[Data] | Mapping[int, Data]) -> tuple[Data, Data, Data]:
        """The three in this order."""
        return values[self.mean], values[self.m2], values[self.count]


def merged(reader: Reader, op: Operation, values: Sequence[Value]) -> tuple[Value, ...] | None:
    """The three results of a fold along an axis by a merge of means; None for other combiners."""
    if len(values) != 3:
        return None
    writer, axis = reader.writer, int(op.attributes["axis"])
    given, ends = combined(reader, op)
    if any(end.axes or end.shape or not writer.dtype(end).is_float for end in (*given, *ends)):
        return None
    moments = _of_combiner(writer.b.build(), [v.position for v in given], [e.position for e in ends])
    if moments is None:
        return None
    data = [writer.data(value) for value in values]
    axes = writer.union(*data)
    spread = [Data(writer.spread(part, axes), axes, part.shape) for part in data]
    shape = (*data[0].shape[:axis], *data[0].shape[axis + 1 :])
    sums = [
        Data(rb.reduce(writer.b, "sum", part.position, [len(axes) + axis]), axes, shape)
        for part in invariants(writer, *moments.of(spread))
    ]
    reader.assumptions[COUNTS.format(writer.b.span.line)] = None
    found = dict(zip((moments.mean, moments.m2, moments.count), state_of(writer, *sums), strict=True))
    return tuple(found[number] for number in range(3))


def invariants(writer: Writer, mean: Data, m2: Data, count: Data) -> tuple[Data, Data, Data]:
    """What merges add up: the count, the sum of what was counted, and the sum of its squares."""
    total = writer.apply(ops.Multiply(), mean, count)
    return count, total, writer.apply(ops.Add(), m2, writer.apply(ops.Multiply(), mean, total))


def state_of(writer: Writer, count: Data, total: Data, squares: Data) -> tuple[Data, Data, Data]:
    """The mean, ``m2`` and the count with some sums; of nothing the first two are not known."""
    mean = writer.apply(ops.Divide(), total, count)
    m2 = writer.apply(ops.Subtract(), squares, writer.apply(ops.Multiply(), mean, total))
    zero = writer.constant(0.0, count.shape, writer.dtype(count))
    counts = writer.apply(ops.Compare("NE"), count, zero)
    unknown = [writer.unspecified(count.axes, count.shape, writer.dtype(count)) for _ in range(2)]
    return writer.select(counts, mean, unknown[0]), writer.select(counts, m2, unknown[1]), count


# --- proofs


def _of_combiner(graph: Graph, given: Sequence[int], ends: Sequence[int]) -> Moments | None:
    """Which of the values is which, where a combiner of two states is a merge."""
    kind = graph.nodes[given[0]].type
    for order in _orders():
        first, second = _named(order, given[:3], ("mean", "m2", "count")), _named(order, given[3:], _OTHERS)
        left = Copied(graph, set(range(len(graph.nodes))))
        results = [left.of(end, {**first, **second}, "now") for end in ends]
        right = GraphBuilder("sums")
        states = [[right.input(name, ops.Input(name, kind)) for name in names] for names in (_NAMES, _OTHERS)]
        parts = [_invariants(right, *state) for state in states]
        both = [right.add(ops.Add(), a, b) for a, b in zip(*parts, strict=True)]
        if _holds(left, _of(order, results), right, both, ("count", "other count")):
            return order
    return None


def moments_of_step(
    graph: Graph, unknown: Mapping[int, int], ends: Mapping[int, int], others: Sequence[int], counts: Sequence[int]
) -> Moments | None:
    """Which carried values of a loop are a mean, ``m2`` and a count, where an iteration merges something into them.

    ``unknown`` are the nodes before an iteration and ``ends`` those behind it. What is merged is what an iteration
    makes of nothing.
    """
    for order in (Moments(a, b, count) for count in counts for a, b in permutations(others)):
        numbers = order.mean, order.m2, order.count
        kinds = {graph.nodes[unknown[n]].type for n in numbers}
        if len(kinds) != 1:
            continue
        (kind,) = kinds
        moving = set[int]().union(*(dependents(graph, unknown[n]) for n in numbers))
        left, right = (Copied(graph, moving) for _ in range(2))
        state = dict(zip((unknown[n] for n in numbers), _NAMES, strict=True))
        nothing = dict.fromkeys((unknown[n] for n in numbers), None)
        mean, m2, count = (left.of(ends[n], state, "now") for n in numbers)
        alone = [right.of(ends[n], nothing, "now") for n in numbers]
        before = [right.input(name, kind) for name in _NAMES]
        parts = [_invariants(right.builder, *values) for values in (before, alone)]
        both = [right.builder.add(ops.Add(), a, b) for a, b in zip(*parts, strict=True)]
        right.builder.output(_COUNTED, alone[2])
        if _holds(left, (mean, m2, count), right.builder, both, ("count", _COUNTED)):
            return order
    return None


_COUNTED = "counted"
_NAMES, _OTHERS = ("mean", "m2", "count"), ("other mean", "other m2", "other count")


def _orders() -> Iterator[Moments]:
    for mean, m2, count in permutations(range(3)):
        yield Moments(mean, m2, count)


def _named(order: Moments, positions: Sequence[int], names: Sequence[str]) -> dict[int, str]:
    return dict(zip((positions[n] for n in (order.mean, order.m2, order.count)), names, strict=True))


def _of(order: Moments, positions: Sequence[int]) -> tuple[int, int, int]:
    return positions[order.mean], positions[order.m2], positions[order.count]


def _invariants(b: GraphBuilder, mean: int, m2: int, count: int) -> tuple[int, int, int]:
    total = b.add(ops.Multiply(), mean, count)
    return count, total, b.add(ops.Add(), m2, b.add(ops.Multiply(), mean, total))


def _holds(
    left: Copied, state: tuple[int, int, int], right: GraphBuilder, sums: Sequence[int], counts: tuple[str, str]
) -> bool:
    """Whether a state has the sums that it should, where counts are one or more together, and where both are none."""
    for number, position in enumerate(_invariants(left.builder, *state)):
        left.builder.output(str(number), position)
    for number, position in enumerate(sums):
        right.output(str(number), position)
    one, other = left.builder.build(), right.build()
    counted = other.outputs.pop(counts[1], None)
    names = {name: graph.nodes[p].type for graph in (one, other) for name, p in graph.inputs.items()}
    sides = [_completed(graph, names) for graph in (one, other)]
    for is_any in (True, False):
        facts = _facts(other, names, counts, counted, is_any)
        try:
            if prove(Claim(sides[0], sides[1], facts=facts), _SECONDS).status != "proved":
                return False
        except RewrightError:
            return False
    return True


def _copied(b: GraphBuilder, graph: Graph, made: Mapping[str, int], wanted: Iterable[int]) -> dict[int, int]:
    """Some nodes of a program and what they are made of in another one, with its inputs by name."""
    places: dict[int, int] = {}
    for position in sorted(graph.ancestors(wanted)):
        op, operands = graph.nodes[position].op, graph.nodes[position].operands
        places[position] = made[op.label] if isinstance(op, ops.Input) else b.add(op, *(places[p] for p in operands))
    return places


def _completed(graph: Graph, names: Mapping[str, TensorType]) -> Graph:
    """A program with further inputs."""
    b = GraphBuilder(graph.name)
    made = {name: b.input(name, ops.Input(name, kind)) for name, kind in names.items()}
    places = _copied(b, graph, made, graph.outputs.values())
    for name, position in graph.outputs.items():
        b.output(name, places[position])
    return b.build()


def _facts(
    graph: Graph, names: Mapping[str, TensorType], counts: tuple[str, str], counted: int | None, is_any: bool
) -> Graph:
    """That counts are not negative, and together one at least; or that both are zero.

    ``counted`` is the node of the second count in a program, where that is no input.
    """
    b = GraphBuilder("facts")
    made = {name: b.input(name, ops.Input(name, kind)) for name, kind in names.items()}
    places = _copied(b, graph, made, [] if counted is None else [counted])
    own = [made[counts[0]], made[counts[1]] if counted is None else places[counted]]
    zero, one = (rb.splat_like(b, value, own[0]) for value in (0.0, 1.0))
    if is_any:
        conditions = [rb.compare(b, "GE", count, zero) for count in own]
        conditions.append(rb.compare(b, "GE", b.add(ops.Add(), *own), one))
    else:
        conditions = [rb.compare(b, "EQ", count, zero) for count in own]
    for number, condition in enumerate(conditions):
        b.output(f"{_PREFIX}{number}", condition)
    return b.build()
