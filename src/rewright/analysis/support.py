"""Where a tensor is certainly a real number, or certainly positive, element by element: what masks leave of a row.

A causal mask writes minus infinity into some scores. The facts of the whole tensor then say "may be minus infinity",
and so would those of each row's maximum. But the mask is made of constants and indices alone, so whether it leaves an
element is computed here, at a few elements of each row: the first, the last, and those on the diagonals. A maximum over
a row that has a real number is one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from rewright import ops
from rewright.analysis.points import Open, Places, Points
from rewright.ir.graph import Graph, Node
from rewright.ops.base import Array
from rewright.ops.facts import Facts, facts_between

Kind = Literal["finite", "positive"]
_ALL = 16
"""Rows of no more elements are looked at as a whole."""
_MOST = 1 << 22
"""Rows that are looked at."""
_STEPS = 4000
"""Nodes that one question may look at."""


class Support:
    """The elements of a program's nodes that certainly are real, or positive.

    ``facts`` are those of the nodes so far, by position.
    """

    def __init__(self, graph: Graph, facts: Mapping[int, Facts]) -> None:
        self._graph, self._facts = graph, facts
        self._points = Points(graph)
        self._left = 0

    def strengthens(self, position: int) -> tuple[bool, bool]:
        """Whether a reduction certainly gives real numbers, and whether it gives positive ones."""
        node, found = self._graph.nodes[position], self._facts[position]
        if not isinstance(node.op, ops.Reduce) or not node.type.dtype.is_float or not node.type.is_static():
            return False, False
        real = found.may_be_infinite and node.op.kind in ("maximum", "minimum") and self._holds(position, "finite")
        may_hold = found.zero and found.is_nonnegative and self._may_be_positive(node.operands[0])
        return real, may_hold and self._holds(position, "positive")

    def _may_be_positive(self, position: int) -> bool:
        """Whether elements can be found positive, wherever one looks: squares of what may be zero cannot."""
        node = self._graph.nodes[position]
        if not isinstance(node.op, ops.Elementwise):
            return True
        known = [self._facts[p] for p in node.operands]
        best = [_real(facts, is_positive=facts.is_nonnegative) for facts in known]
        return node.op.facts(best, [self._graph.nodes[p].type for p in node.operands], node.type).is_positive

    def _holds(self, position: int, kind: Kind) -> bool:
        shape = [int(str(n)) for n in self._graph.nodes[position].type.shape]
        if math.prod(shape) > _MOST or 0 in shape:
            return False
        self._left = _STEPS
        try:
            return bool(np.all(self._at(position, tuple(np.ogrid[tuple(slice(n) for n in shape)]), kind)))
        except Open:
            return False

    def _at(self, position: int, places: Places, kind: Kind) -> Array:
        """Whether the elements at some places certainly are of a kind; raises Open where nothing is known of them."""
        self._left -= 1
        node, facts = self._graph.nodes[position], self._facts[position]
        if facts.is_finite and (kind == "finite" or facts.is_positive):
            return np.bool_(True)  # type: ignore[return-value]
        if self._left < 0 or facts.nan or not node.type.dtype.is_float or (kind == "positive" and facts.high <= 0):
            raise Open
        if isinstance(node.op, ops.Constant):
            value = self._points.value(position, places)
            return np.isfinite(value) & ((value > 0) | (kind == "finite"))
        if isinstance(node.op, ops.Select):
            return self._choose(node, places, kind)
        if isinstance(node.op, ops.Reduce):
            return self._reduced(node, node.op, places, kind)
        if isinstance(node.op, ops.Elementwise):
            return self._elementwise(node, node.op, places, kind)
        assert isinstance(node.op, ops.TensorOperator)
        if not node.op.moves(len(node.operands)):
            raise Open
        return self._points.follow_moves(position, places, lambda inner, at: self._at(inner, at, kind))

    def _choose(self, node: Node, places: Places, kind: Kind) -> Array:
        arms = [self._or_nowhere(p, places, kind) for p in node.operands[1:]]
        try:
            predicate = self._points.value(node.operands[0], places)
        except Open:
            return np.logical_and(*arms)
        return np.where(predicate, *arms)

    def _or_nowhere(self, position: int, places: Places, kind: Kind) -> Array:
        try:
            return self._at(position, places, kind)
        except Open:
            return np.bool_(False)  # type: ignore[return-value]

    def _reduced(self, node: Node, op: ops.Reduce, places: Places, kind: Kind) -> Array:
        """A maximum is real if nothing is above all numbers and one element is real; so is the sum of positive ones."""
        inner = self._facts[node.operands[0]]
        infinite = inner.minus_infinity if op.kind == "minimum" else inner.plus_infinity
        needs_all = op.kind == "minimum" and kind == "positive"
        if inner.nan or infinite or needs_all or op.kind not in ("maximum", "minimum", "sum"):
            raise Open
        if op.kind == "sum" and (kind == "finite" or not inner.is_nonnegative):
            raise Open
        found: Array | None = None
        for witness in self._witnesses(node, op, places):
            held = self._or_nowhere(node.operands[0], witness, kind)
            found = held if found is None else found | held
            if bool(np.all(found)):
                return found
        if found is None:
            raise Open
        return found

    def _witnesses(self, node: Node, op: ops.Reduce, places: Places) -> Iterator[Places]:
        """For every row a few of its elements: all of a short row, else ends and what is on diagonals.

        Raises Open for rows of a size that is a symbol.
        """
        source = self._graph.nodes[node.operands[0]].type
        if not source.is_static():
            raise Open
        shape = [int(str(n)) for n in source.shape]
        kept = [axis for axis in range(len(shape)) if axis not in op.dimensions]
        at: dict[int, Array] = dict(zip(kept, places, strict=True))
        for places_along in _product([_along(shape, axis, at) for axis in op.dimensions]):
            whole = {**at, **dict(zip(op.dimensions, places_along, strict=True))}
            yield tuple(whole[axis] for axis in range(len(shape)))

    def _elementwise(self, node: Node, op: ops.Elementwise, places: Places, kind: Kind) -> Array:
        """Where all operands are real numbers, if the function of such numbers, with their signs, is of the kind."""
        found: Array | None = None
        real: list[Facts] = []
        for position in node.operands:
            facts = self._facts[position]
            wants_positive = kind == "positive" and facts.is_nonnegative
            held = self._or_nowhere(position, places, "positive") if wants_positive else None
            is_positive = held is not None and bool(np.any(held))
            held = held if held is not None and is_positive else self._at(position, places, "finite")
            real.append(_real(facts, is_positive=is_positive))
            found = held if found is None else found & held
        types = [self._graph.nodes[p].type for p in node.operands]
        result = op.facts(real, types, node.type)
        if found is None or not result.is_finite or (kind == "positive" and not result.is_positive):
            raise Open
        return found


def _real(facts: Facts, *, is_positive: bool) -> Facts:
    """The facts of elements that are real numbers, and positive, if that is known of them."""
    low, zero = (max(facts.low, 0), False) if is_positive else (facts.low, facts.zero)
    return facts_between(low, facts.high, zero=zero, whole=facts.whole)


def _along(shape: Sequence[int], axis: int, at: Mapping[int, Array]) -> list[Any]:
    """Indices along an axis: all of a short one, else both ends, and for each other axis the two diagonals."""
    size = shape[axis]
    if size <= _ALL:
        return [np.int64(n) for n in range(size)]
    moved = [np.clip(place + d, 0, size - 1) for k, place in at.items() for d in {0, size - shape[k]}]
    return [np.int64(0), np.int64(size - 1), *moved]


def _product(along: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    if not along:
        yield ()
        return
    for first in along[0]:
        for rest in _product(along[1:]):
            yield (first, *rest)
