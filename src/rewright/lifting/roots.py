"""Numbers that are never negative: a root times itself, and absolute values, as norms of gradients use them."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from rewright.lifting.facts import Facts
from rewright.lifting.index import compose
from rewright.lifting.regions import Region
from rewright.lifting.terms import ONE, Operand, Terms
from rewright.lifting.value import Addend, View

_DEPTH = 8
_SIMPLE = 1 << 12
_ROUNDING = Fraction(1, 10**15)
_NEVER_NEGATIVE = frozenset({"sqrt", "exponential", "abs"})


def squared_root(terms: Terms, facts: Facts, left: Addend, right: Addend) -> list[Addend] | None:
    """``sqrt(x) * sqrt(x)`` as the addends of ``x``, where ``x`` is certainly no negative number; else None.

    A sum over a part of its range is given back as one that the other parts can be added to. A factor that is a root
    itself, rounded to a double, is taken as that root, and ``facts`` remember it: ranks that hold a replica divide its
    norm by the root of their number.
    """
    same = (left.term, left.access) == (right.term, right.access)
    if not same or left.parts or right.parts or terms.label(left.term)[:2] != ("apply", "sqrt"):
        return None
    (inner,), (child,) = terms.accesses(left.term), terms.children(left.term)
    if not never_negative(terms, child):
        return None
    factor = _unrounded(facts, left.coefficient * right.coefficient)
    addends: list[Addend] = []
    for coefficient, (term, access) in _flat(terms, (child, compose(inner, left.access))):
        hole, parts = term, ()
        if terms.label(term)[0] == "ranged" and terms.label(terms.children(term)[0])[0] == "fold":
            hole = terms.children(term)[0]
            parts = ((hole, terms.region(term)),)
        addends.append(Addend(factor * coefficient, hole, access, parts))
    return addends


def _unrounded(facts: Facts, factor: Fraction) -> Fraction:
    """The square of rounded roots as the simple fraction that it stands for."""
    simple = factor.limit_denominator(_SIMPLE)
    if simple and factor != simple and abs(factor / simple - 1) < _ROUNDING:
        facts.rounded.add(simple)
        return simple
    return factor


def _flat(terms: Terms, operand: Operand) -> list[tuple[Fraction, Operand]]:
    """The addends of a sum, of the sums among them as well."""
    found = terms.expand(*operand)
    if found == [(ONE, operand)]:
        return found
    return [(c * d, inner) for c, outer in found for d, inner in _flat(terms, outer)]


def absolute(terms: Terms, view: View) -> View | None:
    """``abs(x)`` where ``x`` is certainly no negative number, also where only a part of it has been folded."""
    for a in view.addends:
        positive = all(never_negative_part(terms, hole, region) for hole, region in a.parts)
        if a.coefficient < 0 or not positive or not never_negative(terms, a.term):
            return None
    return view


def never_negative(terms: Terms, term: int, depth: int = _DEPTH) -> bool:
    """Whether a term is a sum of squares, or of other numbers that are certainly not negative."""
    label, children = terms.label(term), terms.children(term)
    if term == terms.one or label[:2] in {("apply", name) for name in _NEVER_NEGATIVE}:
        return True
    if depth == 0:
        return False
    if label[0] == "add":
        positive = all(c > 0 for c in terms.coefficients(term))
        return positive and all(never_negative(terms, child, depth - 1) for child in children)
    if label[0] == "ranged":
        return never_negative_part(terms, children[0], terms.region(term)) and never_negative(terms, children[0], depth)
    if label[0] in ("fold", "guard"):
        return never_negative(terms, children[-1], depth - 1)
    if label[:2] == ("apply", "multiply"):
        factors: Counter[Operand] = Counter(zip(children, terms.accesses(term), strict=True))
        return all(n % 2 == 0 or never_negative(terms, child, depth - 1) for (child, _), n in factors.items())
    return label[:2] in {("apply", "reciprocal"), ("apply", "identity")} and never_negative(
        terms, children[0], depth - 1
    )


def never_negative_part(terms: Terms, hole: int, region: Region) -> bool:
    """Whether a fold or guard of no negative numbers over a region is none; a maximum must be of some."""
    label = terms.see(hole)
    if label[0] == "guard" or label[:2] == ("fold", "sum"):
        return all(c > 0 for _, c in region)
    ends = [(low, high) for box, _ in region for low, high in box]
    some = all(isinstance(low, int) and isinstance(high, int) and low < high for low, high in ends)
    return label[:2] == ("fold", "maximum") and bool(region) and some
