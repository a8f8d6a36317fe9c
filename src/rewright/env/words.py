"""Lists of names, written as text."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """The words of a text as a set."""
    return frozenset(text.split())


def ordered_words(text: str) -> tuple[str, ...]:
    """The words of a text in order."""
    return tuple(text.split())


ELEMENTWISE = words(
    """add subtract multiply divide maximum minimum power and or xor not negate abs exponential exponential-minus-one
    log log-plus-one tanh sqrt rsqrt cbrt sine cosine floor ceil sign compare select clamp convert shift-left
    shift-right-logical shift-right-arithmetic is-finite atan2 remainder round-nearest-afz round-nearest-even logistic
    erf popcnt bitcast-convert"""
)
"""Operators that compute each element from the elements at its place."""
