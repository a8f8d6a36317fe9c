"""Masks that depend on no input: where two programs build one mask in two ways, the right one gets that of the left.

Masks are made of positions, comparisons and selections, without any rounding, so that both are computed at the sizes
of the programs and compared element by element.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rewright import ops
from rewright.equiv.building import converted, copy_nodes, pruned, rebuilt
from rewright.equiv.cones import Cutter
from rewright.equiv.lemmas import Lemma
from rewright.interp.program import run_nodes
from rewright.ir.digest import node_digests
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ops.base import Array

_MOST_ELEMENTS = 1 << 22


def shared_masks(left: Graph, right: Graph) -> tuple[Graph, list[Lemma]]:
    """The right program with masks built as the left one builds them, and what was computed for that."""
    mine, theirs = _masks(left), _masks(right)
    if not mine or not theirs:
        return right, []
    known = set(node_digests(left))
    digests = node_digests(right)
    by_content = {_key(value): position for position, value in reversed(mine.items())}
    chosen = {
        position: by_content[_key(value)]
        for position, value in theirs.items()
        if digests[position] not in known and _key(value) in by_content and _is_read(right, position, theirs)
    }
    if not chosen:
        return right, []
    cutter = Cutter(left)

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        source = chosen.get(position)
        if source is None:
            return None
        cone = cutter.cone(source, _no_leaf, 4096)
        if cone is None:
            return None
        places: dict[int, int] = {}
        copy_nodes(builder, left, cone.positions, places)
        return _laid_out(builder, places[source], mine[source], theirs[position], node)

    lemmas = [_lemma(left, right, source, position) for position, source in chosen.items()]
    return rebuilt(right, make), lemmas


def _no_leaf(position: int) -> None:
    return None


def _is_read(graph: Graph, position: int, masks: dict[int, Array]) -> bool:
    """Whether something reads a mask that is no mask itself."""
    return any(position in node.operands and p not in masks for p, node in enumerate(graph.nodes))


def _masks(graph: Graph) -> dict[int, Array]:
    """Exact tensors of at least two axes that depend on no input, with their elements."""
    cutter = Cutter(graph)
    wanted = [
        p
        for p, node in enumerate(graph.nodes)
        if cutter.is_exact(p)
        and not isinstance(node.op, ops.Constant | ops.Iota)
        and node.type.is_static()
        and 1 < _count(node) <= _MOST_ELEMENTS
        and (node.type.dtype.is_float or node.type.dtype.value == "i1")
    ]
    if not wanted:
        return {}
    part = pruned(Graph(graph.nodes, {}, {str(p): p for p in wanted}))
    try:
        values = run_nodes(part, {}, list(part.outputs.values()))
    except RewrightError:
        return {}
    found = {int(name): values[position] for name, position in part.outputs.items()}
    return {p: value for p, value in found.items() if _core(value).ndim >= 2 and is_whole(value)}


def _count(node: Node) -> int:
    return int(np.prod([int(str(n)) for n in node.type.shape], dtype=np.int64))


def is_whole(value: Array) -> bool:
    """Whether every element is a whole number or an infinity, which is computed without rounding."""
    with np.errstate(invalid="ignore"):
        return bool((np.isinf(value) | (value == np.round(value))).all())


def _core(value: Array) -> Array:
    """An array without axes along which nothing changes."""
    for axis in range(value.ndim):
        first = value.take([0], axis)
        if value.shape[axis] > 1 and bool((value == first).all()):
            value = first
    return value.reshape([n for n in value.shape if n != 1])


def _kept(value: Array) -> list[int]:
    """The axes along which something changes."""
    return [a for a in range(value.ndim) if not bool((value == value.take([0], a)).all())]


def _key(value: Array) -> object:
    core = _core(value)
    return core.dtype.kind, core.shape, core.tobytes()


def _laid_out(builder: GraphBuilder, position: int, own: Array, wanted: Array, node: Node) -> int:
    kept = _kept(own)
    limits = tuple(n if a in kept else 1 for a, n in enumerate(own.shape))
    if limits != own.shape:
        position = builder.add(ops.Slice((0,) * own.ndim, limits, (1,) * own.ndim), position)
    core = tuple(n for n in limits if n != 1)
    if core != limits:
        position = builder.add(ops.Reshape(core), position)
    position = converted(builder, position, node.type)
    return builder.add(ops.BroadcastInDim(node.type.shape, tuple(_kept(wanted))), position)


def _lemma(left: Graph, right: Graph, source: int, position: int) -> Lemma:
    place = str(left.nodes[source].span), str(right.nodes[position].span)
    sides: Sequence[Graph] = [
        pruned(Graph(graph.nodes, {}, {"mask": p})) for graph, p in ((left, source), (right, position))
    ]
    return Lemma("", sides[0], sides[1], "computed at its size", (place,))
