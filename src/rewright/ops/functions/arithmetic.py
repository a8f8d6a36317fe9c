"""Sums, products, quotients and remainders."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from decimal import Context
from fractions import Fraction
from typing import Any

import numpy as np

from rewright.ir.errors import RewrightError
from rewright.ir.types import DType
from rewright.ops import facts as intervals
from rewright.ops.facts import Facts, quotient
from rewright.ops.functions import digits
from rewright.ops.functions.record import (
    Array,
    Bound,
    Code,
    Domain,
    Operands,
    ScalarFunction,
    Triton,
    Values,
    infix,
    laws,
    transfer,
)

_TWO = Operands(2, "number")
_NOT_BY_ZERO = Domain("its divisor is not zero", (Bound(1, "NE", 0.0),))

ADD = ScalarFunction(
    name="add",
    operands=_TWO,
    values=Values(np.add, operator.add, Context.add, definition=None, jumps="nowhere"),
    facts=transfer(intervals.add),
    domain=Domain("it adds no infinities of opposite signs", ()),
    curve=None,
    laws=laws("finite", "commutative", "nan"),
    code=infix("+", torch="add", hlo="add", cost=1),
)
SUBTRACT = ScalarFunction(
    name="subtract",
    operands=_TWO,
    values=Values(np.subtract, operator.sub, Context.subtract, definition=None, jumps="nowhere"),
    facts=transfer(intervals.subtract),
    domain=Domain("it subtracts no infinities of one sign", ()),
    curve=None,
    laws=laws("finite", "nan"),
    code=infix("-", torch="sub", hlo="subtract", cost=1),
)
MULTIPLY = ScalarFunction(
    name="multiply",
    operands=_TWO,
    values=Values(np.multiply, operator.mul, Context.multiply, definition=None, jumps="nowhere"),
    facts=transfer(intervals.multiply),
    domain=Domain("it multiplies no zero by an infinity", ()),
    curve=None,
    laws=laws("finite", "commutative", "nan"),
    code=infix("*", torch="mul", hlo="multiply", cost=1),
)
DIVIDE = ScalarFunction(
    name="divide",
    operands=_TWO,
    values=Values(np.divide, exact=None, digits=digits.divide, definition=None, jumps="zero"),
    facts=transfer(intervals.divide),
    domain=_NOT_BY_ZERO,
    curve=None,
    laws=laws("finite", "nan"),
    code=infix("/", torch="div", hlo="divide", cost=4),
)


def _truncating_quotient(left: int, right: int) -> int:
    if not right:
        raise RewrightError(f"{left} divided by zero is no integer; evaluate at other values")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _quotients_of_integers(left: Array, right: Array) -> Array:
    found = left // right
    found += (found * right != left) & ((left < 0) != (right < 0))
    return np.where(right == 0, ~np.zeros_like(left), found)


def _quotient_facts(operands: Sequence[Facts], dtype: DType) -> Facts:
    return quotient(operands[0], operands[1], dtype)


_TRUNCATED = "torch.div({0}, {1}, rounding_mode='trunc')"
DIVIDE_INTEGER = ScalarFunction(
    name="divide_integer",
    operands=_TWO,
    values=Values(_quotients_of_integers, _truncating_quotient, digits=None, definition=None, jumps="nowhere"),
    facts=_quotient_facts,
    domain=_NOT_BY_ZERO,
    curve=None,
    laws=laws("finite", "whole"),
    # Torch raises where the divisor is zero; HLO has one opcode for all dtypes, which is that of divide.
    code=Code("quotient_({0}, {1})", Triton("({0} // {1})", ""), torch=None, hlo=None, cost=20, infix=_TRUNCATED),
)


def _remainder(left: Any, right: Any) -> Any:
    if isinstance(left, int):
        return left - right * _truncating_quotient(left, right)
    if isinstance(left, Fraction) and isinstance(right, Fraction) and right:
        return left - right * math.trunc(left / right)
    return math.nan if not right or (isinstance(left, float) and not math.isfinite(left)) else math.fmod(left, right)


def _remainders(left: Array, right: Array) -> Array:
    rest = np.fmod(left, right)
    return rest if left.dtype.kind == "f" else np.where(right == 0, left, rest)


_MODULO = Triton("({0} % {1})", "")
REMAINDER = ScalarFunction(
    name="remainder",
    operands=_TWO,
    values=Values(_remainders, _remainder, Context.remainder, definition=None, jumps="halves"),
    facts=transfer(intervals.remainder),
    domain=_NOT_BY_ZERO,
    curve=None,
    laws=laws("finite", "opaque", "nan"),
    # Of an integer and zero there is none in torch, which raises.
    code=Code("std::fmod({0}, {1})", _MODULO, torch=None, hlo="remainder", cost=20, infix="torch.fmod({0}, {1})"),
)
