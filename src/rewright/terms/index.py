"""Index expressions: affine in atoms, with sizes as coefficients.

An atom is an index variable, a floor quotient or a remainder by a size (the digits of a reshape), or an integer read
from data (a gather). Equal expressions that differ only in the order of terms are the same object up to equality.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Union

from rewright.ir.dims import Dim, SizeExpr, divide

if TYPE_CHECKING:
    from rewright.terms.scalar import Scalar


@dataclass(frozen=True, slots=True)
class Variable:
    """An axis of the result, or the binder of a fold."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Quotient:
    """The largest integer that is not above ``numerator / divisor``; the divisor is at least one."""

    numerator: Index
    divisor: Dim

    def __str__(self) -> str:
        return f"({self.numerator} div {_size(self.divisor)})"


@dataclass(frozen=True, slots=True)
class Remainder:
    """``numerator - divisor * (numerator div divisor)``, which is at least 0 and below the divisor."""

    numerator: Index
    divisor: Dim

    def __str__(self) -> str:
        return f"({self.numerator} mod {_size(self.divisor)})"


@dataclass(frozen=True, slots=True)
class Element:
    """An integer that is computed from data."""

    value: Scalar

    def __str__(self) -> str:
        return f"<{self.value}>"


Atom = Union[Variable, Quotient, Remainder, Element]


@dataclass(frozen=True, slots=True)
class Index:
    """``constant + sum of coefficient * atom``; coefficients are sizes, terms are in one order and none is zero."""

    constant: Dim
    terms: tuple[tuple[Atom, Dim], ...] = ()

    def __add__(self, other: Index | Dim) -> Index:
        right = as_index(other)
        if not (self.terms and right.terms):
            return Index(self.constant + right.constant, self.terms or right.terms)
        return collect(self.constant + right.constant, [*self.terms, *right.terms])

    def __sub__(self, other: Index | Dim) -> Index:
        return self + as_index(other) * -1

    def __mul__(self, factor: Dim) -> Index:
        if isinstance(factor, int) and factor == 1:
            return self
        return collect(self.constant * factor, ((atom, c * factor) for atom, c in self.terms))

    def as_variable(self) -> Variable | None:
        """The variable that this is, if it is nothing else."""
        if self.constant == 0 and len(self.terms) == 1:
            atom, coefficient = self.terms[0]
            if coefficient == 1 and isinstance(atom, Variable):
                return atom
        return None

    def as_size(self) -> Dim | None:
        """The size that this is, if no atom occurs."""
        return None if self.terms else self.constant

    def __str__(self) -> str:
        parts = [str(atom) if c == 1 else f"{_size(c)}*{atom}" for atom, c in self.terms]
        if self.constant != 0 or not parts:
            parts.append(str(self.constant))
        return " + ".join(parts).replace("+ -", "- ")


ZERO = Index(0)


def variable(name: str) -> Index:
    """The index that is one variable."""
    return Index(0, ((Variable(name), 1),))


def result_index(rank: int) -> tuple[Index, ...]:
    """The variables ``i0, i1, ...`` that stand for the index of a result in denotations."""
    return tuple(variable(f"i{axis}") for axis in range(rank))


def as_index(value: Index | Dim) -> Index:
    """A size as an index expression."""
    return value if isinstance(value, Index) else Index(value)


def element(value: Scalar) -> Index:
    """The index that is an integer computed from data."""
    return Index(0, ((Element(value), 1),))


def quotient(numerator: Index, divisor: Dim) -> Index:
    """Floor division; terms that the divisor divides leave the quotient, which is exact for all integers."""
    outside, inside = _split(numerator, divisor)
    if inside == ZERO:
        return outside
    if isinstance(divisor, int) and not inside.terms and isinstance(inside.constant, int):
        return outside + inside.constant // divisor
    return outside + Index(0, ((Quotient(inside, divisor), 1),))


def remainder(numerator: Index, divisor: Dim) -> Index:
    """The remainder of floor division; multiples of the divisor vanish."""
    _, inside = _split(numerator, divisor)
    if inside == ZERO:
        return ZERO
    if isinstance(divisor, int) and not inside.terms and isinstance(inside.constant, int):
        return Index(inside.constant % divisor)
    return Index(0, ((Remainder(inside, divisor), 1),))


def collect(constant: Dim, terms: Iterable[tuple[Atom, Dim]]) -> Index:
    """The index in its one form: equal atoms added up, zeros dropped, sorted."""
    total: dict[Atom, Dim] = {}
    for atom, coefficient in terms:
        total[atom] = total[atom] + coefficient if atom in total else coefficient
    kept = [(atom, c) for atom, c in total.items() if c != 0]
    if len(kept) > 1:
        kept.sort(key=lambda term: str(term[0]))
    return Index(constant, tuple(kept))


def _split(numerator: Index, divisor: Dim) -> tuple[Index, Index]:
    """``numerator = divisor * outside + inside`` with exactly dividing terms outside."""
    outside: list[tuple[Atom, Dim]] = []
    inside: list[tuple[Atom, Dim]] = []
    for atom, coefficient in numerator.terms:
        exact = divide(coefficient, divisor)
        if exact is None:
            inside.append((atom, coefficient))
        else:
            outside.append((atom, exact))
    constant = divide(numerator.constant, divisor)
    if constant is None:
        return collect(0, outside), collect(numerator.constant, inside)
    return collect(constant, outside), collect(0, inside)


def _size(size: Dim) -> str:
    return f"({size})" if isinstance(size, SizeExpr) and len(size.terms) > 1 else str(size)
