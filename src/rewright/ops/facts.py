"""What the elements of a tensor may be: the abstract domain that every operator's transfer function is written in.

A :class:`Facts` stands for a set of extended reals and NaN: the numbers between ``low`` and ``high``, without zero
where ``zero`` is false, whole ones only where ``whole`` is true, and NaN and either infinity where their flags are
set. A flag that is set says *may be*; what is not known is possible. Arithmetic is exact over the reals, so an
exponential of a number is never zero and never infinite; what rounding adds is :func:`round_facts`, and what integer
types do to numbers that do not fit is :func:`in_dtype`.

This is interval analysis (Moore 1966) with the special values of IEEE 754 beside the interval, as an abstract
interpretation (Cousot and Cousot 1977). Ends are rounded outwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from rewright.ir.dims import Dim, at_most
from rewright.ir.types import DType

Number = int | float
INF = math.inf


@dataclass(frozen=True, slots=True)
class Facts:
    """A set that contains every element of a tensor; the default contains everything."""

    low: Number = -INF
    """No finite element is below this. Above ``high``: no element is finite."""
    high: Number = INF
    zero: bool = True
    """Whether an element may be zero."""
    whole: bool = False
    """Whether every finite element is an integer."""
    nan: bool = True
    plus_infinity: bool = True
    minus_infinity: bool = True
    exact: bool = False
    """Whether the machine's elements are these numbers: nothing was rounded and nothing wrapped since the inputs."""

    @property
    def is_finite(self) -> bool:
        """Whether every element is a real number."""
        return not (self.nan or self.plus_infinity or self.minus_infinity)

    @property
    def may_be_infinite(self) -> bool:
        """Whether an element may be one of the infinities."""
        return self.plus_infinity or self.minus_infinity

    @property
    def is_nonnegative(self) -> bool:
        """Whether no element is below zero; one may be NaN or plus infinity."""
        return self.low >= 0 and not self.minus_infinity

    @property
    def is_positive(self) -> bool:
        """Whether every element that is no NaN is above zero."""
        return self.is_nonnegative and not self.zero

    @property
    def bottom(self) -> Number:
        """The least that an element may be, infinities among them."""
        return -INF if self.minus_infinity else self.low if self.low <= self.high else INF

    @property
    def top(self) -> Number:
        """The largest that an element may be, infinities among them."""
        return INF if self.plus_infinity else self.high if self.low <= self.high else -INF

    @property
    def may_exceed_zero(self) -> bool:
        """Whether an element may be above zero."""
        return self.plus_infinity or self.high > 0

    @property
    def may_be_negative(self) -> bool:
        """Whether an element may be below zero."""
        return self.minus_infinity or self.low < 0

    def contains(self, value: float) -> bool:
        """Whether an element may be this value."""
        if math.isnan(value):
            return self.nan
        if math.isinf(value):
            return self.plus_infinity if value > 0 else self.minus_infinity
        is_allowed = (self.zero or value != 0) and (not self.whole or value == math.floor(value))
        return self.low <= value <= self.high and is_allowed

    def __str__(self) -> str:
        parts = [f"[{self.low:g}, {self.high:g}]"] if self.low <= self.high else ["no number"]
        parts += ["nonzero"] if not self.zero and self.low <= 0 <= self.high else []
        flags = ("whole", "nan", "plus_infinity", "minus_infinity", "exact")
        return " ".join([*parts, *(flag.replace("_", " ") for flag in flags if getattr(self, flag))])


UNKNOWN = Facts()
"""Anything at all."""
REAL = Facts(nan=False, plus_infinity=False, minus_infinity=False)
"""Any real number."""
NOTHING = Facts(INF, -INF, zero=False, whole=True, nan=False, plus_infinity=False, minus_infinity=False, exact=True)
"""No element at all: what a tensor without elements has, and where unions begin."""
TRUTH = Facts(0, 1, whole=True, nan=False, plus_infinity=False, minus_infinity=False)
"""A truth value, which counts as 0 or 1."""


def has_end(value: Number) -> bool:
    """Whether an end is a number; integers of any size are."""
    return isinstance(value, int) or math.isfinite(value)


def facts_between(low: Number, high: Number, *, zero: bool = True, whole: bool = False) -> Facts:
    """Real numbers in an interval."""
    return _tight(Facts(low, high, zero, whole, nan=False, plus_infinity=False, minus_infinity=False))


def of_values(values: Iterable[float | int | bool]) -> Facts:
    """Exactly what these values need; a table of many is read in a few passes."""
    distinct = set(values)
    numbers = distinct if all(map(has_end, distinct)) else {value for value in distinct if has_end(value)}
    low, high = (_exact(min(numbers)), _exact(max(numbers))) if numbers else (INF, -INF)
    whole, nan = all(value == int(value) for value in numbers), any(map(math.isnan, distinct))
    return Facts(low, high, 0 in numbers, whole, nan, INF in distinct, -INF in distinct, exact=True)


def _exact(value: float | int | bool) -> Number:
    return int(value) if value == int(value) else value


def integer_range(dtype: DType) -> tuple[int, int]:
    """The smallest and the largest number of an integer type; truth values count as 0 and 1."""
    if dtype is DType.BOOL:
        return 0, 1
    bits = int(dtype.value.lstrip("iu"))
    return (0, 2**bits - 1) if dtype.is_unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def of_dtype(dtype: DType) -> Facts:
    """All that an element of a type may be."""
    if dtype.is_float:
        return UNKNOWN
    return facts_between(*integer_range(dtype), whole=True)


def join(*known: Facts) -> Facts:
    """What holds of the elements of any of several tensors."""
    found = NOTHING
    for one in known:
        found = Facts(
            min(found.low, one.low),
            max(found.high, one.high),
            found.zero or one.zero,
            found.whole and one.whole,
            found.nan or one.nan,
            found.plus_infinity or one.plus_infinity,
            found.minus_infinity or one.minus_infinity,
            found.exact and one.exact,
        )
    return found


def includes(claim: Facts, known: Facts) -> bool:
    """Whether what is known of elements says all that is claimed of them."""
    return join(claim, known) == claim


def meet(first: Facts, second: Facts) -> Facts:
    """What is known of the same elements for two reasons."""
    found = Facts(
        max(first.low, second.low),
        min(first.high, second.high),
        first.zero and second.zero,
        first.whole or second.whole,
        first.nan and second.nan,
        first.plus_infinity and second.plus_infinity,
        first.minus_infinity and second.minus_infinity,
        first.exact or second.exact,
    )
    return _tight(found)


def _tight(found: Facts) -> Facts:
    """The same set, with ends that are whole where its numbers are, and without a zero that lies outside."""
    low, high = found.low, found.high
    if found.whole:
        low = math.ceil(low) if has_end(low) else low
        high = math.floor(high) if has_end(high) else high
    return replace(found, low=low, high=high, zero=found.zero and low <= 0 <= high)


# --- rounding outwards


def _down(value: Number, exactly: bool = False) -> Number:
    if exactly or isinstance(value, int) or math.isinf(value):
        return value
    return math.nextafter(value, -INF)


def _up(value: Number, exactly: bool = False) -> Number:
    if exactly or isinstance(value, int) or math.isinf(value):
        return value
    return math.nextafter(value, INF)


def _plus(a: Number, b: Number, toward: Callable[[Number], Number]) -> Number:
    if a == 0 or b == 0 or (isinstance(a, int) and isinstance(b, int)):
        return a + b
    return toward(_float(a) + _float(b))


def _float(value: Number) -> float:
    """An end as a float, which is infinite where the end is too large."""
    try:
        return float(value)
    except OverflowError:
        return INF if value > 0 else -INF


def _times(a: Number, b: Number, toward: Callable[[Number], Number]) -> Number:
    """A product of ends, where an infinite end only says that there is no bound."""
    if a == 0 or b == 0:
        return 0
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    found = _float(a) * _float(b)
    return toward(found) if abs(a) != 1 and abs(b) != 1 else found


def is_no_number(known: Facts) -> bool:
    """Whether no element is finite."""
    return known.low > known.high


# --- arithmetic


def negate(x: Facts) -> Facts:
    """Of ``-x``."""
    return replace(x, low=-x.high, high=-x.low, plus_infinity=x.minus_infinity, minus_infinity=x.plus_infinity)


def add(x: Facts, y: Facts) -> Facts:
    """Of ``x + y``: NaN where infinities of both signs meet."""
    nan = x.nan or y.nan or (x.plus_infinity and y.minus_infinity) or (x.minus_infinity and y.plus_infinity)
    # An infinity and one of the other sign add up to NaN alone.
    plus = (x.plus_infinity and y.top > -INF) or (y.plus_infinity and x.top > -INF)
    minus = (x.minus_infinity and y.bottom < INF) or (y.minus_infinity and x.bottom < INF)
    if is_no_number(x) or is_no_number(y):
        return replace(NOTHING, nan=nan, plus_infinity=plus, minus_infinity=minus, exact=False)
    low, high = _plus(x.low, y.low, _down), _plus(x.high, y.high, _up)
    one_sign = (x.low >= 0 and y.low >= 0) or (x.high <= 0 and y.high <= 0)
    low, high = (max(low, 0) if x.low >= 0 and y.low >= 0 else low), high
    high = min(high, 0) if x.high <= 0 and y.high <= 0 else high
    zero = (x.zero and y.zero) if one_sign else True
    return _tight(Facts(low, high, zero, x.whole and y.whole, nan, plus, minus))


def subtract(x: Facts, y: Facts) -> Facts:
    """Of ``x - y``."""
    return add(x, negate(y))


def multiply(x: Facts, y: Facts) -> Facts:
    """Of ``x * y``: NaN where zero meets an infinity."""
    nan = x.nan or y.nan or (x.may_be_infinite and y.zero) or (x.zero and y.may_be_infinite)
    plus = _reaches(x, y, same=True) or _reaches(y, x, same=True)
    minus = _reaches(x, y, same=False) or _reaches(y, x, same=False)
    if is_no_number(x) or is_no_number(y):
        return replace(NOTHING, nan=nan, plus_infinity=plus, minus_infinity=minus, exact=False)
    ends = [(a, b) for a in (x.low, x.high) for b in (y.low, y.high)]
    low, high = min(_times(a, b, _down) for a, b in ends), max(_times(a, b, _up) for a, b in ends)
    if (x.low >= 0 and y.low >= 0) or (x.high <= 0 and y.high <= 0):
        low = max(low, 0)
    if (x.low >= 0 and y.high <= 0) or (x.high <= 0 and y.low >= 0):
        high = min(high, 0)
    return _tight(Facts(low, high, x.zero or y.zero, x.whole and y.whole, nan, plus, minus))


def _reaches(infinite: Facts, other: Facts, *, same: bool) -> bool:
    """Whether an infinity of the first times a number of the second may be plus infinity, or else minus infinity."""
    above, below = other.may_exceed_zero, other.may_be_negative
    return (infinite.plus_infinity and (above if same else below)) or (
        infinite.minus_infinity and (below if same else above)
    )


def square(x: Facts) -> Facts:
    """Of ``x * x``."""
    found = multiply(absolute(x), absolute(x))
    return replace(found, nan=x.nan)


def absolute(x: Facts) -> Facts:
    """Of ``abs(x)``."""
    infinite = x.may_be_infinite
    if is_no_number(x):
        return replace(x, plus_infinity=infinite, minus_infinity=False)
    low = 0 if x.low <= 0 <= x.high else min(abs(x.low), abs(x.high))
    return _tight(replace(x, low=low, high=max(abs(x.low), abs(x.high)), plus_infinity=infinite, minus_infinity=False))


def reciprocal(x: Facts) -> Facts:
    """Of ``1 / x``: an infinity of either sign at zero, since zeros have signs."""
    found = Facts(-INF, INF, x.may_be_infinite, False, x.nan, x.zero, x.zero)
    if x.low > 0 or (x.low >= 0 and not is_no_number(x)):
        low, high = (_down(1 / x.high) if x.high else INF), (_up(1 / x.low) if x.low else INF)
        found = replace(found, low=max(low, 0), high=high)
    elif x.high <= 0:
        low, high = (_down(1 / x.high) if x.high else -INF), (_up(1 / x.low) if x.low else -INF)
        found = replace(found, low=low, high=min(high, 0))
    found = replace(found, low=min(found.low, 0), high=max(found.high, 0)) if x.may_be_infinite else found
    return _tight(replace(found, exact=False))


def divide(x: Facts, y: Facts) -> Facts:
    """Of ``x / y`` on floats: NaN where zeros or infinities meet, an infinity where only the divisor is zero."""
    finite = multiply(x, reciprocal(replace(y, zero=False) if not is_no_number(y) else y))
    nan = x.nan or y.nan or (x.zero and y.zero) or (x.may_be_infinite and y.may_be_infinite)
    pole = y.zero and (x.may_exceed_zero or x.may_be_negative)
    plus, minus = finite.plus_infinity or pole, finite.minus_infinity or pole
    found = replace(finite, nan=nan, plus_infinity=plus, minus_infinity=minus, whole=False)
    return _tight(found)


def quotient(x: Facts, y: Facts, dtype: DType) -> Facts:
    """Of ``x / y`` on integers, towards zero; anything where the divisor may be zero."""
    if y.zero or not all(map(has_end, (x.low, x.high, y.low, y.high))) or is_no_number(x) or is_no_number(y):
        return of_dtype(dtype)
    divisors = [int(b) for b in (y.low, y.high, *(n for n in (-1, 1) if y.low <= n <= y.high)) if b]
    ends = [_truncate(int(a), b) for a in (x.low, x.high) for b in divisors]
    ends += [0] if x.low <= 0 <= x.high else []
    return facts_between(min(ends), max(ends), whole=True)


def _truncate(a: int, b: int) -> int:
    found = abs(a) // abs(b)
    return found if (a >= 0) == (b > 0) else -found


def remainder(x: Facts, y: Facts) -> Facts:
    """Of what is left of x divided by y towards zero, which has the sign of x; NaN where y is zero or x infinite."""
    nan = x.nan or y.nan or y.zero or x.may_be_infinite
    most = max(abs(y.low), abs(y.high)) if not y.may_be_infinite else INF
    most = most - 1 if x.whole and y.whole and has_end(most) else most
    low, high = max(x.low, -most), min(x.high, most)
    low, high = min(low, 0), max(high, 0)
    low, high = (0 if x.low >= 0 else low), (0 if x.high <= 0 else high)
    whole = x.whole and y.whole
    return _tight(Facts(low, high, True, whole, nan, plus_infinity=False, minus_infinity=False))


def power(x: Facts, y: Facts) -> Facts:
    """Of x to the power y on floats; ``0 ** 0`` is 1, as IEEE 754 has it."""
    if y.low == y.high and y.is_finite and not x.may_be_infinite:
        exponent = y.low
        if exponent == int(exponent) and 0 <= exponent <= 64 and not is_no_number(x):
            return _whole_power(x, int(exponent))
    if not (x.is_nonnegative and not x.may_be_infinite and y.is_finite) or is_no_number(x):
        return UNKNOWN
    pole = x.zero and y.low < 0
    zero = x.zero and y.may_exceed_zero
    if x.low > 0 or y.low >= 0:
        corners = [_float_power(a, b) for a in (x.low, x.high) for b in (y.low, y.high)]
        ends = [*corners, *([1.0] if y.low <= 0 <= y.high or x.low <= 1 <= x.high else [])]
        low, high = max(_down(min(ends)), 0), _up(max(ends))
    else:
        low, high = 0, INF
    return _tight(Facts(0 if pole else low, high, zero, False, x.nan or y.nan, pole, minus_infinity=False))


def _whole_power(x: Facts, exponent: int) -> Facts:
    if exponent == 0:
        return replace(of_values([1]), nan=x.nan)
    found = x
    for _ in range(exponent - 1):
        found = multiply(found, x)
    if exponent % 2 == 0:
        half = _whole_power(absolute(x), exponent // 2) if exponent > 2 else absolute(x)
        found = replace(multiply(half, half), nan=x.nan)
    return replace(found, exact=False)


def _float_power(base: Number, exponent: Number) -> float:
    try:
        return float(base) ** float(exponent)
    except (OverflowError, ZeroDivisionError):
        return INF


def maximum(x: Facts, y: Facts) -> Facts:
    """Of the larger one; NaN where either is."""
    if is_no_number(x) or is_no_number(y):
        known = join(x, y)
        low = max(x.bottom, y.bottom)
        if low == INF:  # one is plus infinity, or no element
            return replace(NOTHING, nan=known.nan, plus_infinity=known.plus_infinity, exact=False)
        low = max(known.low, low) if has_end(low) else known.low
        return replace(known, low=low, minus_infinity=x.minus_infinity and y.minus_infinity)
    lows = [one.low for one, other in ((x, y), (y, x)) if other.minus_infinity]
    low = min(lows) if lows else max(x.low, y.low)
    zero = (x.zero and not y.low > 0) or (y.zero and not x.low > 0)
    minus = x.minus_infinity and y.minus_infinity
    plus = x.plus_infinity or y.plus_infinity
    return _tight(Facts(low, max(x.high, y.high), zero, x.whole and y.whole, x.nan or y.nan, plus, minus))


def minimum(x: Facts, y: Facts) -> Facts:
    """Of the smaller one; NaN where either is."""
    return negate(maximum(negate(x), negate(y)))


def increasing(
    x: Facts,
    function: Callable[[float], float],
    *,
    at_minus: float = -INF,
    at_plus: float = INF,
    fixes_zero: bool = True,
) -> Facts:
    """Of an increasing function that is defined everywhere, with its limits.

    ``fixes_zero``: it is zero at zero and nowhere else.
    """

    def image(value: Number, toward: Callable[[Number], Number]) -> float:
        if not has_end(value):
            return at_plus if value > 0 else at_minus
        try:
            found = function(_float(value))
        except OverflowError:
            return INF if value > 0 else -INF
        return found if value == 0 else float(toward(found))

    low, high = (image(x.low, _down), image(x.high, _up)) if not is_no_number(x) else (INF, -INF)
    if x.low >= 0 and fixes_zero and not is_no_number(x):
        low = max(low, 0.0)
    if x.high <= 0 and fixes_zero and not is_no_number(x):
        high = min(high, 0.0)
    low, high = max(low, at_minus), min(high, at_plus)
    finite = [end for end in [at_plus] * x.plus_infinity + [at_minus] * x.minus_infinity if has_end(end)]
    low, high = min([low, *finite]), max([high, *finite])
    zero = (x.zero if fixes_zero else not is_no_number(x) and at_minus < 0 < at_plus) or 0.0 in finite
    plus = x.plus_infinity and at_plus == INF
    minus = x.minus_infinity and at_minus == -INF
    return _tight(Facts(low, high, zero, False, x.nan, plus, minus))


def bounded_facts(x: Facts, low: float, high: float, *, nan_at_infinity: bool = False) -> Facts:
    """Of a function with values in an interval."""
    return replace(facts_between(low, high), nan=x.nan or (nan_at_infinity and x.may_be_infinite))


# --- sums of many


def repeated_sum(x: Facts, count: Dim) -> Facts:
    """Of a sum of ``count`` elements, each of which is any element."""
    nan = x.nan or (x.plus_infinity and x.minus_infinity)
    least, most = size_range(count)
    if most == 0:
        return of_values([0])
    if is_no_number(x):
        zero = replace(of_values([0]), exact=False)
        own = replace(x, nan=nan, exact=False)
        return join(own, zero) if least == 0 else own
    low = min(_times(x.low, least, _down), _times(x.low, most, _down))
    high = max(_times(x.high, least, _up), _times(x.high, most, _up))
    if isinstance(x.low, float) or isinstance(x.high, float):
        low, high = (low if low in (0, -INF) else _down(low)), (high if high in (0, INF) else _up(high))
    one_sign = x.low >= 0 or x.high <= 0
    zero = least == 0 or not one_sign or x.zero
    return _tight(Facts(low, high, zero, x.whole, nan, x.plus_infinity, x.minus_infinity))


def size_range(count: Dim) -> tuple[int, Number]:
    """The least and the largest that a size may be; size symbols are at least 1."""
    if isinstance(count, int):
        return count, count
    return (1 if at_most(1, count) is True else 0), INF


def extreme(x: Facts, count: Dim, dtype: DType, kind: str) -> Facts:
    """Of the largest or the smallest of ``count`` elements; of none it is the identity of the reduction."""
    if size_range(count)[0] >= 1:
        return replace(x, exact=x.exact)
    if dtype.is_float:
        return replace(x, minus_infinity=True) if kind == "maximum" else replace(x, plus_infinity=True)
    low, high = integer_range(dtype)
    return join(x, of_values([low if kind == "maximum" else high]))


def repeated_product(x: Facts, count: Dim) -> Facts:
    """Of a product of ``count`` elements."""
    nan = x.nan or (x.may_be_infinite and x.zero)
    if is_no_number(x):
        return replace(UNKNOWN, nan=nan)
    if x.low >= -1 and x.high <= 1:
        low, high = (0 if x.low >= 0 else -1), 1
    else:
        low, high = (0 if x.low >= 0 else -INF), INF
    infinite = x.may_be_infinite
    minus = infinite and (x.may_be_negative or x.minus_infinity)
    least = size_range(count)[0]
    found = Facts(low, high, x.zero, x.whole, nan, infinite, minus)
    return _tight(found if least else join(found, replace(of_values([1]), exact=False)))


# --- what types make of numbers


DIGITS: dict[DType, int] = {
    DType.F8E4M3FN: 4,
    DType.F8E5M2: 3,
    DType.BF16: 8,
    DType.F16: 11,
    DType.F32: 24,
    DType.F64: 53,
}
"""By float type the binary digits of its significand, with the one that is not stored."""
LARGEST: dict[DType, float] = {
    DType.F8E4M3FN: 448.0,
    DType.F8E5M2: 57344.0,
    DType.F16: 65504.0,
    DType.BF16: 3.3895313892515355e38,
    DType.F32: 3.4028234663852886e38,
    DType.F64: 1.7976931348623157e308,
}
"""The largest finite number of each float type."""


def whole_limit(dtype: DType) -> int:
    """The largest n such that a type holds all integers from -n to n."""
    return 2 ** DIGITS[dtype] if dtype.is_float else integer_range(dtype)[1]


def fits(known: Facts, dtype: DType) -> bool:
    """Whether a type holds every element as it is."""
    if is_no_number(known):
        return dtype.is_float or not (known.nan or known.may_be_infinite)
    if dtype.is_float:
        limit = whole_limit(dtype)
        return known.whole and -limit <= known.low and known.high <= limit
    low, high = integer_range(dtype)
    return known.is_finite and known.whole and low <= known.low and known.high <= high


def in_dtype(known: Facts, dtype: DType) -> Facts:
    """What a type makes of numbers: integers that do not fit wrap, and then may be any number of the type."""
    if dtype.is_float:
        return known
    if dtype is DType.BOOL:
        return meet(replace(known, nan=False, plus_infinity=False, minus_infinity=False), TRUTH)
    return known if fits(known, dtype) else of_dtype(dtype)


LEAST_EXPONENT: dict[DType, int] = {
    DType.F8E4M3FN: -9,
    DType.F8E5M2: -16,
    DType.BF16: -133,
    DType.F16: -24,
    DType.F32: -149,
    DType.F64: -1074,
}
"""The exponent of each float type's smallest positive number."""


def _to_type(value: Number, dtype: DType, direction: int) -> float:
    """The nearest number of a float type that is not below a value (direction 1), or not above it (-1)."""
    number = _float(value)
    if number == 0 or math.isinf(number):
        return number
    unit = max(math.frexp(number)[1] - DIGITS[dtype], LEAST_EXPONENT[dtype])
    scaled = math.ldexp(number, -unit)
    return math.ldexp(math.ceil(scaled) if direction > 0 else math.floor(scaled), unit)


def round_facts(known: Facts, dtype: DType, *, accumulates: bool = False) -> Facts:
    """What rounding to a float type adds: results that overflow are infinite, and those that underflow are zero.

    ``accumulates``: the result is a sum of many, whose parts may overflow to both infinities, which add up to NaN.
    """
    if not dtype.is_float or known.exact or is_no_number(known):
        return known
    largest = LARGEST[dtype]
    low, high = (-INF, INF) if accumulates else (_to_type(known.low, dtype, -1), _to_type(known.high, dtype, 1))
    low, high = (max(low, 0) if known.low >= 0 else low), (min(high, 0) if known.high <= 0 else high)
    return replace(
        known,
        low=min(max(low, -largest), largest),
        high=max(min(high, largest), -largest),
        zero=low <= 0 <= high,
        nan=known.nan or (accumulates and (high >= largest or low <= -largest)),
        plus_infinity=known.plus_infinity or high >= largest,
        minus_infinity=known.minus_infinity or low <= -largest,
    )
