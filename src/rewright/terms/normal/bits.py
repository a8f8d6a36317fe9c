"""Bitwise functions of integers in normal form, in the arithmetic of indices and integers.

An integer is its bits in two's complement, of which there are infinitely many, so that no width is asked. A bitwise
function does the same to every bit of its arguments between two places at which a constant changes. So it is a
:class:`Word`: the integers that it is made of, and for every stretch of bits a truth table over these. Written as a
polynomial over the bits, ``x or y = x + y - x and y``, it is a sum of conjunctions; one over a stretch of bits is a
difference of quotients, ``x and 12 = 4 floor(x/4) - 16 floor(x/16)``; and a conjunction of several integers is an atom.
Equal functions are equal polynomials, whatever they were written with, sums and quotients by powers of two included.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rewright.terms.normal.atoms import (
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
from rewright.terms.normal.context import Context
from rewright.terms.normal.division import floor_quotient

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


def bitwise(context: Context, name: str, arguments: Sequence[Polynomial]) -> Polynomial | None:
    """A bitwise function of integers; None where it is made of too much to be written out."""
    if name == "not":
        return -arguments[0] - 1
    words = [word_of(argument) for argument in arguments]
    if name == "not_unsigned":
        words, name = [*words, word_of(polynomial(255))], "xor"
    found = _combined(_OPERATIONS[name], *words)
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


def _combined(operation: Callable[[int, int], int], left: Word, right: Word) -> Word | None:
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
                total = total + floor_quotient(context, whole, polynomial(1 << start)) * (step << start)
    return total


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


def word_of(value: Polynomial) -> Word:
    """The word that a polynomial is: of the integers whose bits it is made of, else of itself as one leaf."""
    found = _parsed(value)
    if found is not None:
        return found
    if value.terms[leading_monomial(value)] < 0:
        # Of an integer and its complement, minus one less it, the same one is always the leaf.
        return Word((-value - 1,), (0,), (0b01,))
    return Word((value,), (0,), (0b10,))


def _parsed(value: Polynomial) -> Word | None:
    """A sum of conjunctions over stretches of bits as a word, if every bit of it is zero or one."""
    steps: dict[tuple[Polynomial, ...], dict[int, int]] = {}
    for monomial, coefficient in value.terms.items():
        if not monomial:
            continue
        part = _part(monomial, coefficient)
        if part is None:
            return None
        leaves, start, step = part
        own = steps.setdefault(leaves, {})
        own[start] = own.get(start, 0) + step
    leaves = tuple(sorted({leaf for own in steps for leaf in own}, key=lambda leaf: leaf.key))
    offset = value.terms.get((), 0)
    if not isinstance(offset, int) or len(leaves) > _MOST_LEAVES:
        return None
    starts = sorted({0, *(start for own in steps.values() for start in own), *_changes(offset)})
    if len(starts) > _MOST_STRETCHES:
        return None
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
    return Word(leaves, tuple(starts), tuple(tables))


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
