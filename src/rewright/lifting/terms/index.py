"""Affine index expressions: which element of a term's axis a view reads.

An index is ``(constant, ((variable, stride), ...))`` with variables in ascending order; the constant and the strides
are sizes (integers or polynomials over size symbols). Terms are total functions of integer indices, so an index
has no range of its own.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING

from rewright.ir.dims import Dim, SizeExpr, divide

if TYPE_CHECKING:
    from rewright.claims.language import Access, Index


_NUMBERS = 1 << 30
"""Variables from here on stand for numbers."""


def variable(position: int) -> Index:
    """The index that is one variable."""
    return (0, ((position, 1),))


def identity(rank: int) -> Access:
    """The access that reads every axis at the variable of the same position."""
    return tuple((0, ((axis, 1),)) for axis in range(rank))


def build(constant: Dim, strides: Mapping[int, Dim]) -> Index:
    """An index from a constant and strides by variable; zero strides vanish."""
    return constant, tuple(sorted((v, s) for v, s in strides.items() if s != 0))


def substitute(index: Index, replacements: Sequence[Index] | Mapping[int, Index]) -> Index:
    """The index with every variable replaced by an index over new variables.

    Negative variables stand for values read from data (see ``Terms.take``) and stay.
    """
    constant, terms = index
    if len(terms) == 1 and terms[0][1] == 1 and terms[0][0] >= 0:
        inner_constant, inner = replacements[terms[0][0]]
        return (constant + inner_constant if constant != 0 else inner_constant), inner
    strides: dict[int, Dim] = {}
    for var, stride in terms:
        if var < 0:
            strides[var] = strides.get(var, 0) + stride
            continue
        inner_constant, inner = replacements[var]
        constant = constant + stride * inner_constant
        for other, factor in inner:
            strides[other] = strides.get(other, 0) + stride * factor
    return build(constant, strides)


def compose(outer: Access, inner: Sequence[Index] | Mapping[int, Index]) -> Access:
    """Read at ``outer`` what is itself a view with access ``outer``'s variables given by ``inner``."""
    return tuple(substitute(index, inner) for index in outer)


def at_zero(access: Access, variables: Container[int]) -> Access:
    """An access where these variables have the value zero."""
    return tuple((low, tuple((v, s) for v, s in strides if v not in variables)) for low, strides in access)


def rename(index: Index, positions: Sequence[int] | Mapping[int, int]) -> Index:
    """The index with its variables renumbered."""
    constant, terms = index
    if len(terms) == 1 and terms[0][0] >= 0:
        var, stride = terms[0]
        return constant, ((positions[var], stride),)
    return constant, tuple(sorted((positions[v] if v >= 0 else v, s) for v, s in terms))


def variables_in(access: Access) -> frozenset[int]:
    """The variables that occur."""
    return frozenset(v for _, terms in access for v, _ in terms if v >= 0)


def split_constant(constant: Dim, stride: Dim) -> tuple[Dim, Dim]:
    """Quotient and rest of a constant by a stride; (0, constant) where symbols leave it open."""
    if isinstance(constant, int) and isinstance(stride, int):
        return divmod(constant, stride)
    exact = divide(constant, stride)
    return (exact, 0) if exact is not None else (0, constant)


def magnitude(stride: Dim) -> tuple[int, int, str]:
    """A sort key that puts larger strides later; symbolic ones above all numbers."""
    if isinstance(stride, SizeExpr):
        return (1, max(len(m) for m, _ in stride.terms), str(stride))
    return (0, abs(stride), str(stride))


class Frame:
    """Shifts variables so that the first index that reads each of them has offset zero."""

    def __init__(self) -> None:
        self.shift: dict[int, Dim] = {}
        self._axes: dict[int, int] = {}

    def place(self, index: Index) -> Index:
        """The index in the frame; new variables are placed by it, larger strides first."""
        constant, terms = index
        if not terms:
            return index
        if len(terms) == 1 and terms[0][1] == 1 and terms[0][0] >= 0:
            var = terms[0][0]
            if var not in self.shift:
                self._shift(var, constant)
                return 0, ((self._axes[var], 1),)
            return constant - self.shift[var], ((self._axes[var], 1),)
        fresh: list[tuple[int, Dim]] = []
        bound = any(v < 0 for v, _ in terms)
        for var, stride in terms:
            if var in self.shift:
                constant = constant - stride * self.shift[var]
            elif var >= 0:
                fresh.append((var, stride))
        fresh.sort(key=lambda item: magnitude(item[1]), reverse=True)
        for var, stride in fresh:
            quotient, constant = (0, constant) if bound else split_constant(constant, stride)
            self._shift(var, quotient)
        return rename((constant, terms), {v: self._axes[v] if v >= 0 else v for v, _ in terms})

    def _shift(self, var: int, by: Dim) -> None:
        """Place a variable on the next axis."""
        self._axes[var] = len(self._axes)
        self.shift[var] = by

    def open(self, access: Access) -> Access:
        """An access in which indices that are numbers have a variable, that is read at the number from outside.

        What is read at one place of an axis is so of that axis: a rank may have nothing else of it.
        """
        return tuple((low, strides or ((_NUMBERS + k, 1),)) for k, (low, strides) in enumerate(access))

    def outer(self, var: int) -> Index:
        """Where a variable reads the framed term."""
        return self.shift[var], () if var >= _NUMBERS else ((var, 1),)

    def access(self) -> Access:
        """Where the original variables read the framed term."""
        return tuple((shift, ((var, 1),)) for var, shift in self.shift.items())
