"""Online reductions: a reduction whose body depends on another reduction that is not finished yet.

``R = sum over x of f(x, m)`` where m is itself a running reduction over the same x. With a state that holds the sum
for the
m of now, one pass is enough exactly when

    f(x, m') = f(x, m) * g(m, m')        with g independent of x,

because then the state for m' is the state for m times g. The identity also says how two states are merged, by taking
both to the m of the union. Nothing here knows what is being computed: a body is taken apart into a product of powers
and an
exponential of a sum, and g is what is left of f(x, m') / f(x, m). Where something that depends on both x and m is left,
there is no such g by this method, and the reduction needs a pass of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from rewright.optimize.online.estimates import estimates, is_float_sum, sub_products
from rewright.optimize.online.growing import Factors, growth, growth_of_estimates
from rewright.optimize.online.resetting import reset
from rewright.optimize.online.update import Estimate, Update
from rewright.optimize.scalars.expressions import Expression, Table, contains, is_plain_cast, walk
from rewright.optimize.scalars.values import identity, is_no_number, vanishes

Signed = tuple[Expression, int]
MOST = 6
"""A product of more factors that follow running values is not taken apart."""


def products(value: Expression, sign: int = 1) -> Iterator[Signed]:
    """The factors of a value with exponents 1 and -1."""
    if value.op == "multiply" and value.dtype.is_float:
        for argument in value.arguments:
            yield from products(argument, sign)
    elif value.op == "divide" and value.dtype.is_float:
        yield from products(value.arguments[0], sign)
        yield from products(value.arguments[1], -sign)
    elif is_plain_cast(value):
        yield from products(value.arguments[0], sign)
    else:
        yield value, sign


def addends(value: Expression, sign: int = 1) -> Iterator[Signed]:
    """The addends of a value with signs; a quotient or product by something is distributed where it can be."""
    if value.op == "add":
        for argument in value.arguments:
            yield from addends(argument, sign)
    elif value.op == "subtract":
        yield from addends(value.arguments[0], sign)
        yield from addends(value.arguments[1], -sign)
    elif value.op == "negate":
        yield from addends(value.arguments[0], -sign)
    elif is_plain_cast(value):
        yield from addends(value.arguments[0], sign)
    else:
        yield value, sign


def product_of(table: Table, factors: Collection[Signed]) -> Expression | None:
    """The product of factors with exponents 1 and -1; None for the empty product."""
    top: Expression | None = None
    bottom: Expression | None = None
    for factor, sign in factors:
        if sign > 0:
            top = factor if top is None else table.apply("multiply", top, factor)
        else:
            bottom = factor if bottom is None else table.apply("multiply", bottom, factor)
    if bottom is None:
        return top
    if top is None:
        top = table.constant(1.0, bottom.dtype)
    return table.apply("divide", top, bottom)


def derive(table: Table, kind: str, body: Expression, lane: str, running: Collection[Expression]) -> Update | None:
    """As :func:`derived`, worked out once: plans are made of the same passes again and again."""
    key = (kind, body.number, lane, tuple(e.number for e in running))
    if key not in table.updates:
        table.updates[key] = derived(table, kind, body, lane, running)
    return table.updates[key]


def derived(table: Table, kind: str, body: Expression, lane: str, running: Collection[Expression]) -> Update | None:
    """The update of a reduction whose body depends on running values; None where f does not factor.

    ``running`` are reductions of the same pass. Factors of a sum that do not depend on the lane and are not read from
    memory leave it and are applied at the end. Every reduction may follow an extremum by a reset; sums follow maxima
    and minima, whose states never come back, by a factor, and other sums by growing as estimates of means move.
    """
    rest, finish = _invariant(table, _apart(table, body, lane), lane) if kind == "sum" else (body, None)
    depends = tuple(e for e in running if contains(rest, e))
    if not depends:
        return Update(rest, finish=finish)
    if (found := reset(table, kind, rest, lane, running)) is not None:
        return Update(rest, depends, tuple(map(table.renewed, depends)), finish=finish, reset=found)
    extrema = tuple(e for e in depends if e.bound is not None and e.bound.kind in ("maximum", "minimum"))
    if not all(e in extrema or is_float_sum(e) for e in depends):
        return None  # a count, a product or a truth value moves in a way that nothing here describes
    if kind != "sum" or any(contains(e.arguments[0], other) for e in extrema for other in running):
        return None  # what follows another value goes both ways, and has not the neutral element only at the start
    if extrema == depends:
        return _scale(table, rest, finish, lane, depends, running)

    def state(e: Expression) -> tuple[Expression, Expression | None]:
        return _invariant(table, _apart(table, e.arguments[0], lane), lane)

    followed = estimates(table, rest, running, state)
    return None if followed is None else _scale(table, rest, finish, lane, extrema, running, followed)


def helpers(table: Table, body: Expression, lane: str, running: Collection[Expression]) -> Iterator[Expression]:
    """Bodies of sums whose states would say how that of ``body`` moves: products of some of its factors."""
    rest, _ = _invariant(table, _apart(table, body, lane), lane)
    factors = [f for f, sign in products(rest) if sign > 0]
    moving = [f for f in factors if f.op != "exponential" and any(contains(f, e) for e in running)]
    if len(moving) > MOST:
        return
    others = [(f, sign) for f, sign in products(rest) if f not in moving]
    for part in sub_products(moving):
        found = product_of(table, [*others, *((f, 1) for f in part)])
        if found is not None and lane in found.free:
            yield found


def with_helpers(table: Table, values: Collection[Expression], lane: str) -> dict[Expression, Update] | None:
    """The updates of the sums of a pass, each after the sums that it moves by, which the program may not have.

    None where one of them has no update even so.
    """
    made: dict[Expression, Update] = {}
    for e in values:
        assert e.bound is not None
        bodies = list(helpers(table, e.arguments[0], lane, [*made])) if e.bound.kind == "sum" else []
        for value in [*(table.reduce(e.bound, body) for body in bodies), e]:
            update = None
            if value not in made:
                assert value.bound is not None
                update = derive(table, value.bound.kind, value.arguments[0], lane, [*made])
            if update is not None:
                made[value] = update
        if e not in made:
            return None
    for estimate in [e for update in made.values() if update.growth is not None for e in update.growth.estimates]:
        if estimate.left is not None and estimate.sum.bound is not None:
            rest = table.reduce(estimate.sum.bound, estimate.left)
            update = made.get(rest) or derive(table, "sum", estimate.left, lane, [*made])
            if update is not None:
                made.setdefault(rest, update)
                values = [*values, rest]
    needed, stack = set[int](), [*values]
    while stack:
        if (one := stack.pop()).number not in needed:
            needed.add(one.number)
            stack += made[one].depends
    return {e: update for e, update in made.items() if e.number in needed}


def _scale(
    table: Table,
    body: Expression,
    finish: Expression | None,
    lane: str,
    depends: tuple[Expression, ...],
    running: Collection[Expression],
    followed: Sequence[Estimate] = (),
) -> Update | None:
    """The update of a sum that follows extrema by a factor, and by what it grows by where it has other factors.

    ``depends`` are the extrema; it may follow estimates besides.
    """
    parts: list[Signed] = []
    polynomial: list[Expression] = []
    rest: dict[tuple[int, int], int] = {}
    for factor, sign in products(body):
        estimated = any(contains(factor, e.leaf) for e in followed)
        if estimated and factor.op == "exponential":
            return None
        follows = estimated or any(contains(factor, e) for e in depends)
        if follows and factor.op != "exponential":
            if sign < 0:
                return None
            polynomial.append(factor)
            continue
        rest[factor.number, sign] = rest.get((factor.number, sign), 0) + 1
        if follows:
            found = _moving(table, factor.arguments[0], lane, depends)
            if found is None:
                return None
            parts += [(e, sign * s) for e, s in found]
    scales = [factor for factor, sign in products(body) if sign > 0 and factor.op == "exponential"]
    scaling = [e for e in depends if any(contains(part, e) for part, _ in parts)]
    if not all(any(_starts(table, factor, e) for factor in scales) for e in scaling):
        return None
    renewed = tuple(map(table.renewed, depends))
    new = {e.number: r for e, r in zip(depends, renewed, strict=True)}
    ratio = [one for factor, sign in parts for one in _ratio(table, factor, sign, new)]
    undefined = tuple(e for e in scaling if any(_ends_undefined(table, factor, e) for factor in scales))
    update = Update(body, depends, renewed, product_of(table, ratio), finish, undefined=undefined)
    if not polynomial:
        return update
    moves, states = dict(zip(depends, renewed, strict=True)), _bodies(table, lane, running)
    if followed:
        own = _factors(body)
        if not all(_factors(dict(states)[e.weight]) <= own for e in followed if e.weight is not None):
            return None  # where nothing weighs anything, the state has to be zero
        bodies = [(e, list(products(state))) for e, state in states]
        grown = growth_of_estimates(table, lane, list(products(body)), moves, followed, bodies)
    else:
        grown = growth(table, lane, polynomial, rest, moves, _by_factors(states))
    if grown is None:
        return None
    every = [*(e for one in followed for e in one.sums), *(other for _, other in grown.others)]
    sums = tuple(dict.fromkeys(every))
    return replace(update, depends=(*depends, *sums), renewed=(*renewed, *map(table.renewed, sums)), growth=grown)


def _starts(table: Table, factor: Expression, extremum: Expression) -> bool:
    """Whether an exponential is zero where the extremum has seen nothing but its own neutral element.

    A state starts from nothing there. Where a mask leaves nothing of what the maximum is taken of, and something of
    what is summed, the sum has terms before there is a maximum to follow.
    """
    assert extremum.bound is not None
    own, nothing = extremum.arguments[0], identity(extremum.bound.kind)
    if not own.dtype.is_float:
        return False
    empty = table.constant(nothing, own.dtype)
    return vanishes(table, "sum", table.replace(factor, lambda e: empty if e is own else e if e.bound else None), {})


def _ends_undefined(table: Table, factor: Expression, extremum: Expression) -> bool:
    """Whether an exponential is no number where the extremum stays its own neutral element, which all elements are."""
    assert extremum.bound is not None
    own = extremum.arguments[0]
    empty = table.constant(identity(extremum.bound.kind), own.dtype)
    return is_no_number(table.replace(factor, lambda e: empty if e is own or e is extremum else e if e.bound else None))


def _bodies(table: Table, lane: str, running: Collection[Expression]) -> list[tuple[Expression, Expression]]:
    """The sums among running values, each with what its state is the sum of."""
    sums = [e for e in running if is_float_sum(e)]
    return [(e, _invariant(table, _apart(table, e.arguments[0], lane), lane)[0]) for e in sums]


def _factors(body: Expression) -> Counter[tuple[int, int]]:
    """How often a product has which factor, by number and exponent."""
    return Counter((factor.number, sign) for factor, sign in products(body))


def _by_factors(bodies: Collection[tuple[Expression, Expression]]) -> dict[Factors, Expression]:
    """The sums by the factors of what their states are sums of."""
    found: dict[Factors, Expression] = {}
    for e, body in bodies:
        found.setdefault(frozenset((n, sign, count) for (n, sign), count in _factors(body).items()), e)
    return found


def _invariant(table: Table, body: Expression, lane: str) -> tuple[Expression, Expression | None]:
    """A product without the factors that leave its sum, and those.

    They are numbers, and what holds a reduction, which is known at the end of its pass only. An exponential stays, and
    so does what is read from memory: where that is infinite, each product with it may be no number, and that with the
    sum is one.
    """
    inside: list[Signed] = []
    outside: list[Signed] = []
    for factor, sign in products(body):
        stays = lane in factor.free or (factor.op == "exponential" and not _is_inverse(factor))
        stays = stays or not (factor.op == "constant" or any(e.bound is not None for e in walk(factor)))
        (inside if stays else outside).append((factor, sign))
    rest = product_of(table, inside)
    if rest is None or not outside or all(sign < 0 for _, sign in inside):
        return body, None
    return rest, product_of(table, outside)


def _apart(table: Table, body: Expression, lane: str) -> Expression:
    """A product with ``exp(a - log l)`` as ``exp(a) exp(-log l)``, where l is a sum that does not depend on the lane.

    What leaves is the factor 1 / l. A running maximum and a mean stay: without them the exponential may overflow.
    """
    factors: list[Signed] = []
    for factor, sign in products(body):
        terms = list(addends(factor.arguments[0])) if factor.op == "exponential" else []
        moved = [t for t in terms if lane not in t[0].free and _is_logarithm(t[0])]
        if not moved or len(moved) == len(terms):
            factors.append((factor, sign))
            continue
        for part in ([t for t in terms if t not in moved], moved):
            factors.append((table.plain("exponential", (sum_of(table, part),)), sign))
    if len(factors) == len(list(products(body))):
        return body
    found = product_of(table, factors)
    assert found is not None
    return found


def _is_inverse(value: Expression) -> bool:
    """Whether an exponential is made of logarithms of sums alone, so that it is a product of powers of these."""
    return all(_is_logarithm(term) for term, _ in addends(value.arguments[0]))


def _is_logarithm(value: Expression) -> bool:
    """Whether a value is the logarithm of a sum, or that where the sum is one and zero elsewhere."""
    if value.op == "select":
        sides = [side for side in value.arguments[1:] if side.op != "constant" or side.value != 0]
        return len(sides) == 1 and _is_logarithm(sides[0])
    return value.op == "log" and holds_sum(value)


def holds_sum(value: Expression) -> bool:
    """Whether a value is made of a sum other than by way of a maximum."""
    if value.bound is not None:
        return value.bound.kind == "sum"
    return any(holds_sum(a) for a in value.arguments)


def sum_of(table: Table, terms: Collection[Signed]) -> Expression:
    """The sum of addends with signs, one that is added first."""
    (first, sign), *rest = sorted(terms, key=lambda t: -t[1])
    total = first if sign > 0 else table.apply("negate", first)
    for term, sign in rest:
        total = table.apply("add" if sign > 0 else "subtract", total, term)
    return total


def _moving(table: Table, exponent: Expression, lane: str, depends: Collection[Expression]) -> list[Signed] | None:
    """The factors exp(t) of exp(exponent) that depend on running values; None where one depends on the lane too."""
    scale: list[Signed] = []
    inner = exponent
    while inner.op in ("multiply", "divide"):
        left, right = inner.arguments
        if _constant_in(right, lane, depends):
            scale.append((right, 1 if inner.op == "multiply" else -1))
            inner = left
        elif inner.op == "multiply" and _constant_in(left, lane, depends):
            scale.append((left, 1))
            inner = right
        else:
            break
    found: list[Signed] = []
    for term, sign in addends(inner):
        if not any(contains(term, e) for e in depends):
            continue
        if lane in term.free:
            return None
        whole = product_of(table, [(term, 1), *scale])
        assert whole is not None
        found.append((table.plain("exponential", (whole,)), sign))
    return found


def _constant_in(value: Expression, lane: str, depends: Collection[Expression]) -> bool:
    return lane not in value.free and not any(contains(value, e) for e in depends)


def _ratio(table: Table, factor: Expression, sign: int, new: dict[int, Expression]) -> list[Signed]:
    """The factor at the new values over that at the old ones, as one exponential where it is one."""
    moved = table.replace(factor, lambda e: new.get(e.number))
    if factor.op == "exponential":
        # One exponential of a difference: two of them may overflow where their quotient does not.
        first, second = (moved, factor) if sign > 0 else (factor, moved)
        gap = _difference(table, first.arguments[0], second.arguments[0])
        return [(table.plain("exponential", (gap,)), 1)]
    return [(moved, sign), (factor, -sign)]


def _difference(table: Table, first: Expression, second: Expression) -> Expression:
    """The difference of two values, taken inside of a factor that both have at the end."""
    if first.op == second.op == "multiply" and first.arguments[1] is second.arguments[1]:
        gap = _difference(table, first.arguments[0], second.arguments[0])
        return table.plain("multiply", (gap, first.arguments[1]))
    return table.plain("subtract", (first, second))
