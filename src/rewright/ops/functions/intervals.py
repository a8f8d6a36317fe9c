"""Transfer functions with cases of their own: roots, logarithms, rounding, bits, comparisons and casts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from rewright.ir.dims import Dim
from rewright.ir.types import DType
from rewright.ops import facts as domain
from rewright.ops.facts import INF, NOTHING, TRUTH, Facts, Number, facts_between, integer_range, is_no_number, join


def logarithm(x: Facts, shift: int) -> Facts:
    """Of ``log(x + shift)``: NaN below its domain and minus infinity at the end of it."""
    own = domain.add(x, domain.of_values([shift]))
    nan = x.nan or own.may_be_negative
    if is_no_number(own) or own.high <= 0:
        return replace(NOTHING, nan=nan, plus_infinity=x.plus_infinity, minus_infinity=own.zero, exact=False)
    low = math.nextafter(math.log(own.low), -INF) if own.low > 0 else -INF
    high = math.nextafter(math.log(own.high), INF) if domain.has_end(own.high) else INF
    low, high = (max(low, 0) if own.low >= 1 else low), (min(high, 0) if own.high <= 1 else high)
    if shift == 1:
        low, high = (0 if x.low >= 0 else low), (0 if x.high <= 0 else high)
    zero = x.zero if shift == 1 else own.low <= 1 <= own.high
    return Facts(low, high, zero and low <= 0 <= high, False, nan, x.plus_infinity, own.zero)


def root(x: Facts) -> Facts:
    """Of the square root: NaN below zero."""
    nan = x.nan or x.may_be_negative
    if is_no_number(x) or x.high < 0:
        return replace(NOTHING, nan=nan, plus_infinity=x.plus_infinity, exact=False)
    low = max(math.nextafter(_root(max(x.low, 0)), -INF), 0)
    high = math.nextafter(_root(x.high), INF) if x.high > 0 else 0
    return Facts(low, high, x.zero, False, nan, x.plus_infinity, minus_infinity=False)


def inverse_root(x: Facts) -> Facts:
    """Of one over the square root: infinite at zero, of either sign since zeros have signs, and NaN below."""
    return domain.reciprocal(root(x))


def _root(value: Number) -> float:
    return math.sqrt(value) if domain.has_end(value) else INF


def sign(x: Facts) -> Facts:
    """Of -1, 0 or 1."""
    found = facts_between(-1 if x.may_be_negative else 0, 1 if x.may_exceed_zero else 0, zero=x.zero, whole=True)
    if x.is_positive:
        found = facts_between(1, 1, zero=False, whole=True)
    return replace(found, nan=x.nan)


def integral(x: Facts, function: Callable[[float], int]) -> Facts:
    """Of an increasing function to the integers, which leaves infinities as they are."""

    def end(value: Number) -> Number:
        return function(value) if isinstance(value, int) or domain.has_end(value) else value

    if is_no_number(x):
        return replace(x, whole=True)
    low, high = end(x.low), end(x.high)
    return Facts(low, high, low <= 0 <= high, True, x.nan, x.plus_infinity, x.minus_infinity)


def bitwise(kind: Literal["and", "or", "xor"], x: Facts, y: Facts, dtype: DType) -> Facts:
    """Of an operation on the bits of integers, or of truth values."""
    known = (x, y)
    if dtype is DType.BOOL:
        low, high = _truths(kind, x, y)
        return facts_between(low, high, whole=True)
    if all(one.low >= 0 and not is_no_number(one) for one in known):
        ends = [one.high for one in known]
        if kind == "and":
            return facts_between(0, min(ends), whole=True)
        most = max(int(end) for end in ends) if all(map(domain.has_end, ends)) else integer_range(dtype)[1]
        low = max(x.low, y.low) if kind == "or" else 0
        return facts_between(low, 2 ** most.bit_length() - 1, whole=True)
    if kind == "and" and any(one.low >= 0 for one in known):
        return facts_between(0, min(one.high for one in known if one.low >= 0), whole=True)
    return domain.of_dtype(dtype)


def _truths(kind: str, x: Facts, y: Facts) -> tuple[Number, Number]:
    if kind == "xor":
        is_known = x.low == x.high and y.low == y.high
        return (abs(x.low - y.low), abs(x.low - y.low)) if is_known else (0, 1)
    pick = min if kind == "and" else max
    return pick(x.low, y.low), pick(x.high, y.high)


def comparison(direction: str, x: Facts, y: Facts) -> Facts:
    """Of a comparison: known where the intervals do not overlap; false with NaN, except for ``NE``."""
    if direction in ("GT", "GE"):
        return comparison({"GT": "LT", "GE": "LE"}[direction], y, x)
    if direction == "NE":
        return domain.subtract(domain.of_values([1]), replace(comparison("EQ", x, y), exact=False))
    nan = x.nan or y.nan
    always, never = _order(direction, x, y)
    if never:
        return domain.of_values([False])
    return domain.of_values([True]) if always and not nan else TRUTH


def _order(direction: str, x: Facts, y: Facts) -> tuple[bool, bool]:
    """Whether a comparison of elements that are not NaN always holds, and whether it never does."""
    is_apart = x.top < y.bottom or y.top < x.bottom
    if direction == "EQ":
        is_same = x.bottom == x.top == y.bottom == y.top
        return is_same, is_apart or (not x.zero and y.low == y.high == 0) or (not y.zero and x.low == x.high == 0)
    if direction == "LT":
        is_positive = x.bottom == x.top == 0 and y.is_positive
        return x.top < y.bottom or is_positive, x.bottom >= y.top
    return x.top <= y.bottom, x.bottom > y.top or (x.is_positive and y.bottom == y.top == 0)


def convert_facts(x: Facts, source: DType, target: DType) -> Facts:
    """Of a cast: between floats it keeps the number, to integers it cuts off the fraction."""
    if target is DType.BOOL:
        if not x.zero:
            return domain.of_values([True])
        return domain.of_values([False]) if x.low == x.high == 0 and x.is_finite else TRUTH
    if target.is_float:
        return x
    if not source.is_float:
        return x
    if not x.is_finite or is_no_number(x):
        return domain.of_dtype(target)
    low = math.trunc(x.low) if domain.has_end(x.low) else x.low
    high = math.trunc(x.high) if domain.has_end(x.high) else x.high
    return facts_between(low, high, whole=True, zero=x.zero or (low <= 0 <= high and not x.whole))


def reduce_facts(kind: str, x: Facts, count: Dim, dtype: DType) -> Facts:
    """Of a reduction of ``count`` elements, any of which may be any element."""
    if kind == "sum":
        return domain.repeated_sum(x, count)
    if kind == "product":
        return domain.repeated_product(x, count)
    if kind in ("maximum", "minimum"):
        return domain.extreme(x, count, dtype, kind)
    if dtype is DType.BOOL:
        empty = domain.of_values([kind == "and"])
        return x if domain.size_range(count)[0] >= 1 else join(x, empty)
    return domain.of_dtype(dtype)
