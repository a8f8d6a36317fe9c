"""Numeric agreement of values, at a tolerance that a float64 run of the same program scales."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
_SLACK = 16.0
"""By how much the error of a rewritten program may exceed that of the original."""
_ROUNDINGS = 64.0
"""Roundings of the largest value that are always allowed."""
_WITHOUT_REFERENCE = 4096.0
_BLOCK = 1 << 20
"""Elements that are compared at a time: in float64 an array may take several times its own memory."""


@dataclass(frozen=True)
class Agreement:
    """Whether two values agree, the largest difference, and what was allowed."""

    equal: bool
    difference: float
    allowed: float

    def __str__(self) -> str:
        return f"difference {self.difference:.3g}, allowed {self.allowed:.3g}"


def compare(before: Array, after: Array, reference: Array | None = None) -> Agreement:
    """Whether ``after`` is as close to the float64 ``reference`` as ``before`` is, times 16.

    Without a reference 4096 roundings of the largest value are allowed. Integers and truth values must be equal. Where
    ``before`` or its reference is no finite number, the rewritten value may be anything that is no finite number or
    what the reference says: overflow at another place is not a wrong rewrite.
    """
    if before.shape != after.shape or before.dtype != after.dtype:
        return Agreement(False, np.inf, 0.0)
    if before.dtype.kind in "biu":
        same = bool(np.array_equal(before, after))
        return Agreement(same, 0.0 if same else float(np.inf), 0.0)
    flat = [array.reshape(-1) for array in (before, after, *(() if reference is None else (reference,)))]
    parts = [_extent(*(own[start : start + _BLOCK] for own in flat)) for start in range(0, flat[0].size, _BLOCK)]
    scale, own, difference = (max((part[k] for part in parts), default=0.0) for k in range(3))
    step = float(np.finfo(before.dtype).eps) if before.dtype.name != "bfloat16" else 2.0**-7
    allowed = _WITHOUT_REFERENCE * step * scale if reference is None else _SLACK * own + _ROUNDINGS * step * scale
    return Agreement(all(part[3] for part in parts) and difference <= allowed, difference, allowed)


def says_something(values: Sequence[Array]) -> bool:
    """Whether a comparison with some values can fail: anything agrees with floats of which none is finite."""
    return any(not own.size or own.dtype.kind in "biu" or np.any(np.isfinite(own.astype(_wide(own)))) for own in values)


def _wide(array: Array) -> Any:
    return np.complex128 if array.dtype.kind == "c" else np.float64


def _extent(before: Array, after: Array, reference: Array | None = None) -> tuple[float, float, float, bool]:
    """The largest reference, and how far from it ``before`` and ``after`` are; and whether ``after`` is as finite."""
    wide = _wide(before)
    old, new = before.astype(wide), after.astype(wide)
    ref = old if reference is None else reference.astype(wide)
    finite = np.isfinite(old) & np.isfinite(new) & np.isfinite(ref)
    with np.errstate(all="ignore"):
        excused = finite | ~np.isfinite(old) | ~np.isfinite(ref)
        scale, own, difference = (
            float(np.max(np.abs(array)[finite], initial=0.0)) for array in (ref, old - ref, new - ref)
        )
    return scale, own, difference, bool(np.all(excused))


def worst(before: Sequence[Array], after: Sequence[Array], references: Sequence[Array] | None = None) -> Agreement:
    """The agreement of the values that agree least; one of no arrays is equal."""
    found = Agreement(True, 0.0, 0.0)
    for place, (old, new) in enumerate(zip(before, after, strict=True)):
        own = compare(old, new, None if references is None else references[place])
        if not own.equal or (found.equal and own.difference > found.difference):
            found = own
        if not own.equal:
            break
    return found
