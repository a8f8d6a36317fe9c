"""Numeric agreement of values, element by element, at tolerances that a float64 run of the same program scales."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewright.frontends.hlo.shapes import limits_of

Array = np.ndarray[Any, Any]
Asked = Callable[[], "Array | None"]
"""Something about each element that is computed when it is asked for; None where it is not known."""
_SLACK = 8.0
"""By how much the error of a rewritten program may exceed that of the original."""
_ROUNDINGS = (4.0, 256.0)
"""How many roundings of each operand an element may be off before the slack: at least, and at most."""
_WITHOUT_REFERENCE = 4096.0
_VANISHED = 1e-6
"""What a difference becomes in float64 where it is all rounding: 2^-29 of it, or some times more."""
_BLOCK = 1 << 20
"""Elements that are compared at a time: in float64 an array may take several times its own memory."""


@dataclass(frozen=True)
class Agreement:
    """Whether two values agree; at the element that agrees least how far they are apart, and what was allowed."""

    equal: bool
    difference: float
    allowed: float

    def __str__(self) -> str:
        return f"difference {self.difference:.3g}, allowed {self.allowed:.3g}"


def unknown() -> None:
    """What nobody computed."""


def compare(
    before: Array, after: Array, reference: Array | None = None, spread: Asked = unknown, rewritten: Asked = unknown
) -> Agreement:
    """Whether each element of ``after`` is as close to the float64 ``reference`` as that of ``before`` may be, times 8.

    How far an element may be off is what ``before`` is off there, and some roundings of the element and of what it
    moves by where the inputs move by a rounding; that is asked for where anything differs by more than its own
    roundings. ``rewritten`` is ``after`` in float64: where the difference to the reference vanishes in it, it is all
    rounding, and may be some roundings of the largest element. Integers and truth values must be equal.

    Where ``before`` is no number, nothing is claimed; where it is infinite ``after`` is that infinity or no number, and
    what the reference says where only ``before`` overflows. Where ``before`` is a number ``after`` must be one:
    overflow at another place shows.
    """
    if before.shape != after.shape or before.dtype != after.dtype:
        return Agreement(False, np.inf, 0.0)
    if before.dtype.kind in "biu":
        same = bool(np.array_equal(before, after))
        return Agreement(same, 0.0 if same else float(np.inf), 0.0)
    if before.tobytes() == after.tobytes():
        return Agreement(True, 0.0, 0.0)
    values = _Values(before, after, reference)
    found = values.agreement()
    moved = None if found.equal else spread()
    return found if moved is None else values.agreement(moved, rewritten())


def says_something(values: Sequence[Array]) -> bool:
    """Whether a comparison with some values can fail: anything agrees with floats that are all infinite or NaN."""
    return any(not own.size or own.dtype.kind in "biu" or np.any(np.isfinite(own.astype(_wide(own)))) for own in values)


def worst(
    before: Sequence[Array],
    after: Sequence[Array],
    references: Sequence[Array] | None = None,
    spreads: Sequence[Asked] | None = None,
    rewritten: Sequence[Asked] | None = None,
) -> Agreement:
    """The agreement of the values that agree least; one of no arrays is equal."""
    found = Agreement(True, 0.0, 0.0)
    for place, (old, new) in enumerate(zip(before, after, strict=True)):
        reference = None if references is None else references[place]
        asked = [unknown if more is None else more[place] for more in (spreads, rewritten)]
        own = compare(old, new, reference, *asked)
        if not own.equal or (found.equal and own.difference > found.difference):
            found = own
        if not own.equal:
            break
    return found


def _wide(array: Array) -> Any:
    return np.complex128 if array.dtype.kind == "c" else np.float64


@dataclass(frozen=True)
class _Block:
    """Some elements in float64, and what of them is finite."""

    old: Array
    new: Array
    ref: Array
    moved: Array
    is_rounding: Array
    """Where the difference is all rounding."""

    def unit(self, step: float, least: float) -> Array:
        """A rounding of each element and of what it is made of."""
        return step * np.abs(self.ref) + self.moved + least


class _Values:
    """Two values with their reference, in blocks."""

    def __init__(self, before: Array, after: Array, reference: Array | None) -> None:
        self._before, self._after, self._reference = (
            None if own is None else own.reshape(-1) for own in (before, after, reference)
        )
        self._step, self._least, _ = limits_of(before.dtype)
        # What is computed flushes subnormal numbers, or does not.
        self._least *= 4

    def agreement(self, spread: Array | None = None, rewritten: Array | None = None) -> Agreement:
        """The element that agrees least; without a spread none moves."""
        factor = _ROUNDINGS[0] if self._reference is not None else _WITHOUT_REFERENCE / _SLACK
        if spread is not None and self._reference is not None:
            factor = self._amplification(spread)
        largest = 0.0 if spread is None else self._largest()
        found, ratio = Agreement(True, 0.0, 0.0), 0.0
        for block in self._blocks(spread, rewritten):
            own, how = self._judge(block, factor, largest)
            if how > ratio or (found.equal and own.difference > found.difference):
                found, ratio = own, max(how, ratio)
        return found

    def _blocks(self, spread: Array | None = None, rewritten: Array | None = None) -> Iterator[_Block]:
        assert self._before is not None and self._after is not None
        kind = _wide(self._before)
        more = [None if own is None else own.reshape(-1) for own in (spread, rewritten)]
        for start in range(0, self._before.size, _BLOCK):
            part = slice(start, start + _BLOCK)
            old, new = self._before[part].astype(kind), self._after[part].astype(kind)
            ref = old if self._reference is None else self._reference[part].astype(kind)
            moved, wide = (None if own is None else own[part].astype(kind) for own in more)
            rounds = np.zeros(1, bool) if wide is None else self._is_rounding(new, ref, wide)
            yield _Block(old, new, ref, np.zeros(1) if moved is None else np.abs(moved), rounds)

    def _is_rounding(self, new: Array, ref: Array, wide: Array) -> Array:
        assert self._before is not None
        if self._before.dtype == np.float64:
            # There is nothing wider, and roundings of the largest element are next to nothing.
            return np.ones(new.shape, bool)
        with np.errstate(all="ignore"):
            return np.abs(wide - ref) <= _VANISHED * np.abs(new - ref)

    def _largest(self) -> float:
        finite = (np.abs(block.ref[np.isfinite(block.ref)]) for block in self._blocks())
        return max((float(np.max(own, initial=0.0)) for own in finite), default=0.0)

    def _amplification(self, spread: Array) -> float:
        """By how many roundings of its operands an element of ``before`` is off at most, within reason."""
        found = _ROUNDINGS[0]
        for block in self._blocks(spread):
            with np.errstate(all="ignore"):
                ratio = np.abs(block.old - block.ref) / block.unit(self._step, self._least)
            found = max(found, float(np.max(ratio, initial=0.0, where=np.isfinite(ratio))))
        return min(found, _ROUNDINGS[1])

    def _judge(self, block: _Block, factor: float, largest: float) -> tuple[Agreement, float]:
        """The element of a block that agrees least, and how many times what is allowed it is off."""
        old, new, ref = block.old, block.new, block.ref
        with np.errstate(all="ignore"):
            own = np.abs(old - ref)
            allowed = _SLACK * (np.where(np.isfinite(own), own, 0) + factor * block.unit(self._step, self._least))
            allowed = np.where(block.is_rounding, allowed + _SLACK * _ROUNDINGS[0] * self._step * largest, allowed)
            difference = np.abs(new - ref)
            is_claimed = np.isfinite(old) & np.isfinite(ref) & ~np.isnan(allowed)
            ratio = np.where(np.isfinite(difference), difference / allowed, np.inf)
            ratio = np.where(is_claimed & ~np.isinf(allowed), ratio, 0.0)
            ratio = np.where(_breaks(old, new, ref, difference, allowed), np.inf, ratio)
        if not ratio.size:
            return Agreement(True, 0.0, 0.0), 0.0
        place = int(np.argmax(ratio))
        off, bound = float(np.nan_to_num(difference[place], nan=np.inf)), float(allowed[place])
        if ratio[place] == 0 and not is_claimed[place]:
            off = bound = 0.0
        return Agreement(bool(ratio[place] <= 1), off, bound), float(ratio[place])


def _breaks(old: Array, new: Array, ref: Array, difference: Array, allowed: Array) -> Array:
    """Where an infinity became another value, and where what only ``old`` could not hold became a wrong number."""
    is_infinite = np.isinf(old) & ~np.isnan(old)
    overflowed = ~np.isfinite(old) & np.isfinite(ref)
    wrong = overflowed & np.isfinite(new) & ~(difference <= allowed)
    other = is_infinite & np.isinf(ref) & (old == ref) & ~np.isnan(new) & (new != old)
    return wrong | other
