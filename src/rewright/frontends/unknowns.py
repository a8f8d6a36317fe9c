"""Tensors that a capture knows by type alone: constants without values, random masks, unwritten memory.

They become inputs of the graph. What they are and where they stand is kept in the graph's metadata, so that whoever
compares two programs can tell which unknowns of one are those of the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rewright import ops
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import SourceSpan, TensorType
from rewright.ir.unknowns import UNKNOWN, UNREAD


class Unknowns:
    """Makes inputs for unknown tensors, and forgets those that nothing reads."""

    def __init__(self, builder: GraphBuilder) -> None:
        self._builder = builder
        self._made: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def make(self, what: str, name: str, kind: TensorType) -> int:
        """A new input; the order distinguishes two unknowns of one kind at one place of the source."""
        place = f"{what} at {place_of(self._builder.span)}"
        self._counts[place] = self._counts.get(place, 0) + 1
        self._made[name] = f"{place} #{self._counts[place]}"
        return self._builder.input(name, ops.Input(name, kind))

    def attach_to(self, graph: Graph) -> Graph:
        """The graph with its unknowns in the metadata, without the inputs that nothing reads."""
        return with_unknowns(graph, self._made)


def with_unknowns(graph: Graph, made: Mapping[str, str]) -> Graph:
    """A graph that says which of its inputs are unknown tensors, and what they are; those that nothing reads go."""
    read = {position for node in graph.nodes for position in node.operands} | set(graph.outputs.values())
    unread = [name for name in made if graph.inputs[name] not in read]
    positions = {graph.inputs[name] for name in unread}
    kept = [position for position in range(len(graph.nodes)) if position not in positions]
    moved = {old: new for new, old in enumerate(kept)}
    left = [graph.nodes[old] for old in kept]
    nodes = tuple([replace(node, operands=tuple([moved[p] for p in node.operands])) for node in left])
    notes = {f"{UNKNOWN}{name}": place for name, place in made.items() if name not in unread}
    if unread:
        notes[UNREAD] = "\n".join(unread)
    inputs = {name: moved[position] for name, position in graph.inputs.items() if position in moved}
    outputs = {name: moved[position] for name, position in graph.outputs.items()}
    return Graph(nodes, inputs, outputs, graph.name, graph.metadata | notes)


def place_of(span: SourceSpan) -> str:
    """File without its folders, line, function, module: the same on machines that keep the source elsewhere."""
    file = span.file.rsplit("/", 1)[-1]
    where = f"{file}:{span.line} {span.function}".strip() if file else "an unknown line"
    return f"{where} in {span.module_path}" if span.module_path else where
