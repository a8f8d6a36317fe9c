"""Walks over scalars and indices: what is inside."""

from __future__ import annotations

from collections.abc import Iterator

from rewright.terms.index import Element, Index, Quotient, Remainder, Variable
from rewright.terms.scalar import AllOf, Apply, Choose, Condition, Fold, Number, Read, Scalar, Table


def subterms(value: Scalar) -> Iterator[Scalar]:
    """The scalar and all scalars inside it, those inside indices included."""
    yield value
    if isinstance(value, Apply):
        for argument in value.arguments:
            yield from subterms(argument)
    elif isinstance(value, Choose):
        yield from subterms(value.on_true)
        yield from subterms(value.on_false)
    elif isinstance(value, Fold):
        yield from subterms(value.body)
    for index in own_indices(value):
        for element in elements(index):
            yield from subterms(element.value)


def own_indices(value: Scalar) -> tuple[Index, ...]:
    """The index expressions that occur in a scalar itself, not in the scalars inside it."""
    if isinstance(value, Read):
        return value.index
    if isinstance(value, (Number, Table)):
        return (value.index,)
    if isinstance(value, Choose):
        return tuple(condition_indices(value.condition))
    return ()


def condition_indices(condition: Condition) -> Iterator[Index]:
    """The index expressions that a condition is about."""
    if isinstance(condition, AllOf):
        for part in condition.conditions:
            yield from condition_indices(part)
    else:
        yield condition.index


def elements(index: Index) -> Iterator[Element]:
    """The data-dependent atoms of an index."""
    for atom, _ in index.terms:
        if isinstance(atom, Element):
            yield atom
        elif isinstance(atom, (Quotient, Remainder)):
            yield from elements(atom.numerator)


def index_variables(index: Index) -> Iterator[Variable]:
    """The variables of an index, without those inside data-dependent atoms."""
    for atom, _ in index.terms:
        if isinstance(atom, Variable):
            yield atom
        elif isinstance(atom, (Quotient, Remainder)):
            yield from index_variables(atom.numerator)
