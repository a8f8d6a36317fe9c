"""Index expressions of a kernel: lanes of a block are variables, and so are instances and iterations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from rewright.terms.index import Index, Quotient, Remainder, Variable, quotient, remainder, variable


def lane(axis: int) -> str:
    """The variable that counts along an axis of a block."""
    return f"lane{axis}"


def lanes(rank: int) -> list[str]:
    """The variables of all axes of a block."""
    return [lane(axis) for axis in range(rank)]


Numbers = NDArray[np.int64]
STEP = "step_"
"""How the names of variables begin that count the iterations of a loop."""
DATA = "data_"
"""How the names of variables begin that stand for one integer of each instance, which was read from memory."""


def reads_data(index: Index) -> bool:
    """Whether an index depends on what was read from memory."""
    return any(name.startswith(DATA) for name in variables(index))


def substitute(index: Index, values: Mapping[str, Index]) -> Index:
    """The index with some variables replaced."""
    if not any(name in values for name in variables(index)):
        return index
    total = Index(index.constant)
    for atom, coefficient in index.terms:
        if isinstance(atom, Variable):
            part = values.get(atom.name, variable(atom.name))
        elif isinstance(atom, Quotient):
            part = quotient(substitute(atom.numerator, values), atom.divisor)
        elif isinstance(atom, Remainder):
            part = remainder(substitute(atom.numerator, values), atom.divisor)
        else:
            part = Index(0, ((atom, 1),))
        total = total + part * coefficient
    return total


def rejoined(index: Index) -> Index:
    """The index with ``n * (x // n) + x % n`` as ``x``."""
    for atom, coefficient in index.terms:
        if not isinstance(atom, Remainder):
            continue
        whole = Quotient(atom.numerator, atom.divisor)
        found = dict(index.terms).get(whole)
        if found is not None and found == coefficient * atom.divisor:
            gone = Index(0, ((atom, coefficient),)) + Index(0, ((whole, found),))
            return rejoined(index - gone + atom.numerator * coefficient)
    return index


def variables(index: Index) -> Iterator[str]:
    """The names of the variables of an index, those inside of quotients and remainders included."""
    for atom, _ in index.terms:
        if isinstance(atom, Variable):
            yield atom.name
        elif isinstance(atom, Quotient | Remainder):
            yield from variables(atom.numerator)


def multiply(left: Index, right: Index) -> Index | None:
    """The product, where one of the factors is a size; None otherwise."""
    size = left.as_size()
    if size is not None:
        return right * size
    size = right.as_size()
    return None if size is None else left * size


def evaluated(index: Index, tables: Mapping[str, Numbers]) -> Numbers | None:
    """An index where its variables are given numbers; None where one is not given, or a size is a symbol."""
    if not isinstance(index.constant, int):
        return None
    total = np.full(next((table.shape for table in tables.values()), ()), index.constant, dtype=np.int64)
    for atom, coefficient in index.terms:
        part = _evaluated_atom(atom, tables)
        if part is None or not isinstance(coefficient, int):
            return None
        total = total + part * coefficient
    return total


def _evaluated_atom(atom: object, tables: Mapping[str, Numbers]) -> Numbers | None:
    if isinstance(atom, Variable):
        return tables.get(atom.name)
    if isinstance(atom, Quotient | Remainder) and isinstance(atom.divisor, int):
        values = evaluated(atom.numerator, tables)
        if values is not None:
            return values // atom.divisor if isinstance(atom, Quotient) else values % atom.divisor
    return None


def of_lanes(index: Index, shape: tuple[int, ...]) -> Numbers | None:
    """An index at each place of a block; None where anything but lanes decides it."""
    places = np.indices(shape, dtype=np.int64)
    return evaluated(index, dict(zip(lanes(len(shape)), places, strict=True)))
