"""Equality of leaves and of guarded values on every path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rewright.terms.normal.arithmetic.binders import open_binders
from rewright.terms.normal.arithmetic.substitution import substitute
from rewright.terms.normal.decision.maxima import equal_by_members, equal_reals, split_maximum, values_contradict
from rewright.terms.normal.decision.regrouping import (
    clear_denominators,
    in_tiles,
    regroupings,
    with_atom,
    without_last_terms,
)
from rewright.terms.normal.facts.context import Context, Signed
from rewright.terms.normal.facts.guards import Choice, Guard, NotANumber, Value, at_least_zero, is_zero
from rewright.terms.normal.facts.signs import is_positive
from rewright.terms.normal.folds.items import mapped_largest
from rewright.terms.normal.folds.last_terms import with_last_terms
from rewright.terms.normal.folds.presence import counts_contradict, is_truth_value
from rewright.terms.normal.folds.products import rebuild
from rewright.terms.normal.folds.sums import open_sum, sum_terms
from rewright.terms.normal.polynomials.atoms import (
    ONE,
    ZERO,
    Atom,
    Base,
    Element,
    Exponential,
    Function,
    Indicator,
    Monomial,
    Number,
    Polynomial,
    Symbol,
    polynomial,
)
from rewright.terms.normal.polynomials.powers import exponential, power
from rewright.terms.normal.polynomials.ranged import Item, Largest, PrefixSum


@dataclass(frozen=True)
class Difference:
    """Where two sides could not be shown to be equal."""

    left: Value
    right: Value
    path: tuple[Signed, ...]
    sizes: dict[str, int] | None
    """Small numbers for the symbols on this path."""


Undefined = Callable[[Context], tuple[bool, bool]]
"""Whether what is known here leaves either side undefined, although it has a value."""


def _never(_: Context) -> tuple[bool, bool]:
    return False, False


def difference(context: Context, left: Value, right: Value, undefined: Undefined = _never) -> Difference | None:
    """None where two guarded values are equal on every feasible path, else the first leaf that is open.

    Where both sides are undefined they are equal, also if one of them has a value in writing, as ``0 / 0 * x`` has.
    """
    context.tick()
    for value in (left, right):
        if isinstance(value, Choice):
            return _by_cases(context, value.guard, left, right, undefined)
    if left == right:
        return None
    if not isinstance(left, Polynomial) or not isinstance(right, Polynomial):
        impossible = context.contradictory() or counts_contradict(context)
        return None if impossible or _are_undefined(context, left, right, undefined) else _found(context, left, right)
    if equal_leaves(context, left, right):
        return None
    truth = _truth_value(left - right)
    if truth is not None:
        return _by_truth(context, truth, left, right, undefined)
    split = split_maximum(left - right)
    if split is not None:
        return _by_largest(context, *split, left, right, undefined)
    if equal_reals(context, left - right) or counts_contradict(context) or equal_by_members(context, left - right):
        return None
    if values_contradict(context):
        return None
    return _found(context, left, right)


def _are_undefined(context: Context, left: Value, right: Value, undefined: Undefined) -> bool:
    sides = isinstance(left, NotANumber), isinstance(right, NotANumber)
    return any(sides) and all(a or b for a, b in zip(sides, undefined(context), strict=True))


def _truth_value(value: Polynomial) -> Largest | None:
    """A maximum of truth values, which is zero or one."""
    found = (atom for atom in value.atoms() if isinstance(atom, Largest) and all(map(is_truth_value, atom.items)))
    return next(found, None)


def _by_truth(
    context: Context, atom: Largest, left: Polynomial, right: Polynomial, undefined: Undefined
) -> Difference | None:
    for none in (True, False):
        with context.assume(Guard("integer=0", polynomial(atom)), none):
            value = ZERO if none else ONE
            found = difference(context, with_atom(left, atom, value), with_atom(right, atom, value), undefined)
        if found is not None:
            return found
    return None


def _found(context: Context, left: Value, right: Value) -> Difference:
    trail = context.trail
    names = sorted({name for guard, _ in trail for name in guard.free if not name.startswith(("~", "%"))})
    return Difference(left, right, tuple(trail), context.small_model(names))


def _by_cases(context: Context, guard: Guard, left: Value, right: Value, undefined: Undefined) -> Difference | None:
    decided = context.decide(guard)
    if decided is not None:
        return difference(context, _arm(left, guard, decided), _arm(right, guard, decided), undefined)
    for polarity in (True, False):
        with context.assume(guard, polarity):
            found = difference(context, _arm(left, guard, polarity), _arm(right, guard, polarity), undefined)
        if found is not None:
            return found
    return None


def _arm(value: Value, guard: Guard, polarity: bool) -> Value:
    if isinstance(value, Choice) and value.guard == guard:
        return value.yes if polarity else value.no
    return value


def equal_leaves(context: Context, left: Polynomial, right: Polynomial) -> bool:
    """Whether the difference vanishes once denominators are cleared and equal accesses are merged."""
    rest = _simpler(context, _where_known(context, left - right), _OPENED)
    if not rest.terms or any(equal_leaves(context, other, ZERO) for other in regroupings(context, rest)):
        return True
    # Opened sums would take the last terms back.
    if not _simpler(context, without_last_terms(context, rest), _CLOSED).terms:
        return True
    return _same_maximum(context, left - right) or _same_logarithm(context, left - right)


_CLOSED = (None, False, None)
_OPENED = (*_CLOSED, True, None)
"""Steps of which one clears denominators, where nothing is said, or merges accesses, with sums opened or not."""


def _simpler(context: Context, rest: Polynomial, steps: Sequence[bool | None]) -> Polynomial:
    """What is left of a difference after some steps."""
    for opens in steps:
        if rest.terms:
            rest = clear_denominators(rest) if opens is None else _Unifier(context, opens=opens).polynomial(rest)
    return rest


def _where_known(context: Context, value: Polynomial) -> Polynomial:
    """The value with variables of which one value is left replaced by it, and without factors that are zero."""
    try:
        value = substitute(context, value, context.only_values(value.free))
        for atom in _zeros(context):
            value = with_atom(value, atom, ZERO)
    except ZeroDivisionError:
        pass
    return value


def _zeros(context: Context) -> list[Atom]:
    """Atoms that are zero, since a product with what is not zero is: of ``a x - a = 0`` where x is above one."""
    found: list[Atom] = []
    for guard, polarity in context.trail:
        if not polarity or guard.kind not in ("real=0", "integer=0") or len(guard.value.terms) < 2:
            continue
        first, *others = guard.value.terms
        for atom in (a for a, n in first if n == 1 and all((a, 1) in monomial for monomial in others)):
            terms = {tuple(f for f in monomial if f[0] != atom): c for monomial, c in guard.value.terms.items()}
            rest = Polynomial(terms)
            if any(context.decide(at_least_zero(value)) is False for value in (rest, -rest)):
                found.append(atom)
    return found


def _same_logarithm(context: Context, rest: Polynomial) -> bool:
    """Whether ``rest = log(a) + .. - log(b) - .. + r`` vanishes, as ``a .. exp(r) = b ..``; what has a logarithm is
    positive.
    """
    products = {True: ONE, False: ONE}
    others: dict[Monomial, Number] = {}
    for monomial, coefficient in rest.terms.items():
        atom, exponent = monomial[0] if len(monomial) == 1 else (None, 0)
        if not (isinstance(atom, Function) and atom.name == "log" and exponent == 1 and isinstance(coefficient, int)):
            others[monomial] = coefficient
        elif abs(coefficient) > _MOST_LOGARITHMS:
            return False
        else:
            positive = coefficient > 0
            products[positive] = products[positive] * power(atom.arguments[0], abs(coefficient))
    if len(others) == len(rest.terms):
        return False
    return equal_leaves(context, products[True] * exponential(Polynomial(others)), products[False])


_MOST_LOGARITHMS = 4
"""The largest factor of a logarithm that becomes a power."""


def _same_maximum(context: Context, rest: Polynomial) -> bool:
    """Whether ``rest = max(..) - g max(..) + r`` vanishes because g is positive and goes inside, and so does r."""
    found = [
        (monomial, atom)
        for monomial in rest.terms
        for atom, exponent in monomial
        if isinstance(atom, Largest) and exponent == 1
    ]
    if len(found) != 2:
        return False
    for (alone, target), (scaled, other) in (found, found[::-1]):
        if len(alone) != 1 or abs(rest.terms[alone]) != 1:
            continue
        sign = rest.terms[alone]
        factor = Polynomial({tuple(f for f in scaled if f[0] != other): -sign * rest.terms[scaled]})
        terms = {m: -sign * c for m, c in rest.terms.items() if m not in (alone, scaled)}
        offset = Polynomial(terms)
        if any(isinstance(a, Largest) for a in (*factor.atoms(), *offset.atoms())):
            continue
        if is_positive(context, factor) and _are_alike(context, _moved_inside(context, other, factor, offset), target):
            return True
    return False


def _are_alike(context: Context, value: Polynomial, target: Largest) -> bool:
    """Whether a value is a maximum of the same items, over ranges that are known to be equal."""
    mine = value.atom()
    return isinstance(mine, Largest) and _same_place(context, mine, target)


def _inside(item: Item) -> tuple[object, ...]:
    return item.body, item.present, len(item.ranges)


def _moved_inside(context: Context, atom: Largest, factor: Polynomial, offset: Polynomial) -> Polynomial:
    """``factor * max + offset`` as one maximum, for a factor that is positive."""
    return mapped_largest(context, atom, lambda body: body * factor + offset)


class _Unifier:
    """Replaces accesses and sums by the first one that provably reads the same place or has the same bounds.

    It knows nothing of the variables of sums; with ``opens`` it knows their ranges, which takes longer.
    """

    def __init__(self, context: Context, *, opens: bool) -> None:
        self.context, self.opens = context, opens
        self.known: dict[bytes, Polynomial] = {}
        self.seen: dict[_Form, dict[tuple[Number, ...], Element | PrefixSum | Largest]] = {}
        """By form, and by the constants of the indices or bounds: those of one form that differ there are apart."""

    def polynomial(self, value: Polynomial) -> Polynomial:
        total = ZERO
        for monomial, coefficient in value.terms.items():
            product = polynomial(coefficient)
            for atom, exponent in monomial:
                product = product * power(self.atom(atom), exponent)
            total = total + product
        return with_last_terms(self.context, total) if self.opens else total

    def atom(self, atom: Atom) -> Polynomial:
        if atom.key not in self.known:
            self.known[atom.key] = self._replace(atom)
        return self.known[atom.key]

    def _replace(self, atom: Atom) -> Polynomial:
        if isinstance(atom, Exponential):
            return exponential(self.polynomial(atom.exponent))
        if isinstance(atom, Base):
            return self.polynomial(atom.value)
        if isinstance(atom, Function):
            return rebuild(self.context, atom, tuple(self.polynomial(a) for a in atom.arguments))
        if isinstance(atom, Symbol):
            bounds = self.context.bounds(atom.name)
            if bounds is not None and self.context.equal(polynomial(atom), bounds[0]):
                return bounds[0]
            return polynomial(atom)
        if isinstance(atom, PrefixSum) and any(self.context.holds(is_zero(bound)) for bound in atom.bounds):
            return ZERO
        if isinstance(atom, PrefixSum):
            return self._sum(atom)
        tiles = in_tiles(self.context, atom) if self.opens and isinstance(atom, Largest) else None
        if tiles is not None:
            return self.polynomial(tiles)
        return polynomial(self._first(atom) if isinstance(atom, Element | Largest) else atom)

    def _sum(self, atom: PrefixSum) -> Polynomial:
        """A sum as the first that is the same, once the accesses inside are the first that read the same place."""
        if not all(self.context.holds(at_least_zero(bound)) for bound in atom.bounds):
            return polynomial(self._first(atom))
        if self.opens:
            return self._opened(atom)
        body = self.polynomial(atom.body)
        if body == atom.body:
            return polynomial(self._first(atom))
        binders, body = open_sum(self.context, atom, body)
        with self.context.ranges(binders):
            return self._with_first_sums(sum_terms(self.context, binders, body))

    def _opened(self, atom: PrefixSum) -> Polynomial:
        """The same, by what is known of its variables; a sum that has no term, or one, and one in tiles."""
        if self._is_absent(atom):
            return ZERO
        tiles = in_tiles(self.context, atom)
        if tiles is not None:
            return self.polynomial(tiles)
        binders, body = open_sum(self.context, atom)
        single = [name for name, _, bound in binders if bound.constant() is None and self.context.equal(bound, ONE)]
        if single:
            term = substitute(self.context, body, dict.fromkeys(single, ZERO))
            return self.polynomial(sum_terms(self.context, [b for b in binders if b[0] not in single], term))
        with self.context.ranges(binders):
            # What is known of a term is not known where there is none.
            inside = _Unifier(self.context, opens=True)
            inside.seen = {form: dict(alike) for form, alike in self.seen.items()}
            changed = inside.polynomial(body)
            if changed == body:
                return polynomial(self._first(atom))
            found = sum_terms(self.context, binders, changed)
        return self._with_first_sums(found)

    def _with_first_sums(self, value: Polynomial) -> Polynomial:
        for inner in [inner for inner in value.atoms() if isinstance(inner, PrefixSum)]:
            value = with_atom(value, inner, polynomial(self._first(inner)))
        return value

    def _is_absent(self, atom: PrefixSum) -> bool:
        """Whether all terms have one condition as a factor that is known to hold nowhere."""
        terms = list(atom.body.terms)
        shared = [a for a, n in terms[0] if isinstance(a, Indicator) and n == 1] if terms else []
        for condition in (a for a in shared if all((a, 1) in monomial for monomial in terms)):
            names, values = open_binders(self.context, len(atom.bounds), atom.depth)
            binders = [(name, ZERO, bound) for name, bound in zip(names, atom.bounds, strict=True)]
            opened = substitute(self.context, polynomial(condition), values)
            with self.context.ranges(binders):
                count = is_zero(sum_terms(self.context, binders, opened))
            if count is True or (count is not False and self.context.fact(count) is True):
                return True
        return False

    def _first(self, atom: Element | PrefixSum | Largest) -> Element | PrefixSum | Largest:
        """The first access, sum or maximum that is the same."""
        form, constants = _form(atom)
        for other, alike in self.seen.items():
            if other != form and other[0] == form[0] and len(other[1]) == len(form[1]):
                for member in alike.values():
                    if _same_place(self.context, atom, member):
                        return member
        return self.seen.setdefault(form, {}).setdefault(constants, atom)


_Form = tuple[object, tuple[bytes, ...]]
"""What is read or summed, and the indices or bounds without their constants."""


def _form(atom: Element | PrefixSum | Largest) -> tuple[_Form, tuple[Number, ...]]:
    """The form of an access, a sum or a maximum, and the constants of its indices or bounds."""
    what, places = _places(atom)
    constants = tuple(place.terms.get((), 0) for place in places)
    rest = tuple((place - polynomial(n)).key for place, n in zip(places, constants, strict=True))
    return ((type(atom), what), rest), constants


def _places(atom: Element | PrefixSum | Largest) -> tuple[object, tuple[Polynomial, ...]]:
    """What is read, summed or compared, and the indices or the bounds."""
    if isinstance(atom, Element):
        return atom.tensor, atom.index
    if isinstance(atom, PrefixSum):
        return atom.body.key, atom.bounds
    ends = tuple(end for item in atom.items for pair in item.ranges for end in pair)
    return tuple(_inside(item) for item in atom.items), ends


def _same_place(context: Context, left: Element | PrefixSum | Largest, right: Element | PrefixSum | Largest) -> bool:
    (what, places), (other, others) = _places(left), _places(right)
    if type(left) is not type(right) or what != other or len(places) != len(others):
        return False
    return all(context.equal(a, b) for a, b in zip(places, others, strict=True))


def _by_largest(
    context: Context,
    atom: Largest,
    values: list[Polynomial],
    left: Polynomial,
    right: Polynomial,
    undefined: Undefined,
) -> Difference | None:
    """One case for each item of a maximum: that it is the largest."""
    for number, chosen in enumerate(values):
        with context.scope():
            for other_number, other in enumerate(values):
                if other_number != number:
                    context.add(at_least_zero(chosen - other))
            if context.contradictory():
                continue
            found = difference(context, with_atom(left, atom, chosen), with_atom(right, atom, chosen), undefined)
            if found is not None:
                return found
    return None
