"""Memory that ranks read before it is written: what a collective still writes, and what nothing ever wrote to."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from rewright import ops
from rewright.blame.repairs import Repair
from rewright.ir.graph import Graph, Node
from rewright.ir.placement import RankProgram
from rewright.ir.types import SourceSpan
from rewright.proof.unwritten import unwritten_places


@dataclass(frozen=True)
class Reading:
    """Where a rank reads memory too early."""

    rank: int
    position: int
    """Of the memory, among the nodes of the rank."""
    made: SourceSpan
    reader: SourceSpan | None
    """None where it is returned as it is."""
    collective: str
    """What writes to the memory later, if anything does."""
    overwritten: str = ""
    """The line that writes to it before that is done, if one does."""

    @property
    def kind(self) -> str:
        """The kind of the finding."""
        if self.overwritten:
            return "early_write"
        return "missing_wait" if self.collective else "unwritten_memory"

    @property
    def place(self) -> SourceSpan:
        """The line that reads, or that of the collective."""
        return self.made if self.overwritten or self.reader is None else self.reader

    def __str__(self) -> str:
        if self.overwritten:
            what = f"a tensor of the {self.collective} at {self.made}"
            return f"rank {self.rank} writes at {self.overwritten} to {what}, and nothing waits for it before"
        does = f"rank {self.rank} returns" if self.reader is None else f"rank {self.rank} reads at {self.reader}"
        if self.collective:
            return f"{does} what the {self.collective} at {self.made} writes, and nothing waits for it before"
        return f"{does} memory of {self.made} that nothing was written to"

    def add_waits(self, program: RankProgram) -> Repair | None:
        """All that is begun and not waited for, waited for at once; None where that is not what is missing."""
        if not self.collective or self.overwritten:
            return None
        before = "it is returned" if self.reader is None else str(self.reader)
        text = f"wait for the {self.collective} at {self.made} before {before}"
        return Repair(text, replace(program, graphs=tuple(map(_finish, program.graphs))))


def readings(program: RankProgram, outputs: Collection[str]) -> list[Reading]:
    """Where outputs are made of such memory, on the first rank of each source line; unfinished collectives first."""
    found: dict[SourceSpan, Reading] = {}
    for rank, graph in enumerate(program.graphs):
        needed = _needed(graph, outputs)
        for position, node in enumerate(graph.nodes):
            if position in needed and isinstance(node.op, ops.CustomCall) and node.op.is_unspecified:
                found.setdefault(node.span, _reading(graph, rank, position, node.op, needed))
    return sorted(found.values(), key=lambda reading: not reading.collective)


def made_of_memory(sequential: Graph, outputs: Collection[str]) -> str:
    """Why nothing can be said of outputs that are all made of unwritten memory; empty where one is not."""
    memory = unwritten_places(sequential)
    if not memory or not outputs:
        return ""
    reached: dict[int, int] = {position: position for position in memory}
    for position, node in enumerate(sequential.nodes):
        source = next((reached[operand] for operand in node.operands if operand in reached), None)
        if source is not None:
            reached.setdefault(position, source)
    if any(sequential.outputs[name] not in reached for name in outputs):
        return ""
    first = next(iter(outputs))
    line = sequential.nodes[reached[sequential.outputs[first]]].span
    return f"{first} is made of memory of {line} that nothing was written to, and no two programs share such memory"


def _reading(graph: Graph, rank: int, position: int, memory: ops.CustomCall, needed: Collection[int]) -> Reading:
    writer = _collective(graph, graph.nodes[position]) if memory.target == ops.CustomCall.IN_FLIGHT else None
    made, reader = graph.nodes[position].span, _reader(graph, position, needed)
    if writer is None:
        return Reading(rank, position, made, reader, "")
    overwritten = str(dict(memory.attributes)["overwritten"])
    return Reading(rank, position, writer.span, reader, writer.op.name, overwritten)


def _needed(graph: Graph, outputs: Collection[str]) -> set[int]:
    """What outputs are made of, and what is sent to other ranks."""
    stack = [position for name, position in graph.outputs.items() if name in outputs]
    stack += [p for p, node in enumerate(graph.nodes) if isinstance(node.op, ops.Collective | ops.Send)]
    found: set[int] = set()
    while stack:
        position = stack.pop()
        if position not in found:
            found.add(position)
            stack.extend(graph.nodes[position].operands)
    return found


def _reader(graph: Graph, memory: int, needed: Collection[int]) -> SourceSpan | None:
    """The first line with an operator that computes something of what is in the memory, or copies it.

    Views do not, nor does writing to another part of it; what is reversed is a copy.
    """
    inside = {memory}
    for position in range(memory + 1, len(graph.nodes)):
        node = graph.nodes[position]
        if position in needed and not inside.isdisjoint(node.operands):
            if not isinstance(node.op, ops.Layout | ops.DynamicUpdateSlice) or isinstance(node.op, ops.Reverse):
                return node.span
            inside.add(position)
    return None


def _collective(graph: Graph, memory: Node) -> Node:
    """What writes to memory that is in flight."""
    node = memory
    while node.operands and not isinstance(node.op, ops.Collective):
        node = graph.nodes[node.operands[0]]
    return node


def _finish(graph: Graph) -> Graph:
    """The program as if every collective were waited for at once."""
    waited = {p: node.operands[0] for p, node in enumerate(graph.nodes) if _is_in_flight(node)}
    nodes = tuple(replace(n, operands=tuple(waited.get(p, p) for p in n.operands)) for n in graph.nodes)
    return replace(graph, nodes=nodes, outputs={name: waited.get(p, p) for name, p in graph.outputs.items()})


def _is_in_flight(node: Node) -> bool:
    """Whether it is memory that nobody has waited for: what was written to in the meantime stays wrong."""
    if not isinstance(node.op, ops.CustomCall) or node.op.target != ops.CustomCall.IN_FLIGHT:
        return False
    return not dict(node.op.attributes)["overwritten"]
