"""Entries of certificates as they are read: text, integers and lists, and nothing that only looks like one."""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from rewright.ir.errors import RewrightError

Entry = TypeVar("Entry")
FAULTS = (ValueError, IndexError, TypeError, KeyError, ZeroDivisionError, RecursionError, RewrightError)
"""What reading an entry of another form raises."""


@dataclass(frozen=True)
class Entries:
    """The entries of a certificate by name; one that is not of its form is refused with its place."""

    table: Mapping[str, Any]

    def one(self, key: str, read: Callable[[Any], Entry], absent: Any = None) -> Entry:
        """An entry as ``read`` gives it, which gets ``absent`` where there is none; raises RewrightError."""
        return _read_at(key, read, self.table.get(key, absent))

    def each(self, key: str, read: Callable[[Any], Entry]) -> tuple[Entry, ...]:
        """The members of an entry that is a list, none where it is missing; raises RewrightError."""
        members = enumerate(self.one(key, as_list, []))
        return tuple([_read_at(f"{key}[{number}]", read, member) for number, member in members])


def _read_at(where: str, read: Callable[[Any], Entry], value: Any) -> Entry:
    try:
        return read(value)
    except FAULTS as error:
        what = str(error).splitlines()[0] if str(error) else "it has another form"
        raise RewrightError(f"{where} is malformed: {what:.160}") from None


def as_text(value: Any) -> str:
    """The text that an entry is; raises ValueError for another one."""
    if not isinstance(value, str):
        raise ValueError(f"{value!r:.40} is no text")
    return value


def as_bytes(value: Any) -> bytes:
    """The bytes that an entry is in base64; raises ValueError for another one."""
    return base64.b64decode(as_text(value), validate=True)


def encode_bytes(data: bytes) -> str:
    """Bytes in base64, as :func:`as_bytes` reads them."""
    return base64.b64encode(data).decode()


def as_truth(value: Any) -> bool:
    """The truth value that an entry is; raises ValueError for another one."""
    if not isinstance(value, bool):
        raise ValueError(f"{value!r:.40} is no truth value")
    return value


def as_integer(value: Any) -> int:
    """The integer that an entry is; raises ValueError for another one, truth values among them."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{value!r:.40} is no integer")
    return value


def as_count(value: Any) -> int:
    """The integer that an entry is, which is not negative; raises ValueError for another one."""
    if as_integer(value) < 0:
        raise ValueError(f"{value!r:.40} is negative")
    return value


def as_list(value: Any, length: int | None = None) -> list[Any]:
    """The list that an entry is; raises ValueError for another one, or for one of another length."""
    if not isinstance(value, list):
        raise ValueError(f"{value!r:.40} is no list")
    found = cast("list[Any]", value)
    if length is not None and len(found) != length:
        raise ValueError(f"{value!r:.40} has {len(found)} entries and not {length}")
    return found


def as_table(value: Any, keys: Collection[str], optional: Collection[str] = ()) -> dict[str, Any]:
    """The object with exactly these keys that an entry is; raises ValueError for another one."""
    if not isinstance(value, dict):
        raise ValueError(f"{value!r:.40} is no object")
    table = cast("dict[str, Any]", value)
    for key in keys:
        if key not in table:
            raise ValueError(f"the entry {key!r} is missing")
    for key in table:
        if key not in keys and key not in optional:
            raise ValueError(f"there is no entry {key!r:.40}")
    return table
