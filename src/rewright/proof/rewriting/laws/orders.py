"""Steps of quantisation that exchange places, exactly and over all real numbers.

The larger of a row's largest element and of its negative's is its largest absolute value. Rounding keeps the order and
leaves whole numbers alone, so that ``round(minimum(x, 7))`` is ``minimum(round(x), 7)``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rewright import ops
from rewright.analysis.evenness import splat
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.operator import Operator
from rewright.ops.facts import Facts


@dataclass(frozen=True)
class _Extreme:
    """The largest of a tensor, or of its negative, along some axes, and how that is laid out, from outside."""

    source: int
    axes: tuple[int, ...]
    layout: tuple[Operator, ...]
    of_negative: bool
    of_absolute: bool
    """Whether the absolute value is taken of the largest, or of the least, element."""


class Orders:
    """Absolute values below maxima, and clamps to whole numbers behind what rounds."""

    def __init__(self, graph: Graph, known: Sequence[Facts]) -> None:
        self._graph = graph

    def __call__(self, builder: GraphBuilder, position: int, places: Mapping[int, int]) -> int | None:
        """The step in its usual place; None where it is there, or none."""
        node = self._graph.nodes[position]
        if isinstance(node.op, ops.Maximum) and node.type.dtype.is_float:
            return self._absolute(builder, node.operands, places)
        rounds = isinstance(node.op, ops.RoundingToWhole)
        return self._behind(builder, node.op, node.operands[0], places) if rounds else None

    def _behind(self, builder: GraphBuilder, op: Operator, position: int, places: Mapping[int, int]) -> int | None:
        """What rounds in front of clamps, maxima and minima with whole numbers; None where there are none."""
        node = self._graph.nodes[position]
        if not isinstance(node.op, ops.Clamp | ops.Extremum):
            return None
        ends = [splat(self._graph, p) for p in node.operands]
        for k in range(len(ends)):
            if all(_is_whole(end) for n, end in enumerate(ends) if n != k):
                inner = self._behind(builder, op, node.operands[k], places)
                rounded = builder.add(op, places[node.operands[k]]) if inner is None else inner
                return builder.add(node.op, *(rounded if n == k else places[p] for n, p in enumerate(node.operands)))
        return None

    def _absolute(self, builder: GraphBuilder, operands: Sequence[int], places: Mapping[int, int]) -> int | None:
        """The largest absolute value, where two tensors are the largest element and that of the negative."""
        one, other = (self._extreme(p) for p in operands)
        if one is None or other is None or one.of_negative == other.of_negative:
            return None
        shape = self._graph.nodes[one.source].type.shape
        if _but_for_sign(one) != _but_for_sign(other) or any(shape[axis] == 0 for axis in one.axes):
            return None
        place = builder.add(ops.Reduce("maximum", one.axes), builder.add(ops.Abs(), places[one.source]))
        for layout in reversed(one.layout):
            place = builder.add(layout, place)
        return place

    def _extreme(self, position: int) -> _Extreme | None:
        layout: list[Operator] = []
        negated = absolute = False
        node = self._graph.nodes[position]
        while isinstance(node.op, ops.View | ops.Negate | ops.Abs):
            if isinstance(node.op, ops.Abs):
                if negated:
                    return None
                absolute = True
            elif isinstance(node.op, ops.Negate):
                negated = not negated
            else:
                layout.append(node.op)
            node = self._graph.nodes[node.operands[0]]
        if not isinstance(node.op, ops.Reduce) or node.op.kind not in ("maximum", "minimum"):
            return None
        source, inner = node.operands[0], self._graph.nodes[node.operands[0]]
        turned = isinstance(inner.op, ops.Negate)
        source = inner.operands[0] if turned else source
        is_least = node.op.kind == "minimum"
        if not absolute and negated != is_least:
            return None  # the least element of a tensor, or of its negative
        axes = tuple(sorted(node.op.dimensions))
        return _Extreme(source, axes, tuple(layout), turned != is_least, absolute)


def _is_whole(number: float | None) -> bool:
    return number is not None and math.isfinite(number) and number == round(number)


def _but_for_sign(one: _Extreme) -> tuple[object, ...]:
    return one.source, one.axes, one.layout, one.of_absolute
