"""What an SSA value of a kernel is, for all instances at once.

Integers that are affine in instances, iterations and lanes stay symbols, and so do comparisons of them and pointers.
Everything else is data: a node whose leading axes are those instances and iterations on which it depends.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rewright.ir.types import DType
from rewright.terms.index import Index

Shape = tuple[int, ...]
DTYPES = {d.value: d for d in DType} | {"i1": DType.BOOL, "index": DType.I64}
"""Element types by the name that TTIR has for them."""


@dataclass(frozen=True, slots=True)
class Data:
    """A node of shape (sizes of ``axes``, then ``shape``)."""

    position: int
    axes: tuple[str, ...]
    shape: Shape


@dataclass(frozen=True, slots=True)
class Whole:
    """A block of integers, or one integer where the shape is empty."""

    index: Index
    shape: Shape
    dtype: DType


@dataclass(frozen=True, slots=True)
class Least:
    """The least of several integers, such as where a loop ends, or minus that."""

    parts: tuple[Index, ...]
    dtype: DType
    shape: Shape = ()
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """One index where all parts are at least zero, else the other: ``where(row < rows, row, 0)``."""

    parts: tuple[Index, ...]
    yes: Index
    no: Index


@dataclass(frozen=True, slots=True)
class Truth:
    """Where all indices are at least zero, and the data, if any, is true."""

    parts: tuple[Index, ...]
    shape: Shape
    data: Data | None = None

    def both(self, other: Truth, data: Data | None) -> Truth:
        """The conjunction, whose data is given."""
        parts = dict.fromkeys((*self.parts, *other.parts))
        return replace(self, parts=tuple(parts), data=data)


@dataclass(frozen=True, slots=True)
class Address:
    """Places in the memory of an argument, counted in elements from its pointer."""

    argument: str
    index: Index
    shape: Shape
    data: Data | None = None
    """Further elements, where an offset is computed from data."""


@dataclass(frozen=True, slots=True)
class Either:
    """One pointer where a condition of an instance holds, else the other one."""

    condition: Truth
    yes: Address | Either
    no: Address | Either

    @property
    def shape(self) -> Shape:
        """That of both."""
        return self.yes.shape


@dataclass(frozen=True, slots=True)
class Described:
    """A tensor by a pointer to its first element, sizes and strides: what a descriptor is made of."""

    address: Address
    sizes: tuple[Index, ...]
    strides: tuple[Index, ...]
    shape: Shape = ()


Value = Data | Whole | Least | Truth | Address | Either | Described
ALWAYS = Truth((), ())
