"""What single elements may be: the facts of a node at one place, where a mask says which branch is taken there."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import numpy as np

from rewright import ops
from rewright.analysis.points import Open, Places, Points
from rewright.ir.graph import Graph
from rewright.ops.base import Array
from rewright.ops.facts import Facts, is_no_number, of_values

_DEEPEST = 40
_MOST_AXES = 5
_MOST = 2000
"""Elements that one question looks at."""


def is_never_defined(graph: Graph, facts: Mapping[int, Facts], position: int) -> bool:
    """Whether some element of a node certainly is not defined, whatever the inputs are.

    Looked at are the corners of the tensor: a causal mask masks one of them.
    """
    node = graph.nodes[position]
    if not node.type.is_static() or node.type.rank > _MOST_AXES or node.type.size() == 0:
        return False
    shape = [int(str(n)) for n in node.type.shape]
    reader = _Reader(graph, facts)
    return any(reader.is_undefined(position, corner) for corner in _corners(shape))


def _corners(shape: list[int]) -> Iterator[Places]:
    for ends in itertools.product(*(sorted({0, n - 1}) for n in shape)):
        yield tuple(np.asarray(end) for end in ends)


class _Reader:
    """Reads facts at one place."""

    def __init__(self, graph: Graph, facts: Mapping[int, Facts]) -> None:
        self._graph, self._facts = graph, facts
        self._points = Points(graph)
        self._left = _MOST

    def is_undefined(self, position: int, place: Places) -> bool:
        """Whether an element is certainly NaN, or infinite although it is computed of numbers."""
        node = self._graph.nodes[position]
        if not isinstance(node.op, ops.Elementwise) or not node.type.dtype.is_float:
            return False
        operands = [self.at(p, place, _DEEPEST) for p in node.operands]
        types = [self._graph.nodes[p].type for p in node.operands]
        found = node.op.facts(operands, types, node.type)
        return is_no_number(found) and bool(node.op.condition(operands, node.type, found))

    def computed(self, position: int, place: Places, depth: int) -> Facts:
        """The facts of an element, from those of the elements that it is computed from."""
        node = self._graph.nodes[position]
        if isinstance(node.op, ops.Elementwise) and not isinstance(node.op, ops.Select):
            operands = [self.at(p, place, depth - 1) for p in node.operands]
            types = [self._graph.nodes[p].type for p in node.operands]
            return node.op.facts(operands, types, node.type)
        return self._facts[position]

    def at(self, position: int, place: Places, depth: int) -> Facts:
        """What is known of an element: that of the whole tensor, or more."""
        node, whole = self._graph.nodes[position], self._facts[position]
        self._left -= 1
        if depth <= 0 or self._left <= 0 or not node.type.dtype.is_float:
            return whole
        is_plain = isinstance(node.op, ops.Elementwise) and not isinstance(node.op, ops.Select)
        if whole.is_finite and not is_plain:
            return whole
        try:
            if isinstance(node.op, ops.Constant):
                return of_values(np.atleast_1d(self._points.value(position, place)).tolist())
            if isinstance(node.op, ops.Select):
                chosen = 1 if bool(np.all(self._points.value(node.operands[0], place))) else 2
                return self.at(node.operands[chosen], place, depth - 1)
            if isinstance(node.op, ops.Elementwise):
                return self.computed(position, place, depth)
            return self._move(position, place, depth)
        except Open:
            return whole

    def _move(self, position: int, place: Places, depth: int) -> Facts:
        """The facts of the element that an operator moves to a place."""
        found: list[Facts] = []

        def read(inner: int, at: Places) -> Array:
            found.append(self.at(inner, at, depth - 1))
            return np.asarray(0.0)

        node = self._graph.nodes[position]
        assert isinstance(node.op, ops.TensorOperator)
        if not node.op.moves(len(node.operands)):
            return self._facts[position]
        self._points.follow_moves(position, place, read)
        return found[0] if len(found) == 1 else self._facts[position]
