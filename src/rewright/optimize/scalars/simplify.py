"""Simplifications of scalar functions that are exact for every number: constants, identities, integer indices."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from rewright.ir.types import DType
from rewright.ops.facts import integer_range
from rewright.ops.functions import FUNCTIONS
from rewright.optimize.scalars.expressions import Expression, Number, Table
from rewright.optimize.scalars.ranges import decide_sign
from rewright.terms.index import Index


def divide(left: Any, right: Any) -> Any:
    """The quotient, typed, as ``operator.truediv`` is not."""
    return left / right


_FOLDED = frozenset({"add", "subtract", "multiply", "maximum", "minimum", "negate", "and", "or"})
"""Functions whose values on constants are constants; comparisons and ``not`` are too."""
_ROUNDED: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": divide,
}
"""Functions of two floats whose value may need rounding."""
_COMPARED = {
    "compare_LT": (-1, -1, "at_least_zero"),
    "compare_LE": (-1, 0, "at_least_zero"),
    "compare_GT": (1, -1, "at_least_zero"),
    "compare_GE": (1, 0, "at_least_zero"),
    "compare_EQ": (1, 0, "is_zero"),
}
"""How a comparison of two integers is a condition on one: sign of left minus right, what is added, and which."""

_NEUTRAL = {"add": 0, "subtract": 0, "maximum": -math.inf, "minimum": math.inf}
_PLACES = (DType.I64, DType.I32)
"""Integers that hold every place in a tensor; narrower ones wrap."""


def simplify(table: Table, op: str, arguments: tuple[Expression, ...]) -> Expression | None:
    """The simpler expression, if there is one."""
    if all(a.op == "constant" for a in arguments):
        return _fold(table, op, arguments)
    if op.startswith("convert_"):
        return _convert(table, op, arguments[0])
    if arguments[0].dtype in _PLACES and len(arguments) == 2:
        found = _affine(table, op, arguments[0], arguments[1])
        if found is not None:
            return found
    if op == "select":
        return _select(table, *arguments)
    if op in ("and", "or") and arguments[0].dtype is DType.BOOL:
        return _logical(op, *arguments)
    if op in ("add", "subtract", "multiply", "divide", "maximum", "minimum"):
        return _neutral(table, op, *arguments)
    return None


def _fold(table: Table, op: str, arguments: tuple[Expression, ...]) -> Expression | None:
    values = [a.value for a in arguments]
    if op.startswith("convert_"):
        target = DType(op.removeprefix("convert_"))
        value = values[0]
        if target.is_float:
            return table.constant(float(value), target)
        if target is DType.BOOL:
            return table.constant(value != 0, target)
        return table.constant(_fitting(value, target), target) if math.isfinite(value) else None
    if op == "select":
        return arguments[1] if values[0] else arguments[2]
    if op in _ROUNDED and arguments[0].dtype.is_float and all(math.isfinite(v) for v in values):
        return _exactly(table, op, values, arguments[0].dtype)
    if op in ("at_least_zero", "is_zero"):
        return table.constant(values[0] >= 0 if op == "at_least_zero" else values[0] == 0, DType.BOOL)
    kind = arguments[0].dtype
    if op == "not":
        return table.constant(not values[0], kind) if kind is DType.BOOL else None
    exact = FUNCTIONS[op].values.exact if op in _FOLDED or op.startswith("compare_") else None
    if exact is None or any(isinstance(v, float) and math.isnan(v) for v in values):
        return None
    result = exact(*values)
    if op.startswith("compare_"):
        return table.constant(result, DType.BOOL)
    return table.constant(_fitting(result, kind) if kind.is_integer and math.isfinite(result) else result, kind)


def _fitting(value: Number, dtype: DType) -> int:
    """An integer as its dtype holds it: what does not fit wraps."""
    low, high = integer_range(dtype)
    return (int(value) - low) % (high - low + 1) + low


def _exactly(table: Table, op: str, values: list[Number], dtype: DType) -> Expression | None:
    """A number computed from two, where it needs no rounding: what is rounded is no longer what the program says."""
    if op == "divide" and values[1] == 0:
        return None
    try:
        rounded = _ROUNDED[op](*(float(v) for v in values))
        exact = _ROUNDED[op](*(Fraction(v) for v in values))
        return table.constant(rounded, dtype) if Fraction(rounded) == exact else None
    except OverflowError:
        return None


def _convert(table: Table, op: str, value: Expression) -> Expression | None:
    target = DType(op.removeprefix("convert_"))
    if value.dtype is target:
        return value
    if value.op == "index" and target in _PLACES and value.index is not None:
        return table.index(value.index, target)
    return None


def as_index(value: Expression) -> Index | None:
    """An integer as an affine index, where it is one."""
    if value.op == "constant" and value.dtype.is_integer:
        return Index(int(value.value))
    return value.index if value.op == "index" else None


def _affine(table: Table, op: str, left: Expression, right: Expression) -> Expression | None:
    a, b = as_index(left), as_index(right)
    if a is None or b is None:
        return None
    if op == "add":
        return table.index(a + b, left.dtype)
    if op == "subtract":
        return table.index(a - b, left.dtype)
    if op == "multiply":
        for x, y in ((a, b), (b, a)):
            size = y.as_size()
            if isinstance(size, int):
                return table.index(x * size, left.dtype)
    if op in _COMPARED:
        sign, more, name = _COMPARED[op]
        return _condition(table, name, table.index((a - b) * sign + more, left.dtype))
    if op == "compare_NE":
        return table.apply("not", _condition(table, "is_zero", table.index(a - b, left.dtype)))
    return None


def _condition(table: Table, name: str, place: Expression) -> Expression:
    """A condition on an index; known where a remainder alone says so, as of a negative place that is counted anew."""
    index = as_index(place)
    known = None if index is None else decide_sign(index, name == "at_least_zero", {})
    return table.plain(name, (place,)) if known is None else table.constant(known, DType.BOOL)


def _select(table: Table, condition: Expression, yes: Expression, no: Expression) -> Expression | None:
    if condition.op == "constant":
        return yes if condition.value else no
    if yes is no:
        return yes
    return None


def _logical(op: str, left: Expression, right: Expression) -> Expression | None:
    for a, b in ((left, right), (right, left)):
        if a.op == "constant":
            if op == "and":
                return b if a.value else a
            return a if a.value else b
    return left if left is right else None


def _neutral(table: Table, op: str, left: Expression, right: Expression) -> Expression | None:
    neutral = _NEUTRAL.get(op, 1)
    if right.op == "constant" and right.value == neutral:
        return left
    if op not in ("subtract", "divide") and left.op == "constant" and left.value == neutral:
        return right
    if op == "multiply" and any(_is_inverse(a, b) for a, b in ((left, right), (right, left))):
        return table.constant(1.0, left.dtype)
    if op == "divide" and right.op == "constant" and left.dtype.is_float and _power_of_two(right.value):
        return table.apply("multiply", left, table.constant(1 / right.value, right.dtype))
    return None


def _is_inverse(left: Expression, right: Expression) -> bool:
    """Whether a number is one over another one, which is left as it is as it would be rounded."""
    if right.op != "divide" or not left.dtype.is_float or left.op != "constant" or right.arguments[1] is not left:
        return False
    one = right.arguments[0]
    return one.op == "constant" and one.value == 1 and left.value != 0 and math.isfinite(left.value)


def _power_of_two(value: Number) -> bool:
    return value != 0 and math.isfinite(value) and abs(math.frexp(float(value))[0]) == 0.5
