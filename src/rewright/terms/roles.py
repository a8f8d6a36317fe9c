"""What a denotation does with every axis of its operands, read off the formula.

An axis *follows* a result axis if every read of it is exactly at that result axis's variable, and is *contracted* if
every read is exactly at the binder of an outermost fold over the whole axis. Where the variable occurs nowhere else
(no condition, no other index), a program may be split along it: the parts of the result are then concatenated, or
combined by the kind of the fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Union

from rewright.ir.dims import Dim, Shape
from rewright.terms.index import Variable, result_index
from rewright.terms.scalar import Absent, Fold, Read, Scalar
from rewright.terms.walk import index_variables, own_indices, subterms


@dataclass(frozen=True, slots=True)
class Follows:
    """Read exactly where a result axis is."""

    axis: int


@dataclass(frozen=True, slots=True)
class Contracted:
    """Folded over from end to end, outermost; ``number`` counts such folds from the outside."""

    kind: str
    number: int


@dataclass(frozen=True, slots=True)
class Whole:
    """Read in any other way: an element of the result may need all of the axis."""


Role = Union[Follows, Contracted, Whole]


@dataclass(frozen=True, slots=True)
class Roles:
    """The roles of all axes, ``operands[k][axis]``, with the result axes and folds along which a split is sound."""

    operands: tuple[tuple[Role, ...], ...]
    free: tuple[int, ...]
    """Result axes that occur in reads of axes that follow them, and nowhere else (in no read at all, perhaps)."""
    folds: tuple[Contracted, ...]


@dataclass
class _Uses:
    """Where variables occur."""

    places: dict[tuple[int, int], set[Variable | None]] = field(
        default_factory=dict[tuple[int, int], "set[Variable | None]"]
    )
    """For each operand axis the variables that it is read at; None for any other index."""
    elsewhere: set[Variable] = field(default_factory=set[Variable])


def roles(value: Scalar, operands: Sequence[Shape], result: Shape) -> Roles:
    """The roles of the axes of operands in a denotation over the variables ``i0, i1, ...`` of the result."""
    sizes: dict[Variable, tuple[Role, Dim]] = {}
    for axis, index in enumerate(result_index(len(result))):
        name = index.as_variable()
        if name is not None:
            sizes[name] = (Follows(axis), result[axis])
    for number, fold in enumerate(_outer_folds(value)):
        sizes[fold.binder] = (Contracted(fold.kind, number), fold.size)
    uses = _uses(value)
    good = {name: role for name, (role, size) in sizes.items() if _is_clean(name, size, uses, operands)}
    found = tuple(
        tuple(_role(uses.places.get((number, axis), set()), good) for axis in range(len(shape)))
        for number, shape in enumerate(operands)
    )
    return Roles(
        found,
        tuple(role.axis for role in good.values() if isinstance(role, Follows)),
        tuple(role for role in good.values() if isinstance(role, Contracted)),
    )


def _outer_folds(value: Scalar) -> list[Fold]:
    """The folds of one kind that a denotation begins with."""
    found: list[Fold] = []
    while isinstance(value, Fold) and not isinstance(value.identity, Absent):
        if found and value.kind != found[0].kind:
            break
        found.append(value)
        value = value.body
    return found


def _uses(value: Scalar) -> _Uses:
    uses = _Uses()
    for part in subterms(value):
        if isinstance(part, Read):
            for axis, index in enumerate(part.index):
                name = index.as_variable()
                uses.places.setdefault((part.operand, axis), set()).add(name)
                if name is None:
                    uses.elsewhere.update(index_variables(index))
        else:
            for index in own_indices(part):
                uses.elsewhere.update(index_variables(index))
    return uses


def _is_clean(name: Variable, size: Dim, uses: _Uses, operands: Sequence[Shape]) -> bool:
    """Whether a variable occurs only as the one index of axes of its own size, at most one for each operand."""
    if name in uses.elsewhere:
        return False
    places = [place for place, names in uses.places.items() if name in names]
    if len({operand for operand, _ in places}) != len(places):
        return False
    return all(uses.places[place] == {name} and operands[place[0]][place[1]] == size for place in places)


def _role(names: set[Variable | None], good: dict[Variable, Role]) -> Role:
    if len(names) != 1:
        return Whole()
    (name,) = names
    return Whole() if name is None else good.get(name, Whole())
