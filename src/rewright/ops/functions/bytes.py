"""Floats of 8 bits: which number of them is the nearest."""

from __future__ import annotations

import numpy as np

from rewright.ir.types import DType
from rewright.ops.facts import DIGITS, LARGEST, LEAST_EXPONENT
from rewright.ops.functions.numerics import Array


def round_to_byte(dtype: DType, values: Array) -> Array:
    """The nearest number of a float type of 8 bits, the even one of two; E4M3FN has no infinity and saturates."""
    most = LARGEST[dtype]
    overflow = np.inf if dtype is DType.F8E5M2 else most
    with np.errstate(all="ignore"):
        exponents = np.maximum(np.frexp(values)[1] - DIGITS[dtype], LEAST_EXPONENT[dtype])
        found = np.ldexp(np.rint(np.ldexp(values, -exponents)), exponents)
        return np.asarray(np.where(np.abs(found) > most, np.copysign(overflow, values), found), values.dtype)
