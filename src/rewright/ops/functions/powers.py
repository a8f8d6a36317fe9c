"""Roots and powers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context

import numpy as np

from rewright.ir.types import DType
from rewright.ops.facts import Facts, of_dtype
from rewright.ops.facts import power as power_facts
from rewright.ops.functions import digits
from rewright.ops.functions.intervals import inverse_root, root
from rewright.ops.functions.record import (
    EVERYWHERE,
    Array,
    Bound,
    Code,
    Curve,
    Domain,
    Operands,
    ScalarFunction,
    Triton,
    Values,
    X,
    call,
    laws,
    transfer,
)

_INF, _NAN = math.inf, math.nan


def _inverse_root(x: Array) -> Array:
    return 1 / np.sqrt(x)


SQRT = ScalarFunction(
    name="sqrt",
    operands=Operands(1, "float"),
    values=Values(np.sqrt, exact=None, digits=Context.sqrt, definition=None, jumps="zero"),
    facts=transfer(root),
    domain=Domain("its argument is not negative", (Bound(0, "GE", 0.0),)),
    curve=Curve(_NAN, _INF, "increasing", "none", at_zero=0.0, root=0.0),
    laws=laws("finite", "nan"),
    code=Code("std::sqrt({0})", Triton("tl.sqrt({0})", ""), "sqrt", "sqrt", cost=8, infix=None),
)
RSQRT = ScalarFunction(
    name="rsqrt",
    operands=Operands(1, "float"),
    values=Values(_inverse_root, exact=None, digits=None, definition=call("divide", 1, call("sqrt", X)), jumps="zero"),
    facts=transfer(inverse_root),
    domain=Domain("its argument is positive", (Bound(0, "GT", 0.0),)),
    curve=Curve(_NAN, 0.0, "decreasing", "none", at_zero=None, root=None),
    laws=laws("finite", "nan"),
    code=Code("rsqrt_({0})", Triton("(1.0 / tl.sqrt({0}))", ""), "rsqrt", "rsqrt", cost=12, infix=None),
)
_POWER = '''
@triton.jit
def power_(x, y):
    """2^(y log2 |x|), with the sign of x where y is odd, and no number for other powers of negative ones."""
    size = tl.exp2(y * tl.log2(tl.abs(x)))
    whole = tl.floor(y) == y
    odd = whole & (y - 2.0 * tl.floor(0.5 * y) == 1.0)
    signed = tl.where(odd, -size, tl.where(whole, size, float("nan")))
    return tl.where((y == 0.0) | (x == 1.0), 1.0, tl.where(x < 0.0, signed, size))
'''
POWER = ScalarFunction(
    name="power",
    operands=Operands(2, "number"),
    values=Values(np.power, exact=None, digits=digits.power, definition=None, jumps="nowhere"),
    facts=transfer(power_facts),
    domain=Domain("its base is positive", (Bound(0, "GT", 0.0),)),
    curve=None,
    laws=laws("finite", "opaque"),
    code=Code("power_({0}, {1})", Triton("power_({0}, {1})", _POWER), "pow", "power", cost=100, infix=None),
)


def _integer_power(base: int, exponent: int) -> int:
    if exponent > 512:  # too long to write out, and longer than any dtype: the last 64 bits say all
        return pow(base, exponent, 1 << 64)
    if exponent >= 0:
        return base**exponent
    return base ** (-exponent) if abs(base) == 1 else 0


def _integer_power_of_arrays(base: Array, exponent: Array) -> Array:
    positive = np.power(base, np.maximum(exponent, 0))
    sign = np.where(exponent % 2 == 0, 1, base)
    negative = np.where(np.abs(base) == 1, sign, 0)
    return np.where(exponent < 0, negative, positive).astype(base.dtype)


def _any_integer(_: Sequence[Facts], dtype: DType) -> Facts:
    return of_dtype(dtype)


POWER_INTEGER = ScalarFunction(
    name="power_integer",
    operands=Operands(2, "number"),
    values=Values(_integer_power_of_arrays, exact=_integer_power, digits=None, definition=None, jumps="nowhere"),
    facts=_any_integer,
    domain=EVERYWHERE,
    curve=None,
    laws=laws("finite", "opaque", "whole"),
    code=Code(None, None, torch=None, hlo=None, cost=40, infix=None),
)
