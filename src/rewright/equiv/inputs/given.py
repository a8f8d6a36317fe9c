"""Values of inputs that were given for both programs, and whether they are those of one tensor."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rewright.ir.graph import Graph
from rewright.ops.base import Array

Values = Mapping[str, Array]


def differing(left: Graph, right: Graph, values: tuple[Values, Values] | None) -> frozenset[str]:
    """Inputs of one name on both sides whose given values say that they are not one tensor."""
    if values is None:
        return frozenset()
    both = [n for n in left.inputs if n in right.inputs and n in values[0] and n in values[1]]
    pairs = {n: (np.asarray(values[0][n]), np.asarray(values[1][n])) for n in both}
    return frozenset(n for n, (a, b) in pairs.items() if a.shape != b.shape or not are_close(a, b))


def are_close(a: Array, b: Array) -> bool:
    """Whether arrays of one shape hold the same numbers but for rounding."""
    return bool(np.allclose(a, b, rtol=1e-2 if a.dtype != b.dtype else 1e-6, atol=1e-7))
