"""Lists of names, written as text."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """The words of a text as a set."""
    return frozenset(text.split())


def ordered_words(text: str) -> tuple[str, ...]:
    """The words of a text in order."""
    return tuple(text.split())
