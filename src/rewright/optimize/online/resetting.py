"""Reductions that start again when the extremum that they follow moves, as the index of a maximum does.

Let ``e = max over x of a(x)`` be a running maximum over the same lane. A reduction of ``f(x, e)`` can follow it
exactly when

    f(x, e') = c        for all x with a(x) <= e < e'

with a constant c: what was seen before the maximum rose adds c, and where the maximum stays, f stays. So the state is
kept where ``e' = e``, and is otherwise the reduction of c over what was seen: c itself for a reduction that does not
count (maxima, minima, truth values), and the neutral element where c is that. Before the first tile nothing was seen,
and the state is kept too. Two states are merged so: both are taken to the larger of their maxima. A minimum is the
mirror image.

That f is constant is read off its comparisons of ``a(x)`` with ``e``, whose truth values are known below e', and of
``a(x)`` with itself. Only those are used that are as false (or as true) where e' is NaN, so that a maximum which NaN
takes over resets the state once, and keeps it from then on.
"""

from __future__ import annotations

from collections.abc import Collection

from rewright.optimize.online.update import Reset
from rewright.optimize.scalars.expressions import Expression, Table, contains
from rewright.optimize.scalars.values import identity

_FLIPPED = {"EQ": "EQ", "NE": "NE", "LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE"}
_BELOW = {"EQ": False, "GE": False, "GT": False, "NE": True}
"""Comparisons of a(x) with a maximum above it that have one truth value, NaN included."""
_BELOW_INTEGERS = {**_BELOW, "LT": True, "LE": True}
_ITSELF = {"EQ": True, "NE": False, "LE": True, "GE": True, "LT": False, "GT": False}
"""Comparisons of a number with itself; an element that is NaN is above every number, and never below e'."""
_IDEMPOTENT = ("maximum", "minimum", "or", "and")


def reset(table: Table, kind: str, body: Expression, lane: str, running: Collection[Expression]) -> Reset | None:
    """How a reduction of ``body`` follows the one running extremum in it; None where the identity does not hold."""
    followed = [e for e in running if contains(body, e)]
    if len(followed) != 1:
        return None
    (extremum,) = followed
    bound = extremum.bound
    if bound is None or bound.kind not in ("maximum", "minimum") or bound.index != lane:
        return None
    own = extremum.arguments[0]
    if any(contains(own, e) for e in running) or not (own.dtype.is_float or own.dtype.is_integer):
        return None  # an extremum that follows another one goes down as well as up

    def passed(e: Expression) -> Expression | None:
        if e.op == "reduce":
            return e
        truth = _truth(e, own, extremum, bound.kind == "maximum")
        return None if truth is None else table.constant(truth, e.dtype)

    found = table.replace(body, passed)
    if found.op != "constant" or found.value != found.value:
        return None
    return Reset(found) if kind in _IDEMPOTENT or found.value == identity(kind) else None


def _truth(e: Expression, own: Expression, extremum: Expression, largest: bool) -> bool | None:
    """The truth value of a comparison where the extremum has passed the element; None for anything else."""
    if not e.op.startswith("compare_"):
        return None
    left, right = e.arguments
    name = e.op.removeprefix("compare_")
    if left is own and right is own:
        return _ITSELF[name]
    if left is extremum and right is own:
        name = _FLIPPED[name]
    elif not (left is own and right is extremum):
        return None
    return (_BELOW_INTEGERS if own.dtype.is_integer else _BELOW).get(name if largest else _FLIPPED[name])
