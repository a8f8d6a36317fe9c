"""Signs, sizes and rounding of one number."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from decimal import Context
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from rewright.ir.types import DType
from rewright.ops.facts import (
    DIGITS,
    LARGEST,
    LEAST_EXPONENT,
    TRUTH,
    Facts,
    absolute,
    is_no_number,
    of_values,
)
from rewright.ops.facts import negate as negate_facts
from rewright.ops.functions.bytes import round_to_byte
from rewright.ops.functions.intervals import integral
from rewright.ops.functions.intervals import sign as sign_facts
from rewright.ops.functions.record import (
    EVERYWHERE,
    Bound,
    Code,
    Curve,
    Domain,
    Operands,
    ScalarFunction,
    Triton,
    Values,
    laws,
    transfer,
)

_INF = math.inf
_FLOAT, _NUMBER = Operands(1, "float"), Operands(1, "number")


def _is_finite(value: Any) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def _whole(function: Callable[[Any], int]) -> Callable[[Any], Any]:
    """A function to the integers, in the type of its argument; infinities and NaN stay what they are."""
    return lambda value: type(value)(function(value)) if _is_finite(value) else value


def _sign(value: Any) -> Any:
    return value if value != value or value == 0 else type(value)(1 if value > 0 else -1)


NEGATE = ScalarFunction(
    name="negate",
    operands=_NUMBER,
    values=Values(np.negative, operator.neg, Context.copy_negate, definition=None, jumps="nowhere"),
    facts=transfer(negate_facts),
    domain=EVERYWHERE,
    curve=Curve(_INF, -_INF, "decreasing", "odd", at_zero=0.0, root=0.0),
    laws=laws("finite", "exact", "nan"),
    code=Code("(-{0})", Triton("(-{0})", ""), torch="neg", hlo="negate", cost=1, infix="(-{0})"),
)
ABS = ScalarFunction(
    name="abs",
    operands=_NUMBER,
    values=Values(np.abs, abs, Context.copy_abs, definition=None, jumps="nowhere"),
    facts=transfer(absolute),
    domain=EVERYWHERE,
    curve=Curve(_INF, _INF, "no", "even", at_zero=0.0, root=0.0),
    laws=laws("finite", "exact", "nan"),
    code=Code("std::abs({0})", Triton("tl.abs({0})", ""), torch="abs", hlo="abs", cost=1, infix=None),
)
_SIGN = Triton("tl.where({0} > 0, 1.0, tl.where({0} < 0, -1.0, 0.0))", "")
SIGN = ScalarFunction(
    name="sign",
    operands=_NUMBER,
    values=Values(np.sign, _sign, digits=None, definition=None, jumps="zero"),
    facts=transfer(sign_facts),
    domain=EVERYWHERE,
    curve=Curve(-1.0, 1.0, "nondecreasing", "odd", at_zero=0.0, root=0.0),
    laws=laws("finite", "whole", "nan"),
    code=Code("sign_({0})", _SIGN, torch=None, hlo="sign", cost=1, infix="torch.sign({0})"),  # zero of NaN
)
FLOOR = ScalarFunction(
    name="floor",
    operands=_FLOAT,
    values=Values(np.floor, _whole(math.floor), digits=None, definition=None, jumps="halves"),
    facts=transfer(integral, math.floor),
    domain=EVERYWHERE,
    curve=Curve(-_INF, _INF, "nondecreasing", "none", at_zero=0.0, root=None),
    laws=laws("finite", "opaque", "whole", "keeps whole", "nan"),
    code=Code("std::floor({0})", Triton("tl.floor({0})", ""), torch="floor", hlo="floor", cost=2, infix=None),
)
CEIL = ScalarFunction(
    name="ceil",
    operands=_FLOAT,
    values=Values(np.ceil, _whole(math.ceil), digits=None, definition=None, jumps="halves"),
    facts=transfer(integral, math.ceil),
    domain=EVERYWHERE,
    curve=Curve(-_INF, _INF, "nondecreasing", "none", at_zero=0.0, root=None),
    laws=laws("finite", "opaque", "whole", "keeps whole", "nan"),
    code=Code("std::ceil({0})", Triton("tl.ceil({0})", ""), torch="ceil", hlo="ceil", cost=2, infix=None),
)
_ROUND = '''
@triton.jit
def round_(x):
    """The nearest whole number, the even one of two."""
    low = tl.floor(x)
    rest = x - low
    odd = low - 2.0 * tl.floor(0.5 * low)
    up = (rest > 0.5) | ((rest == 0.5) & (odd == 1.0))
    return tl.where(x == low, x, low + tl.where(up, 1.0, 0.0))
'''
_ROUNDED = Triton("round_({0})", _ROUND, error="")
ROUND_NEAREST_EVEN = ScalarFunction(
    name="round_nearest_even",
    operands=_FLOAT,
    values=Values(np.rint, _whole(round), digits=None, definition=None, jumps="halves"),
    facts=transfer(integral, round),
    domain=EVERYWHERE,
    curve=Curve(-_INF, _INF, "nondecreasing", "odd", at_zero=0.0, root=None),
    laws=laws("finite", "opaque", "whole", "keeps whole", "nan"),
    code=Code("std::nearbyint({0})", _ROUNDED, "round", "round-nearest-even", cost=2, infix=None),
)


_LEAST = 61440.0
"""From here on the larger of the two types has no number."""


def _to_byte(name: str, dtype: DType, overflow: float, domain: Domain) -> ScalarFunction:
    """Rounding to a float of 8 bits, to the nearest and to the even one of two; what is too large is ``overflow``.

    Source: P. Micikevicius et al., FP8 Formats for Deep Learning (2022).
    """
    unit, most, overflows = LEAST_EXPONENT[dtype], LARGEST[dtype], overflow == _INF
    rounded = partial(round_to_byte, dtype)

    def exact(value: Any) -> Any:
        if not math.isfinite(value):
            return type(value)(float(rounded(np.array(float(value)))))
        step = Fraction(2) ** max(math.frexp(value)[1] - DIGITS[dtype], unit)
        found = round(Fraction(value) / step) * step
        if abs(found) > most:
            return type(value)(math.copysign(overflow, value))
        return type(value)(found.numerator) / type(value)(found.denominator)

    def bounds(x: Facts) -> Facts:
        limits = (max(min(end, 2 * _LEAST), -2 * _LEAST) for end in (x.bottom, x.top))
        low, high = (float(rounded(np.array(float(end)))) for end in limits)
        ends = max(low, -most), min(high, most)
        plus, minus = overflows and high > most, overflows and low < -most
        return Facts(*ends, whole=x.whole, nan=x.nan, plus_infinity=plus, minus_infinity=minus)

    return ScalarFunction(
        name=name,
        operands=_FLOAT,
        values=Values(rounded, exact, digits=None, definition=None, jumps="everywhere"),
        facts=transfer(bounds),
        domain=domain,
        curve=Curve(-overflow, overflow, "nondecreasing", "odd", at_zero=0.0, root=None),
        laws=laws("finite", "opaque", "nan"),
        code=Code(None, None, torch=None, hlo=None, cost=4, infix=None),
    )


_BELOW = Domain(
    f"its argument is below {_LEAST:g} and above {-_LEAST:g}", (Bound(0, "LT", _LEAST), Bound(0, "GT", -_LEAST))
)
ROUND_TO_F8E4M3FN = _to_byte("round_to_f8E4M3FN", DType.F8E4M3FN, LARGEST[DType.F8E4M3FN], EVERYWHERE)
ROUND_TO_F8E5M2 = _to_byte("round_to_f8E5M2", DType.F8E5M2, _INF, _BELOW)


def _finiteness(x: Facts) -> Facts:
    if x.is_finite:
        return of_values([True])
    return of_values([False]) if is_no_number(x) else TRUTH


_BELOW_INFINITY = Triton('(tl.abs({0}) < float("inf"))', "")
IS_FINITE = ScalarFunction(
    name="is_finite",
    operands=_FLOAT,
    values=Values(np.isfinite, _is_finite, Context.is_finite, definition=None, jumps="nowhere"),
    facts=transfer(_finiteness),
    domain=Domain("its argument is not infinite", ()),
    curve=None,
    laws=laws("finite", "exact", "whole"),
    code=Code("std::isfinite({0})", _BELOW_INFINITY, torch="isfinite", hlo="is-finite", cost=2, infix=None),
)
