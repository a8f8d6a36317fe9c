"""Random tensors that programs draw in parts, each in parts of its own: for each microbatch, say.

A tensor of independent numbers is distributed as its parts are, put together. So what a program draws at one place,
once for each microbatch, is taken for stretches of one tensor, which ranks may hold shards of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import gcd

from rewright import ops
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.placement import RankProgram
from rewright.ir.rebuilding import rebuild
from rewright.ir.types import TensorType
from rewright.ir.unknowns import RANDOM, UNKNOWN, unknowns
from rewright.ops.reference import views as rb

AND = ";"
"""Stands between the names of the draws that a tensor is made of."""
_MOST = 6
"""Numbers of microbatches that are tried."""


@dataclass(frozen=True)
class _Axis:
    """Where stretches come one after the other, and how many shards of it ranks hold."""

    place: int
    shards: int


@dataclass(frozen=True)
class _Way:
    """How draws are put together: so many microbatches of either side, which stretch along an axis."""

    own: int
    ranks: int
    axes: Mapping[str, _Axis]
    """By place of the source."""


def with_wholes(sequential: Graph, program: RankProgram) -> Iterator[tuple[Graph, RankProgram]]:
    """Both programs with draws as stretches of what all microbatches draw, the fewest microbatches first."""
    own = _by_place(sequential)
    theirs = [_by_place(graph) for graph in program.graphs]
    theirs = [{place: names for place, names in known.items() if place in own} for known in theirs]
    if not own or not all(theirs):
        return
    counts = gcd(*map(len, own.values())), gcd(*(len(names) for known in theirs for names in known.values()))
    pairs = sorted(product(_divisors(counts[0]), _divisors(counts[1])), key=lambda pair: (pair[0] * pair[1], pair))
    found = 0
    for count, others in pairs:
        way = _way(sequential, program, own, theirs, count, others) if (count, others) != (1, 1) else None
        if way is None or found == _MOST:
            continue
        found += 1
        graphs = [_put_together(graph, others, way.axes) for graph in program.graphs]
        ranks = replace(program, graphs=tuple(graphs))
        yield _put_together(sequential, count, way.axes), ranks
        if others > 1 and any(axis.shards > 1 for axis in way.axes.values()):
            yield _put_together(sequential, count, way.axes, others), ranks


def _divisors(count: int) -> list[int]:
    return [n for n in range(1, count + 1) if count % n == 0]


def _by_place(graph: Graph) -> dict[str, list[str]]:
    """The draws of a graph, in order, by what and where they are."""
    found: dict[str, list[str]] = {}
    for name, what in unknowns(graph).items():
        if what.startswith(RANDOM):
            found.setdefault(what.rpartition(" #")[0], []).append(name)
    return found


def _way(
    sequential: Graph,
    program: RankProgram,
    own: Mapping[str, list[str]],
    theirs: Sequence[Mapping[str, list[str]]],
    count: int,
    others: int,
) -> _Way | None:
    """How draws fit together with these numbers of microbatches; None where they do not."""
    axes: dict[str, _Axis] = {}
    for graph, known in zip(program.graphs, theirs, strict=True):
        for place, names in known.items():
            if len(names) * count != len(own[place]) * others:
                return None
            whole, part = _shape(sequential, own[place]), _shape(graph, names)
            axis = None if whole is None or part is None else _axis(whole, part, count, others)
            if axis is None or axes.setdefault(place, axis) != axis:
                return None
    return _Way(count, others, axes)


def _shape(graph: Graph, names: Sequence[str]) -> tuple[int, ...] | None:
    """The shape of several draws; None where it is not one, or not of numbers."""
    shapes = {graph.nodes[graph.inputs[name]].type.shape for name in names}
    if len(shapes) > 1:
        return None
    (shape,) = shapes
    sizes = tuple(n for n in shape if isinstance(n, int))
    return sizes if len(sizes) == len(shape) else None


def _axis(whole: Sequence[int], part: Sequence[int], count: int, others: int) -> _Axis | None:
    """The first axis along which microbatches may come one after the other, of which ranks have whole shards."""
    if len(whole) != len(part):
        return None
    for axis in range(len(whole)):
        sizes = [n * (count if place == axis else 1) for place, n in enumerate(whole)]
        held = [n * (others if place == axis else 1) for place, n in enumerate(part)]
        if all(b > 0 and a % b == 0 for a, b in zip(sizes, held, strict=True)):
            return _Axis(axis, sizes[axis] // held[axis])
    return None


def _put_together(graph: Graph, count: int, axes: Mapping[str, _Axis], blocks: int = 1) -> Graph:
    """The graph with draws as stretches of whole tensors, of which it has a number for each microbatch.

    With several ``blocks`` ranks hold a shard of each block of the program's own order, else a shard of all.
    """
    groups: dict[str, tuple[str, int, _Axis]] = {}
    for place, names in _by_place(graph).items():
        layers = len(names) // count
        for layer in range(layers if place in axes else 0):
            chosen = names[layer::layers]
            groups |= {name: (AND.join(chosen), part, axes[place]) for part, name in enumerate(chosen)}
    positions = {graph.inputs[name]: name for name in groups}
    made: dict[str, int] = {}
    notes: dict[str, str] = {}

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        if position not in positions:
            return None
        own, part, along = groups[positions[position]]
        axis = along.place
        shape = [int(str(n)) for n in node.type.shape]
        if own not in made:
            long = [n * (count if place == axis else 1) for place, n in enumerate(shape)]
            whole = builder.input(own, ops.Input(own, TensorType(tuple(long), node.type.dtype)))
            notes[UNKNOWN + own] = graph.metadata[UNKNOWN + positions[position]]
            made[own] = _shuffle(builder, whole, along, blocks)
        return rb.slice_axis(builder, made[own], axis, part * shape[axis], (part + 1) * shape[axis])

    found = rebuild(graph, make, whole=True)
    gone = {UNKNOWN + name for name in groups}
    rest = {key: text for key, text in graph.metadata.items() if key not in gone}
    return replace(found, metadata=rest | notes)


def _shuffle(builder: GraphBuilder, x: int, axis: _Axis, blocks: int) -> int:
    """The elements of an axis with a part of every shard in each block, from the order in which shards are whole."""
    if blocks == 1:
        return x
    shape, at = [int(str(n)) for n in builder.type(x).shape], axis.place
    parts = [*shape[:at], axis.shards, blocks, shape[at] // (axis.shards * blocks), *shape[at + 1 :]]
    return rb.reshape(builder, rb.swap(builder, rb.reshape(builder, x, parts), at, at + 1), shape)
