"""The values of a program at some places, where they depend on constants and indices alone.

A mask of 100,000 by 100,000 scores is never written out: its denotation is read at the places that matter.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rewright import ops
from rewright.ir.graph import Graph
from rewright.ir.operator import Unsupported
from rewright.ops.base import Array
from rewright.terms.index import Index, Quotient, Remainder, Variable
from rewright.terms.scalar import AllOf, Apply, AtLeastZero, Choose, Condition, Fixed, Number, Read, Scalar, Table

Places = tuple[Array, ...]
"""One array of indices for each axis, which together are broadcast; open grids keep what does not vary small."""
_DEEPEST = 300


class Open(Exception):
    """What is asked for depends on more than constants and indices, or is too large to be computed."""


class Points:
    """Reads a program at places."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._denotations: dict[int, Scalar | Unsupported] = {}
        self._depth = 0

    def value(self, position: int, places: Places) -> Array:
        """The elements of a node at places; raises Open where they depend on inputs."""
        node = self._graph.nodes[position]
        if not isinstance(node.op, ops.TensorOperator) or isinstance(node.op, ops.Input) or self._depth > _DEEPEST:
            raise Open
        self._depth += 1
        try:
            if isinstance(node.op, ops.Elementwise):
                operands = [np.asarray(self.value(p, places)) for p in node.operands]
                found = node.op.execute(np.broadcast_arrays(*operands))
                if node.type.dtype.is_float and not np.all(np.isfinite(found) & (found == np.floor(found))):
                    raise Open  # doubles round what is exact here, and a comparison may see that
                return found
            return np.asarray(self.follow_moves(position, places, self.value))
        finally:
            self._depth -= 1

    def follow_moves(self, position: int, places: Places, read: Callable[[int, Places], Array]) -> Array:
        """What an operator that moves elements gives at places, of what ``read`` gives of its operands there."""
        if position not in self._denotations:
            node = self._graph.nodes[position]
            assert isinstance(node.op, ops.TensorOperator)
            types = [self._graph.nodes[p].type for p in node.operands]
            self._denotations[position] = node.op.denote(types)
        found = self._denotations[position]
        if isinstance(found, Unsupported):
            raise Open
        at = {Variable(f"i{axis}"): place for axis, place in enumerate(places)}
        operands = self._graph.nodes[position].operands
        return self._scalar(found, at, lambda k, inner: read(operands[k], inner))

    def _scalar(self, value: Scalar, at: dict[Variable, Array], read: Callable[[int, Places], Array]) -> Array:
        if isinstance(value, Read):
            return read(value.operand, tuple(_index(i, at) for i in value.index))
        if isinstance(value, Choose):
            return self._choice(value, at, read)
        if isinstance(value, Fixed):
            return np.asarray(value.value)
        if isinstance(value, Number):
            return _index(value.index, at)
        if isinstance(value, Table):
            return np.asarray(value.values)[_index(value.index, at)]
        if isinstance(value, Apply) and value.function.startswith("convert_"):
            return self._scalar(value.arguments[0], at, read)
        raise Open

    def _choice(self, value: Choose, at: dict[Variable, Array], read: Callable[[int, Places], Array]) -> Array:
        """Both arms are read at the places where they count: elsewhere their indices may be out of range."""
        holds = np.asarray(_holds(value.condition, at))
        if holds.all():
            return self._scalar(value.on_true, at, read)
        if not holds.any():
            return self._scalar(value.on_false, at, read)
        whole = np.broadcast_shapes(holds.shape, *(place.shape for place in at.values()))
        holds = np.broadcast_to(holds, whole)
        spread = {name: np.broadcast_to(place, whole) for name, place in at.items()}
        yes = self._scalar(value.on_true, {name: place[holds] for name, place in spread.items()}, read)
        no = self._scalar(value.on_false, {name: place[~holds] for name, place in spread.items()}, read)
        result = np.empty(whole, np.result_type(yes, no))
        result[holds], result[~holds] = yes, no
        return result


def _index(index: Index, at: dict[Variable, Array]) -> Array:
    if not isinstance(index.constant, int):
        raise Open
    total: Array = np.asarray(index.constant)
    for atom, factor in index.terms:
        if not isinstance(factor, int):
            raise Open
        if isinstance(atom, Variable):
            part = at[atom]
        elif isinstance(atom, Quotient | Remainder) and isinstance(atom.divisor, int):
            inner = _index(atom.numerator, at)
            part = inner // atom.divisor if isinstance(atom, Quotient) else inner % atom.divisor
        else:
            raise Open
        total = total + part * factor
    return total


def _holds(condition: Condition, at: dict[Variable, Array]) -> Array:
    if isinstance(condition, AllOf):
        found: Array = np.asarray(True)
        for one in condition.conditions:
            found = found & _holds(one, at)
        return found
    value = _index(condition.index, at)
    return value >= 0 if isinstance(condition, AtLeastZero) else value == 0
