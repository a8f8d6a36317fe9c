"""Guards: a value where an integer lies in a set, else zero. Sets meet, inner guards are decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from rewright.claims.language import Add, Addend, Guard, Ranged, View, applies
from rewright.ir.dims import Dim
from rewright.lifting.masks.nested_guards import simplify
from rewright.lifting.masks.positions import align, decide, ranges_of
from rewright.lifting.recognition.instances import elsewhere
from rewright.lifting.terms import regions
from rewright.lifting.terms.index import compose, identity
from rewright.lifting.terms.regions import Region
from rewright.lifting.terms.store import ONE, POINTWISE, Operand, Terms
from rewright.lifting.terms.trace import look
from rewright.lifting.terms.value import Digits, Parts

if TYPE_CHECKING:
    from rewright.lifting.terms.algebra import Algebra


class Guards:
    """Guarded addends over one algebra."""

    def __init__(self, algebra: Algebra) -> None:
        self._algebra = algebra
        self._terms = algebra.terms
        self._cases: dict[int, tuple[Operand, list[Case]] | None] = {}

    def forget(self) -> None:
        """Follow cases anew from here on."""
        self._cases.clear()

    def _seen_by_body(self, value: Operand, region: Region, body: Addend) -> tuple[Operand, Region]:
        """The test of a guard as it reads where its body is not zero anyway."""
        inner = self.guard_of(body)
        if inner is not None and inner[0][0] in self._terms.inside[value[0]]:
            simple = simplify(self._terms, value, inner[0], inner[1])
            constant, scale, term = self._algebra.integer(View((), (simple,)))
            if term is not None:
                return term, regions.preimage(region, scale, constant)
        return value, region

    def narrow(self, dims: tuple[Digits, ...], addend: Addend) -> Addend:
        """Drop inner guards on t from ``[t = v] * body``, where v runs over positions that they accept."""
        outer = self.guard_of(addend)
        if outer is None:
            return addend
        value, region, body = outer
        lengths, inner = [n for digits in dims for n in digits], self.guard_of(body)
        if inner is not None:
            window = self._window(value, region, inner[0], lengths)
            if window is not None and regions.intersect(window, inner[1]) == window:
                return self.guard(value, region, inner[2])
        if self._algebra.sequential or not self._terms.looks_into_data:
            return addend
        return self._narrow_within(value, region, body, lengths) or addend

    def _narrow_within(self, value: Operand, region: Region, body: Addend, lengths: Sequence[Dim]) -> Addend | None:
        """The same for guards deep in a body; None where there is none."""
        tests = self._terms.inside[body.term]
        if not tests or not isinstance(self._terms.label(value[0]), Add):
            return None
        for _, tested in self._terms.expand(*value):
            window = self._window(value, region, tested, lengths) if tested[0] in tests else None
            simple = body if window is None else self._within(tested, window, body)
            if simple != body:
                return self.guard(value, region, simple)
        return None

    def _window(self, value: Operand, region: Region, tested: Operand, lengths: Sequence[Dim]) -> Region | None:
        """What ``tested`` can be where ``value``, an index plus or minus it, lies in a set of one point."""
        summands = self._terms.expand(*value)
        positions = [(c, access) for c, (term, access) in summands if term == self._terms.index]
        others = [c for c, operand in summands if operand == tested and tested[0] != self._terms.index]
        point = regions.single(region)
        if len(summands) != 2 or len(positions) != 1 or len(others) != 1 or point is None:
            return None
        (sign, (index,)), (low, _) = positions[0], point[0]
        constant, strides = index
        if len(strides) != 1 or strides[0][1] != 1 or not 0 <= strides[0][0] < len(lengths):
            return None
        if point[0][1] != (low or 0) + 1 or low is None:
            return None
        length = lengths[strides[0][0]]
        if not isinstance(constant, int) or not isinstance(length, int) or not isinstance(low, int):
            return None
        run = regions.intervals(constant, constant + length)
        scale = -others[0] / sign
        return self.possible(tested[0], regions.preimage(run, scale, low / sign))

    def indicator(self, value: Operand, region: Region) -> Addend:
        """One where the integer ``value`` lies in the region, else zero; always closed."""
        value, region = self.base(value, region)
        region = self.possible(value[0], region)
        if not region:
            return Addend(Fraction(0), self._terms.one, ())
        hole, access = self._terms.guard(value, (self._terms.one, ()))
        return self._algebra.folds.close(Addend(ONE, hole, access, ((hole, region),)))

    def assume(self, value: Operand, region: Region, view: View) -> View:
        """The view as it is where ``value`` lies in the region: guards inside that test the same value are decided."""
        value, region = self.base(value, region)
        region = self.possible(value[0], region)
        addends: list[Addend] = []
        for a in view.addends:
            if a.parts and self._open_guard(value, a) is not None:
                addends.extend(self._under_part(value, region, a))
            else:
                addends.append(self._within(value, region, a))
        return self._algebra.settle(view.dims, [a for a in addends if a.coefficient])

    def _under_part(self, value: Operand, region: Region, addend: Addend) -> list[Addend]:
        """A partial addend that is itself guarded by the same value loses that guard."""
        inner = self._open_guard(value, addend)
        if inner is None:
            return [addend]
        common = regions.intersect(inner[0], region)
        if common == region:
            return [inner[1]]
        return [] if not common else [addend]

    def possible(self, value: int, region: Region) -> Region:
        """The part of a set that the value can lie in."""
        allowed = self._algebra.facts.allowed_values(value)
        if allowed is None:
            allowed = self._derive(value)
        return region if allowed is None else regions.intersect(region, allowed)

    def _derive(self, term: int) -> Region | None:
        """The set that a masked index lies in, from its cases."""
        found = self._case_analysis(term)
        return None if found is None else regions.union([case.image for case in found[1]])

    def base(self, value: Operand, region: Region) -> tuple[Operand, Region]:
        """The same test on the value underneath: ``select(t in S, t + c, k) in R`` is a test of t."""
        found = self._case_analysis(value[0])
        if found is None:
            return value, region
        (term, access), table = found
        parts = [self.possible(term, case.where) for case in table]
        kept = [regions.intersect(part, case.preimage(region)) for part, case in zip(parts, table, strict=True)]
        return self.base((term, compose(access, value[1])), regions.union(kept))

    def _case_analysis(self, term: int) -> tuple[Operand, list[Case]] | None:
        if term not in self._cases:
            self._cases[term] = None
            with self._algebra.over(None):
                self._cases[term] = look(self._terms, lambda: cases(self._algebra, term))
        return self._cases[term]

    def _bounded_above(self, value: Operand, region: Region) -> tuple[Operand, Region]:
        """A test ``i - j >= c`` of two indices as ``j - i <= -c``, so that it reads the same after a transposition."""
        terms, box = self._terms, regions.single(region)
        if box is None or box[0][0] is None or box[0][1] is not None or not isinstance(box[0][0], int):
            return value, region
        term, access = value
        is_difference = (
            isinstance(terms.label(term), Add)
            and terms.children(term) == (terms.index, terms.index)
            and terms.coefficients(term) == (1, -1)
            and terms.accesses(term) == (identity(2)[:1], identity(2)[1:])
        )
        if not is_difference:
            return value, region
        return (term, access[::-1]), regions.preimage(region, Fraction(-1), Fraction(0))

    def _open_guard(self, value: Operand, body: Addend) -> tuple[Region, Addend] | None:
        """For a body that is guarded by the same value: that guard's set and body."""
        found = self.guard_of(body)
        if found is None or found[0] != value:
            return None
        return found[1], found[2]

    def guard_of(self, addend: Addend) -> tuple[Operand, Region, Addend] | None:
        """For an addend ``body where value in region``: value, region and body."""
        hole, region = addend.term, addend.parts[0][1] if addend.parts else ()
        label = self._terms.label(hole)
        inside: Parts = ()
        if isinstance(label, Ranged):
            region, hole = self._terms.region(hole), self._terms.children(hole)[0]
            label, inside = self._terms.label(hole), addend.parts
        elif len(addend.parts) != 1 or addend.parts[0][0] != hole:
            return None
        if not isinstance(label, Guard) or not regions.is_set(region):
            return None
        value, body = self._terms.operands((hole, addend.access))
        return value, region, Addend(addend.coefficient, *body, inside)

    def outside(self, addend: Addend) -> Addend:
        """An addend that is zero unless an integer lies in a set, as a guard of the whole; itself if it is none such.

        So is a product with a sum whose addends all are under one test, if that is one that ranks alone have.
        """
        if self._algebra.sequential or self.guard_of(addend) is not None or addend.term in self._terms.infinite:
            return addend
        operand, parts = (addend.term, addend.access), dict(addend.parts)
        found = look(self._terms, lambda: self._support(operand, parts))
        if found is None or found[0][0] in self._terms.tested:
            return addend
        inner = self._within(*found, addend)
        return addend if inner == addend else self.guard(*found, self._with_sum(inner))

    def _with_sum(self, product: Addend) -> Addend:
        """A product with a sum as the sequential program writes the sum of the products."""
        terms = self._terms
        if self._algebra.sequential or product.parts or not applies(terms.label(product.term), "multiply"):
            return product
        factors = terms.operands((product.term, product.access))
        sums = [factor for factor in factors if isinstance(terms.label(factor[0]), Add)]
        if len(sums) != 1:
            return product
        others = [factor for factor in factors if factor != sums[0]]
        items = [(product.coefficient * c, *terms.multiply([*others, one])) for c, one in terms.expand(*sums[0])]
        total = self._algebra.sum_of(items)
        return total if total is not None and total.term < self._algebra.horizon else product

    def _support(self, operand: Operand, parts: Mapping[int, Region]) -> tuple[Operand, Region] | None:
        """An integer and the set that it lies in wherever a term is not zero."""
        terms, (term, _) = self._terms, operand
        label, hole, region = terms.label(term), term, parts.get(term)
        if isinstance(label, Ranged):
            region, hole = terms.region(term), terms.children(term)[0]
        if isinstance(terms.label(hole), Guard):
            inner = terms.operands((hole, operand[1]))
            return None if region is None or not regions.is_set(region) else (inner[0], region)
        if applies(label, "multiply"):
            several = (self._support(factor, parts) for factor in terms.operands(operand))
            return next((found for found in several if found is not None), None)
        if isinstance(label, Add):
            first, *others = reversed(terms.operands(operand))  # the last one is rarely the longest
            found = self._support(first, parts)
            if found is None or any(self._support(summand, parts) != found for summand in others):
                return None
            return found
        return None

    def guard(self, value: Operand, region: Region, body: Addend) -> Addend:
        """``body`` where ``value`` lies in the region, else zero."""
        value, region = self.base(*self._seen_by_body(value, region, body))
        region = self.possible(value[0], region)
        if body.term not in self._terms.infinite:  # a guard is a product too, and zero times infinity is no number
            body = self._within(value, region, body)
        value, region = self._bounded_above(value, region)
        if self._algebra.forms.quotients:
            holds = (
                None if self._algebra.sequential else decide(self._terms, value, region, ranges_of(self._terms.window))
            )
            if holds is not None:
                return body if holds else Addend(Fraction(0), self._terms.one, ())
            value, region = align(self._terms, value, region, (body.term, body.access))
        found = self.guard_of(body)
        if found is not None and found[0] == value:
            region, body = regions.intersect(region, found[1]), found[2]
        elif found is not None and found[0][0] > value[0]:
            return self.guard(found[0], found[1], self.guard(value, region, found[2]))
        if not region:
            return Addend(Fraction(0), self._terms.one, ())
        hole, access = self._terms.guard(value, (body.term, body.access))
        if not self._algebra.sequential and hole >= self._algebra.horizon:
            hole, access = elsewhere(self._terms, (hole, access)) or (hole, access)
        if body.term == self._terms.one:
            closed = self._algebra.folds.close(Addend(body.coefficient, hole, access, ((hole, region),)))
            return Addend(closed.coefficient, closed.term, closed.access)
        if body.parts:
            if self._algebra.folds.drop_guard(hole, region) is not None:
                return body  # the set holds all that the value can be
            closed = self._terms.set_range(hole, region)
            return Addend(body.coefficient, closed, access, body.parts)
        return self._algebra.part(body.coefficient, hole, region, access)

    def _within(self, value: Operand, region: Region, body: Addend) -> Addend:
        """A body as it reads where an integer lies in a set, as at an index that is masked by the same test.

        Sums that are open are closed where that changes what they are.
        """
        if not region or value[0] not in self._terms.inside[body.term]:
            return body
        closed = self._algebra.folds.close(body) if body.parts else body
        simple = simplify(self._terms, (closed.term, closed.access), value, region)
        if simple == Addend(ONE, closed.term, closed.access):
            return body
        return Addend(closed.coefficient * simple.coefficient, simple.term, simple.access)


@dataclass(frozen=True, slots=True)
class Case:
    """Where the value underneath lies in ``where``, the term is ``constant + scale * value``."""

    where: Region
    constant: Fraction
    scale: Fraction

    @property
    def image(self) -> Region:
        """The values of the term in this case."""
        if not self.where:
            return regions.NOTHING
        if not self.scale:
            return regions.point(self.constant) or regions.NOTHING
        return regions.preimage(self.where, 1 / self.scale, -self.constant / self.scale)

    def preimage(self, region: Region) -> Region:
        """The values underneath at which the term lies in a set, as far as this case goes."""
        if self.scale:
            return regions.preimage(region, self.scale, self.constant)
        own = regions.point(self.constant) or regions.NOTHING
        return regions.EVERYTHING if regions.intersect(own, region) else regions.NOTHING


def cases(algebra: Algebra, term: int) -> tuple[Operand, list[Case]] | None:
    """An integer term as a function of one value that guards inside test, case by case; None where it is not so."""
    terms = algebra.terms
    whole: Operand = (term, identity(terms.arity[term]))
    for operand, tests in sorted(_tests_in(terms, whole).items(), key=lambda item: item[0][0]):
        for inner in tests:
            found: list[Case] = []
            for part in (inner, regions.complement(inner)):
                where = algebra.guards.possible(operand[0], part)
                simple = simplify(terms, whole, operand, where)
                constant, scale, rest = algebra.integer(View((), (simple,)))
                is_case = constant.denominator == 1 and (rest is None or (rest == operand and abs(scale) == 1))
                if not is_case or not _bounded_by_numbers(where):
                    break
                found.append(Case(where, constant, scale if rest is not None else Fraction(0)))
            else:
                return operand, found
    return None


def _tests_in(terms: Terms, operand: Operand) -> dict[Operand, list[Region]]:
    """The integers that guards directly in a term, or in its addends, test, each with the sets."""
    found: dict[Operand, list[Region]] = {}
    parts = terms.operands(operand) if isinstance(terms.label(operand[0]), POINTWISE) else []
    if len(parts) == 1 and isinstance(terms.label(parts[0][0]), Add):  # a multiple of a sum
        parts += terms.operands(parts[0])
    for part in (operand, *parts):
        masked = terms.mask(part)
        if masked is not None and regions.is_set(masked[2]) and masked[2] not in found.get(masked[0], ()):
            found.setdefault(masked[0], []).append(masked[2])
    return found


def _bounded_by_numbers(region: Region) -> bool:
    return all(isinstance(end, int | None) for box, _ in region for ends in box for end in ends)
