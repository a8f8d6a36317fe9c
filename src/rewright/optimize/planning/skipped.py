"""How much of a matrix product a kernel does not compute, because a mask of places leaves nothing of whole tiles.

A library computes all of it. In causal attention half of the scores are masked, and half of their gradients are zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from rewright import ops
from rewright.interp.program import run
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ops.base import Array
from rewright.optimize.planning.costs import elements

TILE = 64
"""Tiles of so many rows and columns are skipped."""
MOST = 1 << 24
"""Elements of a mask that is looked at."""
LOWEST = -1e4
"""What adds less is a mask: float16 has no numbers far below."""


@dataclass(frozen=True)
class _Mask:
    """A tensor that depends on no input, and what its elements are where it keeps something."""

    position: int
    kept: Callable[[Array], Array]


def kept_share(graph: Graph, users: list[list[int]], position: int) -> float:
    """The share of the tiles of a product, or of its wider operand, that a mask leaves something of."""
    masks = [*_after(graph, users, position)]
    for operand in graph.nodes[position].operands:
        masks += _before(graph, operand)
    return min((_share(graph, mask) for mask in masks), default=1.0)


def _after(graph: Graph, users: list[list[int]], position: int) -> Iterator[_Mask]:
    """The masks of what is made of a product element by element, or of what that is multiplied by."""
    seen: set[int] = set()
    stack = [position]
    while stack:
        p = stack.pop()
        for user in users[p]:
            node = graph.nodes[user]
            if isinstance(node.op, ops.Multiply):
                for operand in node.operands:
                    yield from _before(graph, operand) if operand != p else ()
            yield from _own(graph, user)
            if user not in seen and _is_alike(graph, p, user):
                seen.add(user)
                stack.append(user)


def _before(graph: Graph, position: int) -> Iterator[_Mask]:
    """The masks that a tensor is made with element by element."""
    seen: set[int] = set()
    stack = [position]
    while stack:
        p = stack.pop()
        yield from _own(graph, p)
        for operand in graph.nodes[p].operands:
            if operand not in seen and _is_alike(graph, operand, p):
                seen.add(operand)
                stack.append(operand)


def _own(graph: Graph, position: int) -> Iterator[_Mask]:
    """The mask that a node applies: it chooses between something and a constant, or adds minus infinity."""
    node = graph.nodes[position]
    if isinstance(node.op, ops.Select):
        fixed = [_is_fixed(graph, choice) for choice in node.operands[1:]]
        if fixed == [True, False]:
            yield _Mask(node.operands[0], np.logical_not)
        elif fixed == [False, True]:
            yield _Mask(node.operands[0], lambda value: value)
    elif isinstance(node.op, ops.Add):
        for operand in node.operands:
            if _is_fixed(graph, operand):
                yield _Mask(operand, lambda value: value > LOWEST)


def _is_alike(graph: Graph, one: int, other: int) -> bool:
    """Whether one tensor is made of the other element by element, with as many of them."""
    is_through = isinstance(graph.nodes[other].op, (ops.Elementwise, ops.Layout))
    return is_through and elements(graph, one) == elements(graph, other)


def _is_fixed(graph: Graph, position: int) -> bool:
    """Whether a tensor depends on no input."""
    return not any(isinstance(graph.nodes[p].op, ops.Input) for p in graph.ancestors([position]))


def _share(graph: Graph, mask: _Mask) -> float:
    """The share of tiles of which a mask keeps something; 1 where that is not known."""
    position = mask.position
    while isinstance(graph.nodes[position].op, ops.BroadcastInDim):
        position = graph.nodes[position].operands[0]
    if not 0 < elements(graph, position) <= MOST or not _is_fixed(graph, position):
        return 1.0
    try:
        (value,) = run(_alone(graph, position), {}).values()
    except RewrightError:
        return 1.0
    rows, columns = value.shape[-2:] if value.ndim > 1 else (1, 1)
    kept = np.asarray(mask.kept(value)).reshape(-1, rows, columns)
    tiles = [kept[:, r : r + TILE, c : c + TILE].any((1, 2)) for r, c in _corners(rows, columns)]
    return float(np.mean(tiles))


def _corners(rows: int, columns: int) -> Iterable[tuple[int, int]]:
    return ((r, c) for r in range(0, rows, TILE) for c in range(0, columns, TILE))


def _alone(graph: Graph, position: int) -> Graph:
    """What computes a node that depends on no input."""
    builder = GraphBuilder("mask")
    copies: dict[int, int] = {}
    for p in sorted(graph.ancestors([position])):
        node = graph.nodes[p]
        copies[p] = builder.add(node.op, *(copies[o] for o in node.operands))
    builder.output("mask", copies[position])
    return builder.build()
