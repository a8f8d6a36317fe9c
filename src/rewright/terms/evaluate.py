"""The value of a scalar at a concrete index, in any arithmetic.

One evaluator for all of them: floats, exact rationals, a prime field. Shapes are numbers here, and the cost is that
of reading the formula literally, so it is for small shapes and for checking faster paths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from rewright.ir.dims import Dim, evaluate
from rewright.ir.errors import NotDefined, NotKnown, RewrightError
from rewright.terms.index import Element, Index, Quotient, Variable
from rewright.terms.scalar import (
    Absent,
    AllOf,
    Apply,
    AtLeastZero,
    Choose,
    Condition,
    Fixed,
    Fold,
    Number,
    Read,
    Scalar,
    Table,
)

Value = Any
"""An element of the arithmetic; integers and truth values are Python's own in every arithmetic."""
Reader = Callable[[int, tuple[int, ...]], Value]


class Arithmetic(Protocol):
    """What the evaluator needs from a number system."""

    def literal(self, value: float | int | bool) -> Value:
        """A fixed value; floats become elements of the number system."""
        ...

    def apply(self, function: str, arguments: Sequence[Value]) -> Value:
        """The value of a function; raises RewrightError where it has none."""
        ...


_COMBINERS = {"sum": "add", "maximum": "maximum", "minimum": "minimum", "product": "multiply", "and": "and", "or": "or"}


class Evaluator:
    """Evaluates scalars over the elements that ``read`` gives."""

    def __init__(self, arithmetic: Arithmetic, read: Reader, sizes: Mapping[str, int] | None = None) -> None:
        self.arithmetic = arithmetic
        self.read = read
        self.sizes = sizes or {}
        """The numbers that size symbols stand for."""

    def scalar(self, value: Scalar, at: Mapping[Variable, int]) -> Value:
        """The value, or None where it is absent; raises RewrightError where the arithmetic has none."""
        if isinstance(value, Read):
            return self.read(value.operand, tuple([self.index(i, at) for i in value.index]))
        if isinstance(value, Apply):
            return self._apply(value, at)
        if isinstance(value, Fold):
            return self._fold(value, at)
        if isinstance(value, Choose):
            return self.scalar(value.on_true if self.holds(value.condition, at) else value.on_false, at)
        if isinstance(value, Fixed):
            return self.arithmetic.literal(value.value)
        if isinstance(value, Number):
            return self.index(value.index, at)
        if isinstance(value, Table):
            return self.arithmetic.literal(value.values[self.index(value.index, at)])
        return None

    def _apply(self, value: Apply, at: Mapping[Variable, int]) -> Value:
        if value.function == "otherwise":
            first = self.scalar(value.arguments[0], at)
            return self.scalar(value.arguments[1], at) if first is None else first
        if value.function == "select":
            predicate, yes, no = value.arguments
            # Only the one chosen needs to be defined.
            return self.scalar(yes if self.scalar(predicate, at) else no, at)
        if value.function in ("is_finite", "power") or value.function.startswith("compare_"):
            return self._of_what_may_have_no_value(value, at)
        return self.arithmetic.apply(value.function, [self.scalar(a, at) for a in value.arguments])

    def _of_what_may_have_no_value(self, value: Apply, at: Mapping[Variable, int]) -> Value:
        """A function that has a value also of what is not a number, which not every arithmetic can tell."""
        try:
            arguments = [self.scalar(a, at) for a in value.arguments]
        except NotDefined as error:
            if value.function == "is_finite":
                return False
            raise NotKnown(f"{value.function} of what has no value: {error}") from None
        return self.arithmetic.apply(value.function, arguments)

    def _fold(self, value: Fold, at: Mapping[Variable, int]) -> Value:
        if value.kind == "last":
            for position in reversed(range(self.number(value.size))):
                found = self.scalar(value.body, {**at, value.binder: position})
                if found is not None:
                    return found
            return None
        combiner = _COMBINERS[value.kind]
        total: Value = None if isinstance(value.identity, Absent) else self.arithmetic.literal(value.identity.value)
        for item in self._items(value, at):
            total = self.arithmetic.apply(combiner, (total, item))
        return total

    def _items(self, value: Fold, at: Mapping[Variable, int]) -> Iterator[Value]:
        for position in range(self.number(value.size)):
            yield self.scalar(value.body, {**at, value.binder: position})

    def holds(self, condition: Condition, at: Mapping[Variable, int]) -> bool:
        """Whether a condition is true."""
        if isinstance(condition, AllOf):
            return all(self.holds(c, at) for c in condition.conditions)
        found = self.index(condition.index, at)
        return found >= 0 if isinstance(condition, AtLeastZero) else found == 0

    def index(self, index: Index, at: Mapping[Variable, int]) -> int:
        """The integer that an index is."""
        total = self.number(index.constant)
        for atom, coefficient in index.terms:
            if isinstance(atom, Variable):
                value = at[atom]
            elif isinstance(atom, Element):
                value = int(self.scalar(atom.value, at))
            elif isinstance(atom, Quotient):
                value = self.index(atom.numerator, at) // self.number(atom.divisor)
            else:
                value = self.index(atom.numerator, at) % self.number(atom.divisor)
            total += self.number(coefficient) * value
        return total

    def number(self, size: Dim) -> int:
        """A size as an integer; raises RewrightError where a symbol has no number."""
        if isinstance(size, int):
            return size
        if size.symbols() <= self.sizes.keys():
            return evaluate(size, self.sizes)
        raise RewrightError(f"a denotation cannot be evaluated at size {size}; give every size symbol a number first")
