"""Edits of captured programs: one node replaced, on one rank or on all, with everything after it checked again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from rewright import ops
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
        self.nodes.append(Node(op, operands, _infer(self.nodes, op, operands, self.span), self.span))
        return len(self.nodes) - 1

    def type(self, position: int) -> TensorType:
        """The type of an earlier node."""
        return self.nodes[position].type


Replacement = Callable[[Editor, Node], int]
"""Builds what stands in the place of a node and returns its position; operands keep their positions."""


NamedReplacement = tuple[str, Replacement]
"""The same, in words."""


def with_attributes(**changes: object) -> Replacement:
    """Builds the same operator with some attributes changed."""

    def build(editor: Editor, node: Node) -> int:
        if not all(hasattr(node.op, name) for name in changes):
            raise TypeMismatch(f"{node.op.name} has no {', '.join(changes)}: the ranks have different operators here")
        return editor.add(replace(cast(Any, node.op), **changes), *node.operands)

    return build


def keeping_type(build: Replacement) -> Replacement:
    """Builds what has the type of the node that it stands for, and nothing else."""

    def checked(editor: Editor, node: Node) -> int:
        made = build(editor, node)
        if editor.type(made) != node.type:
            raise TypeMismatch(f"what stands for {node.op.name} has the type {editor.type(made)}, and not {node.type}")
        return made

    return checked


def in_reverse(editor: Editor, node: Node) -> int:
    """Builds the same operator on its operands in reverse, of which ranks may have different numbers."""
    return editor.add(node.op, *reversed(node.operands))


def only_operand(index: int) -> Replacement:
    """Leaves the node out: its readers read one of its operands."""
    return lambda _, node: node.operands[index]


def replace_node(graph: Graph, position: int, build: Replacement, rank: int = 0) -> tuple[Graph, int]:
    """The graph with one node replaced, and the position of what every reader of it reads now.

    Raises TypeMismatch where the change makes this node or a later one ill-typed.
    """
    nodes = list(graph.nodes[:position])
    result = build(Editor(nodes, graph.nodes[position].span, rank), graph.nodes[position])
    offset = len(nodes) - position - 1

    def moved(old: int, _: int) -> int:
        return old if old < position else result if old == position else old + offset

    changed = {result} if nodes[result].type != graph.nodes[position].type else set[int]()
    return _continue(graph, nodes, position + 1, moved, changed), result


def insert_node(
    graph: Graph, at: int, op: Operator, operands: Sequence[int], instead: int, only: int | None = None
) -> Graph:
    """The graph with a new node before position ``at`` that everything behind it reads instead of another one.

    With ``only`` one reader alone does. Raises TypeMismatch where the operator does not fit, or its result has
    another type than what it stands for.
    """
    nodes = list(graph.nodes[:at])
    added = Editor(nodes, graph.nodes[instead].span, 0).add(op, *operands)
    if nodes[added].type != graph.nodes[instead].type:
        raise TypeMismatch(f"{op.name} gives {nodes[added].type} where {graph.nodes[instead].type} is read")

    def moved(old: int, reader: int) -> int:
        reads = old == instead and (reader >= at if only is None else reader == only)
        return added if reads else old if old < at else old + 1

    return _continue(graph, nodes, at, moved, set())


def with_input(graph: Graph, position: int, name: str, only: int | None = None) -> Graph:
    """The graph with an input in the place of a node, for one reader alone where that is given."""
    made = ops.Input(name, graph.nodes[position].type)
    if only is None:
        changed, added = replace_node(graph, position, lambda editor, _: editor.add(made))
    else:
        changed, added = insert_node(graph, only, made, (), position, only), only
    return replace(changed, inputs={**changed.inputs, name: added})


def _continue(graph: Graph, nodes: list[Node], rest: int, moved: Callable[[int, int], int], changed: set[int]) -> Graph:
    """The graph that begins with other nodes, and goes on with its own from some position on.

    ``moved`` says where what a node reads is now; ``changed`` are the nodes of another type than before.
    """
    for reader, node in enumerate(graph.nodes[rest:], rest):
        operands = tuple(moved(p, reader) for p in node.operands)
        kept = Node(node.op, operands, node.type, node.span)
        if changed and not changed.isdisjoint(operands):
            kept = replace(kept, type=_infer(nodes, node.op, operands, node.span))
            if kept.type != node.type:
                changed.add(len(nodes))
        nodes.append(kept)
    inputs = {name: moved(p, -1) for name, p in graph.inputs.items()}
    outputs = {name: moved(p, len(graph.nodes)) for name, p in graph.outputs.items()}
    return replace(graph, nodes=tuple(nodes), inputs=inputs, outputs=outputs)


def _infer(nodes: Sequence[Node], op: Operator, operands: Sequence[int], span: SourceSpan) -> TensorType:
    types = [nodes[p].type for p in operands]
    try:
        return op.infer(types)
    except TypeMismatch as error:
        raise TypeMismatch(describe_failure(len(nodes), op, types, span, str(error))) from None


def edit_program(program: RankProgram, site: Mapping[int, int], build: Replacement) -> tuple[RankProgram, Site]:
    """The same replacement on all ranks of a site; also the positions of the results.

    ``build`` sees the rank in ``editor.rank``. Raises TypeMismatch where the result is ill-typed on some rank.
    """
    graphs = list(program.graphs)
    results: Site = {}
    for rank, position in site.items():
        graphs[rank], results[rank] = replace_node(graphs[rank], position, build, rank)
    return replace(program, graphs=tuple(graphs)), results


@dataclass(frozen=True)
class Edit:
    """A replacement of one node on the ranks of a site, in words."""

    text: str
    site: Site
    build: Replacement

    def apply(self, program: RankProgram) -> RankProgram | None:
        """The program with it, or None where it does not type-check."""
        try:
            return edit_program(program, self.site, self.build)[0]
        except TypeMismatch:
            return None


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


def site_of(program: RankProgram, rank: int, position: int) -> Site:
    """The corresponding node of every rank: positions differ between ranks, operators and source lines do not."""
    found = {r: same_occurrence(program.graphs[rank], position, graph) for r, graph in enumerate(program.graphs)}
    return {r: p for r, p in found.items() if p is not None}


def same_occurrence(graph: Graph, position: int, other: Graph) -> int | None:
    """What a node is in another version of a program: there as many nodes with its operator and line come before it."""
    own, others = (_occurrences(one, graph.nodes[position]) for one in (graph, other))
    number = own.index(position)
    return others[number] if number < len(others) else None


def _occurrences(graph: Graph, wanted: Node) -> list[int]:
    return [p for p, node in enumerate(graph.nodes) if node.span == wanted.span and node.op.name == wanted.op.name]
