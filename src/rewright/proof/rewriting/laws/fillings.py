"""The largest elements among some that are kept, the others being filled with a number below these.

A router that first chooses groups of experts fills the scores of all other groups, with zero or with minus infinity,
and then takes the k largest. Where all scores are above the filling, and at least k of them are kept in every row, the
chosen ones are among the kept ones, in the same order: whatever is filled in, the choice is the same. Scores are known
by their facts, and how many are kept by how the mask is made. Where all of them are kept, there is no filling.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rewright import ops
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.types import DType
from rewright.ops.facts import Facts
from rewright.proof.rewriting.laws.marks import Marks
from rewright.proof.rewriting.laws.reading import number

_DEEPEST = 32


class Fillings:
    """``top_k(where(kept, x, 0))`` is ``top_k(where(kept, x, -inf))`` where x is above zero and k of it are kept."""

    def __init__(self, graph: Graph, known: Sequence[Facts]) -> None:
        self._graph, self._known = graph, known
        self._kept = _Kept(graph, known)

    def __call__(self, builder: GraphBuilder, position: int, places: Mapping[int, int]) -> int | None:
        """A choice with minus infinity for a filling that makes no difference, or without a filling."""
        choice, found = self._graph.nodes[position], self.filling(position)
        if found is None or not isinstance(choice.op, ops.TopK) or not isinstance(choice.op.k, int):
            return None
        side, filled = found
        node = self._graph.nodes[choice.operands[0]]
        scores = node.operands[3 - side]
        kept = self._kept.least(node.operands[0], 1, holds=side == 2)
        if kept and kept == node.type.shape[-1]:
            return builder.add(choice.op, places[scores])
        is_above = filled <= 0 and self._known[scores].is_positive and not self._known[scores].nan
        if not kept or not is_above or kept < choice.op.k:
            return None
        minus_infinity = builder.add(ops.Constant(node.type, (-math.inf,)))
        sides = [minus_infinity if k == side else places[p] for k, p in enumerate(node.operands)]
        return builder.add(choice.op, builder.add(ops.Select(), *sides))

    def filling(self, position: int) -> tuple[int, float] | None:
        """Of the selection that a ``top_k`` chooses among: which operand is one number, and that number."""
        choice = self._graph.nodes[position]
        if not isinstance(choice.op, ops.TopK):
            return None
        node = self._graph.nodes[choice.operands[0]]
        if isinstance(node.op, ops.Select) and node.type.dtype.is_float:
            for side in (1, 2):
                found = number(self._graph, self._known, node.operands[side])
                if found is not None:
                    return side, found
        return None


class _Kept:
    """How many elements of every row hold (are not zero), or do not, at least."""

    def __init__(self, graph: Graph, known: Sequence[Facts]) -> None:
        self._graph, self._known = graph, known
        self._marks = Marks(graph, known)
        self._counted: dict[tuple[int, int, bool, int], int] = {}

    def least(self, position: int, axes: int, *, holds: bool, depth: int = _DEEPEST) -> int:
        """How many there are over the last ``axes`` axes, whatever the other coordinates."""
        key = position, axes, holds, depth
        if key not in self._counted:
            self._counted[key] = self._least(position, axes, holds, depth)
        return self._counted[key]

    def _least(self, position: int, axes: int, holds: bool, depth: int) -> int:
        node = self._graph.nodes[position]
        if not depth or not node.type.is_static():
            return 0
        if isinstance(node.op, ops.Not):
            is_logical = node.type.dtype is DType.BOOL
            return self.least(node.operands[0], axes, holds=not holds, depth=depth - 1) if is_logical else 0
        if isinstance(node.op, ops.Convert):
            keeps = _keeps_zero(self._graph.nodes[node.operands[0]].type.dtype, node.type.dtype)
            return self.least(node.operands[0], axes, holds=holds, depth=depth - 1) if keeps else 0
        if isinstance(node.op, ops.Select):
            numbers = [number(self._graph, self._known, p) for p in node.operands[1:]]
            if None in numbers or bool(numbers[0]) is bool(numbers[1]):
                return 0
            return self.least(node.operands[0], axes, holds=holds is bool(numbers[0]), depth=depth - 1)
        if isinstance(node.op, ops.BroadcastInDim | ops.Reshape):
            return self._laid_out(node, axes, holds, depth)
        return self._marks.least(node) if axes == 1 and holds else 0

    def _laid_out(self, node: Node, axes: int, holds: bool, depth: int) -> int:
        """Of how many elements there are at least after a change of layout."""
        (source,) = node.operands
        if not self._graph.nodes[source].type.is_static():
            return 0
        before, after = _sizes(self._graph.nodes[source]), _sizes(node)
        if isinstance(node.op, ops.Reshape):
            size = math.prod(after[len(after) - axes :])
            fitting = [own for own in range(len(before) + 1) if math.prod(before[len(before) - own :]) == size]
            return max((self.least(source, own, holds=holds, depth=depth - 1) for own in fitting), default=0)
        assert isinstance(node.op, ops.BroadcastInDim)
        first, dimensions = len(after) - axes, node.op.dimensions
        if list(dimensions) != sorted(dimensions):
            return 0
        inner = [k for k, axis in enumerate(dimensions) if axis >= first]
        kept = {dimensions[k] for k in inner if before[k] != 1}
        times = math.prod(after[axis] for axis in range(first, len(after)) if axis not in kept)
        return times * self.least(source, len(inner), holds=holds, depth=depth - 1)


def _sizes(node: Node) -> tuple[int, ...]:
    return tuple(int(str(n)) for n in node.type.shape)


def _keeps_zero(source: DType, target: DType) -> bool:
    """Whether a cast makes zero of zero alone, as those to integers and to shorter ones do not."""
    return source is target or DType.BOOL in (source, target) or (source.is_float and target.is_float)
