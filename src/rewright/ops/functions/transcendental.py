"""Exponentials and logarithms, with the logistic function and the hyperbolic tangent; sines and angles."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Context

import numpy as np

from rewright.ops.facts import Facts, bounded_facts, facts_between, increasing
from rewright.ops.functions import digits
from rewright.ops.functions.intervals import logarithm
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


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def _logistic_of_arrays(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


EXPONENTIAL = ScalarFunction(
    name="exponential",
    operands=Operands(1, "float"),
    values=Values(np.exp, exact=None, digits=Context.exp, definition=None, jumps="nowhere"),
    facts=transfer(increasing, math.exp, at_minus=0.0, fixes_zero=False),
    domain=EVERYWHERE,
    curve=Curve(0.0, _INF, "increasing", "none", at_zero=1.0, root=None),
    laws=laws("finite", "nan"),
    code=Code("exp_({0})", Triton("tl.exp({0})", ""), "exp", "exponential", cost=16, infix=None),
)
_EXPM1 = '''
@triton.jit
def expm1_(x):
    """(u - 1) x / log u with u = exp(x), in which the error of u cancels (Kahan)."""
    u = tl.exp(x)
    near = (u != 1.0) & (tl.abs(x) < 1.0)
    return tl.where(u == 1.0, x, tl.where(near, (u - 1.0) * x / tl.log(tl.where(near, u, 2.0)), u - 1.0))
'''
_LESS_ONE = call("subtract", call("exponential", X), 1)
EXPONENTIAL_MINUS_ONE = ScalarFunction(
    name="exponential_minus_one",
    operands=Operands(1, "float"),
    values=Values(np.expm1, exact=None, digits=None, definition=_LESS_ONE, jumps="nowhere"),
    facts=transfer(increasing, math.expm1, at_minus=-1.0),
    domain=EVERYWHERE,
    curve=Curve(-1.0, _INF, "increasing", "none", at_zero=0.0, root=0.0),
    laws=laws("finite", "nan"),
    code=Code("expm1_({0})", Triton("expm1_({0})", _EXPM1), "expm1", "exponential-minus-one", cost=18, infix=None),
)
LOG = ScalarFunction(
    name="log",
    operands=Operands(1, "float"),
    values=Values(np.log, exact=None, digits=Context.ln, definition=None, jumps="zero"),
    facts=transfer(logarithm, 0),
    domain=Domain("its argument is positive", (Bound(0, "GT", 0.0),)),
    curve=Curve(_NAN, _INF, "increasing", "none", at_zero=-_INF, root=1.0),
    laws=laws("finite", "nan"),
    code=Code("log_({0})", Triton("tl.log({0})", ""), "log", "log", cost=20, infix=None),
)
_LOG1P = '''
@triton.jit
def log1p_(x):
    """x log u / (u - 1) with u = 1 + x, in which the error of u cancels (Kahan)."""
    u = 1.0 + x
    near = (u != 1.0) & (tl.abs(x) < 1.0)
    return tl.where(u == 1.0, x, tl.where(near, tl.log(u) * x / tl.where(near, u - 1.0, 1.0), tl.log(u)))
'''
LOG_PLUS_ONE = ScalarFunction(
    name="log_plus_one",
    operands=Operands(1, "float"),
    values=Values(np.log1p, exact=None, digits=None, definition=call("log", call("add", X, 1)), jumps="nowhere"),
    facts=transfer(logarithm, 1),
    domain=Domain("its argument is above -1", (Bound(0, "GT", -1.0),)),
    curve=Curve(_NAN, _INF, "increasing", "none", at_zero=0.0, root=0.0),
    laws=laws("finite", "nan"),
    code=Code("log1p_({0})", Triton("log1p_({0})", _LOG1P), "log1p", "log-plus-one", cost=26, infix=None),
)
_INVERSE = call("divide", 1, call("add", call("exponential", call("negate", X)), 1))
LOGISTIC = ScalarFunction(
    name="logistic",
    operands=Operands(1, "float"),
    values=Values(
        _logistic_of_arrays,
        exact=None,
        digits=None,
        definition=_INVERSE,
        jumps="nowhere",
    ),
    facts=transfer(increasing, _logistic, at_minus=0.0, at_plus=1.0, fixes_zero=False),
    domain=EVERYWHERE,
    curve=Curve(0.0, 1.0, "increasing", "none", at_zero=0.5, root=None),
    laws=laws("finite", "nan"),
    code=Code("logistic_({0})", Triton("(1.0 / (1.0 + tl.exp(-{0})))", ""), "sigmoid", "logistic", cost=24, infix=None),
)
_TANH = '''
@triton.jit
def tanh_(x):
    """1 - 2 / (exp(2 x) + 1); near zero, where that cancels, the series up to x^9."""
    s = x * x
    series = x * (1.0 + s * (-0.3333333333 + s * (0.1333333333 + s * (-0.0539682540 + s * 0.0218694885))))
    return tl.where(tl.abs(x) < 0.25, series, 1.0 - 2.0 / (tl.exp2(2.8853900817779268 * x) + 1.0))
'''
_TWICE = call("exponential", call("multiply", X, 2))
_QUOTIENT = call("divide", call("subtract", _TWICE, 1), call("add", _TWICE, 1))
TANH = ScalarFunction(
    name="tanh",
    operands=Operands(1, "float"),
    values=Values(
        np.tanh,
        exact=None,
        digits=None,
        definition=_QUOTIENT,
        jumps="nowhere",
    ),
    facts=transfer(increasing, math.tanh, at_minus=-1.0, at_plus=1.0),
    domain=EVERYWHERE,
    curve=Curve(-1.0, 1.0, "increasing", "odd", at_zero=0.0, root=0.0),
    laws=laws("finite", "nan"),
    code=Code("tanh_({0})", Triton("tanh_({0})", _TANH, "2e-8 of its value"), "tanh", "tanh", cost=22, infix=None),
)
_FINITE = Domain("its argument is not infinite", ())

SINE = ScalarFunction(
    name="sine",
    operands=Operands(1, "float"),
    values=Values(np.sin, exact=None, digits=digits.sine, definition=None, jumps="nowhere"),
    facts=transfer(bounded_facts, -1.0, 1.0, nan_at_infinity=True),
    domain=_FINITE,
    curve=Curve(_NAN, _NAN, "no", "odd", at_zero=0.0, root=None),
    laws=laws("finite", "opaque", "nan"),
    code=Code("sin_({0})", Triton("tl.sin({0})", ""), "sin", "sine", cost=50, infix=None),
)
COSINE = ScalarFunction(
    name="cosine",
    operands=Operands(1, "float"),
    values=Values(np.cos, exact=None, digits=digits.cosine, definition=None, jumps="nowhere"),
    facts=transfer(bounded_facts, -1.0, 1.0, nan_at_infinity=True),
    domain=_FINITE,
    curve=Curve(_NAN, _NAN, "no", "even", at_zero=1.0, root=None),
    laws=laws("finite", "opaque", "nan"),
    code=Code("cos_({0})", Triton("tl.cos({0})", ""), "cos", "cosine", cost=50, infix=None),
)


def _angle(y: Facts, x: Facts) -> Facts:
    end = math.nextafter(math.pi, 4)
    return replace(facts_between(-end, end), nan=y.nan or x.nan)


ATAN2 = ScalarFunction(
    name="atan2",
    operands=Operands(2, "float"),
    values=Values(np.arctan2, exact=None, digits=None, definition=None, jumps="nowhere"),
    facts=transfer(_angle),
    domain=EVERYWHERE,
    curve=None,
    laws=laws("finite", "opaque", "nan"),
    code=Code(None, None, torch="atan2", hlo="atan2", cost=40, infix=None),
)
