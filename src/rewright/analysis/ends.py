"""Intervals that the elements of a program's nodes lie in, where both ends are known."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from rewright.analysis.values import Setting, facts_of
from rewright.ir.graph import Graph
from rewright.ir.types import DType
from rewright.ops.facts import INF, REAL, Facts, facts_between, integer_range, is_no_number

Bound = tuple[float, float]
"""The least and the largest number that an element may be, infinities among them."""
_ANY: Mapping[str, Bound] = MappingProxyType({})


def ends(graph: Graph, *, given: Mapping[str, Bound] = _ANY, at_zero: bool = False) -> list[Bound | None]:
    """The ends of every node; None where one is not known, and for integers that may be any number of their type.

    With ``at_zero`` all floats that the program is given are zero, and comparisons may go either way.
    """
    setting = Setting(as_facts(given), facts_between(0, 0) if at_zero else REAL, decides=not at_zero)
    found = facts_of(graph, setting)
    return [_ends(facts, node.type.dtype) for facts, node in zip(found, graph.nodes, strict=True)]


def as_facts(given: Mapping[str, Bound]) -> Mapping[str, Facts]:
    """What is known of inputs that lie between numbers."""
    return {name: facts_between(low, high) for name, (low, high) in given.items()}


def _ends(facts: Facts, dtype: DType) -> Bound | None:
    is_open = not is_no_number(facts) and (facts.low == -INF or facts.high == INF)
    is_any = dtype.is_integer and (facts.low, facts.high) == integer_range(dtype)
    return None if facts.nan or is_open or is_any else (float(facts.bottom), float(facts.top))
