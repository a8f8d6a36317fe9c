"""Masks that depend on no input: where two programs build one mask in two ways, the right one gets that of the left.

Masks are made of positions, comparisons and selections, without any rounding, so that both are computed at the sizes
of the programs and compared element by element.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from rewright import ops
from rewright.blame.cones import Cutter
from rewright.equiv.lemmas.building import values_of
from rewright.ir.digest import node_digests
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ops.base import Array
from rewright.proof.rewriting.evidence import NUMBERS
from rewright.proof.rewriting.lemma import Lemma
from rewright.proof.rewriting.numbers.closed import compare_closed
from rewright.proof.rewriting.parts import convert_node, copy_nodes
from rewright.proof.rewriting.splices import Splice, Stage

_MOST_ELEMENTS = 1 << 22
_MOST_NODES = 4096
_EXACT = 2.0**53


def shared_masks(left: Graph, right: Graph) -> Stage:
    """Splices that give the right program the masks of the left one."""
    mine, theirs = _masks(left), _masks(right)
    if not mine or not theirs:
        return Stage((), ())
    digests = node_digests(left), node_digests(right)
    # Of the masks that hold the same, those count which something else reads.
    read = _read_elsewhere(left, mine)
    known = {digests[0][position] for position in read}
    wanted = set(_read_elsewhere(right, theirs))
    by_content = {_key(mine[position]): position for position in reversed([*read, *mine])}
    chosen = {
        position: by_content[_key(value)]
        for position, value in theirs.items()
        if digests[1][position] not in known and _key(value) in by_content and position in wanted
    }
    cutters = Cutter(left), Cutter(right)
    splices: list[Splice] = []
    lemmas: dict[str, Lemma] = {}
    for position, source in chosen.items():
        cones = [c.cone(p, _no_leaf, _MOST_NODES) for c, p in zip(cutters, (source, position), strict=True)]
        if cones[0] is None or cones[1] is None:
            continue
        part = laid_out(cones[0].part({}, {}), mine[source], theirs[position], right.nodes[position])
        place = str(left.nodes[source].span), str(right.nodes[position].span)
        lemma = Lemma("", part, cones[1].part({}, {}), NUMBERS, (place,))
        key = lemma.key
        before = lemmas.get(key)
        if before is not None or compare_closed(lemma) == ():
            lemmas[key] = lemma if before is None else replace(before, places=(*before.places, place))
            splices.append(Splice(position, key))
    return Stage(tuple(splices), tuple(lemmas.values()))


def _no_leaf(position: int) -> None:
    return None


def _read_elsewhere(graph: Graph, masks: Mapping[int, Array]) -> list[int]:
    """The masks that something reads which is no mask itself."""
    users = graph.users()
    return [position for position in masks if any(user not in masks for user in users[position])]


def _masks(graph: Graph) -> dict[int, Array]:
    """Exact tensors of at least two axes that depend on no input, with their elements."""
    cutter = Cutter(graph)
    wanted = [
        p
        for p, node in enumerate(graph.nodes)
        if cutter.is_exact(p)
        and not isinstance(node.op, ops.Iota)
        and node.type.is_static()
        and 1 < _count(node) <= _MOST_ELEMENTS
        and (node.type.dtype.is_float or node.type.dtype.value == "i1")
    ]
    if not wanted:
        return {}
    found = values_of(graph, wanted)
    # What is computed says more of a mask than a table of it.
    ordered = sorted(found, key=lambda p: (isinstance(graph.nodes[p].op, ops.Constant), p))
    return {p: found[p] for p in ordered if core(found[p]).ndim >= 2 and is_whole(found[p])}


def _count(node: Node) -> int:
    return int(np.prod([int(str(n)) for n in node.type.shape], dtype=np.int64))


def is_whole(value: Array) -> bool:
    """Whether every element is a whole number or an infinity, which is computed without rounding."""
    if value.dtype.kind != "f":
        return True
    with np.errstate(invalid="ignore"):
        return bool((np.isinf(value) | ((value == np.round(value)) & (np.abs(value) < _EXACT))).all())


def core(value: Array) -> Array:
    """An array without axes along which nothing changes."""
    for axis in range(value.ndim):
        first = value.take([0], axis)
        if value.shape[axis] > 1 and bool((value == first).all()):
            value = first
    return value.reshape([n for n in value.shape if n != 1])


def changing(value: Array) -> list[int]:
    """The axes along which something changes."""
    return [a for a in range(value.ndim) if not bool((value == value.take([0], a)).all())]


def _key(value: Array) -> object:
    own = core(value)
    return own.dtype.kind, own.shape, own.tobytes()


def laid_out(part: Graph, own: Array, wanted: Array, node: Node) -> Graph:
    """A part that makes a mask, in the shape and type of a node that holds the same one."""
    builder, places = GraphBuilder("part"), dict[int, int]()
    copy_nodes(builder, part, range(len(part.nodes)), places)
    position = places[part.outputs["result"]]
    kept = changing(own)
    limits = tuple(n if a in kept else 1 for a, n in enumerate(own.shape))
    if limits != own.shape:
        position = builder.add(ops.Slice((0,) * own.ndim, limits, (1,) * own.ndim), position)
    sizes = tuple(n for n in limits if n != 1)
    if sizes != limits:
        position = builder.add(ops.Reshape(sizes), position)
    position = convert_node(builder, position, node.type)
    builder.output("result", builder.add(ops.BroadcastInDim(node.type.shape, tuple(changing(wanted))), position))
    return builder.build()
