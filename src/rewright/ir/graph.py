"""Graphs of single-result nodes in topological order, and the builder that checks every node as it is added."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rewright.ir.errors import TypeMismatch
from rewright.ir.operator import Operator
from rewright.ir.types import SourceSpan, TensorType

NO_SPAN = SourceSpan()


@dataclass(frozen=True, slots=True)
class Node:
    """One operation; operands are positions of earlier nodes in the graph."""

    op: Operator
    operands: tuple[int, ...]
    type: TensorType
    span: SourceSpan = NO_SPAN


@dataclass(frozen=True)
class Graph:
    """A program: nodes in topological order, named inputs and named outputs.

    ``inputs`` and ``outputs`` map names to node positions, in order. ``name`` is for reports only.
    """

    nodes: tuple[Node, ...]
    inputs: dict[str, int]
    outputs: dict[str, int]
    name: str = "graph"
    metadata: dict[str, str] = field(default_factory=dict[str, str])

    def __len__(self) -> int:
        return len(self.nodes)

    def users(self) -> list[list[int]]:
        """For each node the positions of the nodes that read it."""
        found: list[list[int]] = [[] for _ in self.nodes]
        for position, node in enumerate(self.nodes):
            for operand in dict.fromkeys(node.operands):
                found[operand].append(position)
        return found

    def live(self) -> frozenset[int]:
        """Positions that some output depends on, and all inputs."""
        return self.ancestors(self.outputs.values()) | frozenset(self.inputs.values())

    def ancestors(self, positions: Iterable[int]) -> frozenset[int]:
        """Nodes and all that they are made of."""
        seen: set[int] = set()
        stack = list(positions)
        while stack:
            position = stack.pop()
            if position not in seen:
                seen.add(position)
                stack.extend(self.nodes[position].operands)
        return frozenset(seen)


class GraphBuilder:
    """Adds nodes one at a time; every node is type-checked when it is added.

    Raises TypeMismatch naming the node, the operator, the operand shapes and the source line.
    """

    def __init__(self, name: str = "graph") -> None:
        self.name = name
        self.span = NO_SPAN
        """The source span that is given to the nodes added next."""
        self._nodes: list[Node] = []
        self._inputs: dict[str, int] = {}
        self._outputs: dict[str, int] = {}

    def add(self, op: Operator, *operands: int, span: SourceSpan | None = None) -> int:
        """Append a node and return its position."""
        where = self.span if span is None else span
        types = [self._nodes[p].type for p in operands]
        try:
            result = op.infer(types)
        except TypeMismatch as error:
            raise TypeMismatch(describe_failure(len(self._nodes), op, types, where, str(error))) from None
        self._nodes.append(Node(op, operands, result, where))
        return len(self._nodes) - 1

    def known_input(self, name: str) -> int | None:
        """The input of a name, if there is one."""
        return self._inputs.get(name)

    def input(self, name: str, op: Operator) -> int:
        """Append an input node (``ops.Input``) under a name that must be new."""
        if name in self._inputs:
            raise TypeMismatch(f"input {name!r} is declared twice; give each input its own name")
        self._inputs[name] = self.add(op)
        return self._inputs[name]

    def output(self, name: str, position: int) -> None:
        """Name a node as an output."""
        if name in self._outputs:
            raise TypeMismatch(f"output {name!r} is declared twice; give each output its own name")
        self._outputs[name] = position

    def type(self, position: int) -> TensorType:
        """The type of a node added earlier."""
        return self._nodes[position].type

    def node(self, position: int) -> Node:
        """A node added earlier."""
        return self._nodes[position]

    def build(self) -> Graph:
        """The finished graph."""
        return Graph(tuple(self._nodes), dict(self._inputs), dict(self._outputs), self.name)


def describe_failure(position: int, op: Operator, operands: Iterable[TensorType], span: SourceSpan, why: str) -> str:
    """One sentence that names node, operator, shapes and source line."""
    shapes = ", ".join(str(t) for t in operands)
    return f"node %{position} {op.name}({shapes}) at {span}: {why}"


def validate(graph: Graph) -> None:
    """Check order, names and every node's type; raises TypeMismatch at the first node that is wrong."""
    for position, node in enumerate(graph.nodes):
        types = [graph.nodes[p].type for p in _check(node, position)]
        try:
            expected = node.op.infer(types)
        except TypeMismatch as error:
            raise TypeMismatch(describe_failure(position, node.op, types, node.span, str(error))) from None
        if expected != node.type:
            why = f"the node says {node.type} and the operator gives {expected}"
            raise TypeMismatch(describe_failure(position, node.op, types, node.span, why))
    for name, position in [*graph.inputs.items(), *graph.outputs.items()]:
        if not 0 <= position < len(graph.nodes):
            raise TypeMismatch(f"{name!r} names node %{position}, but the graph has {len(graph.nodes)} nodes")


def _check(node: Node, position: int) -> Sequence[int]:
    for operand in node.operands:
        if not 0 <= operand < position:
            raise TypeMismatch(
                f"node %{position} {node.op.name} at {node.span}: operand %{operand} is not an earlier node"
            )
    return node.operands
