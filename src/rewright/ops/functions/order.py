"""Comparisons, choices, and the larger or smaller one of numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rewright.ops.facts import Facts, join
from rewright.ops.facts import maximum as larger
from rewright.ops.facts import minimum as smaller
from rewright.ops.functions.intervals import comparison
from rewright.ops.functions.record import (
    EVERYWHERE,
    Array,
    Code,
    Direction,
    Domain,
    Operands,
    ScalarFunction,
    Triton,
    Values,
    infix,
    laws,
    transfer,
)

_NAN = "propagate_nan=tl.PropagateNan.ALL"
"""The larger of two numbers is no number where one of them is none; without that the device takes the other one."""


def _maximum(left: Any, right: Any) -> Any:
    return left if left != left or left >= right else right


def _minimum(left: Any, right: Any) -> Any:
    return left if left != left or left <= right else right


def _extremum(
    name: str, cpp: str, exact: Callable[[Any, Any], Any], ufunc: np.ufunc, facts: Callable[[Facts, Facts], Facts]
) -> ScalarFunction:
    return ScalarFunction(
        name=name,
        operands=Operands(2, "any"),
        values=Values(ufunc, exact, digits=None, definition=None, jumps="nowhere"),
        facts=transfer(facts),
        domain=EVERYWHERE,
        curve=None,
        laws=laws("finite", "commutative", "exact", "nan"),
        code=Code(cpp, Triton(f"tl.{name}({{0}}, {{1}}, {_NAN})", ""), torch=name, hlo=name, cost=1, infix=None),
    )


MAXIMUM = _extremum("maximum", "larger({0}, {1})", _maximum, np.maximum, larger)
MINIMUM = _extremum("minimum", "smaller({0}, {1})", _minimum, np.minimum, smaller)


def _clamp(low: Any, value: Any, high: Any) -> Any:
    return _minimum(_maximum(value, low), high)


def _clamped(low: Array, value: Array, high: Array) -> Array:
    return np.minimum(np.maximum(value, low), high)


def _between(low: Facts, value: Facts, high: Facts) -> Facts:
    return smaller(larger(value, low), high)


_CLAMP = Triton(f"tl.minimum(tl.maximum({{1}}, {{0}}, {_NAN}), {{2}}, {_NAN})", "")
_CLAMP_IN_TORCH = "torch.minimum(torch.maximum({1}, {0}), {2})"
CLAMP = ScalarFunction(
    name="clamp",
    operands=Operands(3, "number"),
    values=Values(_clamped, _clamp, digits=None, definition=None, jumps="nowhere"),
    facts=transfer(_between),
    domain=EVERYWHERE,
    curve=None,
    laws=laws("finite", "exact", "nan"),
    # The clamp of torch has the value first.
    code=Code("smaller(larger({1}, {0}), {2})", _CLAMP, torch=None, hlo="clamp", cost=2, infix=_CLAMP_IN_TORCH),
)


def _select(predicate: bool, on_true: Any, on_false: Any) -> Any:
    return on_true if predicate else on_false


def _selected(predicate: Facts, on_true: Facts, on_false: Facts) -> Facts:
    if predicate.low == predicate.high:
        return on_true if predicate.low else on_false
    return join(on_true, on_false)


SELECT = ScalarFunction(
    name="select",
    operands=Operands(3, "any"),
    values=Values(np.where, _select, digits=None, definition=None, jumps="nowhere"),
    facts=transfer(_selected),
    domain=EVERYWHERE,
    curve=None,
    laws=laws("finite", "exact"),
    code=Code("({0} ? {1} : {2})", Triton("tl.where({0}, {1}, {2})", ""), "where", "select", cost=1, infix=None),
)


def _compare(
    direction: Direction, symbol: str, torch: str, exact: Callable[..., bool], ufunc: np.ufunc
) -> ScalarFunction:
    def facts(left: Facts, right: Facts) -> Facts:
        return comparison(direction, left, right)

    return ScalarFunction(
        name=f"compare_{direction}",
        operands=Operands(2, "any"),
        values=Values(ufunc, exact, digits=None, definition=None, jumps="nowhere"),
        facts=transfer(facts),
        domain=Domain("it compares no infinities of one sign", ()),
        curve=None,
        laws=laws("finite", "exact", "whole"),
        code=infix(symbol, torch, hlo=None, cost=1),  # compare, with an attribute
    )


COMPARISONS: Mapping[Direction, ScalarFunction] = {
    "EQ": _compare("EQ", "==", "eq", operator.eq, np.equal),
    "NE": _compare("NE", "!=", "ne", operator.ne, np.not_equal),
    "LT": _compare("LT", "<", "lt", operator.lt, np.less),
    "LE": _compare("LE", "<=", "le", operator.le, np.less_equal),
    "GT": _compare("GT", ">", "gt", operator.gt, np.greater),
    "GE": _compare("GE", ">=", "ge", operator.ge, np.greater_equal),
}
"""By direction."""
