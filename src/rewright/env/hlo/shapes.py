"""Shapes of HLO: what the ShapeProto of an instruction says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from rewright.env.hlo.wire import BYTES, VARINT, Field, integer, integers, message, packed, read_fields, write_fields

ELEMENTS = {
    1: "pred", 2: "s8", 3: "s16", 4: "s32", 5: "s64", 6: "u8", 7: "u16", 8: "u32", 9: "u64", 10: "f16", 11: "f32",
    12: "f64", 13: "tuple", 14: "opaque", 15: "c64", 16: "bf16", 17: "token", 18: "c128", 19: "f8e5m2",
    20: "f8e4m3fn", 21: "s4", 22: "u4",
}  # fmt: skip
"""Names of PrimitiveType."""
NUMBERS = {name: number for number, name in ELEMENTS.items()}
SIZES = {
    "pred": 1, "s8": 1, "u8": 1, "s16": 2, "u16": 2, "f16": 2, "bf16": 2, "s32": 4, "u32": 4, "f32": 4, "s64": 8,
    "u64": 8, "f64": 8, "c64": 8, "c128": 16,
}  # fmt: skip
"""Bytes of an element."""


@dataclass(frozen=True)
class Shape:
    """Element type, sizes and layout (minor to major), or the shapes of a tuple."""

    element: str
    sizes: tuple[int, ...] = ()
    layout: tuple[int, ...] = ()
    parts: tuple[Shape, ...] = ()

    @property
    def elements(self) -> int:
        """Number of elements, of all parts together."""
        return sum(p.elements for p in self.parts) if self.element == "tuple" else prod(self.sizes)

    @property
    def bytes(self) -> int:
        """Number of bytes, of all parts together."""
        if self.element == "tuple":
            return sum(part.bytes for part in self.parts)
        return prod(self.sizes) * SIZES.get(self.element, 0)

    def leaves(self) -> Iterator[Shape]:
        """The shapes of the arrays."""
        if self.element == "tuple":
            for part in self.parts:
                yield from part.leaves()
        else:
            yield self

    def __str__(self) -> str:
        if self.element == "tuple":
            return f"({', '.join(map(str, self.parts))})"
        return f"{self.element}[{','.join(map(str, self.sizes))}]"


@lru_cache(maxsize=4096)
def read_shape(data: bytes) -> Shape:
    """The shape in a serialised ShapeProto."""
    fields = read_fields(data)
    element = ELEMENTS.get(integer(fields, 2), f"element{integer(fields, 2)}")
    parts = tuple(read_shape(value) for number, _, value in fields if number == 4 and isinstance(value, bytes))
    return Shape(element, integers(fields, 3), integers(message(fields, 5), 1), parts)


def array(element: str, sizes: tuple[int, ...]) -> bytes:
    """A serialised ShapeProto with the default layout."""
    out: list[Field] = [(2, VARINT, NUMBERS[element])]
    out += packed(3, sizes)
    order = tuple(reversed(range(len(sizes))))
    layout = write_fields([*packed(1, order), (16, VARINT, 1)])
    out.append((5, BYTES, layout))
    # is_dynamic_dimension, one a dimension
    out += packed(6, [0] * len(sizes))
    return write_fields(out)


def tuple_of(parts: list[bytes]) -> bytes:
    """A serialised ShapeProto of a tuple."""
    return write_fields([(2, VARINT, NUMBERS["tuple"]), *((4, BYTES, part) for part in parts)])
