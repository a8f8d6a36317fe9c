"""Between what one element of a result lies, by what is known of those that it is made of.

    >>> result_ends(ops.Divide(), 0.75, [fact(3.0, 3.0), fact(4.0, 4.0)], types, kind)
    (0.75, 0.75)

What operators say of intervals is rounded outwards; arithmetic that comes out even is found to be exact with fractions.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from rewright import ops
from rewright.ir.operator import Operator
from rewright.ir.types import DType, TensorType
from rewright.ops.base import TensorOperator, integer_limits
from rewright.ops.facts import UNKNOWN, Facts, Number, facts_between, in_dtype, of_dtype, of_values

_HIGHEST_POWER = 64
_SLACK = 2.0**-50
"""By so much, relative to their size, functions may be rounded farther than to the next float."""
_FIELD: Mapping[type[Operator], Callable[[Fraction, Fraction], Fraction]] = {
    ops.Add: operator.add,
    ops.Subtract: operator.sub,
    ops.Multiply: operator.mul,
    ops.Divide: lambda a, b: a / b,
}


def ends_of(dtype: DType) -> tuple[float | int, float | int]:
    """Between what every element of a type lies."""
    return (-math.inf, math.inf) if dtype.is_float else integer_limits(dtype)


def wraps(op: TensorOperator, types: Sequence[TensorType]) -> bool:
    """Whether an operator is a cast of integers, which is defined for all of them."""
    return isinstance(op, ops.Convert) and not types[0].dtype.is_float


def fact(low: Number, high: Number) -> Facts:
    """What is known of one element between two ends."""
    if low == high:
        return of_values([low])
    if isinstance(low, float):
        return facts_between(low, high) if math.isfinite(low) and math.isfinite(high) else UNKNOWN
    return facts_between(int(low), int(high), whole=True)


def result_ends(
    op: TensorOperator, value: Number, known: Sequence[Facts], types: Sequence[TensorType], kind: TensorType
) -> tuple[float | int, float | int]:
    """Bounds of one element of a result."""
    if _is_even(op, value, known):
        return value, value
    found = op.facts(known, types, kind)
    if not kind.dtype.is_float:
        is_defined = wraps(op, types) or not op.condition(known, kind, found)
        if is_defined and all(one.low == one.high and one.is_finite for one in known):
            return value, value
        found = in_dtype(found, kind.dtype) if is_defined else of_dtype(kind.dtype)
        is_within = found.is_finite and math.isfinite(found.low) and found.low <= found.high
        return (math.ceil(found.low), math.floor(found.high)) if is_within else ends_of(kind.dtype)
    return _float_ends(found)


def _float_ends(found: Facts) -> tuple[float, float]:
    if found.low > found.high and not found.nan and found.plus_infinity is not found.minus_infinity:
        return (math.inf, math.inf) if found.plus_infinity else (-math.inf, -math.inf)
    if not found.is_finite or found.low > found.high:
        return -math.inf, math.inf
    try:
        low, high = float(found.low), float(found.high)
    except OverflowError:
        return -math.inf, math.inf
    if low != high or low != found.low or high != found.high:
        low, high = low - abs(low) * _SLACK, high + abs(high) * _SLACK
    return (low, high) if math.isfinite(low) and math.isfinite(high) else (-math.inf, math.inf)


def _is_even(op: TensorOperator, value: float | int, known: Sequence[Facts]) -> bool:
    """Whether floats are exactly what arithmetic, a power or a root makes of exact numbers."""
    if not isinstance(value, float) or not math.isfinite(value):
        return False
    if not all(one.low == one.high and one.is_finite for one in known):
        return False
    numbers = [Fraction(one.low) for one in known]
    if isinstance(op, ops.Power):
        base, exponent = numbers
        is_counted = exponent.denominator == 1 and 0 <= exponent <= _HIGHEST_POWER
        return is_counted and base ** int(exponent) == Fraction(value)
    if isinstance(op, ops.Sqrt):
        return Fraction(value) ** 2 == numbers[0] and value >= 0
    combine = _FIELD.get(type(op))
    if combine is None or (isinstance(op, ops.Divide) and not numbers[1]):
        return False
    return combine(*numbers) == Fraction(value)
