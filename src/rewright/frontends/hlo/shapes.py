"""Shapes of HLO and values of constants: element types, sizes and layouts, and how protocol buffers hold them."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from math import prod
from typing import Any

import numpy as np

from rewright.frontends.hlo.layouts import TILED, row_major
from rewright.frontends.hlo.wire import (
    BYTES,
    VARINT,
    Field,
    Fields,
    blob,
    blobs,
    first,
    integer,
    integers,
    message,
    numbers,
    pack_integers,
    read_fields,
    write_fields,
)
from rewright.ir.errors import RewrightError, UnsupportedOperator
from rewright.ir.types import DType, TensorType

_LARGEST = 1 << 62
_DEEPEST = 50


@dataclass(frozen=True)
class Element:
    """An element type: its number (PrimitiveType), its bytes and the IR's dtype, where it has one."""

    number: int
    bytes: int = 0
    dtype: DType | None = None
    field: int = 0
    """Where a LiteralProto has its values; 0 where they are not read."""
    form: str = ""
    """How they lie there, as a format of ``struct``; empty for packed integers."""


_SMALL = """f8e5m2 f8e4m3fn s4 u4 f8e4m3b11fnuz f8e5m2fnuz f8e4m3fnuz s2 u2 f8e4m3 f8e3m4 s1 u1 f4e2m1fn f8e8m0fnu"""
ELEMENTS: Mapping[str, Element] = {
    "pred": Element(1, 1, DType.BOOL, 2),
    "s8": Element(2, 1, DType.I8, 15, "b"),
    "s16": Element(3, 2, DType.I16, 17, "h"),
    "s32": Element(4, 4, DType.I32, 4),
    "s64": Element(5, 8, DType.I64, 5),
    "u8": Element(6, 1, DType.U8, 3, "B"),
    "u16": Element(7, 2, DType.U16, 16, "H"),
    "u32": Element(8, 4, DType.U32, 6),
    "u64": Element(9, 8, DType.U64, 7),
    "f16": Element(10, 2, DType.F16, 11, "e"),
    "f32": Element(11, 4, DType.F32, 8, "f"),
    "f64": Element(12, 8, DType.F64, 9, "d"),
    "tuple": Element(13),
    "opaque": Element(14),
    "c64": Element(15, 8),
    "bf16": Element(16, 2, DType.BF16, 13, "H"),
    "token": Element(17),
    "c128": Element(18, 16),
    **{name: Element(number) for number, name in enumerate(_SMALL.split(), 19)},
}
"""By HLO's name."""
DTYPES: Mapping[str, DType] = {name: own.dtype for name, own in ELEMENTS.items() if own.dtype is not None}
_NAMES = {own.number: name for name, own in ELEMENTS.items()}
_NONE = Element(0)


@dataclass(frozen=True)
class Shape:
    """Element type (HLO's name), sizes and layout (minor to major, none is row-major), or the shapes of a tuple."""

    element: str
    sizes: tuple[int, ...] = ()
    layout: tuple[int, ...] = ()
    parts: tuple[Shape, ...] = ()
    is_dynamic: bool = False
    """Whether a size is a bound, and the array may be shorter."""

    @property
    def elements(self) -> int:
        """Number of elements, of all parts together."""
        return sum(p.elements for p in self.parts) if self.element == "tuple" else prod(self.sizes)

    @property
    def bytes(self) -> int:
        """Number of bytes, of all parts together."""
        if self.element == "tuple":
            return sum(part.bytes for part in self.parts)
        return prod(self.sizes) * element_of(self).bytes

    def leaves(self) -> Iterator[Shape]:
        """The shapes of the arrays."""
        if self.element == "tuple":
            for part in self.parts:
                yield from part.leaves()
        else:
            yield self

    def type(self) -> TensorType:
        """The type of the tensor; raises UnsupportedOperator where the IR has no such elements, or no such sizes."""
        if self.element not in DTYPES:
            raise UnsupportedOperator(f"tensors of {self.element} are not supported; convert them to a real dtype")
        if self.is_dynamic:
            raise UnsupportedOperator("its shape has a dynamic size; compile the module with fixed sizes")
        return TensorType(self.sizes, DTYPES[self.element])

    def __str__(self) -> str:
        if self.element == "tuple":
            return f"({', '.join(map(str, self.parts))})"
        return f"{self.element}[{','.join(map(str, self.sizes))}]"


def element_of(shape: Shape) -> Element:
    """The element type of a shape."""
    return ELEMENTS.get(shape.element, _NONE)


@lru_cache(maxsize=4096)
def read_shape(data: bytes, depth: int = 0) -> Shape:
    """The shape in a serialised ShapeProto; raises RewrightError where it is none."""
    if depth > _DEEPEST:
        raise RewrightError("a shape is nested too deeply; write the module again")
    fields = read_fields(data)
    element = _NAMES.get(integer(fields, 2), f"element{integer(fields, 2)}")
    sizes = integers(fields, 3)
    if any(not 0 <= size < _LARGEST for size in sizes):
        raise RewrightError("a shape has a size out of range; write the module again")
    parts = tuple(read_shape(part, depth + 1) for part in blobs(fields, 4))
    return Shape(element, sizes, _layout(message(fields, 5)), parts, any(integers(fields, 6)))


def _layout(fields: Fields) -> tuple[int, ...]:
    return TILED if first(fields, 6) is not None else integers(fields, 1)


def write_shape(shape: Shape) -> bytes:
    """A serialised ShapeProto as XLA writes it; a layout in tiles is not taken apart, so that they are left out."""
    if shape.element not in ELEMENTS:
        raise RewrightError(f"{shape.element:.40} is no element type that is known; print the module again")
    if shape.element == "tuple":
        return tuple_of([write_shape(part) for part in shape.parts])
    out: list[Field] = [(2, VARINT, ELEMENTS[shape.element].number), *pack_integers(3, shape.sizes)]
    if shape.layout == TILED:
        out.append((5, BYTES, write_fields([(6, BYTES, b"")])))
    elif shape.layout or not shape.sizes:
        out.append((5, BYTES, write_fields([*pack_integers(1, shape.layout), (16, VARINT, 1)])))
    # is_dynamic_dimension, one a dimension
    return write_fields([*out, *pack_integers(6, [0] * len(shape.sizes))])


def array(element: str, sizes: tuple[int, ...]) -> bytes:
    """A serialised ShapeProto with the default layout."""
    return write_shape(Shape(element, sizes, tuple(reversed(range(len(sizes))))))


def tuple_of(parts: Sequence[bytes]) -> bytes:
    """A serialised ShapeProto of a tuple."""
    return write_fields([(2, VARINT, ELEMENTS["tuple"].number), *((4, BYTES, part) for part in parts)])


def parts_of(shape: bytes) -> tuple[bytes, ...]:
    """The parts of a serialised ShapeProto of a tuple."""
    return tuple(blobs(read_fields(shape), 4))


# --- values of constants


def read_literal(data: bytes, shape: Shape) -> tuple[float, ...] | None:
    """The values in a serialised LiteralProto in row-major order; None where it has none, or none that are read."""
    element, fields = element_of(shape), read_fields(data)
    if not element.field:
        return None
    found = numbers(fields, element.field, element.form) if element.form else integers(fields, element.field)
    if shape.element == "bf16":
        found = _widen(found)
    # The bytes of a literal lie as its own shape says, which need not be that of the instruction.
    return row_major(found, shape.sizes, read_shape(blob(fields, 1)).layout) if found else None


def write_literal(values: Sequence[float], shape: Shape) -> bytes:
    """A serialised LiteralProto of values in row-major order; without any for elements whose values are not read.

    Floats are rounded to the element type. Raises ValueError, OverflowError or struct.error for what it does not hold.
    """
    element = element_of(shape)
    plain = [(1, BYTES, write_shape(Shape(shape.element, shape.sizes)))]
    if not element.field:
        return write_fields(plain)
    if not element.form:
        return write_fields([*plain, *pack_integers(element.field, [int(value) for value in values])])
    given = _narrow(values) if shape.element == "bf16" else values
    cast = [int(value) for value in given] if element.form in "bBhH" else given
    return write_fields([*plain, (element.field, BYTES, struct.pack(f"<{len(cast)}{element.form}", *cast))])


def _widen(halves: Sequence[float]) -> tuple[float, ...]:
    """Numbers whose upper 16 bits are given."""
    raw = b"".join(struct.pack("<I", int(half) << 16) for half in halves)
    return tuple(entry[0] for entry in struct.iter_unpack("<f", raw))


def _narrow(values: Sequence[float]) -> list[int]:
    """The upper 16 bits of float32 numbers, rounded to even."""
    bits = struct.unpack(f"<{len(values)}I", struct.pack(f"<{len(values)}f", *values))
    return [
        0x7FC0 if value != value else (own + 0x7FFF + (own >> 16 & 1)) >> 16
        for own, value in zip(bits, values, strict=True)
    ]


_KINDS = {"s": "int", "u": "uint", "f": "float", "c": "complex"}


def dtype_of(shape: Shape) -> np.dtype[Any]:
    """The numpy dtype of an array; raises RewrightError where there is none."""
    if shape.element == "bf16":
        types: Any = import_module("ml_dtypes")
        return np.dtype(types.bfloat16)
    size = element_of(shape).bytes
    if not size:
        raise RewrightError(f"inputs of {shape} cannot be drawn; give the module inputs of numbers")
    return np.dtype(bool) if shape.element == "pred" else np.dtype(f"{_KINDS[shape.element[0]]}{8 * size}")


def limits_of(dtype: np.dtype[Any]) -> tuple[float, float, float]:
    """Of a dtype of floats, or of pairs of them: a rounding of 1, the least normal number, and the largest."""
    if dtype.name == "bfloat16":
        return 2.0**-7, 2.0**-126, 3.3895313892515355e38
    found = np.finfo(dtype)
    return float(found.eps), float(found.tiny), float(found.max)
