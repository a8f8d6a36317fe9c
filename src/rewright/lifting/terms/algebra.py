"""Sums of views: linear maps keep partial sums partial, everything else closes them first."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice, product
from math import prod
from typing import TYPE_CHECKING

from rewright.claims.language import Access, Add, Addend, Guard, Index, Ranged, View, folds
from rewright.lifting.arithmetic.close_reductions import FoldCloser
from rewright.lifting.arithmetic.constants import add_tables
from rewright.lifting.masks.guards import Guards
from rewright.lifting.masks.nested_guards import has_fractions
from rewright.lifting.masks.positions import factors_of, ranges_of
from rewright.lifting.masks.vanishing import widen_region
from rewright.lifting.recognition.factoring import factor_sum
from rewright.lifting.recognition.fractions import gather_fractions
from rewright.lifting.recognition.instances import instance, instance_of_any
from rewright.lifting.recognition.shifts import cancel_inverses, is_shift
from rewright.lifting.recognition.signs import is_finite
from rewright.lifting.recognition.strangers import Strangers
from rewright.lifting.terms import regions
from rewright.lifting.terms.facts import Facts
from rewright.lifting.terms.forms import USUAL, Forms, Rewrites
from rewright.lifting.terms.index import compose, variables_in
from rewright.lifting.terms.regions import Region
from rewright.lifting.terms.store import ONE, Operand, Terms
from rewright.lifting.terms.value import Digits, NotAView, Parts, common_digits, refine

if TYPE_CHECKING:
    from rewright.lifting.recognition.sums import Recogniser

_MOST_OPEN = 16
"""A sum of more open addends than this closes them, which costs proofs and never soundness: so many hold what a rank
has of queries, keys and values whose halves are turned by themselves, and what is behind them."""


_MOST_PLACES = 2
"""Addends that are read at more single indices are not looked for among the sequential program's."""

EFFORT = 30_000
"""Factors of products that are looked at for sums that were made in other steps: a second or two."""
EFFORT_FOR_ROWS = 200_000
"""The same, for each rank, for outputs of programs whose rows stand alone, which are sums of many."""
_MOST_RANKS = 8
"""Of more ranks than these there is no more work for outputs, which a proof in vain would spend."""

_MOST_CHOICES = 256
"""Choices of one of these indices for each addend that are tried."""


@dataclass
class Effort:
    """How many factors of products may still be looked at for sums that were made in other steps."""

    left: int

    def spend(self, factors: int) -> None:
        """Look at so many factors."""
        self.left -= factors


class Algebra:
    """Arithmetic on views over one store of terms.

    While the sequential program is lifted every fold is closed at once, and its closed form is *known*. In a rank
    program a fold whose range is not known stays open: its region travels outwards in ``parts`` until the ranks'
    regions add up to a known one.
    """

    def __init__(
        self,
        forms: Forms = USUAL,
        recogniser: Callable[[Algebra], Recogniser] | None = None,
        effort: int = EFFORT,
    ) -> None:
        self.forms = forms
        self.terms = Terms(QUOTIENTS if forms.quotients else INSTANCES, looks_into_data=forms.data)
        self.facts = Facts(self.terms)
        self.folds = FoldCloser(self.terms, self.facts.allowed_values)
        self.guards = Guards(self)
        self._effort = Effort(effort)
        self._alone = False
        """Whether there is one rank: of several, what a mask rules out for one may be added by others all the same."""
        self.effort_for_outputs = Effort(EFFORT)
        """For outputs that are compared as sums of products, which come last and must have some left."""
        self.tests: dict[tuple[int, Region], tuple[Operand, Region]] = {}
        """By a test of indices whose offsets are in the set, the first one that is the same."""
        self.laws: dict[str, int] = {}
        """How often each law was used."""
        self._strangers = Strangers(self.terms)
        self.known: set[int] = set()
        """Closed folds of the sequential program."""
        self.wholes: dict[int, Region] = {}
        """For a fold that the sequential program takes over one region only, which that is."""
        self.recogniser = recogniser(self) if recogniser is not None and forms.products else None
        """Which term of the sequential program a sum is that is made in other steps, where that is asked for."""

    @property
    def sequential(self) -> bool:
        """Whether it is the sequential program that is being lifted."""
        return not self.terms.horizon

    @property
    def horizon(self) -> int:
        """Terms with an identity below this one belong to the sequential program."""
        return self.terms.horizon

    @property
    def effort(self) -> Effort:
        """What may still be looked at for sums that were made in other steps."""
        return self._effort

    @contextmanager
    def spending(self, effort: Effort) -> Generator[None]:
        """Look for sums at the cost of another effort."""
        before, self._effort = self._effort, effort
        try:
            yield
        finally:
            self._effort = before

    def expect(self, ranks: int) -> None:
        """Make ready for outputs of so many ranks: where rows stand alone, sums over all of these."""
        self._alone = ranks == 1
        if self.forms.plain:
            self.effort_for_outputs = Effort(EFFORT_FOR_ROWS * min(ranks, _MOST_RANKS))

    def count_use(self, law: str) -> None:
        """Count one use of a law."""
        self.laws[law] = self.laws.get(law, 0) + 1

    def forget(self) -> None:
        """Compute everything anew from here on."""
        self.folds.forget()
        self.guards.forget()
        if self.recogniser is not None:
            self.recogniser.forget()

    # --- addends -------------------------------------------------------------------------------------------------
    def part(self, coefficient: Fraction, hole: int, region: Region, access: Access) -> Addend:
        """A fold restricted to a region: closed where the sequential program closes it so, else left open."""
        return self.complete(Addend(coefficient, hole, access, ((hole, region),)))

    def complete(self, addend: Addend) -> Addend:
        """Close the folds of an addend if every region is known or this is the sequential program."""
        if not addend.parts or all(self._is_known(hole, region) for hole, region in addend.parts):
            return self.folds.close(addend)
        if self.sequential:
            closed = self.folds.close(addend)
            for hole, region in addend.parts:
                self.terms.mark(self.known.add, self.terms.set_range(hole, region))
            return closed
        even = self._even(addend) or (self._unmasked(addend) if self._alone or self.forms.quotients else None)
        return addend if even is None else self.folds.close(even)

    def _unmasked(self, addend: Addend) -> Addend | None:
        """The addend with a known region of its fold, where a mask rules out what is missing."""
        if len(addend.parts) != 1:
            return None
        ((hole, region),) = addend.parts
        places = [access for term, access in factors_of(self.terms, (addend.term, addend.access)) if term == hole]
        found = widen_region(self.terms, hole, places[0], region, self.known) if len(places) == 1 else None
        return None if found is None else replace(addend, parts=((hole, found),))

    def _even(self, addend: Addend) -> Addend | None:
        """The addend as a multiple of known folds, where every point of its folds counts equally often.

        Replicas that take part in a reduction make a sum count twice as often as its average should.
        """
        counts = [{count for _, count in region} for _, region in addend.parts]
        if any(len(own) != 1 for own in counts) or self.terms.parts_kind(addend.parts) != "sum":
            return None
        often = [own.pop() for own in counts]  # folds of folds: the counts multiply
        if all(count == 1 for count in often):
            return None
        parts = tuple((h, regions.scale(r, 1 / count)) for (h, r), count in zip(addend.parts, often, strict=True))
        if not all(self._is_known(hole, region) for hole, region in parts):
            return None
        return replace(addend, coefficient=addend.coefficient * prod(often, start=ONE), parts=parts)

    def _is_known(self, hole: int, region: Region) -> bool:
        closed = self.terms.find_closed(hole, region)
        if closed is not None and closed in self.known:
            return True
        return isinstance(self.terms.label(hole), Guard) and self.folds.drop_guard(hole, region) is not None

    def settle(self, dims: tuple[Digits, ...], addends: Sequence[Addend]) -> View:
        """The view of a sum: equal addends merge, regions of the same fold add up, closed ones become one term."""
        with self.over(dims):
            return self._gather(dims, addends)

    def over(self, dims: tuple[Digits, ...] | None) -> AbstractContextManager[None]:
        """Compute with the digits of a view as variables; None for variables of no view."""
        return self.terms.over(None if dims is None else tuple(n for digits in dims for n in digits))

    def _gather(self, dims: tuple[Digits, ...], addends: Sequence[Addend]) -> View:
        view = self._settled(dims, addends)
        if not self.forms.quotients or self.sequential or (len(view.addends) < 2 and self.is_familiar(view)):
            return view
        try:
            fewer = gather_fractions(self, view.addends)
        except NotAView:  # whose parts are larger depends on symbols
            return view
        return view if fewer is None else self._settled(dims, fewer)

    def _settled(self, dims: tuple[Digits, ...], addends: Sequence[Addend]) -> View:
        grouped: dict[tuple[int, Access, Fraction, tuple[int, ...]], Parts] = {}
        closed: list[tuple[Fraction, int, Access]] = []
        for a in addends:
            if isinstance(self.terms.label(a.term), Guard | Ranged):
                a = self.guards.narrow(dims, a)
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
                done = self.folds.close(done)
            if done.parts:
                left.append(done)
            else:
                closed.append((done.coefficient, done.term, done.access))
        if len(closed) == 1 and not isinstance(self.terms.label(closed[0][1]), Add):
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
        if not self.sequential:
            rest = self._over_all(rest)
        if constant:
            rest, constant = self._opposite(rest, constant)
        if constant or any(term == self.terms.index and not access[0][1] for _, term, access in rest):
            rest, constant = self._absorb(rest, constant)
        total = self.sum_of(rest)
        if total is None:
            return (Addend(constant, one, ()),) if constant else ()
        return (total, Addend(constant, one, ())) if constant else (total,)

    def _over_all(self, items: list[tuple[Fraction, int, Access]]) -> list[tuple[Fraction, int, Access]]:
        """Closed folds of one term over parts of a range as the known one over all of it."""
        terms = self.terms
        alike: dict[tuple[int, Access, Fraction], list[int]] = {}
        for coefficient, term, access in items:
            if term >= self.horizon and isinstance(terms.label(term), Ranged):
                (hole,) = terms.graph.node(term)[1]
                if folds(terms.label(hole), "sum"):
                    alike.setdefault((hole, access, coefficient), []).append(term)
        for (hole, access, coefficient), parts in alike.items():
            if len(parts) > 1:
                found = terms.find_closed(hole, regions.add([terms.region(term) for term in parts]))
                if found is not None and found in self.known:
                    for term in (*parts, found):
                        terms.see(term)
                    items = [item for item in items if item[1] not in parts or item[::2] != (coefficient, access)]
                    items.append((coefficient, found, access))
        return items

    def _opposite(
        self, items: list[tuple[Fraction, int, Access]], constant: Fraction
    ) -> tuple[list[tuple[Fraction, int, Access]], Fraction]:
        """One minus an indicator is the indicator of the other values."""
        for k, (coefficient, term, access) in enumerate(items):
            found = self.terms.predicate(term) if coefficient == -constant else None
            if found is not None:
                (value, inner), region = found
                other = self.guards.indicator((value, compose(inner, access)), regions.complement(region))
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
        """Move whole numbers, sizes among them, into the offset of an index, which is where a slice would put them."""
        sizes = [(c, access[0][0]) for c, term, access in items if term == self.terms.index and not access[0][1]]
        for k, (coefficient, term, access) in enumerate(items):
            addends = [(c / coefficient, low) for c, low in ((constant, 1), *sizes)]
            if term != self.terms.index or not access[0][1] or any(times.denominator != 1 for times, _ in addends):
                continue
            (low, strides), *_ = access
            for times, size in addends:
                low = low + size * int(times)
            moved = (coefficient, term, ((low, strides),))
            rest = [i for i in (*items[:k], *items[k + 1 :]) if i[1] != self.terms.index or i[2][0][1]]
            return [*rest, moved], Fraction(0)
        if len(sizes) == 1 and (constant / sizes[0][0]).denominator == 1:
            coefficient, size = sizes[0]
            place: Index = (size + int(constant / coefficient), ())
            rest = [i for i in items if i[1] != self.terms.index or i[2][0][1]]
            return [*rest, (coefficient, self.terms.index, (place,))], Fraction(0)
        return items, constant

    def _generalise(self, items: Sequence[tuple[Fraction, int, Access]]) -> Addend | None:
        """A sum at one index of some axis as the sequential program's sum over all of that axis, read there."""
        fresh = 1 + max((v for _, _, access in items for v in variables_in(access)), default=0)
        constants = [item for item in items if item[1] == self.terms.one]
        items = [item for item in items if item[1] != self.terms.one]
        places = [[k for k, (_, strides) in enumerate(access) if not strides] for _, _, access in items]
        few = bool(items) and all(len(p) <= _MOST_PLACES for p in places)
        for chosen in islice(product(*places), _MOST_CHOICES) if few else ():
            (value, *others) = {access[k][0] for (_, _, access), k in zip(items, chosen, strict=True)}
            if others:
                continue
            spread = [
                (c, term, (*access[:k], (0, ((fresh, 1),)), *access[k + 1 :]))
                for (c, term, access), k in zip(items, chosen, strict=True)
            ]
            total = self.terms.add([*constants, *spread])
            if total is not None and total.term < self.horizon:
                there: dict[int, Index] = {v: (0, ((v, 1),)) for v in variables_in(total.access)}
                return replace(total, access=compose(total.access, there | {fresh: (value, ())}))
        return None

    def solid(self, view: View, *, linear: bool) -> tuple[Addend, ...]:
        """The view as few addends: one closed one and, under a linear map, one that still has open parts."""
        addends = view.addends
        if not linear:
            addends = self.settle(view.dims, [self.folds.close(a) for a in addends]).addends
            # Folds that a sum has opened again are closed where they stand.
            addends = tuple(self.folds.close(a) if a.parts else a for a in addends)
        else:
            addends = tuple(self._summable(view))
        closed = [a for a in addends if not a.parts]
        if len(closed) > 1:
            with self.over(view.dims):
                total = self.sum_of([(a.coefficient, a.term, a.access) for a in closed])
            closed = [total] if total is not None else []
        partial = [a for a in addends if a.parts]
        return (*closed, *self._join(partial))

    def sum_of(self, items: list[tuple[Fraction, int, Access]]) -> Addend | None:
        """The sum as one term, that of the sequential program where it has it."""
        total = self.terms.add(items)
        if total is not None and not self.sequential and total.term >= self.horizon and len(items) > 1:
            found = instance(self.terms, total)
            if found is not None:
                return found
            if not self.forms.quotients and any(self._strangers.has(term) for _, term, _ in items):
                return total
            with self.over(None):  # with a variable that no view has
                total = self._generalise(items) or total
                if total.term >= self.horizon:
                    total = factor_sum(self.terms, items, quotients=self.forms.quotients) or total
        return total

    def _join(self, partial: list[Addend]) -> list[Addend]:
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

    def close(self, view: View) -> Addend:
        """The view as one closed addend; zero has coefficient zero."""
        addends = self.solid(view, linear=False)
        if not addends:
            return Addend(Fraction(0), self.terms.one, ())
        assert len(addends) == 1
        if self.recogniser is None or self.sequential or addends[0].term < self.horizon:
            return addends[0]
        with self.over(view.dims):
            return self.recogniser.recognise(addends[0]) or addends[0]

    def operand(self, view: View) -> Operand:
        """The view as one term with its coefficient inside; it becomes an anchor for longer sums."""
        if not view.addends:
            return self.terms.freeze(Addend(Fraction(0), self.terms.one, ()))
        term, access = self.terms.freeze(self.close(view))
        return term, access

    def integer(self, view: View) -> tuple[Fraction, Fraction, Operand | None]:
        """An integer view as ``constant + scale * term``, the term integer-valued; None for a constant."""
        addends = self.settle(view.dims, [self.folds.close(a) for a in view.addends]).addends
        constant = sum((a.coefficient for a in addends if a.term == self.terms.one), start=Fraction(0))
        rest = [a for a in addends if a.term != self.terms.one]
        if not rest:
            return constant, ONE, None
        (total,) = rest
        if total.coefficient != 1 and has_fractions(self.terms, total.term):
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
        return self.settle(views[0].dims, addends if self.sequential else add_tables(self.terms, addends))

    def _summable(self, view: View) -> Sequence[Addend]:
        """The addends with every fold that is no sum closed: regions of a maximum do not add up."""
        if all(self.terms.parts_kind(a.parts) == "sum" for a in view.addends):
            return view.addends
        return [a if self.terms.parts_kind(a.parts) == "sum" else self.folds.close(a) for a in view.addends]

    def is_familiar(self, view: View) -> bool:
        """Whether a view is made of terms of the sequential program; a map of an open fold may turn out to be one."""
        if self.forms.quotients:
            return all(self._is_familiar_quotient(a) for a in view.addends)
        return all(a.term < self.horizon or self._may_become_familiar(a) for a in view.addends)

    def _may_become_familiar(self, addend: Addend) -> bool:
        """Whether a map of open folds would be a term of the sequential program with these summed as they are there."""
        if not addend.parts or any(hole == addend.term for hole, _ in addend.parts):
            return False
        wholes = [(hole, self._whole(hole)) for hole, _ in addend.parts]
        parts = tuple((hole, whole) for hole, whole in wholes if whole is not None)
        if len(parts) < len(addend.parts):
            return True
        return self.folds.close(replace(addend, parts=parts)).term < self.horizon

    def _whole(self, hole: int) -> Region | None:
        """The range of a fold in the sequential program, or all that a guard's value can be; None where it has none."""
        if isinstance(self.terms.label(hole), Guard):
            return self.guards.possible(self.terms.children(hole)[0], regions.EVERYTHING)
        return self.wholes.get(hole)

    def is_strange(self, *views: View) -> bool:
        """Whether no reading of any index makes what is made of the views a part of the sequential program."""
        if self.sequential or self.forms.quotients:
            return False
        return any(self._strangers.has(a.term) for view in views for a in view.addends)

    def finish_sequential(self) -> None:
        """What is made from here on is the ranks'; note over what the sequential program sums."""
        self.terms.finish_sequential()
        found: dict[int, set[Region]] = {}
        for term in self.known:
            (hole,) = self.terms.children(term)
            found.setdefault(hole, set()).add(self.terms.region(term))
        self.wholes = {hole: next(iter(several)) for hole, several in found.items() if len(several) == 1}

    def _is_familiar_quotient(self, addend: Addend) -> bool:
        """The same where exponentials of maxima, which every rank has its own of, may stand for others."""
        if any(hole >= self.horizon for hole, _ in addend.parts):
            return False
        factors = factors_of(self.terms, (addend.term, addend.access))
        open_ = {hole for hole, _ in addend.parts}
        if all(term < self.horizon or is_shift(self.terms, term) for term, _ in factors if term not in open_):
            return addend.term not in open_
        return bool(addend.parts) and addend.term not in open_


def _is_finite(terms: Terms, operand: Operand) -> bool:
    return is_finite(terms, operand, ranges_of(terms.window))


INSTANCES = Rewrites(instance_of_any)
QUOTIENTS = Rewrites(instance_of_any, cancel_inverses, _is_finite)
"""The same where exponentials are quotients."""


def align(views: Sequence[View]) -> list[View]:
    """The views with common digits on every axis; raises NotAView where they do not nest."""
    if all(v.dims == views[0].dims for v in views):
        return list(views)
    if any(len(v.dims) != len(views[0].dims) for v in views):
        raise NotAView("different ranks")
    dims = tuple(common_digits([v.dims[axis] for v in views]) for axis in range(len(views[0].dims)))
    return [refine(v, dims) for v in views]


def _add_parts(left: Parts, right: Parts) -> Parts:
    return tuple((hole, regions.add([a, b])) for (hole, a), (_, b) in zip(left, right, strict=True))
