"""Protocol buffers as lists of fields that are written back byte for byte, the unknown ones too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rewright.ir.errors import RewrightError

Field = tuple[int, int, int | bytes]
"""Number, wire type and value: an integer for varints, else bytes."""
VARINT, WIDE, BYTES, NARROW = 0, 1, 2, 5


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
    while True:
        at += 1
        byte = data[at]
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at + 1
        shift += 7
        if shift > 70:
            raise IndexError


def write_varint(value: int) -> bytes:
    """An unsigned 64-bit number; a negative one stands for its two's complement."""
    value &= (1 << 64) - 1
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


def packed(number: int, values: Sequence[int]) -> list[Field]:
    """A field that holds a list of integers; no field where there are none."""
    return [(number, BYTES, b"".join(map(write_varint, values)))] if values else []


def first(fields: Iterable[Field], number: int) -> int | bytes | None:
    """The last value of a field, which is the one that counts; None where it is absent."""
    found: int | bytes | None = None
    for own, _, value in fields:
        if own == number:
            found = value
    return found


def message(fields: Iterable[Field], number: int) -> list[Field]:
    """A nested message; an empty one where it is absent."""
    value = first(fields, number)
    return read_fields(value) if isinstance(value, bytes) else []


def string(fields: Iterable[Field], number: int) -> str:
    """A string; empty where it is absent."""
    value = first(fields, number)
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def integer(fields: Iterable[Field], number: int, default: int = 0) -> int:
    """A signed integer; the default where it is absent."""
    value = first(fields, number)
    if not isinstance(value, int):
        return default
    return value - (1 << 64) if value >= 1 << 63 else value


def integers(fields: Iterable[Field], number: int) -> tuple[int, ...]:
    """A list of signed integers, packed or one by one."""
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
    return tuple(item - (1 << 64) if item >= 1 << 63 else item for item in found)
