"""Tensor types and source locations."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

from rewright.ir.dims import Dim, Shape, SizeExpr, product


class DType(Enum):
    """Element types, named as in StableHLO."""

    F64 = "f64"
    F32 = "f32"
    BF16 = "bf16"
    F16 = "f16"
    F8E4M3FN = "f8E4M3FN"
    F8E5M2 = "f8E5M2"
    I64 = "i64"
    I32 = "i32"
    I16 = "i16"
    I8 = "i8"
    U64 = "ui64"
    U32 = "ui32"
    U16 = "ui16"
    U8 = "ui8"
    BOOL = "i1"

    __hash__ = object.__hash__  # every member is one object

    @property
    def is_float(self) -> bool:
        """Whether values are reals (rounded in execution, exact in proofs)."""
        return self in _FLOATS

    @property
    def is_byte_float(self) -> bool:
        """Whether values are floats of 8 bits, of which there are so few that rounding to them is never left out."""
        return self in _BYTES

    @property
    def is_integer(self) -> bool:
        """Whether values are integers; booleans are not."""
        return not self.is_float and self is not DType.BOOL

    @property
    def is_unsigned(self) -> bool:
        """Whether values are integers that are never negative."""
        return self in _UNSIGNED


_BYTES = frozenset({DType.F8E4M3FN, DType.F8E5M2})
_FLOATS = frozenset({DType.F64, DType.F32, DType.BF16, DType.F16}) | _BYTES
_UNSIGNED = frozenset({DType.U64, DType.U32, DType.U16, DType.U8})


@dataclass(frozen=True, slots=True)
class TensorType:
    """Shape and element type of a tensor."""

    shape: Shape
    dtype: DType

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def size(self) -> Dim:
        """Number of elements."""
        return product(self.shape)

    def with_shape(self, shape: Shape) -> TensorType:
        """The same dtype with another shape."""
        return TensorType(shape, self.dtype)

    def is_static(self) -> bool:
        """Whether every size is a number."""
        return not any(isinstance(size, SizeExpr) for size in self.shape)

    def __str__(self) -> str:
        return "x".join([*(f"[{s}]" if isinstance(s, SizeExpr) else str(s) for s in self.shape), self.dtype.value])


@dataclass(frozen=True, slots=True)
class SourceSpan:
    """Where a node comes from in the user's program.

    ``scope`` names the reference function that a lowered node belongs to ("softmax"), so that a report says
    "softmax at model.py:210" and not "exponential".
    """

    file: str = ""
    line: int = 0
    function: str = ""
    module_path: str = ""
    scope: str = ""
    backward: bool = field(default=False)

    @property
    def forward(self) -> SourceSpan:
        """The place of the operator that a backward node belongs to."""
        return replace(self, backward=False)

    def __str__(self) -> str:
        place = f"{self.file.rsplit('/', 1)[-1]}:{self.line}" if self.file else self.module_path or "unknown line"
        what = f"{self.scope} at {place}" if self.scope else place
        return f"{what} (backward)" if self.backward else what
