"""Quotients by the sum of their own row, without what is one number for all of a row.

``f x / sum(f x)`` is ``x / sum(x)`` where ``f`` is one number above zero for a row, and ``exp(x - c)`` is
``exp(-c) exp(x)``. So a softmax is the same whatever is subtracted first, once or twice; a softmax that is divided by
its sum over some chosen elements is the softmax of these; so is one that is multiplied by truth values and divided by
its sum once more; and an element more in the sum, which is read nowhere,
changes nothing of this. Each gets the usual softmax: the largest element is subtracted. This is exact over the real
numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rewright import ops
from rewright.analysis.evenness import Evenness
from rewright.analysis.rows import own_row
from rewright.equiv.rewrites.layouts import lay_out, views_behind
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.operator import Operator
from rewright.ir.types import DType, TensorType
from rewright.ops.facts import Facts
from rewright.proof.rewriting.laws import as_maker
from rewright.proof.rewriting.parts import convert_node
from rewright.proof.rewriting.program import truth_values
from rewright.refine.rewriting.drafts import Draft

_DEEPEST = 32
_USUAL = ("exponential", "own maximum")
"""The steps of the usual softmax."""


@dataclass(frozen=True)
class _Mask:
    """Truth values that a row is multiplied by."""

    condition: int
    holds: bool
    """Whether they are one where the condition holds."""
    layouts: tuple[Operator, ...]
    """How the condition is laid out along the row, from the row inwards."""


@dataclass(frozen=True)
class _Share:
    """A quotient by the sum of its own row, and what it is a quotient of."""

    source: int
    """What remains when factors, exponential and shifts are taken away."""
    axes: tuple[int, ...]
    """The axes of a row."""
    steps: tuple[str, ...]
    """What was taken away, from the quotient inwards."""
    masks: tuple[_Mask, ...] = ()
    """What is left of a row of exponentials."""

    @property
    def is_exponential(self) -> bool:
        """Whether the row is one of exponentials."""
        return "exponential" in self.steps


def with_softmax(draft: Draft) -> Draft:
    """The program with the usual softmax for every quotient by the sum of its own row that is one."""
    shares = {p: share for p, share in _shares(draft.graph, draft.facts).items() if share.steps not in ((), _USUAL)}

    def make(builder: GraphBuilder, position: int, places: Mapping[int, int]) -> int | None:
        share = shares.get(position)
        return None if share is None else _share_of(builder, share, places, draft.graph.nodes[position].type.dtype)

    return draft.rebuild(as_maker(draft.graph, make)) if shares else draft


def _shares(graph: Graph, known: Sequence[Facts]) -> dict[int, _Share]:
    truths, evenness = truth_values(graph), Evenness(graph)
    return {
        position: _Reader(graph, known, truths, evenness, row).share(node.operands[0])
        for position, node in enumerate(graph.nodes)
        if isinstance(node.op, ops.Divide)
        and node.type.dtype.is_float
        and (row := own_row(graph, node, "sum")) is not None
    }


@dataclass(frozen=True)
class _Reader:
    """Takes away what is one number for all of a row."""

    graph: Graph
    known: Sequence[Facts]
    truths: Mapping[int, tuple[int, bool]]
    evenness: Evenness
    axes: tuple[int, ...]

    def share(self, position: int) -> _Share:
        """What a row is a multiple of."""
        steps, masks, first = list[str](), list[_Mask](), position
        while len(steps) < _DEEPEST:
            node = self.graph.nodes[position]
            found = None if "exponential" in steps else self._mask(node)
            if found is not None:
                masks.append(found[0])
                steps.append("mask")
                position = found[1]
                continue
            step, inner = self._shift(node) if "exponential" in steps else self._factor(node)
            if inner is None:
                break
            position = inner
            steps += [step] if step else []
        if masks and "exponential" not in steps:
            return _Share(first, self.axes, ())
        return _Share(position, self.axes, tuple(steps), tuple(masks))

    def _mask(self, node: Node) -> tuple[_Mask, int] | None:
        """Truth values that a tensor is multiplied by, and what is multiplied by them."""
        for own, other in ((0, 1), (1, 0)) if isinstance(node.op, ops.Multiply) else ():
            position, layouts = views_behind(self.graph.nodes.__getitem__, node.operands[other])
            if position in self.truths:
                return _Mask(*self.truths[position], tuple(layouts)), node.operands[own]
        return None

    def _factor(self, node: Node) -> tuple[str, int | None]:
        if isinstance(node.op, ops.Exponential):
            return "exponential", node.operands[0]
        if isinstance(node.op, ops.Convert):
            return "", self._real(node)
        for own, other in _pairs(node, ops.Divide, ops.Multiply):
            factor = node.operands[other]
            if (
                self.known[factor].is_finite
                and self.known[factor].is_positive
                and self.evenness.is_even(factor, self.axes)
            ):
                return "factor", node.operands[own]
        return "", None

    def _shift(self, node: Node) -> tuple[str, int | None]:
        if isinstance(node.op, ops.Convert):
            return "", self._real(node)
        # Where all of a row is minus infinity, or something plus infinity, none of these forms is defined.
        if isinstance(node.op, ops.Subtract) and own_row(self.graph, node, "maximum") == self.axes:
            return "own maximum", node.operands[0]
        for own, other in _pairs(node, ops.Subtract, ops.Add):
            shift = node.operands[other]
            if self.known[shift].is_finite and self.evenness.is_even(shift, self.axes):
                return "shift", node.operands[own]
        return "", None

    def _real(self, node: Node) -> int | None:
        source = node.operands[0]
        return source if self.graph.nodes[source].type.dtype.is_float and node.type.dtype.is_float else None


def _pairs(node: Node, ordered: type[Operator], free: type[Operator]) -> tuple[tuple[int, int], ...]:
    """The operands that may be what is kept and what is taken away; of some operators only in this order."""
    if isinstance(node.op, ordered):
        return ((0, 1),)
    return ((0, 1), (1, 0)) if isinstance(node.op, free) else ()


def _with_masks(builder: GraphBuilder, share: _Share, places: Mapping[int, int]) -> int:
    """Append the source of a row with minus infinity where its exponentials are multiplied by zero."""
    source = places[share.source]
    for mask in share.masks:
        condition = lay_out(builder, places[mask.condition], mask.layouts)
        minus_infinity = builder.add(ops.Constant(builder.type(source), (-math.inf,)))
        sides = (source, minus_infinity) if mask.holds else (minus_infinity, source)
        source = builder.add(ops.Select(), condition, *sides)
    return source


def _share_of(builder: GraphBuilder, share: _Share, places: Mapping[int, int], dtype: DType) -> int:
    """Append what a tensor, or its exponential, has of the sum of its row."""
    source = _with_masks(builder, share, places)
    shape = builder.type(source).shape
    source = convert_node(builder, source, TensorType(shape, dtype))
    kept = tuple(axis for axis in range(len(shape)) if axis not in share.axes)

    def along(position: int) -> int:
        return builder.add(ops.BroadcastInDim(shape, kept), position)

    if share.is_exponential:
        largest = along(builder.add(ops.Reduce("maximum", share.axes), source))
        source = builder.add(ops.Exponential(), builder.add(ops.Subtract(), source, largest))
    return builder.add(ops.Divide(), source, along(builder.add(ops.Reduce("sum", share.axes), source)))
