"""What machines make of values: whole numbers rounded to their type, and rounding made large enough to be seen.

Floats are computed in float64 whatever their type, for a proof is about real numbers. Two things of a machine matter
all the same. Ids, positions and counts that pass through a short float type are other whole numbers afterwards, which
read other rows. And what rounding alone explains is no difference: a program that is run with coarse rounding shows how
far rounding reaches, element by element.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from rewright import ops
from rewright.interp.machine import Settle
from rewright.ir.graph import Graph, Node
from rewright.ir.types import DType
from rewright.ops.base import Array
from rewright.ops.facts import DIGITS, REAL
from rewright.ops.unary import Unary

_EXACT = 2.0**53
_DROPPED = 31
"""Digits of a float64 that coarse rounding drops: what is left is a little less than single precision."""
_JITTER = 5
"""Coarse rounding goes up or down by less than two to this power, in units of the last digit that is left."""


def whole_nodes(graph: Graph) -> frozenset[int]:
    """The float nodes that are made of integers and numbers alone: ids, positions and counts, and what is made of them.

    What is computed from a float input is none. Whether values are whole is seen when they are computed.
    """
    found: set[int] = set()
    for position, node in enumerate(graph.nodes):
        if isinstance(node.op, ops.Input):
            alone = not node.type.dtype.is_float
        else:
            alone = all(operand in found for operand in node.operands)
        if alone:
            found.add(position)
    return frozenset(p for p in found if graph.nodes[p].type.dtype.is_float)


def shortest(graph: Graph, nodes: Collection[int]) -> int:
    """The fewest digits that the type of one of these float nodes has; 53 where there is none."""
    return min((DIGITS[graph.nodes[p].type.dtype] for p in nodes), default=53)


class WholeNumbers:
    """Rounds whole numbers that are made of integers to the type that holds them, and notes where that changes them.

    With ``rounds=False`` it only notes where that would be.
    """

    def __init__(self, graph: Graph, *, rounds: bool = True) -> None:
        self._graph, self._rounds = graph, rounds
        self._nodes = whole_nodes(graph)
        self.changed: list[int] = []
        """The nodes at which a number was another one afterwards, in the order of the program."""

    def __call__(self, position: int, value: Array) -> Array:
        """The value as its type holds it."""
        if position not in self._nodes or value.dtype.kind != "f":
            return value
        dtype = self._graph.nodes[position].type.dtype
        with np.errstate(all="ignore"):
            if not bool(((value == np.rint(value)) & (np.abs(value) < _EXACT)).all()):
                return value
            rounded = rounded_to(value, dtype)
        if np.array_equal(rounded, value):
            return value
        self.changed.append(position)
        return rounded if self._rounds else value


def rounded_to(value: Array, dtype: DType) -> Array:
    """Floats as a float type holds them, to the nearest and to the even one of two."""
    with np.errstate(over="ignore"):
        if dtype is DType.F16:
            return value.astype(np.float16).astype(value.dtype)
        if dtype not in (DType.F32, DType.BF16):
            return value
        single = value.astype(np.float32)
    if dtype is DType.F32:
        return single.astype(value.dtype)
    bits = single.view(np.uint32).astype(np.uint64)
    even = (bits >> np.uint64(16)) & np.uint64(1)
    kept = (bits + np.uint64(0x7FFF) + even) & np.uint64(0xFFFF0000)
    return kept.astype(np.uint32).view(np.float32).astype(value.dtype)


def coarse(seed: int, graph: Graph | None = None) -> Settle:
    """Float64 with the digits of single precision, rounded at random.

    Equal numbers are rounded alike, so that ties stay ties, and numbers of few digits and whole numbers stay as they
    are, so that what is computed exactly is exact. With a ``graph`` that is run, functions of it that came so near to
    a whole number that they were rounded to it are rounded at random too: ``erf(7.5)`` is less than one.
    """
    rounds = _Saturation(graph) if graph is not None else None

    def settle(position: int, value: Array) -> Array:
        if value.dtype != np.float64:
            return value
        saturated = rounds.seen(position, value) if rounds is not None else None
        return _coarse(value, seed, saturated)

    return settle


class _Saturation:
    """Which numbers a run has in the place of others that are nearly the same, and that floats do not tell apart.

    ``erf(7.5)`` is one, and so is ``1 + 1e-20``.
    """

    def __init__(self, graph: Graph) -> None:
        self._sums = {p: n.operands for p, n in enumerate(graph.nodes) if isinstance(n.op, ops.Add | ops.Subtract)}
        self._added = frozenset(p for operands in self._sums.values() for p in operands)
        self._values: dict[int, Array] = {}
        """Of operands of sums."""
        self._operands = {p: node.operands[0] for p, node in enumerate(graph.nodes) if _is_function(graph, node)}
        self._read = frozenset(self._operands.values())
        self._whole: dict[int, Array] = {}
        """For operands of functions, where they are whole."""

    def seen(self, position: int, value: Array) -> Array | None:
        """Where elements are whole, not zero, and functions of what is not, or sums in which an addend was lost."""
        if position in self._added:
            self._values[position] = value
        whole = value == np.rint(value)
        if position in self._read:
            self._whole[position] = whole
        if position in self._sums:
            return self._absorbed(position, value)
        operand = self._whole.get(self._operands.get(position, -1))
        return None if operand is None else whole & (value != 0) & ~operand

    def _absorbed(self, position: int, value: Array) -> Array | None:
        """Where a sum is one of its addends, and the other one is not zero."""
        sides = [self._values.get(operand) for operand in self._sums[position]]
        known = [side for side in sides if side is not None]
        if len(known) < 2:
            return None
        one, other = known
        return ((value == one) & (other != 0)) | ((np.abs(value) == np.abs(other)) & (one != 0) & (value != 0))


def _is_function(graph: Graph, node: Node) -> bool:
    """Whether a node is a function of one number that is not whole by itself, as a floor is."""
    if not isinstance(node.op, Unary) or not node.type.dtype.is_float:
        return False
    types = [graph.nodes[operand].type for operand in node.operands]
    return not node.op.facts([REAL], types, node.type).whole


def _coarse(value: Array, seed: int, besides: Array | None = None) -> Array:
    bits = np.ascontiguousarray(value).view(np.uint64)
    dropped = np.uint64((1 << _DROPPED) - 1)
    with np.errstate(all="ignore"):
        moves = ((bits & dropped) != 0) & (value != np.rint(value))
        moves = (moves if besides is None else moves | besides) & np.isfinite(value)
        if not moves.any():
            return value
        mixed = (bits ^ np.uint64(seed * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF)) * np.uint64(0xD6E8FEB86659FD93)
        mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
        step: Any = (mixed >> np.uint64(64 - _JITTER)).astype(np.int64) - (1 << (_JITTER - 1))
        moved = ((bits & ~dropped).view(np.int64) + (step << _DROPPED)).view(np.float64)
    return np.where(moves, moved, value).reshape(value.shape)
