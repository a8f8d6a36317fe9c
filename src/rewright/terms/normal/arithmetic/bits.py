"""Bitwise functions of integers in normal form, in the arithmetic of indices and integers.

An integer is its bits in two's complement, of which there are infinitely many, so that no width is asked. A bitwise
function does the same to every bit of its arguments between two places at which a constant changes. So it is a
:class:`Word`: the integers that it is made of, and for every stretch of bits a truth table over these. Written as a
polynomial over the bits, ``x or y = x + y - x and y``, it is a sum of conjunctions; one over a stretch of bits is a
difference of quotients, ``x and 12 = 4 floor(x/4) - 16 floor(x/16)``; and a conjunction of several integers is an atom.
Equal functions are equal polynomials, whatever they were written with, sums and quotients by powers of two included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from rewright.terms.normal.arithmetic.division import floor_quotient
from rewright.terms.normal.facts.context import Context
from rewright.terms.normal.facts.guards import at_least_zero, less_than
from rewright.terms.normal.polynomials.atoms import (
    ONE,
    ZERO,
    Floor,
    Function,
    Monomial,
    Number,
    Polynomial,
    TooHard,
    leading_monomial,
    polynomial,
)

CONJUNCTION = "bits of all"
_MOST_LEAVES = 5
_MOST_STRETCHES = 24


@dataclass(frozen=True)
class Word:
    """``tables[k]`` are the bits from ``starts[k]`` up to the next start, the last ones without end.

    A table has a bit for each way in which the bits of the leaves can be: bit ``sum of 2^j`` over those that are one.
    """

    leaves: tuple[Polynomial, ...]
    starts: tuple[int, ...]
    tables: tuple[int, ...]


def bitwise(
    context: Context, name: str, arguments: Sequence[Polynomial], width: int | None = None
) -> Polynomial | None:
    """A bitwise function of integers; None where it is made of too much to be written out.

    ``width`` is the number of bits of an unsigned type, of which the arguments are.
    """
    if name == "not":
        return -arguments[0] - 1
    words = [word_of(context, argument, width) for argument in arguments]
    if name == "not_unsigned":
        words, name = [*words, word_of(context, polynomial(255))], "xor"
    found = _combine(_OPERATIONS[name], *words)
    return None if found is None else written(context, found)


def conjunction(context: Context, arguments: Sequence[Polynomial]) -> Polynomial:
    """The conjunction of several integers, again in normal form."""
    total: Polynomial = arguments[0]
    for argument in arguments[1:]:
        found = bitwise(context, "and", (total, argument))
        if found is None:
            raise TooHard(f"the bits of {len(arguments)} integers")
        total = found
    return total


_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "and": lambda left, right: left & right,
    "or": lambda left, right: left | right,
    "xor": lambda left, right: left ^ right,
}


def _combine(operation: Callable[[int, int], int], left: Word, right: Word) -> Word | None:
    leaves = tuple(sorted({*left.leaves, *right.leaves}, key=lambda leaf: leaf.key))
    starts = tuple(sorted({*left.starts, *right.starts}))
    if len(leaves) > _MOST_LEAVES or len(starts) > _MOST_STRETCHES:
        return None
    first, second = (_over(word, leaves, starts) for word in (left, right))
    return Word(leaves, starts, tuple(operation(a, b) for a, b in zip(first, second, strict=True)))


def _over(word: Word, leaves: tuple[Polynomial, ...], starts: tuple[int, ...]) -> list[int]:
    """The tables of a word over more leaves, for more stretches."""
    places = [leaves.index(leaf) for leaf in word.leaves]
    wider = [
        sum(
            (table >> sum((case >> place & 1) << number for number, place in enumerate(places)) & 1) << case
            for case in range(1 << len(leaves))
        )
        for table in word.tables
    ]
    stretch = 0
    found: list[int] = []
    for start in starts:
        while stretch + 1 < len(word.starts) and word.starts[stretch + 1] <= start:
            stretch += 1
        found.append(wider[stretch])
    return found


# --- written as a polynomial


def written(context: Context, word: Word) -> Polynomial:
    """A word as a sum of conjunctions of its leaves over stretches of bits."""
    by_case = [_multilinear(table, len(word.leaves)) for table in word.tables]
    total = ZERO
    for case in range(1 << len(word.leaves)):
        leaves = [leaf for number, leaf in enumerate(word.leaves) if case >> number & 1]
        before = 0
        whole: Polynomial | None = None
        for start, factors in zip(word.starts, by_case, strict=True):
            step = factors[case] - before
            before = factors[case]
            if step:
                whole = _of_all(leaves) if whole is None else whole
                total = total + _shift(context, whole, leaves, start) * (step << start)
    return total


def _shift(context: Context, whole: Polynomial, leaves: Sequence[Polynomial], start: int) -> Polynomial:
    """A conjunction without its lowest bits; none are left where one of the leaves is known to have no others."""
    limit = polynomial(1 << start)
    is_conjunction = start and len(leaves) > 1
    if is_conjunction and any(context.holds(at_least_zero(x)) and context.holds(less_than(x, limit)) for x in leaves):
        return ZERO
    return floor_quotient(context, whole, limit)


def _of_all(leaves: Sequence[Polynomial]) -> Polynomial:
    """The conjunction of leaves; of none it is all bits, which is minus one."""
    if len(leaves) < 2:
        return leaves[0] if leaves else -ONE
    return polynomial(Function(CONJUNCTION, tuple(leaves), True))


def _multilinear(table: int, count: int) -> list[int]:
    """The factors of the products of bits, by which bits are in them, of a function of bits given by its table."""
    factors = [table >> case & 1 for case in range(1 << count)]
    for number in range(count):
        for case in range(1 << count):
            if case >> number & 1:
                factors[case] -= factors[case ^ (1 << number)]
    return factors


# --- read off a polynomial


def word_of(context: Context, value: Polynomial, width: int | None = None) -> Word:
    """The word that a polynomial is: of the integers whose bits it is made of, else of itself as one leaf.

    One that is known to be of so many bits, and not negative, has no others.
    """
    found = _parse(context, value, width)
    if found is not None:
        return found
    if value.terms[_leading(value)] < 0:
        # Of an integer and its complement, minus one less it, the same one is always the leaf.
        return Word((-value - 1,), (0,), (0b01,))
    return Word((value,), (0,), (0b10,))


def _leading(value: Polynomial) -> Monomial:
    """The first monomial that is no constant, if there is one."""
    rest = value - value.terms.get((), 0)
    return leading_monomial(rest if rest.terms else value)


_Steps = dict[tuple[Polynomial, ...], dict[int, int]]
"""By leaves, at which bits the factor of their conjunction changes, and by how much."""


def _parse(context: Context, value: Polynomial, width: int | None) -> Word | None:
    """A sum of conjunctions over stretches of bits as a word, if every bit of it is zero or one."""
    for limit in (None, width) if width is not None else (None,):
        for sums in _sums(value):
            found = _parsed_with(context, value, sums, limit)
            if found is not None:
                return found
    return None


def _parsed_with(context: Context, value: Polynomial, sums: Sequence[Polynomial], width: int | None) -> Word | None:
    steps: _Steps = {}
    rest = value
    for sum_ in sums:
        rest = _taken_out(context, rest, sum_, steps)
    for monomial, coefficient in rest.terms.items():
        if monomial:
            part = _part(monomial, coefficient)
            if part is None:
                return None
            _note(steps, *part)
    offset = rest.terms.get((), 0)
    return _word(steps, offset, width) if isinstance(offset, int) else None


def _note(steps: _Steps, leaves: tuple[Polynomial, ...], start: int, step: int) -> None:
    own = steps.setdefault(leaves, {})
    own[start] = own.get(start, 0) + step


def _word(steps: _Steps, offset: int, width: int | None) -> Word | None:
    """The word of conjunctions and a constant, if every bit of their sum is zero or one, up to a width if given."""
    leaves = tuple(sorted({leaf for own in steps for leaf in own}, key=lambda leaf: leaf.key))
    starts = sorted({0, *(start for own in steps.values() for start in own), *_changes(offset)})
    if len(leaves) > _MOST_LEAVES or len(starts) > _MOST_STRETCHES:
        return None
    if width is not None:
        starts = [start for start in starts if start < width]
    tables: list[int] = []
    for start in starts:
        factors = [0] * (1 << len(leaves))
        factors[0] = offset >> start & 1
        for own, changes in steps.items():
            case = sum({1 << leaves.index(leaf) for leaf in own})
            factors[case] += sum(step for place, step in changes.items() if place <= start)
        table = _table(factors, len(leaves))
        if table is None:
            return None
        tables.append(table)
    if width is not None:
        return Word(leaves, (*starts, width), (*tables, 0))
    return Word(leaves, tuple(starts), tuple(tables))


def _sums(value: Polynomial) -> Iterator[list[Polynomial]]:
    """Sums whose terms may be apart in a value, in several ways: none; leaves of conjunctions; what is divided."""
    yield []
    leaves: dict[bytes, Polynomial] = {}
    divided: dict[bytes, Polynomial] = {}
    for atom in value.atoms():
        inner = atom
        if isinstance(atom, Floor):
            divided[atom.numerator.key] = atom.numerator
            inner = atom.numerator.atom()
        if isinstance(inner, Function) and inner.name == CONJUNCTION:
            leaves.update((leaf.key, leaf) for leaf in inner.arguments)
    moved = [numerator + value.terms.get((), 0) for numerator in divided.values()]
    for sums in ([*leaves.values()], [*leaves.values(), *divided.values()], [*leaves.values(), *moved]):
        several = {s.key: s for s in sums if s.atom() is None and s.constant() is None}
        if several:
            yield sorted(several.values(), key=lambda sum_: (-len(sum_.terms), sum_.key))


def _taken_out(context: Context, value: Polynomial, sum_: Polynomial, steps: _Steps) -> Polynomial:
    """What is left of a value without quotients of a sum by powers of two, and without multiples of it."""
    divisors = {a.divisor.constant() for a in value.atoms() if isinstance(a, Floor)}
    for divisor in sorted(d for d in divisors if isinstance(d, int) and d & (d - 1) == 0):
        quotient = floor_quotient(context, sum_, polynomial(divisor))
        floors = [m for m in quotient.terms if len(m) == 1 and isinstance(m[0][0], Floor) and m in value.terms]
        if len(floors) == 1 and abs(quotient.terms[floors[0]]) == 1:
            factor = value.terms[floors[0]] * quotient.terms[floors[0]]
            if isinstance(factor, int) and factor % divisor == 0:
                value = value - quotient * factor
                _note(steps, (sum_,), divisor.bit_length() - 1, factor // divisor)
    leading = _leading(sum_)
    factor = Fraction(value.terms.get(leading, 0)) / sum_.terms[leading]
    # Bits are nearly always there once.
    for times in (1 if factor > 0 else -1, factor.numerator) if factor and factor.denominator == 1 else ():
        less = value - sum_ * times
        if _count(less) < _count(value):
            _note(steps, (sum_,), 0, times)
            return less
    return value


def _count(value: Polynomial) -> int:
    return len(value.terms) - (() in value.terms)


def _part(monomial: Monomial, coefficient: Number) -> tuple[tuple[Polynomial, ...], int, int] | None:
    """One term as a conjunction of leaves from a bit on, times a small integer."""
    if len(monomial) != 1 or monomial[0][1] != 1 or not isinstance(coefficient, int):
        return None
    atom = monomial[0][0]
    start = 0
    if isinstance(atom, Floor):
        divisor = atom.divisor.constant()
        inner = atom.numerator.atom()
        if isinstance(divisor, int) and divisor & (divisor - 1) == 0 and inner is not None:
            if coefficient % divisor:
                return None
            start, atom = divisor.bit_length() - 1, inner
    if not atom.integer:
        return None
    leaves = atom.arguments if isinstance(atom, Function) and atom.name == CONJUNCTION else (polynomial(atom),)
    return leaves, start, coefficient >> start


def _changes(value: int) -> list[int]:
    """Where a bit of an integer differs from the one below."""
    changed = value ^ (value << 1)
    return [place for place in range(changed.bit_length() + 1) if changed >> place & 1]


def _table(factors: list[int], count: int) -> int | None:
    """The table of a polynomial over bits; None where it is not zero or one somewhere."""
    values = list(factors)
    for number in range(count):
        for case in range(1 << count):
            if case >> number & 1:
                values[case] += values[case ^ (1 << number)]
    if any(value not in (0, 1) for value in values):
        return None
    return sum(value << case for case, value in enumerate(values))
