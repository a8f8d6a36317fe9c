"""Walks over scalars: subterms, and capture-avoiding substitution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rewright.terms import index as index_module
from rewright.terms.index import Element, Index, Quotient, Remainder, Variable
from rewright.terms.scalar import AllOf, Apply, Choose, Condition, Fold, Number, Read, Scalar, Table

Environment = Mapping[Variable, Index]


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


def variables(value: Scalar) -> frozenset[Variable]:
    """All variables that occur, bound ones included."""
    found: set[Variable] = set()
    for part in subterms(value):
        if isinstance(part, Fold):
            found.add(part.binder)
        for index in own_indices(part):
            found.update(index_variables(index))
    return frozenset(found)


def substitute(value: Scalar, values: Environment) -> Scalar:
    """The scalar with variables replaced by indices; binders that would capture a variable are renamed."""
    incoming: set[Variable] = set()
    for index in values.values():
        incoming.update(index_variables(index))
        for element in elements(index):
            incoming.update(variables(element.value))
    return _Rewriter(incoming, incoming | variables(value)).scalar(value, values)


class _Rewriter:
    """One pass of substitution.

    ``avoid`` holds the names that a binder may not keep, ``used`` those that a new name may not be; a new name is
    added to ``used``.
    """

    def __init__(self, avoid: set[Variable], used: set[Variable]) -> None:
        self.avoid = avoid
        self.used = used

    def scalar(self, value: Scalar, values: Environment) -> Scalar:
        if isinstance(value, Read):
            return Read(value.operand, tuple(self.index(i, values) for i in value.index))
        if isinstance(value, Number):
            return Number(self.index(value.index, values))
        if isinstance(value, Table):
            return Table(value.values, self.index(value.index, values))
        if isinstance(value, Apply):
            return Apply(value.function, tuple(self.scalar(a, values) for a in value.arguments))
        if isinstance(value, Choose):
            condition = self.condition(value.condition, values)
            return Choose(condition, self.scalar(value.on_true, values), self.scalar(value.on_false, values))
        if isinstance(value, Fold):
            return self.fold(value, values)
        return value

    def fold(self, value: Fold, values: Environment) -> Fold:
        fresh = self._name(value.binder)
        inner = {**values, value.binder: Index(0, ((fresh, 1),))}
        return Fold(value.kind, fresh, value.size, self.scalar(value.body, inner), value.identity)

    def condition(self, condition: Condition, values: Environment) -> Condition:
        if isinstance(condition, AllOf):
            return AllOf(tuple(self.condition(c, values) for c in condition.conditions))
        return type(condition)(self.index(condition.index, values))

    def index(self, index: Index, values: Environment) -> Index:
        return index_module.substitute(index, values, lambda value: self.scalar(value, values))

    def _name(self, binder: Variable) -> Variable:
        """The binder's own name where that is safe, else one that nothing uses."""
        if binder not in self.avoid:
            return binder
        number = 0
        while (fresh := Variable(f"{binder.name}_{number}")) in self.used:
            number += 1
        self.used.add(fresh)
        return fresh
