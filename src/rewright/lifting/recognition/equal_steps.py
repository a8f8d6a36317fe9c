"""Addends that read the same terms in equal steps, as a sum over these steps.

Ranks that hold one head each add up the gradients of what these heads share. On each of them that is a contraction,
and the model sums over the heads first: of ``sum_g sum_s x[s] y[s, g]`` it has ``sum_s x[s] sum_g y[s, g]``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import gcd
from typing import cast

from rewright.claims.language import Addend, Index, View, applies, folds
from rewright.ir.dims import Dim
from rewright.lifting.arithmetic.products import multiply
from rewright.lifting.arithmetic.reduction import sum_over
from rewright.lifting.recognition.unit_axes import shut
from rewright.lifting.terms.algebra import Algebra
from rewright.lifting.terms.index import rename, variables_in
from rewright.lifting.terms.regions import single
from rewright.lifting.terms.store import ONE, Operand
from rewright.lifting.terms.value import Pieces, Value

_MOST_LEVELS = 3
"""Steps within steps within steps."""


def equal_steps(places: Sequence[tuple[Dim, ...]]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The first of several places, and how far it is from each to the next; None where they are not in equal steps."""
    if len(places) < 2 or not all(isinstance(low, int) for place in places for low in place):
        return None
    first, second, *_ = ordered = sorted(cast("list[tuple[int, ...]]", places))
    step = tuple(b - a for a, b in zip(first, second, strict=True))
    equal = [tuple(a + n * s for a, s in zip(first, step, strict=True)) for n in range(len(places))]
    return (first, step) if equal == ordered and min(step, default=-1) >= 0 else None


def stepping(index: Index, low: int, by: int, variable: int) -> Index:
    """An index from a place on, with a variable that counts steps."""
    return low, (*index[1], (variable, by)) if by else index[1]


def of_sequential(algebra: Algebra, total: Value) -> Value:
    """What ranks have added up, each part of it as a sum of the sequential program over steps where it is one."""
    if isinstance(total, Pieces):
        return replace(total, parts=tuple([_recognise(algebra, part) for part in total.parts]))
    return _recognise(algebra, total)


def _recognise(algebra: Algebra, total: Value) -> Value:
    if algebra.sequential or not isinstance(total, View) or algebra.is_familiar(total):
        return total
    return _in_steps(algebra, total, _MOST_LEVELS) or total


def _in_steps(algebra: Algebra, total: View, levels: int) -> View | None:
    """A sum as one of the sequential program over steps; None where its addends are in no steps, or that has none.

    Where there are steps within steps, as of heads that share one of several keys, each row of steps is a sum.
    """
    familiar = [a for a in total.addends if algebra.is_familiar(View(total.dims, (a,)))]
    opened = [_open(algebra, total, a) for a in total.addends if a not in familiar]
    several = [one for one in opened if one is not None]
    if len(several) < len(opened):
        return None
    alike: dict[object, list[_Opened]] = {}
    for one in _of_one_length(several, sum(map(len, total.dims))):
        alike.setdefault((one.kind, one.lengths), []).append(one)
    found = [_in_rows(algebra, total, own, levels) for own in alike.values()] if levels else []
    if not found or None in found:
        return None
    sums = [a for view in found if view is not None for a in view.addends]
    if len(found) == 1 and not familiar:
        return View(total.dims, tuple(sums))
    return algebra.settle(total.dims, [*familiar, *sums])


def _in_rows(algebra: Algebra, total: View, several: Sequence[_Opened], levels: int) -> View | None:
    """Addends of one kind as sums of the sequential program over rows of steps."""
    for rows in _rows(several):
        found = [_of_sequential(algebra, total, row, whole=len(rows) == 1) for row in rows]
        views = [view for view in found if view is not None]
        if len(views) < len(rows):
            continue
        outer = algebra.settle(total.dims, [a for view in views for a in view.addends])
        return outer if len(rows) == 1 or algebra.is_familiar(outer) else _in_steps(algebra, outer, levels - 1)
    return None


def _rows(several: Sequence[_Opened]) -> Iterator[Sequence[Sequence[_Opened]]]:
    """All in one row of equal steps, or in rows of so many that are."""
    if not all(isinstance(low, int) for one in several for low in one.places):
        return
    ordered = sorted(several, key=lambda one: cast("tuple[int, ...]", one.places))
    for length in range(len(several), 1, -1):
        if len(several) % length == 0:
            rows = [ordered[start : start + length] for start in range(0, len(several), length)]
            if all(equal_steps([one.places for one in row]) is not None for row in rows):
                yield rows


def _of_sequential(algebra: Algebra, total: View, row: Sequence[_Opened], *, whole: bool) -> View | None:
    """A row of equal steps as a sum of the sequential program; as one of its products, where that is not the whole."""
    step = equal_steps([one.places for one in row])
    if step is None:
        return None
    for grouped in (False, True):
        found = _sum(algebra, total, row, step, grouped=grouped)
        if found is None:
            continue
        made_of = [a.term for a in found.addends]
        if not whole:
            made_of = [t for a in found.addends for t in (algebra.terms.children(a.term) if a.parts else (a.term,))]
        if all(term < algebra.horizon for term in made_of):
            return shut(found) if grouped else found
    return None


@dataclass(frozen=True)
class _Opened:
    """A sum of products over variables that follow those of a view."""

    coefficient: Fraction
    lengths: tuple[Dim, ...]
    """How many values every variable has, from zero on."""
    factors: tuple[Operand, ...]

    @property
    def kind(self) -> object:
        """All but where it is read, and how far."""
        return self.coefficient, tuple((t, tuple(index[1] for index in a)) for t, a in self.factors)

    @property
    def places(self) -> tuple[Dim, ...]:
        """Where it is read."""
        return tuple(low for _, access in self.factors for low, _ in access)


def _of_one_length(several: Sequence[_Opened], variable: int) -> Iterator[_Opened]:
    """Sums over ranges of a variable that follow each other as sums over shorter ones, as long as others of the kind.

    The last head of a key and the first of the next may read both in equal steps, and are one sum then.
    """
    for one in several:
        lengths = [other.lengths[0] for other in several if other.kind == one.kind and len(other.lengths) == 1]
        whole = [length for length in lengths if isinstance(length, int)]
        length = gcd(*whole)
        if len(set(lengths)) < 2 or len(whole) < len(lengths) or not length:
            yield one
            continue
        (own,) = cast("tuple[int]", one.lengths)
        for start in range(0, own, length):
            factors = tuple((t, tuple(_from(index, variable, start) for index in a)) for t, a in one.factors)
            yield _Opened(one.coefficient, (length,), factors)


def _from(index: Index, variable: int, start: int) -> Index:
    return index[0] + start * dict(index[1]).get(variable, 0), index[1]


def _open(algebra: Algebra, total: View, addend: Addend) -> _Opened | None:
    """A part of a sum of products, or a product, as such; None for others."""
    terms = algebra.terms
    if not addend.parts:
        return _Opened(addend.coefficient, (), _factors(algebra, (addend.term, addend.access)))
    box = single(addend.parts[0][1]) if len(addend.parts) == 1 and addend.parts[0][0] == addend.term else None
    label = terms.see(addend.term)
    if box is None or not folds(label, "sum"):
        return None
    (body,) = terms.children(addend.term)
    axes, rest = label.axes, iter(addend.access)
    first = sum(len(digits) for digits in total.dims)
    starts = [low for low, _ in box if low is not None]
    lengths = [high - low for low, high in box if low is not None and high is not None]
    if len(lengths) < len(box):
        return None
    places: dict[int, Index] = {
        a: (start, ((first + k, 1),)) for k, (a, start) in enumerate(zip(axes, starts, strict=True))
    }
    access = tuple(places[a] if a in places else next(rest) for a in range(terms.arity[body]))
    return _Opened(addend.coefficient, tuple(lengths), _factors(algebra, (body, access)))


def _factors(algebra: Algebra, operand: Operand) -> tuple[Operand, ...]:
    terms = algebra.terms
    return tuple(terms.operands(operand)) if applies(terms.see(operand[0]), "multiply") else (operand,)


def _sum(
    algebra: Algebra,
    total: View,
    several: Sequence[_Opened],
    step: tuple[tuple[int, ...], tuple[int, ...]],
    *,
    grouped: bool,
) -> View | None:
    """The sum over steps of what depends on them, times the rest, over the ranges of all.

    ``grouped`` has an axis of one element before that counts groups of so many steps: the model may have heads as
    groups of heads, of which a rank has one.
    """
    count, one = sum(len(digits) for digits in total.dims), several[0]
    variable = count + grouped
    places = iter(zip(*step, strict=True))
    within: list[Operand] = []
    outside: list[Operand] = []
    for term, access in one.factors:
        moved = [rename(i, {v: v if v < count else v + 1 + grouped for v in variables_in((i,))}) for i in access]
        read = [_stepping(index, *next(places), variable, len(several) if grouped else 0) for index in moved]
        (within if variable in variables_in(tuple(read)) else outside).append((term, tuple(read)))
    if not within:
        return None
    axis = len(total.dims) + grouped
    dims = (*total.dims, *(((1,),) if grouped else ()), (len(several),), *((length,) for length in one.lengths))
    summed = sum_over(algebra, View(dims, (Addend(one.coefficient, *_product(algebra, within)),)), [axis])
    if outside:
        term, access = _product(algebra, outside)
        read = tuple(rename(i, {v: v if v < variable else v - 1 for v in variables_in((i,))}) for i in access)
        with algebra.over(summed.dims):
            summed = multiply(algebra, View(summed.dims, (Addend(ONE, term, read),)), summed)
    return sum_over(algebra, summed, range(axis, len(summed.dims))) if one.lengths else summed


def _stepping(index: Index, low: int, by: int, variable: int, count: int) -> Index:
    if not count or not by:
        start, strides = stepping(index, low, by, variable)
    else:
        start, strides = low, (*index[1], (variable - 1, by * count), (variable, by))
    return start, tuple(sorted(strides))


def _product(algebra: Algebra, factors: Sequence[Operand]) -> Operand:
    return factors[0] if len(factors) == 1 else algebra.terms.multiply(list(factors))
