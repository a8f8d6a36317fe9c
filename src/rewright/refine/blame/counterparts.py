"""Repairs read off the sequential program: do at a place what its counterpart does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rewright import ops
from rewright.ir.errors import TypeMismatch
from rewright.ir.graph import Graph, Node
from rewright.ir.placement import RankProgram
from rewright.refine.blame.editing import Editor, Replacement, edit_program, insert_node
from rewright.refine.blame.repairs import Edit, Repair
from rewright.refine.blame.wording import differences, where
from rewright.refine.twin.divergence import Divergence, Search
from rewright.refine.twin.places import Place

_DEPTH = 12
"""How far back counterparts are compared, in operators."""


def mended(sequential: Graph, program: RankProgram, search: Search, divergence: Divergence) -> Iterator[Repair]:
    """Programs in which the place of a divergence does what the sequential node does; none of them is checked yet."""
    wanted = sequential.nodes[divergence.sequential]
    node = program.graphs[0].nodes[divergence.place[0]]
    if divergence.cause in ("missing", "term"):
        yield from _with_missing(sequential, program, search, divergence)
        return
    for text, build in _edits(divergence, wanted, node, search):
        site = dict(enumerate(divergence.place))
        try:
            changed = edit_program(program, site, build)[0]
        except TypeMismatch:
            continue
        if changed != program:
            yield Repair(text, changed, Edit(site, build))


def _edits(divergence: Divergence, wanted: Node, node: Node, search: Search) -> Iterator[tuple[str, Replacement]]:
    what = f"{node.op.name} at {node.span}"
    if divergence.cause == "constant" and isinstance(wanted.op, ops.Constant) and len(wanted.op.values) == 1:
        value = wanted.op.values
        yield f"use {value[0]:g} for the {what}", lambda editor, old: editor.add(ops.Constant(old.type, value))
    if divergence.cause == "operands":
        yield f"swap the operands of the {what}", lambda editor, old: editor.add(old.op, *old.operands[::-1])
    if divergence.cause == "operator" and wanted.op != node.op:
        yield f"make the {what} like the one at {wanted.span}", _as_wanted(wanted)
    if divergence.cause == "extra":
        for number, before in enumerate(search.places.operands(divergence.place)):
            if search.holding.holds(divergence.sequential, before) is not None:
                yield f"leave out the {what}", _only(number)


def unlike(sequential: Graph, program: RankProgram, position: int, place: Place) -> Iterator[Repair]:
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
        yield from _like(program, there, wanted, nodes[0])
        for number, operand in enumerate(wanted.operands):
            before = tuple(node.operands[number] for node in nodes)
            if before not in seen:
                seen.add(before)
                stack.append((operand, before, depth + 1))


def _is_called_alike(node: Node, wanted: Node) -> bool:
    """Whether two nodes have one operator and as many operands."""
    return type(node.op) is type(wanted.op) and len(node.operands) == len(wanted.operands)


def _like(program: RankProgram, place: Place, wanted: Node, node: Node) -> Iterator[Repair]:
    what = f"{node.op.name} at {node.span}"
    if isinstance(wanted.op, ops.Constant) and isinstance(node.op, ops.Constant):
        values = wanted.op.values
        if len(values) != 1 or len(node.op.values) != 1 or values == node.op.values:
            return
        text = f"use {values[0]:g} for the {what}"
        build = _constant(values)
    elif not isinstance(wanted.op, ops.Input) and differences(wanted, node):
        text, build = f"make the {what} like the one at {wanted.span}", _as_wanted(wanted)
    else:
        return
    site = dict(enumerate(place))
    try:
        yield Repair(text, edit_program(program, site, build)[0], Edit(site, build))
    except TypeMismatch:
        return


def _constant(values: tuple[float | int | bool, ...]) -> Replacement:
    return lambda editor, old: editor.add(ops.Constant(old.type, values))


def _as_wanted(wanted: Node) -> Replacement:
    def build(editor: Editor, old: Node) -> int:
        made = editor.add(wanted.op, *old.operands)
        if editor.type(made) != old.type:
            raise TypeMismatch(f"{wanted.op.name} has another type here; keep the operator")
        return made

    return build


def _only(number: int) -> Replacement:
    return lambda _, old: old.operands[number]


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
