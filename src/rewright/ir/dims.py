"""Sizes of tensor axes: integers, or polynomials over size symbols.

A program captured with a symbolic batch and sequence length carries sizes such as ``2*b*s + 1``. They are kept
as polynomials with integer coefficients in one canonical form, so equality is identity of the form. Every size
symbol stands for an integer that is at least one; an order is decided only where that alone proves it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Union

Monomial = tuple[str, ...]
"""Sorted symbol names, one entry per factor: ``("b", "s", "s")`` is b*s^2; ``()`` is the constant monomial."""


class SizeExpr:
    """A polynomial over size symbols that is not a constant; constants are plain ``int``.

    Build symbols with :func:`symbol`; arithmetic with ``+ - *`` returns ``int`` again where symbols cancel.
    """

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: tuple[tuple[Monomial, int], ...]) -> None:
        self.terms = terms
        self._hash = hash(terms)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SizeExpr) and self.terms == other.terms

    def __add__(self, other: Dim) -> Dim:
        if not _is_size(other):
            return NotImplemented
        return _collect([*_terms(self), *_terms(other)])

    __radd__ = __add__

    def __neg__(self) -> Dim:
        return _collect((m, -c) for m, c in self.terms)

    def __sub__(self, other: Dim) -> Dim:
        if not _is_size(other):
            return NotImplemented
        return self + (-other)

    def __rsub__(self, other: Dim) -> Dim:
        return (-self) + other

    def __mul__(self, other: Dim) -> Dim:
        if not _is_size(other):
            return NotImplemented
        right = _terms(other)
        return _collect((tuple(sorted(m + n)), c * d) for m, c in self.terms for n, d in right)

    __rmul__ = __mul__

    def symbols(self) -> frozenset[str]:
        """Names of the symbols that have to be known for a number; of rounded quotients those inside of them."""
        return frozenset(own for monomial, _ in self.terms for name in monomial for own in _free(name))

    def substitute(self, values: Mapping[str, int]) -> Dim:
        """The size with some symbols replaced by integers."""
        total: Dim = 0
        for monomial, coefficient in self.terms:
            product: Dim = coefficient
            for name in monomial:
                product = product * _value(name, values)
            total = total + product
        return total

    def __repr__(self) -> str:
        return f"SizeExpr({self})"

    def __str__(self) -> str:
        def factor(monomial: Monomial, coefficient: int) -> str:
            names = "*".join(monomial)
            if not names:
                return str(coefficient)
            return names if coefficient == 1 else f"{coefficient}*{names}"

        ordered = sorted(_with_ceilings(self.terms), key=lambda t: (-len(t[0]), t[0]))
        return "+".join(factor(m, c) for m, c in ordered).replace("+-", "-")


def _with_ceilings(terms: tuple[tuple[Monomial, int], ...]) -> tuple[tuple[Monomial, int], ...]:
    """The terms with ``ceil(n/32)`` for a rounded quotient, of which one more than that is the symbol."""
    total: Dim = 0
    for names, coefficient in terms:
        factors = (symbol(n.removesuffix("+1")) + 1 if isinstance(n, Rounded) else symbol(n) for n in names)
        total = total + product(factors) * coefficient
    return _terms(total)


def _value(name: str, values: Mapping[str, int]) -> Dim:
    if name in values:
        return values[name]
    if not isinstance(name, Rounded):
        return symbol(name)
    parts = [p.substitute(values) if isinstance(p, SizeExpr) else p for p in (name.numerator, name.denominator)]
    return ceil_quotient(*parts) + 1


Dim = Union[int, SizeExpr]
Shape = tuple[Dim, ...]


def symbol(name: str) -> SizeExpr:
    """The size symbol of that name (an integer of at least one)."""
    return SizeExpr((((name,), 1),))


def product(sizes: Iterable[Dim]) -> Dim:
    """Number of elements of a shape."""
    total: Dim = 1
    for size in sizes:
        total = total * size
    return total


def divide(numerator: Dim, denominator: Dim) -> Dim | None:
    """The exact quotient, or None where the denominator does not divide for every value of the symbols."""
    if isinstance(numerator, int) and isinstance(denominator, int):
        return numerator // denominator if denominator and numerator % denominator == 0 else None
    if numerator == denominator:
        return 1
    leading, scale = max(_terms(denominator), key=_order, default=((), 0))
    quotient: Dim = 0
    rest = numerator
    while rest != 0:
        monomial, coefficient = max(_terms(rest), key=_order)
        left = _remove(monomial, leading)
        if left is None or scale == 0 or coefficient % scale:
            return None
        step = _collect([(left, coefficient // scale)])
        quotient = quotient + step
        rest = rest - step * denominator
    return quotient


def _is_size(value: object) -> bool:
    """Whether a value takes part in arithmetic of sizes; anything else may know what to do with one."""
    return isinstance(value, (int, SizeExpr))


class Rounded(str):
    """The symbol that stands for ``1 + ceil(numerator / denominator)``, for a rounded quotient that is no polynomial.

    It is a symbol like any other (an integer of at least one, because numerator and denominator are not negative),
    and is computed as soon as both have values.
    """

    __slots__ = ("denominator", "numerator")
    numerator: Dim
    denominator: Dim


def _free(name: str) -> Iterable[str]:
    if not isinstance(name, Rounded):
        return (name,)
    parts = (p for p in (name.numerator, name.denominator) if isinstance(p, SizeExpr))
    return (own for part in parts for own in part.symbols())


def ceil_quotient(numerator: Dim, denominator: Dim) -> Dim:
    """``ceil(numerator / denominator)`` for a numerator of at least 0 and a denominator of at least 1.

    A polynomial where the division is exact, or exact after rounding up by one less than the denominator; else an
    expression in a :class:`Rounded` symbol.
    """
    if isinstance(numerator, int) and isinstance(denominator, int):
        return -(-numerator // denominator)
    exact = divide(numerator, denominator)
    if exact is not None:
        return exact
    whole = divide(numerator - 1, denominator)
    if whole is not None:
        return whole + 1
    name = Rounded(f"ceil({_grouped(numerator)}/{_grouped(denominator)})+1")
    name.numerator, name.denominator = numerator, denominator
    return symbol(name) - 1


def _grouped(size: Dim) -> str:
    return f"({size})" if isinstance(size, SizeExpr) and len(size.terms) > 1 else str(size)


def is_nonnegative(size: Dim) -> bool | None:
    """Whether the size is at least zero: True or False where it holds for all symbols >= 1, else None."""
    if isinstance(size, int):
        return size >= 0
    low = _lower_bound(size)
    if low is not None and low >= 0:
        return True
    high = _lower_bound(-size)
    if high is not None and high > 0:
        return False
    return None


def at_most(left: Dim, right: Dim) -> bool | None:
    """Whether left <= right; None where the symbols leave it open."""
    return is_nonnegative(right - left)


def evaluate(size: Dim, values: Mapping[str, int]) -> int:
    """The integer value under an assignment of every symbol; raises KeyError for a missing one."""
    result = size if isinstance(size, int) else size.substitute(values)
    if not isinstance(result, int):
        raise KeyError(f"no value for size symbol {sorted(result.symbols())[0]!r}")
    return result


def _terms(size: Dim) -> tuple[tuple[Monomial, int], ...]:
    if isinstance(size, SizeExpr):
        return size.terms
    return (((), size),) if size else ()


def _collect(terms: Iterable[tuple[Monomial, int]]) -> Dim:
    total: dict[Monomial, int] = {}
    for monomial, coefficient in terms:
        total[monomial] = total.get(monomial, 0) + coefficient
    kept = tuple(sorted((m, c) for m, c in total.items() if c))
    if not kept:
        return 0
    if len(kept) == 1 and not kept[0][0]:
        return kept[0][1]
    return SizeExpr(kept)


def _order(term: tuple[Monomial, int]) -> tuple[int, Monomial]:
    return len(term[0]), term[0]


def _remove(monomial: Monomial, factors: Monomial) -> Monomial | None:
    left = list(monomial)
    for factor in factors:
        if factor not in left:
            return None
        left.remove(factor)
    return tuple(left)


def _lower_bound(size: Dim) -> int | None:
    """A lower bound for all symbols >= 1, by writing every symbol as 1 + a nonnegative number."""
    shifted: Dim = 0
    for monomial, coefficient in _terms(size):
        value: Dim = coefficient
        for name in monomial:
            value = value * (symbol(name) + 1)
        shifted = shifted + value
    coefficients = dict(_terms(shifted))
    constant = coefficients.pop((), 0)
    return constant if all(c >= 0 for c in coefficients.values()) else None
