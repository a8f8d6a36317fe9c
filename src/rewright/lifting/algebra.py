"""Sums, products and choices of views: linear maps keep partial sums partial, everything else closes them first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

from rewright.ir.dims import Dim
from rewright.lifting import regions
from rewright.lifting.filling import Filler
from rewright.lifting.index import Access, Index, compose, identity, magnitude, rename, used
from rewright.lifting.regions import Region
from rewright.lifting.simplify import simplify
from rewright.lifting.terms import ONE, Operand, Terms
from rewright.lifting.value import Addend, Digits, NotAView, Parts, View, common_digits, refine
from rewright.lifting.windows import Window, contains, dense, hull, read_by

_MOST_OPEN = 6
"""A sum of more open addends than this closes them, which costs proofs and never soundness."""


_MOST_PLACES = 2
"""Addends that are read at more single indices are not looked for among the sequential program's."""


class Algebra:
    """Arithmetic on views over one store of terms.

    While the sequential program is lifted every fold is closed at once, and its closed form is *known*. In a rank
    program a fold whose range is not known stays open: its region travels outwards in ``parts`` until the ranks'
    regions add up to a known one.
    """

    def __init__(self) -> None:
        self.terms = Terms()
        self.filler = Filler(self.terms, self.allowed)
        self.sequential = True
        self.horizon = 0
        """Terms with an identity below this one belong to the sequential program."""
        self.unchecked: set[str] = set()
        """Inputs that ranks look up with, where nothing shows that the look-up stays in range."""
        self.known: set[int] = set()
        """Closed folds of the sequential program."""
        self._cases: dict[int, tuple[int, list[Case]] | None] = {}
        self.facts: dict[int, Region] = {}
        """For an integer term, the set its values lie in wherever the sequential program is defined and reads them."""
        self.looked_up: dict[int, list[Window]] = {}
        """For a term with a fact, the windows in which it holds."""
        self.tests: dict[int, list[Window | None]] = {}
        """For an integer term, the windows in which its values are tested; None for one that is not known."""

    def forget(self) -> None:
        """Compute everything anew from here on."""
        self.filler.forget()
        self._cases.clear()

    def allowed(self, term: int) -> Region | None:
        """The set that an integer term's values lie in, where it is known."""
        found = self.facts.get(term)
        if found is not None:
            self.terms.pin(term)
        return found

    def learn(self, operand: Operand, lengths: Sequence[Dim], allowed: Region) -> None:
        """Record the set that the values read lie in; not for a term that was tested outside of what is read."""
        term, access = operand
        self.terms.pin(term)
        window = hull(access, lengths)
        if window is None or not dense(access, lengths):
            return
        if term in self.facts:
            if self.facts[term] == allowed:
                self.looked_up[term].append(window)
        elif all(other is not None and contains(window, other) for other in self.tests.get(term, ())):
            self.facts[term] = allowed
            self.looked_up[term] = [window]

    def tested(self, operand: Operand, lengths: Sequence[Dim]) -> Operand:
        """The integer operand of a test, under a name of its own where elements are read of which no fact speaks."""
        windows = [(term, hull(access, lengths)) for term, access in read_by(self.terms, operand)]
        for term, window in windows:
            known = self.looked_up.get(term)
            if known is not None:
                self.terms.pin(term)
            if known is not None and not (window is not None and any(contains(w, window) for w in known)):
                return self.terms.apply("identity", [operand])
        for term, window in windows:
            self.terms.pin(term)
            self.tests.setdefault(term, []).append(window)
        return operand

    # --- addends -------------------------------------------------------------------------------------------------
    def part(self, coefficient: Fraction, hole: int, region: Region, access: Access) -> Addend:
        """A fold restricted to a region: closed where the sequential program closes it so, else left open."""
        return self.complete(Addend(coefficient, hole, access, ((hole, region),)))

    def complete(self, addend: Addend) -> Addend:
        """Close the folds of an addend if every region is known or this is the sequential program."""
        if not addend.parts or all(self._is_known(hole, region) for hole, region in addend.parts):
            return self.filler.fill(addend)
        if self.sequential:
            closed = self.filler.fill(addend)
            for hole, region in addend.parts:
                self.terms.mark(self.known, self.terms.ranged(hole, region))
            return closed
        return addend

    def _is_known(self, hole: int, region: Region) -> bool:
        closed = self.terms.closed(hole, region)
        if closed is not None and closed in self.known:
            return True
        return self.terms.label(hole)[0] == "guard" and self.filler.unguarded(hole, region) is not None

    def settle(self, dims: tuple[Digits, ...], addends: Sequence[Addend]) -> View:
        """The view of a sum: equal addends merge, regions of the same fold add up, closed ones become one term."""
        grouped: dict[tuple[int, Access, Fraction, tuple[int, ...]], Parts] = {}
        closed: list[tuple[Fraction, int, Access]] = []
        for a in addends:
            if self.terms.label(a.term)[0] in ("guard", "ranged"):
                a = self.narrow(dims, a)
            if not a.parts:
                closed.append((a.coefficient, a.term, a.access))
                continue
            key = (a.term, a.access, a.coefficient, tuple(hole for hole, _ in a.parts))
            before = grouped.get(key)
            grouped[key] = a.parts if before is None else _add_parts(before, a.parts)
        left: list[Addend] = []
        for (term, access, coefficient, _), parts in grouped.items():
            done = self.complete(Addend(coefficient, term, access, parts))
            if done.parts and len(grouped) > _MOST_OPEN:
                done = self.filler.fill(done)
            if done.parts:
                left.append(done)
            else:
                closed.append((done.coefficient, done.term, done.access))
        if len(closed) == 1 and self.terms.label(closed[0][1])[0] != "add":
            coefficient, term, access = closed[0]
            head = (Addend(coefficient, term, access),) if coefficient else ()
            return View(dims, (*head, *left))
        return View(dims, (*self._affine(closed), *left))

    def _affine(self, addends: Sequence[tuple[Fraction, int, Access]]) -> tuple[Addend, ...]:
        """The closed sum; constants stay apart, or move into the offset of an index."""
        one = self.terms.one
        flat = [(c * f, *operand) for c, t, a in addends if c for f, operand in self.terms.summands(t, a)]
        constant = sum((c for c, t, _ in flat if t == one), start=Fraction(0))
        rest = [item for item in flat if item[1] != one]
        if constant:
            rest, constant = self._absorb(*self._opposite(rest, constant))
        total = self.terms.add(rest)
        if total is not None and not self.sequential and total.term >= self.horizon and len(rest) > 1:
            total = self._generalised(rest) or total
        if total is None:
            return (Addend(constant, one, ()),) if constant else ()
        return (total, Addend(constant, one, ())) if constant else (total,)

    def _opposite(
        self, items: list[tuple[Fraction, int, Access]], constant: Fraction
    ) -> tuple[list[tuple[Fraction, int, Access]], Fraction]:
        """One minus an indicator is the indicator of the other values."""
        for k, (coefficient, term, access) in enumerate(items):
            found = self.terms.predicate(term) if coefficient == -constant else None
            if found is not None:
                (value, inner), region = found
                other = self.indicator((value, compose(inner, access)), regions.complement(region))
                rest = [*items[:k], *items[k + 1 :]]
                if other.coefficient == 0:
                    return rest, Fraction(0)
                if other.term == self.terms.one:
                    return rest, constant
                return [*rest, (constant, other.term, other.access)], Fraction(0)
        return items, constant

    def _absorb(
        self, items: list[tuple[Fraction, int, Access]], constant: Fraction
    ) -> tuple[list[tuple[Fraction, int, Access]], Fraction]:
        """Move a whole constant into the offset of an index, which is where a slice would put it."""
        for k, (coefficient, term, access) in enumerate(items):
            offset = constant / coefficient
            if term == self.terms.index and offset.denominator == 1:
                (low, strides), *_ = access
                moved = (coefficient, term, ((low + int(offset), strides),))
                return [*items[:k], moved, *items[k + 1 :]], Fraction(0)
        return items, constant

    def _generalised(self, items: Sequence[tuple[Fraction, int, Access]]) -> Addend | None:
        """A sum at one index of some axis as the sequential program's sum over all of that axis, read there."""
        fresh = 1 + max((v for _, _, access in items for v in used(access)), default=0)
        places = [[k for k, (_, strides) in enumerate(access) if not strides] for _, _, access in items]
        for chosen in product(*places) if all(len(p) <= _MOST_PLACES for p in places) else ():
            (value, *others) = {access[k][0] for (_, _, access), k in zip(items, chosen, strict=True)}
            if others:
                continue
            spread = [
                (c, term, (*access[:k], (0, ((fresh, 1),)), *access[k + 1 :]))
                for (c, term, access), k in zip(items, chosen, strict=True)
            ]
            total = self.terms.add(spread)
            if total is not None and total.term < self.horizon:
                there: dict[int, Index] = {v: (0, ((v, 1),)) for v in used(total.access)}
                return replace(total, access=compose(total.access, there | {fresh: (value, ())}))
        return None

    def solid(self, view: View, *, linear: bool) -> tuple[Addend, ...]:
        """The view as few addends: one closed one and, under a linear map, one that still has open parts."""
        addends = view.addends
        if not linear:
            addends = self.settle(view.dims, [self.filler.fill(a) for a in addends]).addends
        else:
            addends = tuple(self._summable(view))
        closed = [a for a in addends if not a.parts]
        if len(closed) > 1:
            total = self.terms.add([(a.coefficient, a.term, a.access) for a in closed])
            closed = [total] if total is not None else []
        partial = [a for a in addends if a.parts]
        return (*closed, *self._joined(partial))

    def _joined(self, partial: list[Addend]) -> list[Addend]:
        """Partial addends as one term that is linear in all their folds, where the regions do not contradict."""
        if len(partial) < 2:
            return partial
        together: dict[int, Region] = {}
        for a in partial:
            for hole, region in a.parts:
                if together.setdefault(hole, region) != region:
                    return partial
        total = self.terms.add([(a.coefficient, a.term, a.access) for a in partial])
        if total is None:
            return []
        return [Addend(total.coefficient, total.term, total.access, tuple(sorted(together.items())))]

    def closed(self, view: View) -> Addend:
        """The view as one closed addend; zero has coefficient zero."""
        addends = self.solid(view, linear=False)
        if not addends:
            return Addend(Fraction(0), self.terms.one, ())
        assert len(addends) == 1
        return addends[0]

    def operand(self, view: View) -> Operand:
        """The view as one term with its coefficient inside; it becomes an anchor for longer sums."""
        if not view.addends:
            return self.terms.freeze(Addend(Fraction(0), self.terms.one, ()))
        term, access = self.terms.freeze(self.closed(view))
        return term, access

    def integer(self, view: View) -> tuple[Fraction, Fraction, Operand | None]:
        """An integer view as ``constant + scale * term``, the term integer-valued; None for a constant."""
        addends = self.settle(view.dims, [self.filler.fill(a) for a in view.addends]).addends
        constant = sum((a.coefficient for a in addends if a.term == self.terms.one), start=Fraction(0))
        rest = [a for a in addends if a.term != self.terms.one]
        if not rest:
            return constant, ONE, None
        (total,) = rest
        is_sum = self.terms.see(total.term)[0] == "add"
        if is_sum and any(c.denominator != 1 for c in self.terms.coefficients(total.term)):
            return constant, ONE, self.terms.freeze(total)
        return constant, total.coefficient, (total.term, total.access)

    # --- views ---------------------------------------------------------------------------------------------------
    def zero(self, dims: tuple[Digits, ...]) -> View:
        """A view of zeros."""
        return View(dims, ())

    def constant(self, dims: tuple[Digits, ...], value: float | Fraction) -> View:
        """A view of one number."""
        if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
            return View(dims, (Addend(ONE, self.terms.number(value), ()),))
        exact = Fraction(value)
        return View(dims, (Addend(exact, self.terms.one, ()),) if exact else ())

    def as_constant(self, view: View) -> Fraction | None:
        """The number that a view repeats, else None."""
        if not view.addends:
            return Fraction(0)
        if len(view.addends) == 1 and view.addends[0].term == self.terms.one:
            return view.addends[0].coefficient
        return None

    def add(self, views: Sequence[View], factors: Sequence[Fraction]) -> View:
        """The linear combination of views with common digits."""
        addends = [
            a if factor == 1 else Addend(a.coefficient * factor, a.term, a.access, a.parts)
            for view, factor in zip(views, factors, strict=True)
            for a in self._summable(view)
        ]
        return self.settle(views[0].dims, addends)

    def _summable(self, view: View) -> Sequence[Addend]:
        """The addends with every fold that is no sum closed: regions of a maximum do not add up."""
        if all(self.terms.parts_kind(a.parts) == "sum" for a in view.addends):
            return view.addends
        return [a if self.terms.parts_kind(a.parts) == "sum" else self.filler.fill(a) for a in view.addends]

    def multiply(self, left: View, right: View) -> View:
        """The product; it stays partial where exactly one factor is."""
        for view, other in ((left, right), (right, left)):
            number = self.as_constant(view)
            if number is not None:
                return self.add([other], [number])
        many, one = (right, left) if any(a.parts for a in right.addends) else (left, right)
        factor = self.closed(one)
        sources = self.solid(many, linear=True)
        result = self.settle(left.dims, [self._product(a, factor) for a in sources])
        if self.sequential or self.is_familiar(result):
            return result
        return self._identified(left.dims, sources, factor) or self._distributed(left.dims, sources, factor) or result

    def _identified(self, dims: tuple[Digits, ...], sources: Sequence[Addend], factor: Addend) -> View | None:
        """The product with an index of one value read otherwise: any way is right, one may be the sequential program's.

        Where a rank holds one head, the head of one factor may be an axis and that of the other a part of some axis.
        """
        lengths = [n for digits in dims for n in digits]
        single = {v for v, n in enumerate(lengths) if n == 1}
        if not single:
            return None
        for many, one in _readings(sources, factor, lengths, single):
            view = self.settle(dims, [self._product(a, one) for a in many])
            if self.is_familiar(view):
                return view
        return None

    def _distributed(self, dims: tuple[Digits, ...], sources: Sequence[Addend], factor: Addend) -> View | None:
        """The product of a sum as the sum of products, where the sequential program computes it so."""
        for many, other in ((sources, factor), ((factor,), sources[0] if len(sources) == 1 else None)):
            if other is None or any(a.parts and self.terms.label(a.term)[0] == "add" for a in many):
                continue
            flat = [
                Addend(a.coefficient * c, term, access, a.parts)
                for a in many
                for c, (term, access) in self.terms.expand(a.term, a.access)
            ]
            if 1 < len(flat) <= _MOST_OPEN:
                view = self.settle(dims, [self._product(a, other) for a in flat])
                if self.is_familiar(view):
                    return view
        return None

    def is_familiar(self, view: View) -> bool:
        """Whether a view is made of terms of the sequential program; a map of an open fold may turn out to be one."""
        return all(
            a.term < self.horizon or (a.parts and all(hole != a.term for hole, _ in a.parts)) for a in view.addends
        )

    def _product(self, left: Addend, right: Addend) -> Addend:
        coefficient = left.coefficient * right.coefficient
        if coefficient == 0:
            return Addend(Fraction(0), self.terms.one, ())
        for guarded, other in ((left, right), (right, left)):
            guard = self.guard_of(guarded)
            if guard is not None:
                return self.guarded(guard[0], guard[1], self._product(guard[2], other))
        term, access = self.terms.multiply([(left.term, left.access), (right.term, right.access)])
        return Addend(coefficient, term, access, left.parts or right.parts)

    def _seen_by_body(self, value: Operand, region: Region, body: Addend) -> tuple[Operand, Region]:
        """The test of a guard as it reads where its body is not zero anyway."""
        inner = self.guard_of(body)
        if inner is not None and inner[0][0] in self.terms.inside[value[0]]:
            simple = simplify(self.terms, value, inner[0], inner[1])
            constant, scale, term = self.integer(View((), (simple,)))
            solved = None if term is None else regions.preimage(region, scale, constant)
            if term is not None and solved is not None:
                return term, solved
        return value, region

    def narrow(self, dims: tuple[Digits, ...], addend: Addend) -> Addend:
        """Drop an inner guard on t from ``[t = v] * body``, where v runs over positions that the guard accepts."""
        outer = self.guard_of(addend)
        inner = self.guard_of(outer[2]) if outer is not None else None
        if outer is None or inner is None:
            return addend
        lengths = [n for digits in dims for n in digits]
        window = self._window(outer[0], outer[1], inner[0], lengths)
        if window is None or regions.intersect(window, inner[1]) != window:
            return addend
        return self.guarded(outer[0], outer[1], inner[2])

    def _window(self, value: Operand, region: Region, tested: Operand, lengths: Sequence[Dim]) -> Region | None:
        """What ``tested`` can be where ``value``, an index plus or minus it, lies in a set of one point."""
        summands = self.terms.expand(*value)
        positions = [(c, access) for c, (term, access) in summands if term == self.terms.index]
        others = [c for c, operand in summands if operand == tested]
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
        return self.possible(tested[0], regions.preimage(run, scale, low / sign) or regions.NOTHING)

    def indicator(self, value: Operand, region: Region) -> Addend:
        """One where the integer ``value`` lies in the region, else zero; always closed."""
        value, region = self.base(value, region)
        region = self.possible(value[0], region)
        if not region:
            return Addend(Fraction(0), self.terms.one, ())
        hole, access = self.terms.guard(value, (self.terms.one, ()))
        return self.filler.fill(Addend(ONE, hole, access, ((hole, region),)))

    def under(self, value: Operand, region: Region, view: View) -> View:
        """The view as it is where ``value`` lies in the region: guards inside that test the same value are decided."""
        value, region = self.base(value, region)
        region = self.possible(value[0], region)
        addends: list[Addend] = []
        for a in view.addends:
            if a.parts:
                addends.extend(self._under_part(value, region, a))
                continue
            inner = simplify(self.terms, (a.term, a.access), value, region)
            addends.append(Addend(a.coefficient * inner.coefficient, inner.term, inner.access))
        return self.settle(view.dims, [a for a in addends if a.coefficient])

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
        allowed = self.allowed(value)
        if allowed is None:
            allowed = self._derived(value)
        return region if allowed is None else regions.intersect(region, allowed)

    def _derived(self, term: int) -> Region | None:
        """The set that a masked index lies in, from its cases."""
        found = self._case_analysis(term)
        return None if found is None else regions.union([case.image for case in found[1]])

    def base(self, value: Operand, region: Region) -> tuple[Operand, Region]:
        """The same test on the value underneath: ``select(t in S, t + c, k) in R`` is a test of t."""
        found = self._case_analysis(value[0])
        if found is None:
            return value, region
        term, table = found
        parts = [self.possible(term, case.where) for case in table]
        kept = [regions.intersect(part, case.preimage(region)) for part, case in zip(parts, table, strict=True)]
        return self.base((term, value[1]), regions.union(kept))

    def _case_analysis(self, term: int) -> tuple[int, list[Case]] | None:
        if term not in self._cases:
            self._cases[term] = None
            self._cases[term] = cases(self, term)
        return self._cases[term]

    def _open_guard(self, value: Operand, body: Addend) -> tuple[Region, Addend] | None:
        """For a body that is guarded by the same value: that guard's set and body."""
        found = self.guard_of(body)
        if found is None or found[0] != value:
            return None
        return found[1], found[2]

    def guard_of(self, addend: Addend) -> tuple[Operand, Region, Addend] | None:
        """For an addend ``body where value in region``: value, region and body."""
        hole, region = addend.term, addend.parts[0][1] if addend.parts else ()
        label = self.terms.label(hole)
        inside: Parts = ()
        if label[0] == "ranged":
            region, hole = self.terms.region(hole), self.terms.children(hole)[0]
            label, inside = self.terms.label(hole), addend.parts
        elif len(addend.parts) != 1 or addend.parts[0][0] != hole:
            return None
        if label[0] != "guard" or not regions.is_set(region):
            return None
        value, body = self.terms.children(hole)
        accesses = self.terms.accesses(hole)
        bare = Addend(addend.coefficient, body, compose(accesses[1], addend.access), inside)
        return (value, compose(accesses[0], addend.access)), region, bare

    def guarded(self, value: Operand, region: Region, body: Addend) -> Addend:
        """``body`` where ``value`` lies in the region, else zero."""
        value, region = self.base(*self._seen_by_body(value, region, body))
        region = self.possible(value[0], region)
        found = self.guard_of(body)
        if found is not None and found[0] == value:
            region, body = regions.intersect(region, found[1]), found[2]
        elif found is not None and found[0][0] > value[0] and not body.parts:
            return self.guarded(found[0], found[1], self.guarded(value, region, found[2]))
        if not region:
            return Addend(Fraction(0), self.terms.one, ())
        hole, access = self.terms.guard(value, (body.term, body.access))
        if body.term == self.terms.one:
            closed = self.filler.fill(Addend(body.coefficient, hole, access, ((hole, region),)))
            return Addend(closed.coefficient, closed.term, closed.access)
        if body.parts:
            closed = self.terms.ranged(hole, region)
            return Addend(body.coefficient, closed, access, body.parts)
        return self.part(body.coefficient, hole, region, access)


def _readings(
    sources: Sequence[Addend], factor: Addend, lengths: Sequence[Dim], single: Set[int]
) -> Iterator[tuple[Sequence[Addend], Addend]]:
    """Ways to read indices of one value in a product: of either side renamed, left out or added."""
    for left, right in product(_loosened(sources, single), _loosened((factor,), single)):
        yield left, right[0]
        for one in _relinked(right[0], lengths, single):
            yield left, one
        if len(left) == 1:
            for one in _relinked(left[0], lengths, single):
                yield (one,), right[0]
                for other in _relinked(right[0], lengths, single & used(one.access)):
                    yield (one,), other


def _loosened(addends: Sequence[Addend], single: Set[int]) -> list[Sequence[Addend]]:
    """Addends as they are, and with an index of one value left out where it stands beside others."""
    free = [
        replace(
            a,
            access=tuple(
                (low, strides if len(strides) == 1 else tuple((v, s) for v, s in strides if v not in single))
                for low, strides in a.access
            ),
        )
        for a in addends
    ]
    return [addends] if free == list(addends) else [addends, free]


def _relinked(addend: Addend, lengths: Sequence[Dim], single: Set[int]) -> Iterator[Addend]:
    """An addend with its own indices of one value renamed, or others added as the outermost of some index."""
    access = addend.access
    mine = single & used(access)
    for old, new in product(sorted(mine), sorted(single - mine)):
        yield replace(addend, access=tuple(rename(i, {v: new if v == old else v for v, _ in i[1]}) for i in access))
    for new in sorted(single - mine):
        for place, (low, strides) in enumerate(access):
            reach: Dim = 1
            for v, stride in strides:
                reach = max(reach, stride * lengths[v], key=magnitude) if v >= 0 else reach
            longer = (low, tuple(sorted((*strides, (new, reach)))))
            yield replace(addend, access=(*access[:place], longer, *access[place + 1 :]))


def align(views: Sequence[View]) -> list[View]:
    """The views with common digits on every axis; raises NotAView where they do not nest."""
    if all(v.dims == views[0].dims for v in views):
        return list(views)
    if any(len(v.dims) != len(views[0].dims) for v in views):
        raise NotAView("different ranks")
    dims = tuple(common_digits([v.dims[axis] for v in views]) for axis in range(len(views[0].dims)))
    return [refine(v, dims) for v in views]


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
        return regions.preimage(self.where, 1 / self.scale, -self.constant / self.scale) or regions.NOTHING

    def preimage(self, region: Region) -> Region:
        """The values underneath at which the term lies in a set, as far as this case goes."""
        if self.scale:
            return regions.preimage(region, self.scale, self.constant) or regions.NOTHING
        own = regions.point(self.constant) or regions.NOTHING
        return regions.EVERYTHING if regions.intersect(own, region) else regions.NOTHING


def cases(algebra: Algebra, term: int) -> tuple[int, list[Case]] | None:
    """An integer term as a function of one value that guards inside test, case by case; None where it is not so."""
    terms = algebra.terms
    for value in sorted(terms.inside[term]):
        if terms.arity[value] != terms.arity[term]:
            continue
        operand: Operand = (value, identity(terms.arity[value]))
        for inner in terms.tests(term, value):
            found: list[Case] = []
            for part in (inner, regions.complement(inner)):
                where = algebra.possible(value, part)
                simple = simplify(terms, (term, identity(terms.arity[term])), operand, where)
                constant, scale, rest = algebra.integer(View((), (simple,)))
                whole = constant.denominator == 1 and (rest is None or (rest == operand and abs(scale) == 1))
                if not whole or not _bounded_by_numbers(where):
                    break
                found.append(Case(where, constant, scale if rest is not None else Fraction(0)))
            else:
                return value, found
    return None


def _bounded_by_numbers(region: Region) -> bool:
    return all(isinstance(end, int | None) for box, _ in region for ends in box for end in ends)


def _add_parts(left: Parts, right: Parts) -> Parts:
    return tuple((hole, regions.add([a, b])) for (hole, a), (_, b) in zip(left, right, strict=True))
