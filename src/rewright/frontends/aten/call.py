"""What a door says of one call of an operator, in words that need no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from rewright.ir.dims import Dim, Shape
from rewright.ir.types import DType, TensorType


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the elements of a tensor lie in its memory; ``offset`` is None where the capture does not say."""

    shape: Shape
    stride: tuple[Dim, ...]
    offset: Dim | None

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie row after row, with nothing between them."""
        inner: Dim = 1
        for size, stride in zip(reversed(self.shape), reversed(self.stride), strict=True):
            if size != 1 and stride != inner:
                return False
            inner = inner * size
        return True


class Call(Protocol):
    """One call as it was captured: what it is called, and what is known of its results and operands."""

    @property
    def operator(self) -> str:
        """Name of the overload, such as ``aten.add.Tensor``."""
        ...

    @property
    def site(self) -> str:
        """Name that no other call of the program has."""
        ...

    @property
    def count(self) -> int:
        """Number of results."""
        ...

    def result(self, index: int) -> TensorType | None:
        """Type of a result; None where it is no tensor or nothing is known of it."""
        ...

    def first_operand(self) -> Layout | None:
        """Memory of the first operand; None where nothing is known of it."""
        ...

    def shares_memory(self) -> bool:
        """Whether the (first) result is an alias of the first operand."""
        ...

    def is_posted(self) -> bool:
        """Whether the program goes on before a collective is waited for."""
        ...

    def writes_a_list(self) -> bool:
        """Whether the operator writes into a list of tensors and returns it."""
        ...


_ORDER = {dtype: place for place, dtype in enumerate((DType.I8, DType.I16, DType.I32, DType.I64))}


def promote_dtypes(first: TensorType | float, second: TensorType | float) -> DType:
    """The dtype in which PyTorch combines two operands (``torch.result_type``).

    A tensor with axes counts more than one without, and that more than a number, unless the other is of a higher
    category: boolean, integer, float.
    """
    left, right = _promotion_rank(first), _promotion_rank(second)
    if left[0] == right[0]:
        return _join(left[1], right[1])
    strong, weak = (left[1], right[1]) if left[0] > right[0] else (right[1], left[1])
    return strong if _category(strong) >= _category(weak) else weak


def _promotion_rank(operand: TensorType | float) -> tuple[int, DType]:
    if isinstance(operand, TensorType):
        return (2 if operand.rank else 1), operand.dtype
    if isinstance(operand, bool):
        return 0, DType.BOOL
    return 0, DType.I64 if isinstance(operand, int) else DType.F32


def _category(dtype: DType) -> int:
    return 2 if dtype.is_float else int(dtype.is_integer)


def _join(first: DType, second: DType) -> DType:
    """The smallest dtype that both convert to."""
    if first is second:
        return first
    low, high = sorted((first, second), key=_category)
    if _category(low) < _category(high):
        return high
    pair = {first, second}
    if _category(first) == 2:
        for wide in (DType.F64, DType.F32):
            if wide in pair:
                return wide
        return DType.F32
    if DType.U8 in pair:
        (signed,) = pair - {DType.U8}
        return DType.I16 if signed is DType.I8 else signed
    return max(first, second, key=_ORDER.__getitem__)
