"""Values of a row that a pass knows at its end, and what a tile takes for them: means, and quotients of sums.

A state that follows such a value is right for the estimate of now, whatever that is, and at the end for the value.
An estimate is made of the sum so far, T. Over all elements that were seen it is ``T / seen`` (a mean),
``T size / seen`` (a total), or ``T / W`` with another sum W of the same pass (a mean by weights). Weights have one
sign: with others W may come near zero in between, and an estimate that is far from the value costs digits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from rewright.ir.types import DType
from rewright.ops.functions import FUNCTIONS
from rewright.optimize.online.update import Estimate
from rewright.optimize.scalars.expressions import Expression, Table, contains

Rest = Callable[[Expression], tuple[Expression, Expression | None]]
"""What the state of a sum is the sum of, and what it is multiplied by at the end."""


def estimates(table: Table, body: Expression, running: Collection[Expression], rest: Rest) -> list[Estimate] | None:
    """The estimates that a body is made of, in order; None where it reads a sum of the pass in another way."""
    sums = [e for e in running if is_float_sum(e)]
    found: dict[int, Estimate] = {}
    for leaf in _leaves(body, sums):
        estimate = _estimate(table, leaf, sums, running, rest)
        if estimate is None:
            return None
        found[leaf.number] = estimate
    return list(found.values())


def is_float_sum(e: Expression) -> bool:
    """Whether a value is a sum of real numbers, which an estimate can be made of."""
    return e.bound is not None and e.bound.kind == "sum" and e.dtype.is_float


def _leaves(body: Expression, sums: Collection[Expression]) -> Iterator[Expression]:
    """The sums in a body, each with the divisor or factor that makes it a mean."""
    seen: set[int] = set()
    stack = [body]
    while stack:
        e = stack.pop()
        if e.number in seen:
            continue
        seen.add(e.number)
        if e in sums or (e.op in ("divide", "multiply") and _is_mean(e, sums)):
            yield e
        elif e.bound is None:
            stack.extend(reversed(e.arguments))


def _is_mean(e: Expression, sums: Collection[Expression]) -> bool:
    top, bottom = e.arguments
    if top not in sums:
        return False
    return (e.op == "divide" and bottom in sums) or _elements(e) is not None


def _elements(e: Expression) -> float | None:
    """The number of elements that a sum is divided by, where that is all of them."""
    top, bottom = e.arguments
    if bottom.op != "constant" or top.bound is None:
        return None
    whole = bottom.value if e.op == "divide" else 1 / bottom.value if bottom.value else 0
    return top.bound.count if whole == top.bound.size else None


def _estimate(
    table: Table, leaf: Expression, sums: Collection[Expression], running: Collection[Expression], rest: Rest
) -> Estimate | None:
    total = leaf if leaf in sums else leaf.arguments[0]
    assert total.bound is not None
    body, finish = rest(total)
    if any(contains(body, e) for e in sums):
        return None
    renewed = table.renewed(leaf)
    weight = leaf.arguments[1] if leaf is not total and leaf.arguments[1] in sums else None
    if weight is None and finish is not None:
        weight = _divisor(finish)
        if weight not in sums or leaf is not total:
            return None
    elif finish is not None:
        return None
    if weight is None:
        plain = not any(contains(body, e) for e in running)
        if leaf is total or not plain:
            return Estimate(leaf, renewed, total, float(total.bound.count)) if plain else None
        return Estimate(leaf, renewed, total, left=_deviation(table, body, leaf) if finish is None else None)
    own, other = rest(weight)
    if other is not None or any(contains(own, e) for e in sums) or not is_nonnegative(own):
        return None
    return Estimate(leaf, renewed, total, weight=weight)


def _deviation(table: Table, body: Expression, mean: Expression) -> Expression:
    """``x - mean``, as programs write it."""
    return table.apply("subtract", body, mean)


def _divisor(finish: Expression) -> Expression | None:
    """The sum that a state is divided by at the end, as a quotient or by way of its logarithm."""
    while finish.op.startswith("convert_") and finish.dtype.is_float and finish.arguments[0].dtype.is_float:
        (finish,) = finish.arguments
    if finish.op == "divide" and finish.arguments[0].op == "constant" and finish.arguments[0].value == 1:
        return finish.arguments[1]
    inner = finish
    for op in ("exponential", "negate", "log"):
        if inner.op != op:
            return None
        (inner,) = inner.arguments
    return inner


def is_nonnegative(e: Expression) -> bool:
    """Whether a number is never below zero, as its functions say: a power, a square, a truth value, or made of such."""
    if e.op == "constant":
        return e.value >= 0
    if e.op in FUNCTIONS and FUNCTIONS[e.op].is_nonnegative:
        return True
    if e.op.startswith("convert_"):
        return e.arguments[0].dtype is DType.BOOL or is_nonnegative(e.arguments[0])
    if e.op == "multiply" and e.arguments[0] is e.arguments[1]:
        return True
    if e.op == "maximum":
        return any(map(is_nonnegative, e.arguments))
    if e.op == "select":
        return all(map(is_nonnegative, e.arguments[1:]))
    return e.op in ("add", "multiply", "divide", "minimum", "reduce") and all(map(is_nonnegative, e.arguments))


def sub_products(factors: Collection[Expression]) -> Iterator[tuple[Expression, ...]]:
    """The products of some of the factors, not of all: the shorter ones first, each once."""
    kept = list(factors)
    found: dict[tuple[int, ...], tuple[Expression, ...]] = {}
    for choice in range(2 ** len(kept) - 1):
        part = tuple(sorted((f for n, f in enumerate(kept) if choice >> n & 1), key=lambda f: f.number))
        found.setdefault(tuple(f.number for f in part), part)
    yield from sorted(found.values(), key=len)
