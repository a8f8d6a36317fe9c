"""Where a term is read: an index of each of its axes, affine in the variables of the reader.

An index is ``(constant, ((variable, stride), ...))``; the constant and the strides are sizes (integers or polynomials
over size symbols). Functions here give variables in ascending order and no stride of zero. Terms are total functions
of integer indices, so an index has no range of its own.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from rewright.ir.dims import Dim

Index = tuple[Dim, tuple[tuple[int, Dim], ...]]
"""A constant and the strides of variables; a negative variable is the value of an operand (see ``language.Take``)."""
Access = tuple[Index, ...]
"""One index for each axis of the term that is read."""
Accesses = tuple[Access, ...]
"""Where each operand is read."""


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

    Negative variables stand for values read from data (see ``language.Take``) and stay.
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
