"""A small e-graph: hash-consing, union-find, congruence, and a justification of every union.

Nodes are ``(label, children)``: the label holds everything but the child classes, so that the e-graph needs to know
nothing about tensors. Congruence is repaired by :meth:`EGraph.rebuild` (Willsey et al., "egg: fast and extensible
equality saturation", POPL 2021); explanations are paths in the forest of recorded unions (Nieuwenhuis and Oliveras,
"Proof-producing congruence closure", RTA 2005).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from rewright.ir.union_find import UnionFind

Label = Hashable
ENode = tuple[Label, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Justification:
    """Why two nodes are equal: a rule's name, ``congruence`` or a relation, with what it was applied to."""

    rule: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Equation:
    """One step of an explanation: the nodes added under these two identities are equal because of ``why``."""

    left: int
    right: int
    why: Justification


class EGraph:
    """Classes of equal nodes. Identities are dense integers in order of creation and stay valid for ever."""

    def __init__(self) -> None:
        self._classes = UnionFind[int]()
        self._nodes: list[ENode] = []
        self._table: dict[ENode, int] = {}
        # Kept from the first union on: a graph that only shares nodes needs neither.
        self._users: dict[int, list[int]] | None = None
        self._members: dict[int, list[int]] = {}
        self._edges: dict[int, list[tuple[int, Justification]]] = {}
        self._dirty: list[int] = []

    def __len__(self) -> int:
        return len(self._nodes)

    def add(self, label: Label, children: tuple[int, ...] = ()) -> int:
        """The class of a node, new if it was not seen."""
        node = (label, children if self._users is None else tuple(self.find(c) for c in children))
        found = self._table.get(node)
        if found is not None:
            return found if self._users is None else self.find(found)
        identity = len(self._nodes)
        self._nodes.append(node)
        self._table[node] = identity
        if self._users is not None:
            _register(self._users, identity, node[1])
        return identity

    def lookup(self, label: Label, children: tuple[int, ...] = ()) -> int | None:
        """The class of a node that exists, else None."""
        found = self._table.get((label, tuple(self.find(c) for c in children)))
        return None if found is None else self.find(found)

    def find(self, identity: int) -> int:
        """The representative of a class."""
        return self._classes.find(identity)

    def node(self, identity: int) -> ENode:
        """The node that was added under an identity."""
        return self._nodes[identity]

    def nodes(self, identity: int) -> Iterator[ENode]:
        """All nodes of a class."""
        root = self.find(identity)
        for member in self._members.get(root, (root,)):
            yield self._nodes[member]

    def union(self, left: int, right: int, why: Justification) -> bool:
        """Record that two classes are equal; returns whether that was new. Call :meth:`rebuild` afterwards."""
        a, b = self.find(left), self.find(right)
        if a == b:
            return False
        if self._users is None:
            self._users = {}
            for identity, (_, children) in enumerate(self._nodes):
                _register(self._users, identity, children)
        self._edges.setdefault(left, []).append((right, why))
        self._edges.setdefault(right, []).append((left, why))
        keep, gone = (a, b) if a < b else (b, a)
        self._classes.union(keep, gone)
        self._members.setdefault(keep, [keep]).extend(self._members.pop(gone, (gone,)))
        self._dirty.append(keep)
        self._users.setdefault(keep, []).extend(self._users.pop(gone, []))
        return True

    def rebuild(self) -> None:
        """Restore congruence: nodes with equal labels and equal children become one class."""
        while self._dirty and self._users is not None:
            todo, self._dirty = self._dirty, []
            for identity in dict.fromkeys(self.find(i) for i in todo):
                for user in dict.fromkeys(self._users.get(identity, ())):
                    self._repair(user)

    def _repair(self, user: int) -> None:
        label, children = self._nodes[user]
        canonical = (label, tuple(self.find(c) for c in children))
        other = self._table.get(canonical)
        if other is None:
            self._table[canonical] = user
        elif self.find(other) != self.find(user):
            self.union(other, user, Justification("congruence"))

    def explain(self, left: int, right: int) -> list[Equation] | None:
        """The recorded equations that lead from one identity to the other, or None where they are not equal."""
        if self.find(left) != self.find(right):
            return None
        came: dict[int, tuple[int, Justification]] = {left: (left, Justification("start"))}
        queue = deque([left])
        while queue and right not in came:
            here = queue.popleft()
            for there, why in self._edges.get(here, ()):
                if there not in came:
                    came[there] = (here, why)
                    queue.append(there)
        if right not in came:
            return None
        path: list[Equation] = []
        here = right
        while here != left:
            before, why = came[here]
            path.append(Equation(before, here, why))
            here = before
        return path[::-1]


def _register(users: dict[int, list[int]], identity: int, children: tuple[int, ...]) -> None:
    for child in dict.fromkeys(children):
        users.setdefault(child, []).append(identity)
