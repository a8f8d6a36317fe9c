"""Masks that programs compute from truth values, such as ``(m - 1) * 1e9``, as choices between two numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rewright import ops
from rewright.analysis.evenness import splat
from rewright.interp.arithmetic import is_exact
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.operator import Operator
from rewright.ir.types import DType, TensorType
from rewright.proof.rewriting.numbers.taken import HIGHEST
from rewright.refine.rewriting.drafts import Draft


@dataclass(frozen=True)
class _Choice:
    """Two numbers, the first of them where a condition holds, and the position of the condition as it is rebuilt."""

    condition: int
    holds: float
    fails: float

    @property
    def is_mask(self) -> bool:
        """Whether it is zero at some places and a low number at all others."""
        return max(self.holds, self.fails) == 0 and min(self.holds, self.fails) <= HIGHEST

    def built(self, builder: GraphBuilder, kind: TensorType) -> int:
        """Append the choice."""
        sides = [builder.add(ops.Constant(kind, (value,))) for value in (self.holds, self.fails)]
        return builder.add(ops.Select(), self.condition, *sides)


def with_masks_chosen(draft: Draft) -> Draft:
    """The program with a choice between zero and a low number for every mask that is computed from truth values."""
    choices: dict[int, _Choice] = {}
    graph = draft.graph

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        choice = _choice(builder, graph, node, operands, choices)
        if choice is None:
            return _subtract(builder, node, operands, choices)
        choices[position] = choice
        if not choice.is_mask or isinstance(node.op, ops.View | ops.Select | ops.Convert):
            return None
        return choice.built(builder, node.type)

    return draft.rebuild(make)


def _subtract(builder: GraphBuilder, node: Node, operands: tuple[int, ...], known: Mapping[int, _Choice]) -> int | None:
    """A high number that is subtracted where it is chosen, as a low one that is added."""
    choice = known.get(node.operands[1]) if isinstance(node.op, ops.Subtract) else None
    turned = choice and _Choice(choice.condition, -choice.holds, -choice.fails)
    if turned is None or not turned.is_mask:
        return None
    return builder.add(ops.Add(), operands[0], turned.built(builder, node.type))


def _choice(
    builder: GraphBuilder, graph: Graph, node: Node, operands: tuple[int, ...], known: Mapping[int, _Choice]
) -> _Choice | None:
    if not node.type.dtype.is_float:
        return None
    op = node.op
    if isinstance(op, ops.Convert) and graph.nodes[node.operands[0]].type.dtype is DType.BOOL:
        return _Choice(operands[0], 1.0, 0.0)
    if isinstance(op, ops.Select):
        sides = [splat(graph, p) for p in node.operands[1:]]
        scalar = graph.nodes[node.operands[0]].type.shape != node.type.shape
        return None if None in sides or scalar else _Choice(operands[0], *(s for s in sides if s is not None))
    choices = [known.get(p) for p in node.operands]
    first = choices[0] if choices else None
    if isinstance(op, ops.Convert):
        return first
    if isinstance(op, ops.View):
        return first and _Choice(_laid_out(builder, op, first.condition, node), first.holds, first.fails)
    if isinstance(op, ops.Negate):
        return first and _Choice(first.condition, -first.holds, -first.fails)
    return _combine(graph, node, choices)


def _laid_out(builder: GraphBuilder, op: Operator, condition: int, node: Node) -> int:
    made = builder.add(op, condition)
    assert builder.type(made) == TensorType(node.type.shape, DType.BOOL)
    return made


def _combine(graph: Graph, node: Node, choices: list[_Choice | None]) -> _Choice | None:
    """A choice and a number as a choice between two numbers, both without rounding."""
    op = node.op
    if not isinstance(op, ops.Binary) or not is_exact(op.function(node.type.dtype)):
        return None
    for k in (0, 1):
        choice, number = choices[k], splat(graph, node.operands[1 - k])
        if choice is None or number is None or not math.isfinite(number):
            continue
        pairs = ((v, number) if k == 0 else (number, v) for v in (choice.holds, choice.fails))
        holds, fails = (float(op.execute([np.array(v) for v in pair])) for pair in pairs)
        if all(map(math.isfinite, (holds, fails))):
            return _Choice(choice.condition, holds, fails)
    return None
