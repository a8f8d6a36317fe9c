"""Numbers that are computed from numbers, with bounds of what they are over the reals.

    >>> compute(ops.Divide(), [exact(three), exact(four)], types, kind).is_exact

The bounds of most elements are one number: constants, what moves them, whole numbers, and quotients that come out even.
Where double precision rounds they are apart, and come of what operators say of intervals (:mod:`rewright.ops.facts`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rewright import ops
from rewright.ir.types import DType, TensorType
from rewright.ops.base import Array, TensorOperator
from rewright.ops.facts import LARGEST, NOTHING, Facts, facts_between
from rewright.proof.rewriting.numbers.elements import ends_of, fact, result_ends, wraps

_WHOLE = 2.0**53
_SAMPLE = 1 << 15
_MOST_DISTINCT = 1 << 13


@dataclass(frozen=True)
class Bounded:
    """An array, and between what each element lies over the reals.

    Where the bounds are apart, a float is what double precision makes of it, or NaN where nothing is known of it; of an
    integer or a truth value nothing is known but its bounds.
    """

    value: Array
    low: Array
    high: Array

    @property
    def is_point(self) -> Array:
        """Where an element is known exactly."""
        return np.equal(self.low, self.high)

    @property
    def is_exact(self) -> bool:
        """Whether every element is known exactly."""
        return (self.low is self.value and self.high is self.value) or bool(self.is_point.all())


def exact(value: Array) -> Bounded:
    """An array as it is; nothing is known of what is no number."""
    return (
        _bounded_where(value, np.ones(value.shape, np.bool_), DType.F64)
        if _has_nan(value)
        else Bounded(value, value, value)
    )


def unknown(value: Array, dtype: DType) -> Bounded:
    """What double precision makes of numbers, without any bounds."""
    return _bounded_where(value, np.zeros(value.shape, np.bool_), dtype)


def _bounded_where(value: Array, known: Array, dtype: DType) -> Bounded:
    """An array that is known exactly at some places, and not at all at others."""
    low, high = ends_of(dtype)
    seen = known & ~np.isnan(value) if value.dtype.kind == "f" else known
    ends = (np.where(seen, value, np.asarray(end, value.dtype)) for end in (low, high))
    return Bounded(value, *ends)


def _has_nan(value: Array) -> bool:
    return value.dtype.kind == "f" and bool(np.isnan(value).any())


def is_whole(value: Array) -> Array:
    """Where a float is a whole number that double precision counts to."""
    with np.errstate(invalid="ignore"):
        return (value == np.round(value)) & (np.abs(value) < _WHOLE)


def compute(op: TensorOperator, operands: Sequence[Bounded], types: Sequence[TensorType], kind: TensorType) -> Bounded:
    """What an operator makes of bounded numbers; raises what its execution raises."""
    moved = op.moves(len(operands))
    if moved:
        return _move(op, moved, operands, kind)
    value = np.asarray(op.execute([one.value for one in operands], np.float64))
    are_exact = all(one.is_exact for one in operands)
    if are_exact and _is_sure(op, value, [facts_of(one) for one in operands], types, kind):
        found = exact(value)
    elif isinstance(op, ops.Elementwise):
        found = _pointwise(op, value, operands, types, kind)
    else:
        are_known = all(one.is_exact for one in operands if one.value.dtype.kind != "f")
        found = unknown(value if are_known or not kind.dtype.is_float else np.full_like(value, math.nan), kind.dtype)
    is_cast = isinstance(op, ops.Convert) and types[0].dtype.is_float
    return found if is_cast or not kind.dtype.is_float else _in_type(found, kind.dtype)


# --- operators that move elements


def _move(op: TensorOperator, moved: Sequence[int], operands: Sequence[Bounded], kind: TensorType) -> Bounded:
    def run(ends: Sequence[Array]) -> Array:
        read = (end if k in moved else one.value for k, (end, one) in enumerate(zip(ends, operands, strict=True)))
        return np.asarray(op.execute(list(read), np.float64))

    value = run([one.value for one in operands])
    if all(one.is_exact for one in operands):
        return exact(value)
    others = [one for k, one in enumerate(operands) if k not in moved]
    known: Array = np.asarray(all(one.is_exact for one in others) and not isinstance(op, ops.Sort | ops.TopK))
    if isinstance(op, ops.Select):
        known = others[0].is_point
    least, most = (np.asarray(end, value.dtype) for end in ends_of(kind.dtype))
    low = np.where(known, run([one.low for one in operands]), least)
    high = np.where(known, run([one.high for one in operands]), most)
    return Bounded(np.where(known, value, math.nan) if kind.dtype.is_float else value, low, high)


# --- operators that compute


def facts_of(known: Bounded) -> Facts:
    """What all elements of an exact array may be."""
    value = known.value
    if value.dtype.kind != "f":
        return facts_between(int(value.min()), int(value.max()), whole=True) if value.size else NOTHING
    finite = value[np.isfinite(value)]
    return Facts(
        float(finite.min()) if finite.size else math.inf,
        float(finite.max()) if finite.size else -math.inf,
        zero=bool((finite == 0).any()),
        whole=bool(is_whole(finite).all()),
        nan=False,
        plus_infinity=bool(np.isposinf(value).any()),
        minus_infinity=bool(np.isneginf(value).any()),
    )


def _is_sure(
    op: TensorOperator, value: Array, operands: Sequence[Facts], types: Sequence[TensorType], kind: TensorType
) -> bool:
    """Whether a result is exact by what is known of exact operands: integers, or floats that are whole numbers."""
    found = op.facts(operands, types, kind)
    if kind.dtype is DType.BOOL:
        return True
    if not kind.dtype.is_float:
        return wraps(op, types) or not op.condition(operands, kind, found)
    if isinstance(op, ops.Power):
        return False  # it is computed by way of logarithms
    is_counted = found.whole and found.low > -_WHOLE and found.high < _WHOLE
    return is_counted and bool((is_whole(value) | np.isinf(value)).all())


def _pointwise(
    op: TensorOperator, value: Array, operands: Sequence[Bounded], types: Sequence[TensorType], kind: TensorType
) -> Bounded:
    """Bounds of every element by those of the elements that it is made of, each combination of these once."""
    unknown_integers = [~one.is_point for one in operands if one.value.dtype.kind != "f"]
    if kind.dtype.is_float and unknown_integers:
        value = np.where(np.logical_or.reduce(unknown_integers), math.nan, value)
    groups = _groups(operands) if value.size else None
    if groups is None:
        return unknown(value, kind.dtype)
    first, inverse = groups
    picked = [Bounded(*(end.reshape(-1)[first] for end in (one.value, one.low, one.high))) for one in operands]
    results = value.reshape(-1)[first]
    pairs = [
        result_ends(op, results[k].item(), [fact(one.low[k].item(), one.high[k].item()) for one in picked], types, kind)
        for k in range(len(first))
    ]
    low, high = (np.array([pair[k] for pair in pairs], value.dtype)[inverse].reshape(value.shape) for k in (0, 1))
    return Bounded(np.where(low == high, low, value), low, high)


def _groups(operands: Sequence[Bounded]) -> tuple[Array, Array] | None:
    """Where each combination of bounds is first, and for every element which one it is; None where there are many."""
    columns = [end.reshape(-1) for one in operands for end in ((one.low,) if one.is_exact else (one.low, one.high))]
    step = columns[0].size // _SAMPLE + 1
    if max(len(np.unique(column[::step])) for column in columns) > _MOST_DISTINCT:
        return None
    ids: Array = np.zeros(columns[0].shape, np.int64)
    first: Array = np.zeros(1, np.int64)
    for column in columns:
        numbers, own = np.unique(column, return_inverse=True)
        _, first, ids = np.unique(ids * len(numbers) + own.reshape(-1), return_index=True, return_inverse=True)
        if len(first) > _MOST_DISTINCT:
            return None
    return first, ids


def _in_type(found: Bounded, dtype: DType) -> Bounded:
    """Numbers that were computed, without those that are too large for their type, or infinite for no known reason."""
    with np.errstate(invalid="ignore"):
        is_lost = np.isinf(found.value) & ~found.is_point
        is_lost |= np.isfinite(found.value) & (np.abs(found.value) > LARGEST[dtype])
    if not is_lost.any():
        return found
    ends = (np.where(is_lost, end, own) for end, own in ((-math.inf, found.low), (math.inf, found.high)))
    return Bounded(np.where(is_lost, math.nan, found.value), *ends)
