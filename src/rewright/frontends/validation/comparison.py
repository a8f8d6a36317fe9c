"""When two results are the same: exactly for integers, up to rounding of what enters for reals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Tolerance:
    """How far two results may be apart that are computed in some precision."""

    close: float
    """Relative to one or to the number: reals as near as this are equal without another look."""
    roundings: float
    """How much further than a result in float32 they may be off; other orders of sums are off by more than one is."""


DOUBLE = Tolerance(1e-12, 2.0**-17)
"""Both sides in float64."""
PARTLY_SINGLE = Tolerance(1e-6, 16.0)
"""Both in float64, on numbers that a program made in float32 when it was captured."""
SINGLE = Tolerance(1e-5, 64.0)
"""One side in float32."""
NARROW = Tolerance(0.1, 2.0**24)
"""One side in 16 bits, which tells only what is altogether different."""


@dataclass(frozen=True)
class Difference:
    """The first element that differs."""

    index: tuple[int, ...]
    expected: str
    found: str
    kind: Literal["numbers", "undefined", "positions"] = "numbers"
    """``undefined`` where one of the two has no number there, and elements that both have numbers for are equal;
    ``positions`` where the results are integers."""

    def __str__(self) -> str:
        where = f" at {list(self.index)}" if self.index else ""
        return f"{self.expected}, and the captured graph gives {self.found}{where}"


def compare(
    expected: Array, found: Array, coarse: Callable[[], Array], tolerance: Tolerance = DOUBLE
) -> float | Difference:
    """The largest difference of equal results, or where they are not equal.

    ``coarse`` gives the same result computed in float32: how far it is off tells how large the numbers were that
    entered, so that a sum that cancels is not held to its own size.
    """
    if expected.shape != found.shape:
        return Difference((), f"a result of shape {list(expected.shape)}", f"one of {list(found.shape)}")
    if expected.dtype.kind != "f" or found.dtype.kind != "f":
        return _exact(expected, found)
    with np.errstate(all="ignore"):
        equal = (expected == found) | (np.isnan(expected) & np.isnan(found))
        error = np.where(equal, 0.0, np.abs(expected - found))
        size = 1 + np.abs(np.where(np.isfinite(expected), expected, 0.0))
        if bool(np.all(error <= tolerance.close * size)):
            return float(np.max(error / size, initial=0.0))
        allowed = tolerance.close * size + tolerance.roundings * _rounding(found, coarse())
        wrong = ~equal & ~(np.isfinite(error) & (error <= allowed))
        numbers = wrong & ~np.isnan(expected) & ~np.isnan(found)
        if numbers.any():
            return _first(expected, found, numbers)
        if wrong.any():
            return replace(_first(expected, found, wrong), kind="undefined")
        return float(np.max(error / size, initial=0.0))


def _rounding(fine: Array, coarse: Array) -> float:
    """By how much float32 is off at most, where it is not too small for the numbers."""
    off = np.abs(fine - coarse.astype(np.float64))
    return float(np.max(np.where(np.isfinite(off), off, 0.0), initial=0.0))


def _exact(expected: Array, found: Array) -> float | Difference:
    wrong = expected != found
    if not wrong.any():
        return 0.0
    first = _first(expected, found, np.asarray(wrong))
    return first if expected.dtype.kind == "b" else replace(first, kind="positions")


def _first(expected: Array, found: Array, wrong: Array) -> Difference:
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    return Difference(index, _number(expected[index]), _number(found[index]))


def _number(value: Any) -> str:
    return f"{value:.12g}" if isinstance(value, np.floating) else str(value)
