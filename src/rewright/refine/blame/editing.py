"""Edits of captured programs: one node replaced, on one rank or on all, with everything after it checked again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from rewright.ir.errors import TypeMismatch
from rewright.ir.graph import Graph, Node, describe_failure
from rewright.ir.operator import Operator
from rewright.ir.placement import RankProgram
from rewright.ir.types import SourceSpan, TensorType

Site = dict[int, int]
"""One place in the programs of several ranks: node position by rank."""


class Editor:
    """Adds nodes in front of the place of an edit; they get the source span of the node that is replaced."""

    def __init__(self, nodes: list[Node], span: SourceSpan, rank: int) -> None:
        self.nodes = nodes
        self.span = span
        self.rank = rank

    def add(self, op: Operator, *operands: int) -> int:
        """Append a node; raises TypeMismatch where operands do not fit."""
        types = [self.nodes[p].type for p in operands]
        try:
            result = op.infer(types)
        except TypeMismatch as error:
            raise TypeMismatch(describe_failure(len(self.nodes), op, types, self.span, str(error))) from None
        self.nodes.append(Node(op, operands, result, self.span))
        return len(self.nodes) - 1

    def type(self, position: int) -> TensorType:
        """The type of an earlier node."""
        return self.nodes[position].type


Replacement = Callable[[Editor, Node], int]
"""Builds what stands in the place of a node and returns its position; operands keep their positions."""


def replace_node(graph: Graph, position: int, build: Replacement, rank: int = 0) -> tuple[Graph, int]:
    """The graph with one node replaced, and the position of what every reader of it reads now.

    Raises TypeMismatch where the change makes this node or a later one ill-typed.
    """
    nodes = list(graph.nodes[:position])
    result = build(Editor(nodes, graph.nodes[position].span, rank), graph.nodes[position])
    offset = len(nodes) - position - 1

    def moved(old: int) -> int:
        return old if old < position else result if old == position else old + offset

    changed = {result} if nodes[result].type != graph.nodes[position].type else set[int]()
    for node in graph.nodes[position + 1 :]:
        operands = tuple(moved(p) for p in node.operands)
        kept = Node(node.op, operands, node.type, node.span)
        if changed and not changed.isdisjoint(operands):
            kept = _inferred(nodes, kept)
            if kept.type != node.type:
                changed.add(len(nodes))
        nodes.append(kept)
    inputs = {name: moved(p) for name, p in graph.inputs.items()}
    outputs = {name: moved(p) for name, p in graph.outputs.items()}
    return replace(graph, nodes=tuple(nodes), inputs=inputs, outputs=outputs), result


def _inferred(nodes: list[Node], node: Node) -> Node:
    types = [nodes[p].type for p in node.operands]
    try:
        return replace(node, type=node.op.infer(types))
    except TypeMismatch as error:
        raise TypeMismatch(describe_failure(len(nodes), node.op, types, node.span, str(error))) from None


def insert_node(graph: Graph, at: int, op: Operator, operands: Sequence[int], instead: int) -> Graph:
    """The graph with a new node before position ``at`` that everything behind it reads instead of another one.

    Raises TypeMismatch where the operator does not fit, or its result has another type than what it stands for.
    """
    nodes = list(graph.nodes[:at])
    added = Editor(nodes, graph.nodes[instead].span, 0).add(op, *operands)
    if nodes[added].type != graph.nodes[instead].type:
        raise TypeMismatch(f"{op.name} gives {nodes[added].type} where {graph.nodes[instead].type} is read")

    def moved(old: int) -> int:
        return added if old == instead else old if old < at else old + 1

    nodes.extend(replace(node, operands=tuple(moved(p) for p in node.operands)) for node in graph.nodes[at:])
    outputs = {name: moved(p) for name, p in graph.outputs.items()}
    inputs = {name: p if p < at else p + 1 for name, p in graph.inputs.items()}
    return replace(graph, nodes=tuple(nodes), inputs=inputs, outputs=outputs)


def edit_program(program: RankProgram, site: Mapping[int, int], build: Replacement) -> tuple[RankProgram, Site]:
    """The same replacement on all ranks of a site; also the positions of the results.

    ``build`` sees the rank in ``editor.rank``. Raises TypeMismatch where the result is ill-typed on some rank.
    """
    graphs = list(program.graphs)
    results: Site = {}
    for rank, position in site.items():
        graphs[rank], results[rank] = replace_node(graphs[rank], position, build, rank)
    return replace(program, graphs=tuple(graphs)), results


def sites(program: RankProgram) -> list[Site]:
    """The nodes of all ranks, grouped by place in the program, in the order of rank 0.

    Where all ranks have the same operators in the same order, positions correspond. Else the n-th node of an
    operator at a source line on one rank corresponds to the n-th on another; some places are then on some ranks only.
    """
    first = [type(node.op) for node in program.graphs[0].nodes]
    if all([type(node.op) for node in graph.nodes] == first for graph in program.graphs[1:]):
        return [dict.fromkeys(range(len(program.graphs)), position) for position in range(len(first))]
    grouped: dict[tuple[SourceSpan, str, int], Site] = {}
    for rank, graph in enumerate(program.graphs):
        counts: defaultdict[tuple[SourceSpan, str], int] = defaultdict(int)
        for position, node in enumerate(graph.nodes):
            key = (node.span, node.op.name)
            grouped.setdefault((*key, counts[key]), {})[rank] = position
            counts[key] += 1
    return list(grouped.values())
