"""Lists of names, written as text."""

from __future__ import annotations

from rewright.ops.functions import FUNCTIONS


def words(text: str) -> frozenset[str]:
    """The words of a text as a set."""
    return frozenset(text.split())


def ordered_words(text: str) -> tuple[str, ...]:
    """The words of a text in order."""
    return tuple(text.split())


ELEMENTWISE = words(
    """cbrt compare convert shift-left shift-right-logical shift-right-arithmetic round-nearest-afz popcnt
    bitcast-convert"""
).union(record.code.hlo for record in FUNCTIONS.values() if record.code.hlo is not None)
"""Operators that compute each element from the elements at its place."""
