"""Sums of differences as differences of sums, where each of them can follow its own running values in one pass.

``sum of (p - c q) v`` with two softmaxes p and q needs the maxima and the sums of both before it can start. The sums
of ``p v`` and of ``c q v`` follow them in the same pass, each with a state of its own. And a sum of elements that are
chosen by a statistic of all of them, ``sum of select(m = c, 0, p) v``, is a choice of sums.
"""

from __future__ import annotations

from rewright.optimize.online.derive import (
    Signed,
    addends,
    derive,
    holds_sum,
    product_of,
    products,
    sum_of,
    with_helpers,
)
from rewright.optimize.scalars.expressions import Expression, Table, contains, walk


def distribute_sums(table: Table, value: Expression) -> Expression:
    """The value with sums taken apart by their addends, or by a choice, where that saves a pass; else the value."""
    return table.replace(value, lambda e: _parts(table, e))


def _parts(table: Table, e: Expression) -> Expression | None:
    """One sum as the sum of its parts; None where it follows what it depends on as it is, or its parts do not."""
    if e.bound is None or e.bound.kind != "sum" or not e.dtype.is_float:
        return None
    lane, factors = e.bound.index, list(products(e.arguments[0]))
    running = [x for x in walk(e.arguments[0]) if x.bound is not None and x.bound == _alike(e, x)]
    if (chosen := _choose(table, e, factors, running)) is not None:
        return chosen
    if (apart := _apart(table, e, factors, running)) is not None:
        return apart
    if len(running) < 2 or derive(table, "sum", e.arguments[0], lane, running) is not None:
        return None
    if (opened := table.replace(e.arguments[0], lambda x: _open(table, x))) is not e.arguments[0]:
        whole = table.reduce(e.bound, opened)
        follows = _follows(table, opened, lane, running)
        return whole if follows else _parts(table, whole)
    for number, (factor, sign) in enumerate(factors):
        terms = list(addends(factor)) if sign > 0 else []
        others = factors[:number] + factors[number + 1 :]
        if len(terms) < 2 or not all(_is_scaled(term, running) for term, _ in terms):
            continue
        bodies = [(product_of(table, [*products(term), *others]), sign) for term, sign in terms]
        if all(body is not None and _follows(table, body, lane, running) for body, _ in bodies):
            return _total(table, e, [(body, sign) for body, sign in bodies if body is not None])
    return None


def _open(table: Table, e: Expression) -> Expression | None:
    """The logarithm of a product of exponentials, and of one more factor that is positive with it, as a sum."""
    if e.op != "log":
        return None
    factors = list(products(e.arguments[0]))
    others = [f for f, _ in factors if f.op != "exponential"]
    if len(others) == len(factors) or len(others) > 1:
        return None
    terms = [(f.arguments[0] if f.op == "exponential" else table.plain("log", (f,)), sign) for f, sign in factors]
    return sum_of(table, terms)


def _choose(table: Table, e: Expression, factors: list[Signed], running: list[Expression]) -> Expression | None:
    """A sum of products with a factor ``select(c, 0, x)`` as that choice of sums, where c is made of running values."""
    assert e.bound is not None
    for number, (factor, sign) in enumerate(factors):
        if factor.op != "select" or sign < 0 or e.bound.index in factor.arguments[0].free:
            continue
        zeros = [a.op == "constant" and a.value == 0 for a in factor.arguments[1:]]
        if sum(zeros) != 1 or not any(contains(factor.arguments[0], x) for x in running):
            continue
        kept = factor.arguments[2 if zeros[0] else 1]
        rest = product_of(table, [*factors[:number], (kept, 1), *factors[number + 1 :]])
        assert rest is not None
        whole, zero = distribute_sums(table, table.reduce(e.bound, rest)), table.constant(0.0, e.dtype)
        sides = (zero, whole) if zeros[0] else (whole, zero)
        return table.apply("select", factor.arguments[0], *sides)
    return None


def _apart(table: Table, e: Expression, factors: list[Signed], running: list[Expression]) -> Expression | None:
    """A sum of products with a factor ``x - m - log l`` as that without the logarithm, and the logarithm so many times.

    What is taken out does not depend on the loop and is rounded already, as logarithms and quotients of sums are: as
    many of them have as large an error. A maximum, which is exact, stays where it makes small what is summed.
    """
    assert e.bound is not None
    lane = e.bound.index
    if not running or with_helpers(table, [*running, e], lane) is not None:
        return None  # also where it moves by sums that the program has not: what follows a mean is never far from it
    for number, (factor, sign) in enumerate(factors):
        terms = list(addends(factor)) if sign > 0 else []
        out = [t for t in terms if lane not in t[0].free and holds_sum(t[0])]
        rest = _without(table, factor, {t.number for t, _ in out}) if out else None
        if rest is None:
            continue
        others = factors[:number] + factors[number + 1 :]
        body = product_of(table, [(rest, 1), *others])
        assert body is not None
        if not _follows(table, body, lane, running):
            continue
        weights = product_of(table, others)
        whole = table.constant(float(e.bound.count), e.dtype)
        if weights is not None:
            whole = distribute_sums(table, table.reduce(e.bound, weights))
        moved = table.apply("multiply", whole, table.apply(f"convert_{whole.dtype.value}", sum_of(table, out)))
        return table.apply("add", table.reduce(e.bound, body), moved)
    return None


def _without(table: Table, e: Expression, out: set[int]) -> Expression | None:
    """A sum without some of its addends, in the order in which it is added up; None where nothing is left."""
    if e.number in out:
        return None
    if e.op not in ("add", "subtract", "negate") and not (e.op.startswith("convert_") and e.dtype.is_float):
        return e
    parts = [_without(table, a, out) for a in e.arguments]
    if len(parts) == 1 or None not in parts:
        return None if parts[0] is None else table.apply(e.op, *(p for p in parts if p is not None))
    left, right = parts
    if left is not None or right is None:
        return left
    return table.apply("negate", right) if e.op == "subtract" else right


def _is_scaled(term: Expression, running: list[Expression]) -> bool:
    """Whether an addend is an exponential over its own maximum, so that its sum is no larger than what is summed.

    ``p (x - m)`` stays whole: the sums of ``p x`` and ``p m`` are far larger than their difference.
    """
    extrema = [e for e in running if e.bound is not None and e.bound.kind in ("maximum", "minimum")]
    exponentials = [f for f, sign in products(term) if sign > 0 and f.op == "exponential"]
    return any(contains(f, m) for f in exponentials for m in extrema)


def _alike(e: Expression, other: Expression) -> object:
    """The bound that a reduction over the same loop has, with its own kind."""
    assert e.bound is not None and other.bound is not None
    return other.bound if (other.bound.index, other.bound.size) == (e.bound.index, e.bound.size) else None


def _follows(table: Table, body: Expression, lane: str, running: list[Expression]) -> bool:
    """Whether a sum follows extrema: the parts of one that follows a mean may be far larger than the whole."""
    update = derive(table, "sum", body, lane, running)
    return update is not None and not update.estimated


def _total(table: Table, e: Expression, bodies: list[Signed]) -> Expression:
    assert e.bound is not None
    (first, sign), *rest = sorted(bodies, key=lambda b: -b[1])
    total = table.reduce(e.bound, first)
    total = total if sign > 0 else table.apply("negate", total)
    for body, sign in rest:
        total = table.apply("add" if sign > 0 else "subtract", total, table.reduce(e.bound, body))
    return total
