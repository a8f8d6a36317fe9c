"""Special functions that numpy does not have."""

from __future__ import annotations

import math

import numpy as np

from rewright.ops.base import Array

_erf = np.frompyfunc(math.erf, 1, 1)


def error_function(values: Array) -> Array:
    """The error function of every element, in the dtype of the operand."""
    return np.asarray(_erf(values)).astype(values.dtype)
