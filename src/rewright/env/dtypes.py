"""The numpy dtypes of arrays of HLO, and their limits."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from rewright.frontends.hlo.shapes import Shape, element_of
from rewright.ir.errors import RewrightError

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
