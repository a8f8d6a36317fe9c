"""Entries of certificates as they are read: text, integers and lists, and nothing that only looks like one."""

from __future__ import annotations

from typing import Any, cast


def as_text(value: Any) -> str:
    """The text that an entry is; raises ValueError for another one."""
    if not isinstance(value, str):
        raise ValueError(f"{value!r:.40} is no text")
    return value


def as_integer(value: Any) -> int:
    """The integer that an entry is; raises ValueError for another one, truth values among them."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{value!r:.40} is no integer")
    return value


def as_list(value: Any, length: int | None = None) -> list[Any]:
    """The list that an entry is; raises ValueError for another one, or for one of another length."""
    if not isinstance(value, list):
        raise ValueError(f"{value!r:.40} is no list")
    found = cast("list[Any]", value)
    if length is not None and len(found) != length:
        raise ValueError(f"{value!r:.40} has {len(found)} entries and not {length}")
    return found
