"""Classes of what turns out to be equal."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

_T = TypeVar("_T", bound=Hashable)


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
