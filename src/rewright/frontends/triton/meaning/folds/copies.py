"""Parts of a graph that was read as programs of their own, about which something is proved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rewright import ops
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import TensorType


def dependents(graph: Graph, own: int) -> set[int]:
    """A node and all that is made of it."""
    found = {own}
    for position in range(own + 1, len(graph.nodes)):
        if any(p in found for p in graph.nodes[position].operands):
            found.add(position)
    return found


class Copied:
    """Parts of a graph copied with some nodes replaced; what does not move in the loop is an input."""

    def __init__(self, graph: Graph, moving: set[int]) -> None:
        self._graph, self._moving = graph, moving
        self.builder = GraphBuilder("step")
        self.leaves: dict[str, TensorType] = {}

    def input(self, name: str, kind: TensorType) -> int:
        """An input, made once."""
        known = self.builder.known_input(name)
        return self.builder.input(name, ops.Input(name, kind)) if known is None else known

    def of(self, position: int, values: Mapping[int, int | str | None], when: str) -> int:
        """A node with others in the place of some: a node of the copy, an input by name, or zero."""
        done: dict[int, int] = {}
        for node in _order(self._graph, position, self._moving, values):
            done[node] = self._one(node, values, when, done)
        return done[position]

    def _one(self, node: int, values: Mapping[int, int | str | None], when: str, done: Mapping[int, int]) -> int:
        own = self._graph.nodes[node]
        if node in values:
            value = values[node]
            if isinstance(value, str):
                return self.input(value, own.type)
            if value is not None:
                return value
            return self.builder.add(ops.Constant(own.type, (0.0 if own.type.dtype.is_float else 0,)))
        if node not in self._moving and not isinstance(own.op, ops.Constant):
            name = f"{when}_{node}"
            self.leaves[name] = own.type
            return self.input(name, own.type)
        return self.builder.add(own.op, *(done[p] for p in own.operands))


def _order(graph: Graph, position: int, moving: set[int], values: Mapping[int, object]) -> Sequence[int]:
    found, stack = set[int](), [position]
    while stack:
        node = stack.pop()
        if node in found:
            continue
        found.add(node)
        if node in moving and node not in values:
            stack += graph.nodes[node].operands
    return sorted(found)
