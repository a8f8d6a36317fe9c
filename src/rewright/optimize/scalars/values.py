"""What a value is known to be: infinities, zeros, and what masks make of them.

A condition on indices that has one value in a whole tile turns the body of a reduction into a simpler one. Where that
is the identity of the
reduction, the tile adds nothing and may be skipped. The arithmetic of infinities is that of the reals with infinities
added: ``exp(-inf)`` is 0, and for a finite x ``x + -inf`` is -inf and ``0 * x`` is 0. What is taken to be finite there
is told to who asks (``finite.needs``): a softmax of a row that a mask leaves nothing of is no number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from rewright.ir.types import DType
from rewright.ops import facts
from rewright.ops.facts import Facts
from rewright.optimize.scalars.constants import closed_value
from rewright.optimize.scalars.expressions import Expression, Table, walk
from rewright.optimize.scalars.facts import Known, facts_of_call, where_defined


def index_conditions(values: Iterable[Expression]) -> list[Expression]:
    """The largest conditions in expressions that depend on indices alone, and on more than one value."""
    return _largest(values, lambda e: bool(e.free) and _of_indices(e))


def read_conditions(values: Iterable[Expression]) -> list[Expression]:
    """The largest conditions in expressions that are made of comparisons of indices and of what is read."""
    found = _largest(values, lambda e: bool(e.free) and all(_is_test(x) or _is_read(x) for x in walk(e)))
    return [e for e in found if not _of_indices(e)]


def _largest(values: Iterable[Expression], wanted: Callable[[Expression], bool]) -> list[Expression]:
    """The largest wanted conditions in expressions, in the order in which they are met."""
    found: dict[int, Expression] = {}

    def visit(e: Expression) -> None:
        if e.number in seen:
            return
        seen.add(e.number)
        if e.dtype is DType.BOOL and wanted(e):
            found[e.number] = e
            return
        for a in e.arguments:
            visit(a)

    seen: set[int] = set()
    for value in values:
        visit(value)
    return list(found.values())


def _of_indices(e: Expression) -> bool:
    return all(map(_is_test, walk(e)))


def _is_read(x: Expression) -> bool:
    return x.op == "load" or x.op.startswith("compare_")


def _is_test(x: Expression) -> bool:
    tests = ("at_least_zero", "is_zero", "and", "or", "not", "index", "constant")
    return x.op in tests or x.op.startswith("convert_")


Chosen = Mapping[Expression, bool]
"""Conditions whose values are known."""


def specialise(table: Table, value: Expression, known: Chosen, taken: list[Expression] | None = None) -> Expression:
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


def vanishes(table: Table, kind: str, body: Expression, known: Chosen, taken: list[Expression] | None = None) -> bool:
    """Whether a body adds nothing to a reduction where conditions have these values, and ``taken`` is finite."""
    found = specialise(table, body, known, taken)
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
    """Whether a value is NaN for certain, as infinity less infinity is; values that are read are taken to be real."""
    known = Known().facts(e)
    return known.nan and facts.is_no_number(known) and not known.may_be_infinite


def _simpler(table: Table, e: Expression, taken: list[Expression]) -> Expression:
    """A function that is one number whatever real numbers its arguments are, as that number."""
    if not e.dtype.is_float or all(a.op != "constant" for a in e.arguments):
        return e
    operands = [_number(a) for a in e.arguments]
    found = facts_of_call(e, operands)
    known = where_defined(found, operands)
    if known.nan or known.bottom != known.top or not known.contains(known.bottom):
        return e
    taken += [a for a in e.arguments if a.op != "constant"] if known == found else [e]
    return table.constant(float(known.bottom), e.dtype)


def _number(e: Expression) -> Facts:
    """What an argument may be: itself where it is a constant, and a number of a known sign where it has no variable."""
    if e.op == "constant":
        return facts.of_values([e.value])
    value = closed_value(e) if e.dtype.is_float else 0.0
    if not value or not math.isfinite(value):
        return facts.REAL if e.dtype.is_float else facts.of_dtype(e.dtype)
    return facts.facts_between(0, math.inf, zero=False) if value > 0 else facts.facts_between(-math.inf, 0, zero=False)
