"""Conditions on sizes and attributes: what a rewrite rule requires besides that both sides are well typed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Union

from rewright.ir.dims import Dim


@dataclass(frozen=True, slots=True)
class AtMost:
    """``low <= high``."""

    low: Dim
    high: Dim


@dataclass(frozen=True, slots=True)
class Same:
    """``left = right``."""

    left: Dim
    right: Dim


@dataclass(frozen=True, slots=True)
class Different:
    """``left != right``."""

    left: Dim
    right: Dim


@dataclass(frozen=True, slots=True)
class IsMaximum:
    """``result = max(left, right)``."""

    result: Dim
    left: Dim
    right: Dim


@dataclass(frozen=True, slots=True)
class IsMinimum:
    """``result = min(left, right)``."""

    result: Dim
    left: Dim
    right: Dim


@dataclass(frozen=True, slots=True)
class IsFloor:
    """``result = floor(numerator / denominator)``, and the denominator is at least one."""

    result: Dim
    numerator: Dim
    denominator: Dim


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one of some lists of conditions holds entirely."""

    cases: tuple[tuple[SizeCondition, ...], ...]


SizeCondition = Union[AtMost, Same, Different, IsMaximum, IsMinimum, IsFloor, AnyOf]
Simple = Union[AtMost, Same, IsFloor]
"""What every condition is a disjunction of conjunctions of."""


def cases(conditions: tuple[SizeCondition, ...]) -> Iterator[tuple[Simple, ...]]:
    """All ways in which the conditions can hold, as conjunctions of simple ones."""
    if not conditions:
        yield ()
        return
    for first in _ways(conditions[0]):
        for rest in cases(conditions[1:]):
            yield (*first, *rest)


def _ways(condition: SizeCondition) -> Iterator[tuple[Simple, ...]]:
    if isinstance(condition, Different):
        yield (AtMost(condition.left + 1, condition.right),)
        yield (AtMost(condition.right + 1, condition.left),)
    elif isinstance(condition, (IsMaximum, IsMinimum)):
        left, right = condition.left, condition.right
        low, high = (right, left) if isinstance(condition, IsMaximum) else (left, right)
        yield Same(condition.result, left), AtMost(low, high)
        yield Same(condition.result, right), AtMost(high, low)
    elif isinstance(condition, AnyOf):
        for case in condition.cases:
            yield from cases(case)
    else:
        yield (condition,)


def holds(condition: SizeCondition, value: Callable[[Dim], int]) -> bool:
    """Whether a condition holds where every size has a value."""
    if isinstance(condition, AtMost):
        return value(condition.low) <= value(condition.high)
    if isinstance(condition, Same):
        return value(condition.left) == value(condition.right)
    if isinstance(condition, Different):
        return value(condition.left) != value(condition.right)
    if isinstance(condition, IsMaximum):
        return value(condition.result) == max(value(condition.left), value(condition.right))
    if isinstance(condition, IsMinimum):
        return value(condition.result) == min(value(condition.left), value(condition.right))
    if isinstance(condition, IsFloor):
        bottom = value(condition.denominator)
        return bottom >= 1 and value(condition.result) == value(condition.numerator) // bottom
    return any(all(holds(part, value) for part in case) for case in condition.cases)


def sizes_of(condition: SizeCondition) -> Iterator[Dim]:
    """The size expressions that a condition is about."""
    if isinstance(condition, AnyOf):
        for case in condition.cases:
            for part in case:
                yield from sizes_of(part)
    elif isinstance(condition, AtMost):
        yield from (condition.low, condition.high)
    elif isinstance(condition, (Same, Different)):
        yield from (condition.left, condition.right)
    elif isinstance(condition, IsFloor):
        yield from (condition.result, condition.numerator, condition.denominator)
    else:
        yield from (condition.result, condition.left, condition.right)
