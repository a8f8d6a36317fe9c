"""Instances under other numbers: what is computed of program ids by quotients, remainders and least numbers.

Where tiles are visited in groups, ``row = first + id % size`` and ``column = id // size`` are not affine in the
id. With sizes that are numbers they are tables over the grid, and variables of their own. In the end the variables that
addresses are made of have to take each combination of their values in one instance: then they count the instances.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np

from rewright.frontends.triton.meaning.addresses.indices import Numbers, evaluated, variables
from rewright.ir.dims import Dim
from rewright.ir.errors import UnsupportedOperator
from rewright.terms.index import Index, variable

INSTANCE = "instance_"
_MOST = 1 << 16
"""Instances of a launch for which tables are made."""


class Instances:
    """Tables of numbers over a grid."""

    def __init__(self, grid: Sequence[Dim], names: Sequence[str]) -> None:
        self._grid = grid
        self._tables: dict[str, Numbers] = {}
        self.names = names

    def _start(self) -> bool:
        """Whether the grid is one of numbers, and not too large."""
        sizes = [size for size in self._grid if isinstance(size, int)]
        if len(sizes) < len(self._grid) or np.prod(sizes, dtype=np.int64) > _MOST:
            return False
        if not self._tables:
            places = np.indices(sizes, dtype=np.int64)
            self._tables = {name: cast("Numbers", places[n]).reshape(-1) for n, name in enumerate(self.names)}
        return True

    def values(self, index: Index) -> Numbers | None:
        """What an index is in all instances; None where it is made of anything else."""
        return evaluated(index, self._tables) if self._start() else None

    def table(self, name: str) -> Numbers | None:
        """What a variable is in each instance, along the axes of the grid; None where sizes are symbols."""
        sizes = [size for size in self._grid if isinstance(size, int)]
        return self._tables[name].reshape(sizes) if self._start() and name in self._tables else None

    def named(self, values: Numbers) -> tuple[Index, str, int]:
        """Numbers as a variable from zero on, its name and how far it counts, and what has to be added to it."""
        low = int(values.min())
        moved = values - low
        for name, table in self._tables.items():
            if np.array_equal(table, moved):
                return variable(name) + low, name, int(moved.max()) + 1
        name = f"{INSTANCE}{len(self._tables)}"
        self._tables[name] = moved
        return variable(name) + low, name, int(moved.max()) + 1

    def refuse_others(self, used: Iterable[Index]) -> None:
        """Raises UnsupportedOperator where variables that are used do not count the instances."""
        names = {name for index in used for name in variables(index) if name in self._tables}
        if not any(name.startswith(INSTANCE) for name in names):
            return
        tables = np.stack([self._tables[name] for name in sorted(names)])
        whole = np.prod([int(table.max()) + 1 for table in tables], dtype=np.int64)
        if tables.shape[1] != whole or np.unique(tables, axis=1).shape[1] != whole:
            raise UnsupportedOperator("what is computed of the program ids does not count the instances, one for each")


def computed(name: str, left: Numbers, right: Numbers) -> Numbers | None:
    """An operation on integers; None where it divides by zero."""
    if name in ("divsi", "remsi"):
        if not right.all():
            return None
        quotient = np.trunc(left / right).astype(np.int64)
        return quotient if name == "divsi" else left - quotient * right
    functions: dict[str, Any] = {
        "addi": np.add,
        "subi": np.subtract,
        "muli": np.multiply,
        "minsi": np.minimum,
        "maxsi": np.maximum,
    }
    return functions[name](left, right)
