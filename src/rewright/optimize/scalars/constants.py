"""Values of no variables, as ``0.125 / log(2)``: exact in a plan, and one literal, rounded once, in printed code."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from rewright.optimize.scalars.expressions import Expression
from rewright.optimize.scalars.simplify import divide

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": divide,
    "negate": operator.neg,
    "log": math.log,
}


def closed_value(e: Expression) -> float | None:
    """The value in float64 of a float that depends on nothing; None where it does, or is not a number."""
    if not e.dtype.is_float or e.free:
        return None
    if e.op == "constant":
        return float(e.value)
    if e.op.startswith("convert_") and e.arguments[0].dtype.is_float:
        return closed_value(e.arguments[0])
    if e.op not in _FUNCTIONS:
        return None
    values = [closed_value(a) for a in e.arguments]
    try:
        found = _FUNCTIONS[e.op](*values) if None not in values else math.nan
    except (ValueError, ZeroDivisionError, OverflowError):
        return None
    return None if math.isnan(found) else found


def power_of_two(e: Expression) -> Expression | None:
    """The y of ``exp(y * log(2))``, which is two to the power y; None for anything else."""
    if e.op != "exponential" or e.arguments[0].op != "multiply":
        return None
    value, last = e.arguments[0].arguments
    is_log = last.op == "log" and last.arguments[0].op == "constant" and last.arguments[0].value == 2
    return value if is_log else None
