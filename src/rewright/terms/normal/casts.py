"""Casts between dtypes: which ones keep every number, and what becomes of the others."""

from __future__ import annotations

from rewright.ir.types import DType
from rewright.terms.normal.atoms import Function, Polynomial, TooHard, polynomial
from rewright.terms.normal.guards import Value


def truncated(value: Value) -> Value:
    """A float as an integer, which whole numbers are already; raises TooHard for what is no number."""
    if not isinstance(value, Polynomial):
        raise TooHard(f"{value} as an integer")
    return value if value.integer else polynomial(Function("truncate", (value,), True))


_DIGITS = {DType.F64: 53, DType.F32: 24, DType.F16: 11, DType.BF16: 8}
"""Bits of the integers that a float dtype has all of."""


def holds(target: DType, source: DType) -> bool:
    """Whether every number of an integer dtype is one of another dtype; sums of floats round in the dtype they have."""
    if source is DType.BOOL:
        return True
    if source.is_float:
        return False
    bits = _bits(source) - (not source.is_unsigned)
    if target.is_float:
        return bits <= _DIGITS[target]
    return bits <= _bits(target) - (not target.is_unsigned) and (source.is_unsigned or not target.is_unsigned)


def _bits(dtype: DType) -> int:
    return int(dtype.value.lstrip("ui"))
