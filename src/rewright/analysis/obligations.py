"""What must hold for the proof of a program to be about what a machine computes: obligations that no fact discharges.

A proof is over the real numbers. Where an operator is not defined on them (the logarithm of a negative number), where
infinities meet (a row that a mask leaves nothing of), where an integer may wrap, or a whole number is rounded, the
program computes something else than the proof says. Each such place is an :class:`Obligation`, unless the analysis of
values shows that it does not occur.

Why nothing is asked of an operator that only passes an infinity on: a mask's minus infinity is a limit of real numbers,
all such operators are continuous there, so an equation between programs that holds for all real numbers holds at the
limit too. The operators that are not continuous at infinities (comparisons of two of them, choices among them) state
that they do not meet any.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rewright import ops
from rewright.analysis.rows import is_by_own_row
from rewright.analysis.values import REALS, Setting, Values, walk
from rewright.ir.graph import Graph, Node
from rewright.ir.types import DType
from rewright.ops.facts import Facts, integer_range, meet

_SHORT = (DType.I8, DType.U8, DType.I16, DType.U16)
"""Integers whose remainders proofs write out, so that wrapping is no assumption."""
_LARGE_COUNT = (DType.F32, DType.F64)
"""Floats that hold whole numbers up to millions: rounding beyond is that of any float."""
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Obligation:
    """What must hold at a node; ``program`` counts the programs that were asked about."""

    program: int
    position: int
    node: Node
    condition: str

    def __str__(self) -> str:
        return f"{self.node.op.name} at {self.node.span}: {self.condition}"


def obligations(graphs: Sequence[Graph], alone: Setting = REALS, of_ranks: Setting = REALS) -> list[Obligation]:
    """The obligations of the first program alone, and of the others, which are ranks that run together."""
    found: list[Obligation] = []
    for first, group, setting in ((0, graphs[:1], alone), (1, graphs[1:], of_ranks)):
        ranks = [Values(graph, setting) for graph in group]
        live = [graph.live() for graph in group]
        for rank, position in walk(ranks):
            if position in live[rank]:
                condition = _condition(ranks[rank], position)
                if condition:
                    found.append(Obligation(first + rank, position, group[rank].nodes[position], condition))
                    ranks[rank].assume(position, _assumed(ranks[rank], position))
    return found


def _condition(values: Values, position: int) -> str:
    """What must hold at a node, in words; empty where nothing is open."""
    node, found = values.graph.nodes[position], values.facts[position]
    op = node.op
    if isinstance(op, ops.Input | ops.Constant | ops.Iota) or not isinstance(op, ops.TensorOperator):
        return ""
    operands = [values.facts[p] for p in node.operands]
    condition = op.condition(operands, node.type, found)
    if condition:
        is_softmax = isinstance(op, ops.Subtract) and is_by_own_row(values.graph, node, "maximum")
        rounds = isinstance(op, ops.Convert) and op.dtype in _LARGE_COUNT
        return "" if rounds else "every row has an element that is not masked" if is_softmax else condition
    if position in values.wraps and node.type.dtype not in _SHORT:
        return f"it does not wrap in {node.type.dtype.value}"
    return ""


def _assumed(values: Values, position: int) -> Facts:
    """The facts of a node where its obligation is met."""
    node, found = values.graph.nodes[position], values.facts[position]
    known = [values.facts[p] for p in node.operands]
    if node.type.dtype.is_integer:
        low, high = integer_range(node.type.dtype)
        return meet(found, replace(found, low=low, high=high, exact=True))
    keeps = any(one.may_be_infinite for one in known)
    return replace(
        found,
        nan=False,
        plus_infinity=found.plus_infinity and keeps,
        minus_infinity=found.minus_infinity and keeps,
        exact=found.whole,
    )


def sentences(found: Iterable[Obligation]) -> tuple[str, ...]:
    """Obligations in words, those of one condition in one sentence that names a few of the places."""
    groups: dict[tuple[str, str], list[str]] = {}
    for one in found:
        places = groups.setdefault((one.node.op.name, one.condition), [])
        if str(one.node.span) not in places:
            places.append(str(one.node.span))
    return tuple(_sentence(name, condition, places) for (name, condition), places in groups.items())


def _sentence(name: str, condition: str, places: Sequence[str]) -> str:
    more = f" and {len(places) - _SHOWN} more places" if len(places) > _SHOWN else ""
    return f"{name} at {', '.join(places[:_SHOWN])}{more}: {condition}"
