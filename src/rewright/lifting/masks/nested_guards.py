"""What a guard knows about its body: inner guards on the same value are decided."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import cast

from rewright.claims.language import Access, Add, Addend, Apply, Fold, Guard, Index, Ranged, Take
from rewright.ir.dims import Dim
from rewright.lifting.masks.blocks import digit_within
from rewright.lifting.masks.positions import restate
from rewright.lifting.terms import regions
from rewright.lifting.terms.index import build, compose, variables_in
from rewright.lifting.terms.regions import Region
from rewright.lifting.terms.store import ONE, Named, Operand, Terms

_DEPTH = 24
_MOST_ATOMS = 4
_APART = 1000
"""Keeps the numbers of index operands apart while they are renumbered."""
_CARRYING = (Add, Ranged, Fold, Guard, Take)
_LINEAR = frozenset({"multiply", "where", "where_not", "identity"})
"""Kinds of terms, and functions, of which a number outside may be one inside."""
_TRANSPARENT = (Apply, Add, Take, Ranged)


def simplify(terms: Terms, operand: Operand, value: Operand, region: Region) -> Addend:
    """The operand where the integer ``value`` lies in ``region``; equal to it there, and nowhere else in general."""
    return _Within(terms, value, region).simplify(operand, _DEPTH)


class _Within:
    """What operands are where one integer lies in one set."""

    def __init__(self, terms: Terms, value: Operand, region: Region) -> None:
        self._terms, self._value, self._region = terms, value, region
        self._read_at = variables_in(value[1])
        self._found: dict[Operand, Addend] = {}

    def simplify(self, operand: Operand, depth: int) -> Addend:
        """The operand there, looked into so many levels deep."""
        term, access = operand
        if depth == 0 or self._value[0] not in self._terms.inside[term] or _at_data(access):
            return Addend(ONE, term, access)
        if not self._read_at <= variables_in(access):  # it can only read the value elsewhere
            return Addend(ONE, term, access)
        if operand not in self._found:
            self._found[operand] = self._simplified(operand, depth)
        return self._found[operand]

    def _simplified(self, operand: Operand, depth: int) -> Addend:
        terms, (term, access) = self._terms, operand
        label = terms.see(term)
        if not isinstance(label, _TRANSPARENT):
            return Addend(ONE, term, access)
        if isinstance(label, Ranged):
            if isinstance(terms.see(terms.children(term)[0]), Fold):
                return self._of_fold(operand, depth)
            return self._decide(operand, depth)
        digit = digit_within(terms, operand, self._value, self._region)
        if digit is not None:
            return digit
        if isinstance(label, Take):
            data, *indices = terms.operands(operand)
            read = take(terms, self._of_data(data, depth), [self.simplify(index, depth - 1) for index in indices])
            return terms.add([(a.coefficient, a.term, a.access) for a in read]) or Addend(Fraction(0), terms.one, ())
        return terms.remake(term, [self.simplify(child, depth - 1) for child in terms.operands(operand)])

    def _of_data(self, operand: Operand, depth: int) -> Addend:
        """What is read at data there, wherever that is: the places have names of their own as long."""
        term, access = operand
        if not self._terms.looks_into_data:
            return Addend(ONE, term, access)
        free = 1 + max((v for at in (access, self._value[1]) for _, strides in at for v, _ in strides), default=0)
        there = {v: free - v for _, strides in access for v, _ in strides if v < 0}
        found = self.simplify((term, _renamed(access, there)), depth - 1)
        back = {own: v for v, own in there.items()}
        return Addend(found.coefficient, found.term, _renamed(found.access, back), found.parts)

    def _decide(self, operand: Operand, depth: int) -> Addend:
        """An inner guard that tests the same value is its body or zero where the outer set settles it.

        A mask of positions may test them counted from elsewhere.
        """
        terms, masked = self._terms, self._terms.mask(operand)
        if masked is None or masked[0][0] != self._value[0] or not regions.is_set(masked[2]):
            return Addend(ONE, *operand)
        inner_value, body, own = masked
        held = restate(terms, self._value, self._region, inner_value)
        common = regions.NOTHING if held is None else regions.intersect(own, held)
        if held is not None and not common:
            return Addend(Fraction(0), terms.one, ())
        if held is not None and common == held:
            return self.simplify(body, depth - 1)
        return Addend(ONE, *operand)

    def _of_fold(self, operand: Operand, depth: int) -> Addend:
        """A sum, or a maximum, over a range of what its body is there: the value is the same for all of the range."""
        terms, (term, access) = self._terms, operand
        unchanged = Addend(ONE, *operand)
        (hole,) = terms.children(term)
        (body,), axes, kind = terms.children(hole), terms.axes(hole), cast("Fold", terms.see(hole)).kind
        box = regions.single(terms.region(term))
        if box is None:
            return unchanged
        free = 1 + max((v for at in (access, self._value[1]) for _, strides in at for v, _ in strides), default=0)
        own = {axis: free + number for number, axis in enumerate(axes)}
        rest = iter(access)
        inside = tuple((0, ((own[axis], 1),)) if axis in own else next(rest) for axis in range(terms.arity[body]))
        found = self.simplify((body, inside), depth - 1)
        if kind == "sum" and not found.coefficient:
            return found
        if found == Addend(ONE, body, inside) or not variables_in(found.access).issuperset(own.values()):
            return unchanged
        ranges: dict[int, tuple[Dim, Dim]] = {}
        for axis, (low, high) in zip(axes, box, strict=True):
            if low is None or high is None:
                return unchanged
            ranges[own[axis]] = low, high
        if kind != "sum":
            found = Addend(ONE, *terms.freeze(found))
        folded = terms.fold_over(kind, (found.term, found.access), ranges)
        hole, over = terms.flat(folded.hole, regions.whole(folded.box))
        return Addend(found.coefficient, terms.set_range(hole, over), folded.access)


def atoms(terms: Terms, operand: Operand, value: Operand, region: Region) -> list[Region]:
    """The region cut where guards inside the operand on the same value change; they are decided on each part."""
    parts = [region]
    for test in sorted(_tests(terms, operand, value, _DEPTH), key=repr):
        cut: list[Region] = []
        for part in parts:
            inside = regions.intersect(part, test)
            outside = regions.intersect(part, regions.complement(test))
            cut += [piece for piece in (inside, outside) if piece]
        if len(cut) > _MOST_ATOMS:
            return [region]
        parts = cut
    return parts


def _tests(terms: Terms, operand: Operand, value: Operand, depth: int) -> set[Region]:
    term, access = operand
    if depth == 0 or value[0] not in terms.inside[term] or _at_data(access):
        return set()
    masked = terms.mask(operand)
    if masked is not None:
        tested, body, own = masked
        found = _tests(terms, body, value, depth - 1)
        return found | {own} if tested == value and regions.is_set(own) else found
    label = terms.see(term)
    if isinstance(label, Ranged) or not isinstance(label, _TRANSPARENT):
        return set()
    found = set[Region]()
    for child in terms.operands(operand):
        found |= _tests(terms, child, value, depth - 1)
    return found


def _at_data(access: Access) -> bool:
    """Whether an access reads at the values of index operands, whose numbers mean nothing in any other term."""
    return any(v < 0 for _, strides in access for v, _ in strides)


def take(terms: Terms, data: Addend, indices: list[Addend]) -> list[Addend]:
    """Read ``data`` where variable ``-k`` is the value of index k; constants and affine indices are folded in.

    A read of a sum is the sum of the reads, so that a sum of which only one part is sharded still meets its whole.
    """
    access: Access = data.access
    operands: list[Operand] = []
    for number, index in enumerate(indices, start=1):
        constant, scale, rest = _affine(terms, index)
        if rest is None:
            replacement: Index = (constant, ())
        elif rest[0] == terms.index:
            low, strides = rest[1][0]
            replacement = (constant + scale * low, tuple((v, scale * s) for v, s in strides))
        else:
            operands.append(rest)
            replacement = (constant, ((-_APART - len(operands), scale),))
        access = tuple(_replace(i, -number, replacement) for i in access)
    for number in range(1, len(operands) + 1):
        access = tuple(_replace(i, -_APART - number, (0, ((-number, 1),))) for i in access)
    return _read(terms, Addend(data.coefficient, data.term, access, data.parts), operands)


def _read(terms: Terms, data: Addend, operands: list[Operand]) -> list[Addend]:
    """The reads of the addends of a term, each with the index operands that it uses."""
    bound = sorted({-v for _, strides in data.access for v, _ in strides if v < 0})
    if not bound:
        return [data]
    known = _position_at(terms, data, operands) if data.term == terms.index else None
    if known is not None:
        return known
    label = terms.label(data.term)
    if isinstance(label, Add):
        coefficients, accesses = terms.coefficients(data.term), terms.accesses(data.term)
        found: list[Addend] = []
        for c, child, inner in zip(coefficients, terms.children(data.term), accesses, strict=True):
            parts = tuple((hole, region) for hole, region in data.parts if hole in terms.open[child])
            found += _read(terms, Addend(data.coefficient * c, child, compose(inner, data.access), parts), operands)
        return found
    access = data.access
    for position, number in enumerate(bound, start=1):
        access = tuple(_replace(i, -number, (0, ((-position, 1),))) for i in access)
    term, outer = terms.take([(data.term, access), *(operands[number - 1] for number in bound)])
    return [Addend(data.coefficient, term, outer, data.parts)]


def _position_at(terms: Terms, data: Addend, operands: list[Operand]) -> list[Addend] | None:
    """The position at ``low + stride * k``, which is that number: ``arange(n)[k]`` is ``k``; None for sizes there."""
    low, strides = data.access[0]
    rest = tuple((v, stride) for v, stride in strides if v >= 0)
    found = [Addend(data.coefficient * s, *operands[-v - 1]) for v, s in strides if v < 0 and isinstance(s, int)]
    if len(found) + len(rest) != len(strides):
        return None
    if rest:
        return [*found, Addend(data.coefficient, terms.index, ((low, rest),))]
    if not isinstance(low, int):
        return None
    return [*found, Addend(data.coefficient * low, terms.one, ())] if low else found


def _renamed(access: Access, names: Mapping[int, int]) -> Access:
    """The access with other variables."""
    return tuple(build(low, {names.get(v, v): stride for v, stride in strides}) for low, strides in access)


def _replace(index: Index, var: int, replacement: Index) -> Index:
    """The index with one variable replaced."""
    constant, terms = index
    strides = dict(terms)
    factor = strides.pop(var, 0)
    if factor == 0:
        return index
    for other, stride in replacement[1]:
        strides[other] = strides.get(other, 0) + factor * stride
    return build(constant + factor * replacement[0], strides)


def _affine(terms: Terms, index: Addend) -> tuple[int, int, Operand | None]:
    """An index value as ``constant + scale * term`` with whole numbers."""
    constant = Fraction(0)
    rest: list[tuple[Fraction, int, Access]] = []
    for factor, (term, access) in terms.expand(index.term, index.access):
        if term == terms.one:
            constant += factor * index.coefficient
        else:
            rest.append((factor * index.coefficient, term, access))
    total = terms.add(rest)
    if total is None:
        return int(constant), 0, None
    if constant.denominator == 1 and total.coefficient != 1 and has_fractions(terms, total.term):
        # Seven times a term with sevenths in it: the seven stays inside, so that what is looked up with is whole.
        return int(constant), 1, terms.freeze(total)
    if constant.denominator == 1 and total.coefficient.denominator == 1:
        return int(constant), int(total.coefficient), (total.term, total.access)
    return 0, 1, terms.freeze(index)


def has_fractions(terms: Terms, term: int) -> bool:
    """Whether an integer tensor, its leading coefficient outside, may be no integer inside: in a sum, or under a guard.

    What a name hides may be such.
    """
    left, seen = [term], {term}
    while left:
        label = terms.see(one := left.pop())
        if isinstance(label, Named) or (
            isinstance(label, Add) and any(c.denominator != 1 for c in terms.coefficients(one))
        ):
            return True
        if isinstance(label, _CARRYING) or (isinstance(label, Apply) and label.function in _LINEAR):
            left += [child for child in terms.children(one) if child not in seen]
            seen.update(terms.children(one))
    return False
