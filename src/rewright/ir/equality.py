"""What is equal: one number for equal values (hash-consing), and classes of what turns out to be equal (union-find)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

_T = TypeVar("_T", bound=Hashable)


class Numbering(Generic[_T]):
    """Values by number, in the order in which they came; equal values have one number."""

    def __init__(self, values: Iterable[_T] = ()) -> None:
        self.values: list[_T] = list(values)
        self._numbers = {value: number for number, value in enumerate(self.values)}

    def number(self, value: _T) -> int:
        """The number of a value, a new one if it was not seen."""
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = len(self.values)
            self.values.append(value)
        return found


class UnionFind(Generic[_T]):
    """Disjoint classes, each named by one of its members; whatever was never united is a class by itself.

    Paths are compressed, which is what keeps them short (Tarjan, "Efficiency of a good but not linear set union
    algorithm", JACM 1975).
    """

    def __init__(self) -> None:
        self._parents: dict[_T, _T] = {}

    def find(self, member: _T) -> _T:
        """The member that names the class."""
        parents, root = self._parents, member
        while root in parents:
            root = parents[root]
        while member != root:
            parents[member], member = root, parents[member]
        return root

    def union(self, kept: _T, gone: _T) -> bool:
        """Make two classes one, which has the name of the first; returns whether they were two."""
        root, other = self.find(kept), self.find(gone)
        if root == other:
            return False
        self._parents[other] = root
        return True
