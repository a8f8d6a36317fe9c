"""What a value is known to be: infinities, zeros, and what masks make of them.

A condition on indices that has one value in a whole tile turns the body of a reduction into a simpler one. Where that
is the identity of the
reduction, the tile adds nothing and may be skipped. The arithmetic of infinities is that of the reals with infinities
added: ``exp(-inf)`` is 0, and for a finite x ``x + -inf`` is -inf and ``0 * x`` is 0. What is taken to be finite there
is told to who asks (``finite.needs``): a softmax of a row that a mask leaves nothing of is no number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from rewright.ir.types import DType
from rewright.optimize.constants import closed_value
from rewright.optimize.expressions import Expression, Table, walk


def index_conditions(values: Iterable[Expression]) -> list[Expression]:
    """The largest conditions in expressions that depend on indices alone, and on more than one value."""
    found: dict[int, Expression] = {}

    def visit(e: Expression) -> None:
        if e.number in seen:
            return
        seen.add(e.number)
        if e.dtype is DType.BOOL and e.free and _of_indices(e):
            found[e.number] = e
            return
        for a in e.arguments:
            visit(a)

    seen: set[int] = set()
    for value in values:
        visit(value)
    return list(found.values())


def _of_indices(e: Expression) -> bool:
    return all(
        x.op in ("at_least_zero", "is_zero", "and", "or", "not", "index", "constant") or x.op.startswith("convert_")
        for x in walk(e)
    )


Known = Mapping[Expression, bool]
"""Conditions whose values are known."""


def under(table: Table, value: Expression, known: Known, taken: list[Expression] | None = None) -> Expression:
    """The expression where conditions have known values, simplified; ``taken`` gets what is taken to be finite."""
    taken = [] if taken is None else taken
    done: dict[int, Expression] = {}

    def visit(e: Expression) -> Expression:
        if e.number not in done:
            if e in known:
                done[e.number] = table.constant(known[e], DType.BOOL)
            elif e.op == "reduce":
                done[e.number] = e
            else:
                done[e.number] = _simpler(table, table.rebuilt(e, visit, lambda i: i), taken)
        return done[e.number]

    return visit(value)


def identity(kind: str) -> float | bool:
    """The value that a reduction does not change by."""
    return {"sum": 0.0, "maximum": -math.inf, "minimum": math.inf, "product": 1.0, "or": False, "and": True}[kind]


def absorbed(table: Table, kind: str, body: Expression, known: Known, taken: list[Expression] | None = None) -> bool:
    """Whether a body adds nothing to a reduction where conditions have these values, and ``taken`` is finite."""
    found = under(table, body, known, taken)
    return found.op == "constant" and found.value == identity(kind)


def exact_extrema(values: Iterable[Expression]) -> frozenset[int]:
    """The extrema that are stored as they are, or that something is compared with but a number, by number.

    What is compared may be made of them by sums and products; powers of a difference from them have their own rounding.
    """
    found: set[int] = set()
    stack: list[Expression] = []
    for value in values:
        plain = value
        while plain.op.startswith("convert_"):
            plain = plain.arguments[0]
        found |= {plain.number} if plain.bound is not None else set[int]()
        for e in walk(value):
            if e.op.startswith("compare_") and not any(closed_value(a) is not None for a in e.arguments):
                stack.extend(e.arguments)
    seen: set[int] = set()
    while stack:
        e = stack.pop()
        if e.number in seen:
            continue
        seen.add(e.number)
        if e.bound is not None:
            found.add(e.number)
        elif e.op != "exponential":
            stack.extend(e.arguments)
    return frozenset(found)


def is_no_number(e: Expression) -> bool:
    """Whether a value is NaN for certain, as infinity less infinity is; values that are read are taken to be finite."""
    if e.op == "constant":
        return isinstance(e.value, float) and math.isnan(e.value)
    if e.op in ("add", "subtract") and e.dtype.is_float:
        left, right = e.arguments
        opposite = left is right and e.op == "subtract" and _is_infinite(left)
        return opposite or is_no_number(left) or is_no_number(right)
    return _keeps_no_number(e) and any(map(is_no_number, e.arguments))


def _keeps_no_number(e: Expression) -> bool:
    return e.dtype.is_float and (e.op in ("multiply", "divide", "negate", "exponential") or e.op.startswith("convert_"))


def _is_infinite(e: Expression) -> bool:
    """Whether a value is infinite, or no number, for certain."""
    if e.op == "constant":
        return isinstance(e.value, float) and not math.isfinite(e.value)
    if not e.dtype.is_float:
        return False
    if e.op == "divide":
        return _is_infinite(e.arguments[0])
    kept = e.op in ("add", "subtract", "multiply", "negate") or e.op.startswith("convert_")
    return kept and any(map(_is_infinite, e.arguments))


def _simpler(table: Table, e: Expression, taken: list[Expression]) -> Expression:
    if not e.dtype.is_float or not e.arguments:
        return e
    result = _limit(e)
    if isinstance(result, Expression):
        return result
    if result is None:
        return e
    taken += [e] if e.op == "divide" else [a for a in e.arguments if a.op != "constant"]
    return table.constant(result, e.dtype)


def _limit(e: Expression) -> float | Expression | None:
    """The number that a function of finite values and constants is, or the one of its arguments; else None."""
    constants = [a.value if a.op == "constant" else None for a in e.arguments]
    infinite = [v for v in constants if v is not None and isinstance(v, float) and math.isinf(v)]
    result: float | None = None
    if e.op in ("multiply", "divide") and infinite and (known := closed_value(e)) is not None:
        result = known
    elif e.op in ("add", "subtract", "multiply", "divide") and None not in constants:
        result = closed_value(e) if infinite else None  # infinity less infinity, and none of it, are left as they are
    elif e.op in ("add", "subtract") and len(infinite) == 1:
        flip = (
            e.op == "subtract"
            and constants[1] is not None
            and constants[1] == infinite[0]
            and constants[0] != constants[1]
        )
        result = -infinite[0] if flip else infinite[0]
    elif (
        (e.op == "exponential" and constants[0] is not None and constants[0] == -math.inf)
        or (e.op == "multiply" and 0.0 in constants)
        or (e.op == "divide" and constants[0] == 0.0)
    ):
        result = 0.0
    elif (e.op in ("multiply", "divide") and infinite and constants[0] is not None) or (
        e.op in ("multiply", "divide") and constants[0] is not None and constants[1] is None
    ):
        return None
    elif e.op in ("maximum", "minimum") and infinite:
        neutral = -math.inf if e.op == "maximum" else math.inf
        if infinite[0] == neutral:
            return next(a for a, v in zip(e.arguments, constants, strict=True) if v != neutral)
        result = infinite[0]
    elif e.op == "tanh" and infinite:
        result = math.copysign(1.0, infinite[0])
    elif e.op == "logistic" and infinite:
        result = 1.0 if infinite[0] > 0 else 0.0
    return result
