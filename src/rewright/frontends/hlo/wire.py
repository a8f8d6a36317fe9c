"""The wire format of protocol buffers: a message is a list of numbered fields, which is all that a reader needs."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from rewright.ir.errors import RewrightError

_VARINT, _WIDE, _BYTES, _NARROW = 0, 1, 2, 5


class Message:
    """The fields of one message, in order; unknown ones are kept and never looked at."""

    __slots__ = ("fields",)

    def __init__(self, data: memoryview) -> None:
        self.fields: list[tuple[int, int, int | memoryview]] = list(_fields(data))

    def first(self, number: int) -> int | memoryview | None:
        """The last value of a field, which is the one that counts; None where it is absent."""
        return next((value for field, _, value in reversed(self.fields) if field == number), None)

    def text(self, number: int) -> str:
        """A string; empty where it is absent."""
        value = self.first(number)
        return bytes(value).decode("utf-8", "replace") if isinstance(value, memoryview) else ""

    def texts(self, number: int) -> list[str]:
        """All strings in a field."""
        found = [value for field, _, value in self.fields if field == number]
        return [bytes(value).decode("utf-8", "replace") for value in found if isinstance(value, memoryview)]

    def integer(self, number: int, default: int = 0) -> int:
        """A signed integer; raises RewrightError where the field holds anything else."""
        value = self.first(number)
        if value is None:
            return default
        if not isinstance(value, int):
            raise RewrightError(f"field {number} holds no integer; write the module again")
        return signed(value)

    def messages(self, number: int) -> Iterator[Message]:
        """All messages in a field."""
        for field, wire, value in self.fields:
            if field == number and wire == _BYTES and isinstance(value, memoryview):
                yield Message(value)

    def message(self, number: int) -> Message:
        """One message; an empty one where it is absent."""
        value = self.first(number)
        return Message(value if isinstance(value, memoryview) else memoryview(b""))

    def integers(self, number: int) -> tuple[int, ...]:
        """A list of signed integers, packed or one by one."""
        found: list[int] = []
        for field, _, value in self.fields:
            if field == number:
                found.extend(_packed(value) if isinstance(value, memoryview) else [signed(value)])
        return tuple(found)

    def numbers(self, number: int, form: str) -> tuple[float, ...]:
        """A packed list of fixed-width numbers in the format of ``struct``, or a blob of them."""
        found: list[float] = []
        size = struct.calcsize(form)
        for field, wire, value in self.fields:
            if field != number:
                continue
            raw = bytes(value) if isinstance(value, memoryview) else value.to_bytes(8 if wire == _WIDE else 4, "little")
            if len(raw) % size:
                raise RewrightError(f"field {number} holds {len(raw)} bytes of numbers of {size}; write it again")
            found.extend(entry[0] for entry in struct.iter_unpack(f"<{form}", raw))
        return tuple(found)


def signed(value: int) -> int:
    """A 64-bit number as a signed one."""
    return value - (1 << 64) if value >= 1 << 63 else value


def _packed(data: memoryview) -> Iterator[int]:
    at = 0
    while at < len(data):
        value, at = _varint(data, at)
        yield signed(value)


def _fields(data: memoryview) -> Iterator[tuple[int, int, int | memoryview]]:
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        wire = tag & 7
        value: int | memoryview
        if wire == _VARINT:
            value, at = _varint(data, at)
        elif wire == _BYTES:
            size, at = _varint(data, at)
            value, at = _taken(data, at, size), at + size
        elif wire in (_WIDE, _NARROW):
            size = 8 if wire == _WIDE else 4
            value, at = int.from_bytes(_taken(data, at, size), "little"), at + size
        else:
            raise RewrightError(f"this is no protocol buffer (wire type {wire}); write the module again")
        yield tag >> 3, wire, value


def _taken(data: memoryview, at: int, size: int) -> memoryview:
    if at + size > len(data):
        raise RewrightError("the protocol buffer ends too early; write the module again")
    return data[at : at + size]


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise RewrightError("the protocol buffer ends too early; write the module again")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value & ((1 << 64) - 1), at
