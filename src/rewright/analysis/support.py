"""Where a tensor is certainly a real number, or certainly positive, element by element: what masks leave of a row.

A causal mask writes minus infinity into some scores. The facts of the whole tensor then say "may be minus infinity",
and so would those of each row's maximum. But the mask is made of constants and indices alone, so which scores it
leaves is computed here, and a maximum over a row of which it leaves something is a real number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from rewright import ops
from rewright.ir.graph import Graph, Node
from rewright.ops.base import Array
from rewright.ops.facts import Facts, between

Kind = Literal["finite", "positive"]
_MOST = 1 << 25
"""Elements of a tensor that is computed here."""


@dataclass
class Support:
    """The elements of a program's nodes that certainly are real, or positive; computed where they are asked for.

    ``facts`` are those of the nodes so far, by position.
    """

    graph: Graph
    facts: Mapping[int, Facts]
    _closed: dict[int, Array | None] = field(default_factory=dict[int, "Array | None"])
    _known: dict[tuple[int, Kind], Array | None] = field(default_factory=dict[tuple[int, Kind], "Array | None"])

    def strengthened(self, position: int) -> Facts:
        """The facts of a reduction whose every row is known to have a real number, or a positive one."""
        node, found = self.graph.nodes[position], self.facts[position]
        if not isinstance(node.op, ops.Reduce) or not node.type.dtype.is_float or not node.type.is_static():
            return found
        if found.may_be_infinite and node.op.kind in ("maximum", "minimum") and self._holds(position, "finite"):
            found = replace(found, plus_infinity=False, minus_infinity=False)
        if found.zero and found.is_nonnegative and self._holds(position, "positive"):
            found = replace(found, zero=False)
        return found

    def _holds(self, position: int, kind: Kind) -> bool:
        where = self.where(position, kind)
        return where is not None and bool(where.all())

    def where(self, position: int, kind: Kind) -> Array | None:
        """The elements that certainly are of a kind; None where nothing is known of single elements."""
        key = position, kind
        if key not in self._known:
            self._known[key] = self._where(position, kind)
        return self._known[key]

    def _where(self, position: int, kind: Kind) -> Array | None:
        node, facts = self.graph.nodes[position], self.facts.get(position)
        if facts is None or not node.type.is_static():
            return None
        shape = tuple(int(str(n)) for n in node.type.shape)
        if facts.is_finite and (kind == "finite" or facts.is_positive):
            return np.broadcast_to(np.True_, shape)
        if facts.nan or not node.type.dtype.is_float or (kind == "positive" and facts.high <= 0):
            return None
        op, operands = node.op, node.operands
        if isinstance(op, ops.Constant):
            return self._constant(op, kind)
        if isinstance(op, ops.Select):
            return self._selected(node, kind)
        if isinstance(op, ops.Reduce):
            return self._reduced(node, op, kind)
        if isinstance(op, ops.TensorOperator) and operands and op.moves(len(operands)) == tuple(range(len(operands))):
            return self._moved(op, [self.where(p, kind) for p in operands])
        if isinstance(op, ops.Elementwise):
            return self._elementwise(node, kind)
        return None

    def _constant(self, op: ops.Constant, kind: Kind) -> Array | None:
        if len(op.values) == 1:
            shape = tuple(int(str(n)) for n in op.tensor.shape)
            held = math.isfinite(op.values[0]) and (kind == "finite" or op.values[0] > 0)
            return np.broadcast_to(np.bool_(held), shape)
        values = op.execute(())
        return np.isfinite(values) & (values > 0) if kind == "positive" else np.isfinite(values)

    def _selected(self, node: Node, kind: Kind) -> Array | None:
        predicate = self.closed(node.operands[0])
        on_true, on_false = (self.where(p, kind) for p in node.operands[1:])
        nowhere = np.broadcast_to(np.False_, tuple(int(str(n)) for n in node.type.shape))
        on_true, on_false = (nowhere if arm is None else arm for arm in (on_true, on_false))
        if predicate is None:
            return _compactly(np.logical_and, on_true, on_false)
        return _compactly(np.where, predicate, on_true, on_false)

    def _reduced(self, node: Node, op: ops.Reduce, kind: Kind) -> Array | None:
        inner, before = self.facts[node.operands[0]], self.where(node.operands[0], kind)
        if before is None or inner.nan:
            return None
        if op.kind in ("maximum", "minimum"):
            # The largest element is no less than one that is real, and infinite only where one is.
            outer = inner.plus_infinity if op.kind == "maximum" else inner.minus_infinity
            reduce = np.all if outer or (kind == "positive" and op.kind == "minimum") else np.any
        elif op.kind == "sum" and kind == "positive" and inner.is_nonnegative and not inner.plus_infinity:
            reduce = np.any
        elif op.kind == "sum":
            reduce = np.all
        else:
            return None
        found = reduce(before[_varying(before)], axis=op.dimensions)
        return np.broadcast_to(found, tuple(int(str(n)) for n in node.type.shape))

    def _moved(self, op: ops.TensorOperator, operands: Sequence[Array | None]) -> Array | None:
        held = [operand for operand in operands if operand is not None]
        if len(held) < len(operands) or any(operand.size > _MOST for operand in held):
            return None
        return op.execute(held)

    def _elementwise(self, node: Node, kind: Kind) -> Array | None:
        """Where all operands are real numbers, if a function of real numbers, with their signs, is of the kind."""
        found: Array | None = None
        known = [self.facts[p] for p in node.operands]
        real: list[Facts] = []
        for position, facts in zip(node.operands, known, strict=True):
            positive = self.where(position, "positive") if facts.is_nonnegative and kind == "positive" else None
            wanted = self.where(position, "finite") if positive is None else positive
            if wanted is None:
                return None
            real.append(_restricted(facts, is_positive=positive is not None))
            found = wanted if found is None else _compactly(np.logical_and, found, wanted)
        types = [self.graph.nodes[p].type for p in node.operands]
        assert isinstance(node.op, ops.TensorOperator)
        result = node.op.facts(real, types, node.type)
        return found if result.is_finite and (kind == "finite" or result.is_positive) else None

    def closed(self, position: int) -> Array | None:
        """The values of a node that is made of constants and indices alone; None for any other one, and large ones."""
        if position not in self._closed:
            self._closed[position] = self._evaluated(self.graph.nodes[position])
        return self._closed[position]

    def _evaluated(self, node: Node) -> Array | None:
        op, size = node.op, node.type.size()
        if not isinstance(op, ops.TensorOperator) or isinstance(op, ops.Input | ops.Collective | ops.CustomCall):
            return None
        if not isinstance(size, int) or size > _MOST:
            return None
        operands = [self.closed(p) for p in node.operands]
        held = [operand for operand in operands if operand is not None]
        return op.execute(held) if len(held) == len(operands) else None


def _restricted(facts: Facts, *, is_positive: bool) -> Facts:
    """What is known of the elements that are real numbers, or positive ones."""
    low, zero = (max(facts.low, 0), False) if is_positive else (facts.low, facts.zero)
    return between(low, facts.high, zero=zero, whole=facts.whole)


def _varying(values: Array) -> tuple[slice, ...]:
    """Of each axis along which an array is the same all along, one element; empty axes stay empty."""
    return tuple(
        slice(0, 1) if stride == 0 and n > 1 else slice(None)
        for n, stride in zip(values.shape, values.strides, strict=True)
    )


def _compactly(function: Callable[..., Array], *operands: Array) -> Array:
    """An elementwise function, computed once where operands are the same all along an axis."""
    shape = np.broadcast_shapes(*(operand.shape for operand in operands))
    return np.broadcast_to(function(*(operand[_varying(operand)] for operand in operands)), shape)
