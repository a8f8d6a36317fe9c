"""Protocol buffers as lists of fields that are written back byte for byte, the unknown ones too."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence

from rewright.ir.errors import RewrightError

Field = tuple[int, int, int | bytes]
"""Number, wire type and value: an integer for varints, else bytes."""
Fields = Sequence[Field]
"""A message."""
VARINT, WIDE, BYTES, NARROW = 0, 1, 2, 5
MODULE = 1
"""Of a HloProto, which is what XLA dumps: its HloModuleProto."""
_MASK = (1 << 64) - 1


def read_fields(data: bytes) -> list[Field]:
    """The fields of a message in order; raises RewrightError where it ends too early or is none."""
    found: list[Field] = []
    at, end = 0, len(data)
    try:
        while at < end:
            tag, at = read_varint(data, at)
            number, wire = tag >> 3, tag & 7
            if wire == VARINT:
                value, at = read_varint(data, at)
                found.append((number, wire, value))
                continue
            if wire == BYTES:
                size, at = read_varint(data, at)
            elif wire in (WIDE, NARROW):
                size = 8 if wire == WIDE else 4
            else:
                raise RewrightError(f"this is no protocol buffer (wire type {wire}); write the module again")
            if at + size > end:
                raise IndexError
            found.append((number, wire, data[at : at + size]))
            at += size
    except IndexError:
        raise RewrightError("the protocol buffer ends too early; write the module again") from None
    return found


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned number and the place after it; raises IndexError at the end of the data."""
    byte = data[at]
    if byte < 128:
        return byte, at + 1
    value, shift = byte & 127, 7
    while shift < 70:
        at += 1
        byte = data[at]
        value |= (byte & 127) << shift
        if byte < 128:
            return value & _MASK, at + 1
        shift += 7
    raise IndexError


def write_varint(value: int) -> bytes:
    """An unsigned 64-bit number; a negative one stands for its two's complement."""
    value &= _MASK
    if value < 128:
        return bytes((value,))
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def write_fields(fields: Iterable[Field]) -> bytes:
    """The message with these fields."""
    out = bytearray()
    for number, wire, value in fields:
        out += write_varint(number << 3 | wire)
        if isinstance(value, int):
            out += write_varint(value)
        elif wire == BYTES:
            out += write_varint(len(value)) + value
        else:
            out += value
    return bytes(out)


def text(number: int, value: str) -> Field:
    """A field that holds a string."""
    return number, BYTES, value.encode()


def pack_integers(number: int, values: Sequence[int]) -> list[Field]:
    """A field that holds a list of integers; no field where there are none."""
    return [(number, BYTES, b"".join(map(write_varint, values)))] if values else []


def first(fields: Fields, number: int) -> int | bytes | None:
    """The last value of a field, which is the one that counts; None where it is absent."""
    found: int | bytes | None = None
    for own, _, value in fields:
        if own == number:
            found = value
    return found


def blob(fields: Fields, number: int) -> bytes:
    """The bytes of a nested message or string; none where it is absent."""
    value = first(fields, number)
    return value if isinstance(value, bytes) else b""


def blobs(fields: Fields, number: int) -> Iterator[bytes]:
    """The bytes of all messages or strings in a field."""
    return (value for own, wire, value in fields if own == number and wire == BYTES and isinstance(value, bytes))


def message(fields: Fields, number: int) -> list[Field]:
    """A nested message; an empty one where it is absent."""
    return read_fields(blob(fields, number))


def messages(fields: Fields, number: int) -> Iterator[list[Field]]:
    """All messages in a field."""
    return map(read_fields, blobs(fields, number))


def string(fields: Fields, number: int) -> str:
    """A string; empty where it is absent."""
    return blob(fields, number).decode("utf-8", "replace")


def integer(fields: Fields, number: int, default: int = 0) -> int:
    """A signed integer; the default where it is absent. Raises RewrightError where the field holds anything else."""
    value = first(fields, number)
    if value is None:
        return default
    if not isinstance(value, int):
        raise RewrightError(f"field {number} holds no integer; write the module again")
    return _as_signed(value)


def integers(fields: Fields, number: int) -> tuple[int, ...]:
    """A list of signed integers, packed or one by one; raises RewrightError where a packed one ends too early."""
    found: list[int] = []
    for own, _, value in fields:
        if own != number:
            continue
        if isinstance(value, int):
            found.append(value)
            continue
        at = 0
        try:
            while at < len(value):
                item, at = read_varint(value, at)
                found.append(item)
        except IndexError:
            raise RewrightError("the protocol buffer ends too early; write the module again") from None
    return tuple(map(_as_signed, found))


def numbers(fields: Fields, number: int, form: str) -> tuple[float, ...]:
    """Numbers of a fixed width in the format of ``struct``, packed or one by one; raises RewrightError for others."""
    data = b"".join(value for own, _, value in fields if own == number and isinstance(value, bytes))
    size = struct.calcsize(form)
    if len(data) % size:
        raise RewrightError(f"field {number} holds {len(data)} bytes of numbers of {size}; write it again")
    return tuple(entry[0] for entry in struct.iter_unpack(f"<{form}", data))


def _as_signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value
