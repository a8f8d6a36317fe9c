"""Matrix products that a library computes best, although something could be fused into them.

A kernel multiplies tiles at a share of a library's speed. What it saves is memory: the result of the product, or an
operand that is computed, is written and read where it is stored. Scores of attention have few multiplications an
element and are read several times; a hidden layer has hundreds, and is read once.
"""

from __future__ import annotations

import math

from rewright import ops
from rewright.analysis.moving import laid_out
from rewright.ir.graph import Graph, Node
from rewright.ops.base import Combining
from rewright.optimize.planning.costs import Machine, bytes_of, elements
from rewright.optimize.planning.skipped import kept_share

WHY = "a library multiplies faster than a kernel by more than what is stored for it costs"
FEW = 8
"""Rows that do not repay a copy of what they are multiplied with."""
WIDTH = 4
"""Bytes of an element between a kernel and a library: kernels compute 16 bits in float32."""
_THROUGH = (ops.Elementwise, ops.Layout)


def dense_products(graph: Graph, machine: Machine) -> list[int]:
    """The matrix products of a graph, whose sizes are numbers, that are a library's on a machine."""
    users = graph.users()
    return [p for p in sorted(graph.live()) if _is_dense(graph, users, machine, p)]


def _is_dense(graph: Graph, users: list[list[int]], machine: Machine, position: int) -> bool:
    node = graph.nodes[position]
    if not isinstance(node.op, ops.DotGeneral) or not node.type.dtype.is_float:
        return False
    if _is_of_few_rows(graph, node) and _readings(graph, users, position) > 1:
        return False  # a kernel reads the other operand as it lies, as fast as memory gives it
    left = graph.nodes[node.operands[0]].type
    depth = math.prod(int(str(left.shape[axis])) for axis in node.op.lhs_contracting)
    operands = [laid_out(graph, p) for p in node.operands]
    traffic = sum(bytes_of(graph, p) for p in (position, *operands))
    stored = _readings(graph, users, position) * elements(graph, position)
    stored += sum(_writings(graph, p) * elements(graph, p) for p in set(operands) if _is_computed(graph, p))
    size = elements(graph, position)
    found = is_for_library(size, depth, traffic, stored, machine)
    return found and is_for_library(size, depth, traffic, stored, machine, kept_share(graph, users, position))


def _is_of_few_rows(graph: Graph, node: Node) -> bool:
    """Whether a product has so few rows on one side, for each element of its batch, as a step of generation has."""
    op = node.op
    assert isinstance(op, ops.DotGeneral)
    left, right = (graph.nodes[p].type.shape for p in node.operands)
    own = (*op.lhs_batch, *op.lhs_contracting), (*op.rhs_batch, *op.rhs_contracting)
    sides = [
        math.prod(int(str(n)) for axis, n in enumerate(s) if axis not in o)
        for s, o in zip((left, right), own, strict=True)
    ]
    return min(sides) <= FEW


def is_for_library(size: int, depth: int, traffic: int, stored: int, machine: Machine, kept: float = 1.0) -> bool:
    """Whether a library multiplies so much faster that storing some elements for it costs less.

    ``size`` elements are each a sum of ``depth`` products; ``traffic`` are the bytes of what is given and made, and
    ``kept`` the share of the tiles that a kernel does not skip.
    """
    exact, moved = 2 * size * depth / (machine.products * machine.units), traffic / machine.bytes
    lost = max(kept * exact / machine.share, moved) - max(exact, moved)
    return lost > 2 * WIDTH * stored / machine.bytes


def _readings(graph: Graph, users: list[list[int]], position: int) -> int:
    """How often a result is read that would not be stored: twice where it is reduced and used again."""
    reduced = used = False
    seen: set[int] = set()
    stack = list(users[position])
    while stack:
        p = stack.pop()
        if p in seen:
            continue
        seen.add(p)
        op = graph.nodes[p].op
        reduced |= isinstance(op, ops.Reduce)
        used |= not isinstance(op, (ops.Reduce, ops.View))
        if isinstance(op, _THROUGH):
            stack.extend(users[p])
    return 2 if reduced else int(used)


def _writings(graph: Graph, position: int) -> int:
    """How often an operand is gone through that would not be stored: twice where a reduction of it is a part of it."""
    seen: set[int] = set()
    stack = [position]
    while stack:
        p = stack.pop()
        if p in seen:
            continue
        seen.add(p)
        node = graph.nodes[p]
        if isinstance(node.op, ops.Reduce) and elements(graph, node.operands[0]) == elements(graph, position):
            return 2
        if isinstance(node.op, (*_THROUGH, ops.Reduce)):
            stack.extend(node.operands)
    return 1


def _is_computed(graph: Graph, position: int) -> bool:
    """Whether a tensor is stored for the library alone: what libraries compute, and what is given, is stored anyway."""
    op = graph.nodes[position].op
    return isinstance(op, (*_THROUGH, Combining))
