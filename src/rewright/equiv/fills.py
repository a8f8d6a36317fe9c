"""Choices of the largest elements among some that are kept, where the others are filled with a number below these.

A router that first chooses groups of experts fills the scores of all other groups, with nought or with minus infinity,
and then takes the k largest. Where all scores are above the filling, and at least k of them are kept in every row, the
chosen ones are among the kept ones, in the same order: whatever is filled in, the choice is the same. Both are shown
for the program: scores by the analysis of values, and how many are kept by how the mask is made. Where
all of them are kept, as with groups of which every one is chosen, there is no filling.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from rewright import ops
from rewright.analysis.values import facts_where_defined
from rewright.equiv.building import rebuilt
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ops.facts import Facts

_DEEPEST = 32


def filled_alike(graphs: Sequence[Graph]) -> tuple[Graph, ...]:
    """The programs with minus infinity where what a ``top_k`` never chooses is filled, and no filling where it is none.

    They are returned as they are where all of them fill with the same numbers.
    """
    known = [_fills(graph) for graph in graphs]
    if all(set(fills.values()) == set(known[0].values()) for fills in known):
        return tuple(graphs)
    return tuple(_refilled(graph, fills) for graph, fills in zip(graphs, known, strict=True))


def _fills(graph: Graph) -> dict[int, float]:
    """By ``top_k`` among tensors that are filled in part: the number that they are filled with."""
    choices = [p for p in sorted(graph.live()) if isinstance(graph.nodes[p].op, ops.TopK)]
    pairs = [(p, _filling(graph, graph.nodes[p].operands[0])) for p in choices]
    return {p: found[1] for p, found in pairs if found is not None}


def _filling(graph: Graph, position: int) -> tuple[int, float] | None:
    """Which operand of a selection is one number, and that number."""
    node = graph.nodes[position]
    if isinstance(node.op, ops.Select) and node.type.dtype.is_float and node.type.rank:
        for side in (1, 2):
            number = _number(graph, node.operands[side])
            if number is not None:
                return side, number
    return None


def _refilled(graph: Graph, fills: Collection[int]) -> Graph:
    """The program with minus infinity for the fillings that make no difference, or without them."""
    known = facts_where_defined([graph])[0]
    free = {p: kept for p in fills if (kept := _kept(graph, graph.nodes[p], known))}
    if not free:
        return graph
    places: dict[int, int] = {}
    names = {position: name for name, position in graph.inputs.items()}

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        if position in names:
            places[position] = builder.input(names[position], node.op)
        elif position in free:
            places[position] = builder.add(node.op, _chosen_among(builder, graph, node, free[position], places))
        else:
            places[position] = builder.add(node.op, *operands)
        return places[position]

    return rebuilt(graph, make)


def _chosen_among(builder: GraphBuilder, graph: Graph, choice: Node, kept: int, places: dict[int, int]) -> int:
    """Append what is chosen among, of which so many elements are kept at least."""
    node, found = graph.nodes[choice.operands[0]], _filling(graph, choice.operands[0])
    assert found is not None
    if kept == node.type.shape[-1]:
        return places[node.operands[3 - found[0]]]
    endless = builder.add(ops.Constant(node.type, (-math.inf,)))
    sides = [endless if k == found[0] else places[p] for k, p in enumerate(node.operands)]
    return builder.add(ops.Select(), *sides)


def _kept(graph: Graph, choice: Node, known: Sequence[Facts]) -> int:
    """How many elements of a row are kept at least; none where a filling may be chosen."""
    assert isinstance(choice.op, ops.TopK)
    node, found = graph.nodes[choice.operands[0]], _filling(graph, choice.operands[0])
    if found is None or not isinstance(choice.op.k, int):
        return 0
    side, number = found
    kept = _least(graph, node.operands[0], 1, holds=side == 2, depth=_DEEPEST)
    above = number <= 0 and known[node.operands[3 - side]].is_positive and not known[node.operands[3 - side]].nan
    return kept if kept == node.type.shape[-1] or (above and kept >= choice.op.k) else 0


def _least(graph: Graph, position: int, axes: int, *, holds: bool, depth: int) -> int:
    """How many elements there are at least that hold (are not nought), or do not, whatever the other coordinates.

    They are counted over the last ``axes`` axes.
    """
    node = graph.nodes[position]
    if not depth or not node.type.is_static():
        return 0
    if isinstance(node.op, ops.Not):
        return _least(graph, node.operands[0], axes, holds=not holds, depth=depth - 1)
    if isinstance(node.op, ops.Convert):
        kinds = graph.nodes[node.operands[0]].type.dtype, node.type.dtype
        # Casts that make nought of another number: from floats to integers, and to shorter integers.
        keeps = (
            kinds[0] is kinds[1] or kinds[0].value == "i1" or kinds[1].value == "i1" or all(k.is_float for k in kinds)
        )
        return _least(graph, node.operands[0], axes, holds=holds, depth=depth - 1) if keeps else 0
    if isinstance(node.op, ops.Select):
        numbers = [_number(graph, p) for p in node.operands[1:]]
        if None in numbers or bool(numbers[0]) is bool(numbers[1]):
            return 0
        return _least(graph, node.operands[0], axes, holds=holds is bool(numbers[0]), depth=depth - 1)
    if isinstance(node.op, ops.BroadcastInDim | ops.Reshape):
        return _laid_out(graph, node, axes, holds=holds, depth=depth)
    if axes != 1 or not holds:
        return 0
    return _marked(graph, node)


def _laid_out(graph: Graph, node: Node, axes: int, *, holds: bool, depth: int) -> int:
    """Of how many elements there are at least after a change of layout."""
    (source,) = node.operands
    before, after = (
        tuple(int(str(n)) for n in graph.nodes[source].type.shape),
        tuple(int(str(n)) for n in node.type.shape),
    )
    if isinstance(node.op, ops.Reshape):
        size = math.prod(after[len(after) - axes :])
        fitting = [own for own in range(len(before) + 1) if math.prod(before[len(before) - own :]) == size]
        return max((_least(graph, source, own, holds=holds, depth=depth - 1) for own in fitting), default=0)
    assert isinstance(node.op, ops.BroadcastInDim)
    first, dimensions = len(after) - axes, node.op.dimensions
    inner = [k for k, axis in enumerate(dimensions) if axis >= first]
    if list(dimensions) != sorted(dimensions):
        return 0
    kept = {dimensions[k] for k in inner if before[k] != 1}
    times = math.prod(after[axis] for axis in range(first, len(after)) if axis not in kept)
    return times * _least(graph, source, len(inner), holds=holds, depth=depth - 1)


def _marked(graph: Graph, node: Node) -> int:
    """How many elements of a row hold where a row marks the places that another ``top_k`` chose."""
    if isinstance(node.op, ops.Scatter):
        return _scattered(graph, node)
    if not isinstance(node.op, ops.Compare) or node.op.direction != "EQ":
        return 0
    for counted, other in (node.operands, node.operands[::-1]):
        count, spread = graph.nodes[counted], graph.nodes[other]
        if not isinstance(count.op, ops.Iota) or count.op.dimension != count.type.rank - 1:
            continue
        if _is_even(graph, spread) and _is_place(graph, other, node.type.shape[-1]):
            return 1
    return 0


def _is_even(graph: Graph, node: Node) -> bool:
    """Whether all elements of a row are one."""
    if node.type.shape[-1] == 1:
        return True
    if not isinstance(node.op, ops.BroadcastInDim):
        return False
    dimensions, last = node.op.dimensions, node.type.rank - 1
    return last not in dimensions or graph.nodes[node.operands[0]].type.shape[dimensions.index(last)] == 1


def _is_place(graph: Graph, position: int, size: object) -> bool:
    """Whether all elements are places along an axis of a size."""
    node = graph.nodes[position]
    while isinstance(node.op, ops.Reshape | ops.BroadcastInDim):
        node = graph.nodes[node.operands[0]]
    return isinstance(node.op, ops.TopK) and node.op.result == "indices" and _row(graph, node) == size


def _row(graph: Graph, choice: Node) -> object:
    return graph.nodes[choice.operands[0]].type.shape[-1]


def _scattered(graph: Graph, node: Node) -> int:
    """How many elements of a row are not nought after numbers were written at the places of a ``top_k`` of that row."""
    assert isinstance(node.op, ops.Scatter)
    base, places, updates = (graph.nodes[p] for p in node.operands)
    last = node.type.rank - 1
    rows = tuple(range(last))
    simple = (
        node.op.kind == "replace"
        and node.op.inserted_window_dims == (last,) == node.op.scatter_dims_to_operand_dims
        and node.op.input_batching_dims == rows == node.op.scatter_indices_batching_dims
        and not node.op.update_window_dims
        and node.op.index_vector_dim == places.type.rank == node.type.rank
    )
    number = _number(graph, node.operands[2])
    chosen = (
        isinstance(places.op, ops.TopK) and places.op.result == "indices" and _row(graph, places) == base.type.shape[-1]
    )
    if not simple or not number or not chosen or updates.type.shape != places.type.shape:
        return 0
    assert isinstance(places.op, ops.TopK)
    return places.op.k if isinstance(places.op.k, int) else 0


def _number(graph: Graph, position: int) -> float | None:
    """The number that all elements of a node are; None where they are not one, or are cast to integers."""
    node = graph.nodes[position]
    while isinstance(node.op, ops.BroadcastInDim | ops.Reshape) or _is_cast(node):
        node = graph.nodes[node.operands[0]]
    if not isinstance(node.op, ops.Constant) or len(node.op.values) != 1 or math.isnan(node.op.values[0]):
        return None
    return float(node.op.values[0])


def _is_cast(node: Node) -> bool:
    return isinstance(node.op, ops.Convert) and node.type.dtype.is_float
