"""Polynomials with rational exponents over atoms: one algebra for indices, sizes and real elements.

A polynomial maps monomials to rational coefficients; a monomial is a sorted tuple of (atom, exponent). Every atom and
every polynomial has a digest of its structure, so equality costs a comparison of bytes, shared subterms cost nothing,
and every order that depends on terms is the same in every run.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from hashlib import blake2b
from typing import Literal, Union

Number = Union[int, Fraction]
NO_NAMES: frozenset[str] = frozenset()


def digest(*parts: bytes | str) -> bytes:
    """A collision-resistant name of a structure."""
    data = [part.encode() if isinstance(part, str) else part for part in parts]
    lengths = struct.pack(f"<{len(data) + 1}I", len(data), *map(len, data))
    return blake2b(b"".join((lengths, *data)), digest_size=16).digest()


def whole(value: Number) -> Number:
    """A fraction that is an integer as an integer."""
    # Whether something is a fraction is a slow question, as that is an abstract class.
    return value if type(value) is int or value.denominator != 1 else value.numerator


class TooHard(Exception):
    """A term that the normal form has no rules for, or that is too large; the message says which."""


_LARGEST_POWER = 64
_LARGEST_PRODUCT = 20_000
"""Pairs of terms that are multiplied in one go: beyond that a proof is not worth its time."""


class Atom:
    """What polynomials are made of; subclasses say what it is.

    ``free`` are the names of the free index and size symbols, ``level`` the depth of binders inside, ``integer``
    whether the value is always an integer.
    """

    __slots__ = ("free", "integer", "key", "level")

    def __init__(self, key: bytes, free: frozenset[str], level: int, integer: bool) -> None:
        self.key = key
        self.free = free
        self.level = level
        self.integer = integer

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Atom) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


Monomial = tuple[tuple[Atom, Number], ...]


class Polynomial:
    """A sum of coefficients times monomials; immutable."""

    __slots__ = ("_free", "_integer", "_key", "_level", "terms")

    def __init__(self, terms: Mapping[Monomial, Number]) -> None:
        self.terms = terms
        self._key: bytes | None = None
        self._free: frozenset[str] | None = None
        self._level: int | None = None
        self._integer: bool | None = None

    @property
    def key(self) -> bytes:
        """The digest of the structure."""
        if self._key is None:
            # Nearly all exponents are one.
            parts = [
                b"".join([str(c).encode(), *[b"*" + a.key + (b"1" if e == 1 else str(e).encode()) for a, e in m]])
                for m, c in self.terms.items()
            ]
            self._key = digest("polynomial", *sorted(parts))
        return self._key

    @property
    def free(self) -> frozenset[str]:
        """Names of the free symbols."""
        if self._free is None:
            self._free = NO_NAMES.union(*[a.free for m in self.terms for a, _ in m])
        return self._free

    @property
    def level(self) -> int:
        """Depth of binders inside."""
        if self._level is None:
            self._level = max((a.level for m in self.terms for a, _ in m), default=0)
        return self._level

    @property
    def integer(self) -> bool:
        """Whether every value is an integer for a reason that the form shows."""
        if self._integer is None:
            self._integer = all(
                isinstance(c, int) and all(a.integer and isinstance(e, int) and e > 0 for a, e in m)
                for m, c in self.terms.items()
            )
        return self._integer

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __add__(self, other: Polynomial | Number) -> Polynomial:
        right = other if isinstance(other, Polynomial) else polynomial(other)
        if not right.terms:
            return self
        if not self.terms:
            return right
        total = dict(self.terms)
        for monomial, coefficient in right.terms.items():
            accumulate(total, monomial, coefficient)
        return Polynomial(total)

    def __neg__(self) -> Polynomial:
        return Polynomial({m: -c for m, c in self.terms.items()})

    def __sub__(self, other: Polynomial | Number) -> Polynomial:
        right = other if isinstance(other, Polynomial) else polynomial(other)
        if not right.terms:
            return self
        total = dict(self.terms)
        for monomial, coefficient in right.terms.items():
            accumulate(total, monomial, -coefficient)
        return Polynomial(total)

    def __mul__(self, other: Polynomial | Number) -> Polynomial:
        if not isinstance(other, Polynomial):
            if other == 1:
                return self
            return Polynomial({m: whole(c * other) for m, c in self.terms.items()}) if other else ZERO
        for one, many in ((self, other), (other, self)):
            number = one.constant()
            if number is not None and not many.has_whole_power_of_sum():
                return many * number
        if len(self.terms) * len(other.terms) > _LARGEST_PRODUCT:
            raise TooHard(f"a product of {len(self.terms)} and {len(other.terms)} terms")
        total: dict[Monomial, Number] = {}
        rest = ZERO
        for m, c in self.terms.items():
            for n, d in other.terms.items():
                product, expanded = _multiply(m, n)
                if expanded is None:
                    accumulate(total, product, c * d)
                else:
                    rest = rest + expanded * whole(c * d)
        return Polynomial(total) + rest

    def has_whole_power_of_sum(self) -> bool:
        """Whether some power of a sum has reached one, which the next product expands."""
        return any(isinstance(a, Base) and e >= 1 for m in self.terms for a, e in m)

    def constant(self) -> Number | None:
        """The number that this is, if it is one."""
        if not self.terms:
            return 0
        return self.terms.get(()) if len(self.terms) == 1 else None

    def single(self) -> tuple[Monomial, Number] | None:
        """The one term, if there is exactly one."""
        return next(iter(self.terms.items())) if len(self.terms) == 1 else None

    def atom(self) -> Atom | None:
        """The atom that this is, if it is nothing else."""
        single = self.single()
        if single is None or single[1] != 1 or len(single[0]) != 1 or single[0][0][1] != 1:
            return None
        return single[0][0][0]

    def linear(self, name: str) -> tuple[Number, Polynomial] | None:
        """``(c, rest)`` if this is ``c * name + rest`` and the symbol is not in the rest, else None."""
        coefficient: Number = 0
        rest: dict[Monomial, Number] = {}
        for m, c in self.terms.items():
            if not any(name in a.free for a, _ in m):
                rest[m] = c
            elif len(m) == 1 and m[0][1] == 1 and isinstance(m[0][0], Symbol):
                coefficient = c
            else:
                return None
        return coefficient, Polynomial(rest)

    def multiple(self, name: str) -> tuple[Polynomial, Polynomial] | None:
        """``(factor, rest)`` if this is ``factor * name + rest`` and the symbol is in neither, else None."""
        factor: dict[Monomial, Number] = {}
        rest: dict[Monomial, Number] = {}
        for monomial, coefficient in self.terms.items():
            own = [e for a, e in monomial if isinstance(a, Symbol) and a.name == name]
            if any(name in a.free and not isinstance(a, Symbol) for a, _ in monomial) or (own and own[0] != 1):
                return None
            if own:
                left = tuple(t for t in monomial if not (isinstance(t[0], Symbol) and t[0].name == name))
                factor[left] = factor.get(left, 0) + coefficient
            else:
                rest[monomial] = coefficient
        return Polynomial(factor), Polynomial(rest)

    def atoms(self) -> Iterator[Atom]:
        """The atoms of all monomials, with repetitions."""
        for m in self.terms:
            for a, _ in m:
                yield a

    def __str__(self) -> str:
        parts: list[str] = []
        for m, c in sorted(self.terms.items(), key=lambda t: (-len(t[0]), str(t[0] and t[0][0][0]))):
            factors = [str(a) if e == 1 else f"{a}^{e}" if _plain(e) else f"{a}^({e})" for a, e in m]
            text = "*".join(factors) if factors else str(abs(c))
            if factors and abs(c) != 1:
                text = f"{abs(c)}*{text}"
            parts.append(("- " if c < 0 else "+ ") + text)
        shown = " ".join(parts).removeprefix("+ ")
        return ("-" + shown[2:] if shown.startswith("- ") else shown) or "0"


def _plain(exponent: Number) -> bool:
    return isinstance(exponent, int) and exponent > 0


def accumulate(total: dict[Monomial, Number], monomial: Monomial, coefficient: Number) -> None:
    """Add a term to those of a polynomial."""
    value = whole(total.get(monomial, 0) + coefficient)
    if value:
        total[monomial] = value
    else:
        total.pop(monomial, None)


def polynomial(value: Polynomial | Atom | Number) -> Polynomial:
    """A number or an atom as a polynomial."""
    if isinstance(value, Polynomial):
        return value
    if isinstance(value, Atom):
        return Polynomial({((value, 1),): 1})
    return _integer(value) if type(value) is int else Polynomial({(): whole(value)}) if value else ZERO


@lru_cache(maxsize=4096)
def _integer(value: int) -> Polynomial:
    """A number; the same ones come again and again, and their digests with them."""
    return Polynomial({(): value}) if value else ZERO


ZERO = Polynomial({})
ONE = Polynomial({(): 1})


class Symbol(Atom):
    """An integer: a size, an attribute, an index or a binder."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        super().__init__(digest("symbol", name), frozenset((name,)), 0, True)
        self.name = name

    def __str__(self) -> str:
        return self.name


@lru_cache(maxsize=4096)
def symbol(name: str) -> Polynomial:
    """The polynomial that is one symbol; names are few, as every proof begins to count at zero."""
    return polynomial(Symbol(name))


class Element(Atom):
    """The element of a tensor at an index; tensors are total functions on integers."""

    __slots__ = ("index", "tensor")

    def __init__(self, tensor: str, index: tuple[Polynomial, ...], integer: bool) -> None:
        key = digest("element", tensor, "i" if integer else "r", *(i.key for i in index))
        super().__init__(key, free_of(index), level_of(index), integer)
        self.tensor = tensor
        self.index = index

    def __str__(self) -> str:
        return f"{self.tensor}[{', '.join(str(i) for i in self.index)}]"


class Floor(Atom):
    """The largest integer that is not above ``numerator / divisor``, for a divisor that is at least one."""

    __slots__ = ("divisor", "numerator")

    def __init__(self, numerator: Polynomial, divisor: Polynomial) -> None:
        parts = (numerator, divisor)
        super().__init__(digest("floor", *(p.key for p in parts)), free_of(parts), level_of(parts), True)
        self.numerator = numerator
        self.divisor = divisor

    def __str__(self) -> str:
        return f"floor(({self.numerator})/({self.divisor}))"


@dataclass(frozen=True, slots=True)
class Curve:
    """What is known of a function of one number that has no algebra; it says nothing that the name does not."""

    grows: bool
    """Whether it grows strictly wherever it is defined, and is a number there."""
    parity: Literal["even", "odd", "none"]
    at_zero: float | None
    root: float | None
    """The one argument at which it is zero, if it is known."""


class Function(Atom):
    """A function without algebra: of equal arguments it is equal."""

    __slots__ = ("arguments", "curve", "name")

    def __init__(
        self, name: str, arguments: tuple[Polynomial, ...], integer: bool = False, curve: Curve | None = None
    ) -> None:
        key = digest("function", name, *(a.key for a in arguments))
        super().__init__(key, free_of(arguments), level_of(arguments), integer)
        self.name = name
        self.arguments = arguments
        self.curve = curve

    def __str__(self) -> str:
        return f"{self.name}({', '.join(str(a) for a in self.arguments)})"


class Product(Function):
    """The product of what a sum of factors counts, see :mod:`rewright.terms.normal.folds.products`."""

    __slots__ = ()

    def __init__(self, factors: Polynomial, integer: bool) -> None:
        super().__init__("product of", (factors,), integer)


FACTOR = "factor of"
"""The function that a sum of factors counts."""


class Exponential(Atom):
    """e to a monomial with coefficient one; ``exp(sum of c*m)`` is the product of the ``exp(m)^c``."""

    __slots__ = ("exponent",)

    def __init__(self, exponent: Polynomial) -> None:
        super().__init__(digest("exp", exponent.key), exponent.free, exponent.level, False)
        self.exponent = exponent

    def __str__(self) -> str:
        return f"exp({self.exponent})"


class Base(Atom):
    """A polynomial whose power is not expanded: exponents below one."""

    __slots__ = ("value",)

    def __init__(self, value: Polynomial) -> None:
        super().__init__(digest("base", value.key), value.free, value.level, False)
        self.value = value

    def __str__(self) -> str:
        return f"({self.value})"


GuardKind = Literal["integer>=0", "integer=0", "real>=0", "real=0", "true"]


class Guard:
    """A condition: a polynomial over integers or reals against zero, or a boolean element."""

    __slots__ = ("free", "key", "kind", "level", "value")

    def __init__(self, kind: GuardKind, value: Polynomial) -> None:
        self.kind = kind
        self.value = value
        self.key = digest("guard", kind, value.key)
        self.free = value.free
        self.level = value.level

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Guard) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        if self.kind == "true":
            return str(self.value)
        return f"{self.value} {'>=' if self.kind.endswith('>=0') else '='} 0"


class Indicator(Atom):
    """One where a guard holds, else zero."""

    __slots__ = ("guard",)

    def __init__(self, guard: Guard) -> None:
        super().__init__(digest("indicator", guard.key), guard.free, guard.level, True)
        self.guard = guard

    def __str__(self) -> str:
        return f"[{self.guard}]"


def free_of(parts: Iterable[Polynomial]) -> frozenset[str]:
    return NO_NAMES.union(*(p.free for p in parts))


def level_of(parts: Iterable[Polynomial]) -> int:
    return max((p.level for p in parts), default=0)


def sorted_monomial(factors: Iterable[tuple[Atom, Number]]) -> Monomial:
    """Factors in the one order of monomials."""
    return tuple(sorted(factors, key=lambda factor: factor[0].key))


def _multiply(left: Monomial, right: Monomial) -> tuple[Monomial, Polynomial | None]:
    """The product of two monomials, or a polynomial where powers of sums reached one and were expanded."""
    for one, other in ((left, right), (right, left)):
        # A power of a sum that has reached one is expanded by what follows, also where nothing is multiplied to it.
        if not one and not any(isinstance(a, Base) and e >= 1 for a, e in other):
            return other, None
    if not right:
        left, right = right, left
    factors = dict(left)
    whole_powers: list[tuple[Polynomial, int]] = []
    products = False
    for atom, exponent in right:
        total = whole(factors.get(atom, 0) + exponent)
        if isinstance(atom, Indicator):
            total = 1
        elif isinstance(atom, Product):
            products = True
        elif isinstance(atom, Base):
            total = _expand(atom, total, whole_powers)
        if total:
            factors[atom] = total
        else:
            factors.pop(atom, None)
    if products:
        _join(factors)
    product = sorted_monomial(factors.items())
    if not whole_powers:
        return product, None
    result = Polynomial({product: 1})
    for value, power in whole_powers:
        result = result * integer_power(value, power)
    return product, result


def _join(factors: dict[Atom, Number]) -> None:
    """Make one product of all that are multiplied; what is divided by stays, as it may be zero."""
    found = [a for a, e in factors.items() if isinstance(a, Product) and isinstance(e, int) and e > 0]
    total = ZERO
    for atom in found:
        total = total + atom.arguments[0] * factors.pop(atom)
    if found:
        factors[Product(total, all(atom.integer for atom in found))] = 1


def _expand(atom: Base, exponent: Number, whole_powers: list[tuple[Polynomial, int]]) -> Number:
    """The exponent that stays on the base; a whole part that can be written out is noted."""
    floor = exponent.numerator // exponent.denominator
    if floor >= 1 or (floor < 0 and atom.value.single() is not None and not isinstance(atom.value.atom(), Indicator)):
        whole_powers.append((atom.value, floor))
        return whole(exponent - floor)
    return exponent


def integer_power(value: Polynomial, exponent: int) -> Polynomial:
    """A power with an integer exponent; the inverse of a sum is a base with its common factors taken out.

    Raises ZeroDivisionError for a negative power of zero, and TooHard for powers that are too large to write out.
    """
    atom = value.atom()
    multiplied = isinstance(atom, Product) and exponent > 0
    if atom is not None and not isinstance(atom, (Indicator, Base)) and exponent and not multiplied:
        return value if exponent == 1 else Polynomial({((atom, exponent),): 1})
    if abs(exponent) > _LARGEST_POWER:
        raise TooHard(f"a power of {exponent}")
    if exponent >= 0:
        result = ONE
        for _ in range(exponent):
            result = result * value
        return result
    if not value.terms:
        raise ZeroDivisionError
    single = value.single()
    if single is not None:
        return integer_power(_inverse(*single), -exponent)
    coefficient, common, rest = content(value)
    outside = integer_power(_inverse(common, coefficient), -exponent)
    if rest.single() is not None:
        return outside * integer_power(rest, exponent)
    return outside * Polynomial({((Base(rest), exponent),): 1})


def _inverse(monomial: Monomial, coefficient: Number) -> Polynomial:
    """One over a single term. The inverse of an indicator is one where it holds, and it is not defined elsewhere."""
    inverse = whole(Fraction(1) / coefficient)
    plain = Polynomial({sorted_monomial((a, -e) for a, e in monomial if not isinstance(a, (Indicator, Base))): inverse})
    for atom, exponent in monomial:
        if isinstance(atom, Indicator):
            plain = plain * Polynomial({((Base(polynomial(atom)), -1),): 1})
        elif isinstance(atom, Base):
            plain = plain * _base_power(atom, -exponent)
    return plain


def _base_power(atom: Base, exponent: Number) -> Polynomial:
    powers: list[tuple[Polynomial, int]] = []
    rest = _expand(atom, exponent, powers)
    result = Polynomial({((atom, rest),): 1}) if rest else ONE
    for value, power in powers:
        result = result * integer_power(value, power)
    return result


def content(value: Polynomial) -> tuple[Number, Monomial, Polynomial]:
    """``value = coefficient * common * rest``: the rest has leading coefficient one and no common atom."""
    monomials = list(value.terms)
    common = dict(monomials[0])
    for monomial in monomials[1:]:
        powers = dict(monomial)
        common = {a: min(e, powers[a]) for a, e in common.items() if a in powers}
    kept = sorted_monomial((a, e) for a, e in common.items() if not isinstance(a, (Indicator, Base)))
    rest = value * _inverse(kept, 1) if kept else value
    leading = rest.terms[min(rest.terms, key=_order)]
    return leading, kept, rest * whole(Fraction(1) / leading)


def _order(monomial: Monomial) -> tuple[tuple[bytes, str], ...]:
    return tuple((a.key, str(e)) for a, e in monomial)


def leading_monomial(value: Polynomial) -> Monomial:
    """The monomial that decides the sign in which an equation is written."""
    return min(value.terms, key=_order)
