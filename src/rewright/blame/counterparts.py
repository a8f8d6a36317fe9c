"""Repairs read off the sequential program: do at a place what its counterpart does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rewright import ops
from rewright.blame.divergence import Divergence, Search
from rewright.blame.editing import Edit, NamedReplacement, in_reverse, insert_node, keeping_type, only_operand
from rewright.blame.places import Place
from rewright.blame.repairs import Repair, apply_edits
from rewright.blame.wording import describe_node, differences, where
from rewright.ir.errors import TypeMismatch
from rewright.ir.graph import Graph, Node
from rewright.ir.placement import RankProgram

_DEPTH = 12
"""How far back counterparts are compared, in operators."""


def replacements(sequential: Graph, program: RankProgram, search: Search, divergence: Divergence) -> Iterator[Repair]:
    """Programs in which the place of a divergence does what the sequential node does; none of them is checked yet."""
    if divergence.cause in ("missing", "term"):
        return _with_missing(sequential, program, search, divergence)
    wanted, node = sequential.nodes[divergence.sequential], program.graphs[0].nodes[divergence.place[0]]
    site = dict(enumerate(divergence.place))
    return apply_edits(program, (Edit(text, site, build) for text, build in _edits(divergence, wanted, node, search)))


def _edits(divergence: Divergence, wanted: Node, node: Node, search: Search) -> Iterator[NamedReplacement]:
    what = describe_node(node)
    if divergence.cause == "constant" or (divergence.cause == "operator" and wanted.op != node.op):
        yield from _likening(wanted, node)
    if divergence.cause == "operands":
        yield f"swap the operands of the {what}", in_reverse
    if divergence.cause == "extra":
        for number, before in enumerate(search.places.operands(divergence.place)):
            if search.holding.holds(divergence.sequential, before) is not None:
                yield f"leave out the {what}", only_operand(number)


def _likening(wanted: Node, node: Node) -> Iterator[NamedReplacement]:
    """A node with the number, or the operator, of its counterpart."""
    if not isinstance(wanted.op, ops.Constant):
        text = f"make the {describe_node(node)} like the one at {wanted.span}"
        yield text, keeping_type(lambda editor, old: editor.add(wanted.op, *old.operands))
    elif len(values := wanted.op.values) == 1 and node.op != replace(wanted.op, tensor=node.type):
        text = f"use {values[0]:g} for the {describe_node(node)}"
        yield text, lambda editor, old: editor.add(ops.Constant(old.type, values))


def nearby_attributes(sequential: Graph, program: RankProgram, position: int, place: Place) -> Iterator[Repair]:
    """Programs in which a constant or an attribute near a place is what it is near its sequential counterpart.

    Both programs are walked backwards side by side for as long as they have the same operators.
    """
    stack, seen = [(position, place, 0)], {place}
    while stack:
        at, there, depth = stack.pop(0)
        wanted = sequential.nodes[at]
        nodes = [graph.nodes[p] for graph, p in zip(program.graphs, there, strict=True)]
        if isinstance(nodes[0].op, ops.Collective) and not isinstance(wanted.op, ops.Collective):
            stack.append((at, tuple(node.operands[0] for node in nodes), depth + 1))
            continue
        if depth > _DEPTH or not all(_is_called_alike(node, wanted) for node in nodes):
            continue
        is_other = isinstance(wanted.op, ops.Constant) or differences(wanted, nodes[0])
        if is_other and not isinstance(wanted.op, ops.Input):
            edits = _likening(wanted, nodes[0])
            yield from apply_edits(program, (Edit(text, dict(enumerate(there)), build) for text, build in edits))
        for number, operand in enumerate(wanted.operands):
            before = tuple(node.operands[number] for node in nodes)
            if before not in seen:
                seen.add(before)
                stack.append((operand, before, depth + 1))


def _is_called_alike(node: Node, wanted: Node) -> bool:
    """Whether two nodes have one operator and as many operands."""
    return type(node.op) is type(wanted.op) and len(node.operands) == len(wanted.operands)


def _with_missing(sequential: Graph, program: RankProgram, search: Search, divergence: Divergence) -> Iterator[Repair]:
    """The missing operator, applied where the ranks have all its operands, and read from there on."""
    wanted = sequential.nodes[divergence.sequential]
    if divergence.cause == "term":
        operands = [divergence.place, search.holding.holder(divergence.other or 0)]
    else:
        operands = [divergence.place if p == divergence.other else search.holding.holder(p) for p in wanted.operands]
    held = [at for at in operands if at is not None]
    if len(held) < len(operands):
        return
    graphs: list[Graph] = []
    try:
        for rank, graph in enumerate(program.graphs):
            read = [at[rank] for at in held]
            graphs.append(insert_node(graph, max(read) + 1, wanted.op, read, divergence.place[rank]))
    except TypeMismatch:
        return
    results = " and ".join(dict.fromkeys(where(program.graphs[0].nodes[at[0]]) for at in held))
    text = f"{wanted.op.name} the result{'s' if ' and ' in results else ''} of {results}, as at {wanted.span}"
    yield Repair(text, replace(program, graphs=tuple(graphs)))
