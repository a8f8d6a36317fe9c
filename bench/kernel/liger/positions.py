"""Rotations, and attention with what goes around it."""

from __future__ import annotations

from collections.abc import Iterator

from bench.kernel.rows import Row


def rows() -> Iterator[Row]:
    """The functions, in order."""
    yield from ()
