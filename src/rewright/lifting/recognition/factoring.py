"""Sums of products as the sequential program's products of sums.

A bias that one rank alone adds to its part of a product leaves two addends once the parts are whole: the product times
a share, and the bias times that share. The sequential program has the share of their sum. Where shares of several
experts are added up, there are two sums over experts, and the sequential program has one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import cast

from rewright.claims.language import Access, Addend, Ranged, folds
from rewright.ir.dims import Dim
from rewright.lifting.masks.positions import factors_of
from rewright.lifting.terms.index import variables_in
from rewright.lifting.terms.regions import Region, single, whole
from rewright.lifting.terms.store import Operand, Terms

_MOST = 64
"""Sums of more addends are left as they are."""
Item = tuple[Fraction, int, Access]


def factor_sum(terms: Terms, items: Sequence[Item], *, quotients: bool) -> Addend | None:
    """The sum with products of sums for addends that share factors, where the sequential program has these.

    With ``quotients``, exponentials are quotients. None where there are no such addends.
    """
    if len(items) > _MOST:
        return None
    rest = [(item, Counter(factors_of(terms, (item[1], item[2])))) for item in items]
    found: list[Item] = []
    shared = Counter(factor for _, factors in rest for factor in factors)
    for factor in [factor for factor, count in shared.items() if count > 1]:
        group = [entry for entry in rest if factor in entry[1]]
        product = _product(terms, group, quotients=quotients) if len(group) > 1 else None
        if product is not None:
            found.append(product)
            rest = [entry for entry in rest if factor not in entry[1]]
    left = [item for item, _ in rest]
    folded = _fold(terms, left, quotients=quotients)
    return terms.add([*found, *folded]) if found or len(folded) < len(left) else None


def _fold(terms: Terms, items: Sequence[Item], *, quotients: bool) -> list[Item]:
    """Sums over one range as sums of products of sums, two by two, where the sequential program has these."""
    left = list(items)
    for one, other in combinations([item for item in items if _axes(terms, item)], 2):
        if one in left and other in left and _region(terms, one) == _region(terms, other):
            found = _together(terms, one, other, quotients=quotients)
            if found is not None:
                left = [item for item in left if item not in (one, other)]
                left.append(found)
    return left


def _axes(terms: Terms, item: Item) -> tuple[int, ...]:
    """The axes that a term is summed over in one box; none where it is no such sum."""
    if not isinstance(terms.label(item[1]), Ranged) or single(terms.region(item[1])) is None:
        return ()
    label = terms.label(terms.children(item[1])[0])
    return label.axes if folds(label, "sum") else ()


def _region(terms: Terms, item: Item) -> Region:
    return terms.region(item[1])


def _together(terms: Terms, one: Item, other: Item, *, quotients: bool) -> Item | None:
    """Two sums over the same numbers as the sum of what is added up in both."""
    box = single(_region(terms, one))
    assert box is not None
    fresh = 1 + max((v for _, _, access in (one, other) for v in variables_in(access)), default=0)
    bodies = [_body(terms, item, fresh) for item in (one, other)]
    total = factor_sum(terms, bodies, quotients=quotients)
    ranges = {fresh + k: cast("tuple[Dim, Dim]", ends) for k, ends in enumerate(box)}
    if total is None or total.term >= terms.horizon or not set(ranges) <= variables_in(total.access):
        return None
    fold = terms.fold_over("sum", (total.term, total.access), ranges)
    found = terms.set_range(fold.hole, whole(fold.box))
    return (total.coefficient, found, fold.access) if found < terms.horizon else None


def _body(terms: Terms, item: Item, fresh: int) -> Item:
    """What a sum adds up, with variables from ``fresh`` on for what it is summed over."""
    coefficient, term, access = item
    hole = terms.children(term)[0]
    (body,), axes, rest = terms.children(hole), _axes(terms, item), iter(access)
    places = {axis: (0, ((fresh + k, 1),)) for k, axis in enumerate(axes)}
    return coefficient, body, tuple(places[a] if a in places else next(rest) for a in range(terms.arity[body]))


def _product(terms: Terms, group: Sequence[tuple[Item, Counter[Operand]]], *, quotients: bool) -> Item | None:
    """Addends as the product of what all of them have and the sum of the rest; None where that is a new term.

    Where exponentials are quotients, what makes the product the sequential program's may only come, as the exponential
    does that ``1/s (a - b)`` is multiplied with; so the sum alone counts.
    """
    common = group[0][1]
    for _, factors in group:
        common = common & factors
    others = [(item[0], *terms.multiply(list((factors - common).elements()))) for item, factors in group]
    total = terms.add(others)
    if total is None or total.term >= terms.horizon:
        return None
    product = terms.multiply([(total.term, total.access), *common.elements()])
    return (total.coefficient, *product) if product[0] < terms.horizon or quotients else None
