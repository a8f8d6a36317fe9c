"""Scalars: what one element of a result is, as an expression over elements of the operands."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Union

from rewright.ir.dims import Dim, at_most
from rewright.terms.index import Index, Variable, as_index


@dataclass(frozen=True, slots=True)
class AtLeastZero:
    """The index is not negative."""

    index: Index

    def __str__(self) -> str:
        return f"{self.index} >= 0"


@dataclass(frozen=True, slots=True)
class IsZero:
    """The index is zero."""

    index: Index

    def __str__(self) -> str:
        return f"{self.index} = 0"


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every condition holds; of none: true. Conditions are read in order, later ones may rely on earlier ones."""

    conditions: tuple[Condition, ...]

    def __str__(self) -> str:
        return " and ".join(str(c) for c in self.conditions) or "true"


Condition = Union[AtLeastZero, IsZero, AllOf]


@dataclass(frozen=True, slots=True)
class Read:
    """The element of an operand at an index."""

    operand: int
    index: tuple[Index, ...]

    def __str__(self) -> str:
        return f"x{self.operand}[{', '.join(str(i) for i in self.index)}]"


@dataclass(frozen=True, slots=True)
class Fixed:
    """A fixed number or truth value."""

    value: float | int | bool

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Absent:
    """No value: the identity of a fold of kind ``last``."""

    def __str__(self) -> str:
        return "absent"


@dataclass(frozen=True, slots=True)
class Number:
    """An index as an integer value."""

    index: Index

    def __str__(self) -> str:
        return f"({self.index})"


@dataclass(frozen=True, slots=True)
class Table:
    """One of a list of fixed values."""

    values: tuple[float | int | bool, ...]
    index: Index

    def __str__(self) -> str:
        return f"table of {len(self.values)}[{self.index}]"


@dataclass(frozen=True, slots=True)
class Apply:
    """A function of scalars, named as the elementwise operator (``add``, ``exponential``, ``compare_LT``)."""

    function: str
    arguments: tuple[Scalar, ...]

    def __str__(self) -> str:
        return f"{self.function}({', '.join(str(a) for a in self.arguments)})"


@dataclass(frozen=True, slots=True)
class Choose:
    """One scalar where a condition on indices holds, else another; only the one chosen needs to be defined."""

    condition: Condition
    on_true: Scalar
    on_false: Scalar

    def __str__(self) -> str:
        return f"(if {self.condition} then {self.on_true} else {self.on_false})"


@dataclass(frozen=True, slots=True)
class Fold:
    """The combination of ``body`` over ``0 <= binder < size``.

    Kinds are those of reductions (sum, maximum, minimum, product, and, or) and ``last``: the value for the largest
    binder where it is not absent. ``identity`` is the value of the empty fold.
    """

    kind: str
    binder: Variable
    size: Dim
    body: Scalar
    identity: Fixed | Absent

    def __str__(self) -> str:
        return f"{self.kind}[{self.binder} < {self.size}] {self.body}"


Scalar = Union[Read, Fixed, Absent, Number, Table, Apply, Choose, Fold]


def all_of(conditions: Iterable[Condition]) -> AllOf:
    """The conjunction, with those left out that hold for all sizes and without variables."""
    return AllOf(tuple(c for c in conditions if not _holds(c)))


def choose(condition: AllOf, on_true: Scalar, on_false: Scalar) -> Scalar:
    """A choice, or just ``on_true`` where nothing has to hold."""
    return Choose(condition, on_true, on_false) if condition.conditions else on_true


def otherwise(value: Scalar, default: Scalar) -> Scalar:
    """The default where the value is absent."""
    return Apply("otherwise", (value, default))


def less_than(index: Index, limit: Index | Dim) -> AtLeastZero:
    """``index < limit``."""
    return AtLeastZero(as_index(limit) - index - 1)


def at_least(index: Index, limit: Index | Dim) -> AtLeastZero:
    """``index >= limit``."""
    return AtLeastZero(index - limit)


def _holds(condition: Condition) -> bool:
    if isinstance(condition, AllOf):
        return not condition.conditions
    size = condition.index.as_size()
    if size is None:
        return False
    return size == 0 or (isinstance(condition, AtLeastZero) and at_most(0, size) is True)
