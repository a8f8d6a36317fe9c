"""Edits of a rank program near a suspected node, and those with which the programs agree on numbers.

An edit is only a guess until the claim has been checked for the program with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from rewright import ops
from rewright.analysis.moving import LAYING_OUT
from rewright.blame.editing import (
    Edit,
    Editor,
    NamedReplacement,
    Replacement,
    Site,
    keeping_type,
    only_operand,
    with_attributes,
)
from rewright.blame.slips import compared, moved_constants, moved_slices, reordered
from rewright.blame.wording import describe_node
from rewright.ir.graph import Graph, Node
from rewright.ir.operator import Operator, call_operator
from rewright.ir.placement import Mesh, RankProgram
from rewright.ops.collectives import Groups


@dataclass(frozen=True)
class Repair:
    """One change of all ranks (or one), in words, and the program with it."""

    text: str
    program: RankProgram
    edit: Edit | None = None
    """Where it was made and how, so that it can be made at other places too."""


_INSIDE = " inside of "
"""Says that a line has to be taken apart for an edit; what only adds a line is better."""
_Key = tuple[tuple[tuple[int, int], ...], int]
"""A site, and a number: the same edit of programs that differ in sizes only has the same key."""


def apply_edits(program: RankProgram, edits: Iterable[Edit]) -> Iterator[Repair]:
    """The edits that fit a program, with the programs that they make."""
    for edit in edits:
        changed = edit.apply(program)
        if changed is not None:
            yield Repair(edit.text, changed, edit)


def candidates(program: RankProgram, site: Mapping[int, int]) -> Iterator[Repair]:
    """Repairs at a node, then at its operands and what they are laid out from, the most plausible first.

    Args:
        program: the programs of all ranks.
        site: the suspected node's position by rank.
    """
    return apply_edits(program, (edit for _, edit in _proposals(program, site)))


def confirm_repairs(
    program: RankProgram,
    small: RankProgram,
    site: Mapping[int, int],
    agrees: Callable[[RankProgram], bool],
    limit: int = 64,
) -> Iterator[Repair]:
    """The candidates (of the first ``limit``) with which the programs agree on numbers.

    Args:
        small: the programs of all ranks at sizes that can be executed.
        agrees: whether such programs compute what they should.
    """
    known = dict(_proposals(small, site))
    for key, edit in islice(_proposals(program, site), limit):
        tried = known.get(key, edit).apply(small)
        if tried is not None and agrees(tried):
            yield from apply_edits(program, [edit])


def _proposals(program: RankProgram, site: Mapping[int, int]) -> Iterator[tuple[_Key, Edit]]:
    inside: list[tuple[_Key, Edit]] = []
    for near in _neighbourhood(program, dict(site)):
        rank = min(near)
        node = program.graphs[rank].nodes[near[rank]]
        if any(type(program.graphs[r].nodes[p].op) is not type(node.op) for r, p in near.items()):
            continue  # what ranks compute at one line may be several operators
        edits = [Edit(text, near, build) for text, build in _edits(program, rank, node)]
        if node.type.dtype.is_integer and all(_is_constant(program, r, p) for r, p in near.items()):
            edits.extend(moved_constants(program, near))
        for number, edit in enumerate(edits):
            proposal = (tuple(near.items()), number), edit
            if _INSIDE in edit.text:
                inside.append(proposal)
            else:
                yield proposal
    yield from inside


def _is_constant(program: RankProgram, rank: int, position: int) -> bool:
    return isinstance(program.graphs[rank].nodes[position].op, ops.Constant)


def _neighbourhood(program: RankProgram, site: Site) -> Iterator[Site]:
    """The site, its operands, and the sources that an operand only lays out."""
    yield site
    stack = _operands(program, site)
    seen: list[Site] = []
    while stack:
        near = stack.pop(0)
        if near in seen:
            continue
        seen.append(near)
        yield near
        rank = min(near)
        if isinstance(program.graphs[rank].nodes[near[rank]].op, LAYING_OUT):
            stack.extend(_operands(program, near))


def _operands(program: RankProgram, site: Site) -> list[Site]:
    by_rank = {rank: program.graphs[rank].nodes[position].operands for rank, position in site.items()}
    count = min(len(operands) for operands in by_rank.values())
    return [{rank: operands[i] for rank, operands in by_rank.items()} for i in range(count)]


def _edits(program: RankProgram, rank: int, node: Node) -> Iterator[NamedReplacement]:
    is_real = node.type.dtype.is_float and not isinstance(node.op, ops.Constant)
    yield from reordered(node)
    yield from compared(node)
    yield from moved_slices(node)
    is_scaling = isinstance(node.op, ops.Scaling)
    if is_scaling:
        yield from _scalings(program.mesh, node)
    if isinstance(node.op, ops.Collective):
        yield from _at_collective(program, rank, node)
        yield from _bias_after(program.graphs[rank], node)
    elif is_real or isinstance(node.op, ops.Reduce):  # a count is whole
        yield from _insertions(program.mesh, node, _after(program.graphs[rank], node))
    if is_real and not is_scaling and not isinstance(node.op, ops.Input):
        yield from _scalings(program.mesh, node)


def _scalings(mesh: Mesh, node: Node) -> Iterator[NamedReplacement]:
    if node.type.dtype.is_float:
        for name, size in mesh.axes:
            yield f"divide by {size}, the size of {name}, after {node.span}", _times(1.0 / size)
            yield f"multiply by {size}, the size of {name}, after {node.span}", _times(float(size))


def groups_over(mesh: Mesh) -> Iterator[tuple[str, Groups]]:
    """The groups along each mesh axis, and over the whole mesh where it has several."""
    single = [name for name, size in mesh.axes if size > 1]
    subsets = [(name,) for name in single] + ([tuple(single)] if len(single) > 1 else [])
    for names in subsets:
        yield " and ".join(names), tuple(dict.fromkeys(mesh.group(rank, names) for rank in range(mesh.size)))


def _at_collective(program: RankProgram, rank: int, node: Node) -> Iterator[NamedReplacement]:
    op, name = node.op, describe_node(node)
    if program.graphs[rank].nodes[node.operands[0]].type == node.type if node.operands else False:
        yield f"remove the {name}", only_operand(0)
    if isinstance(op, ops.Collective) and isinstance(op, ops.Combining):
        for kind in ("sum", "maximum"):
            if kind != op.kind:
                yield f"make the {name} a {kind} instead of a {op.kind}", with_attributes(kind=kind)
    if isinstance(op, ops.GroupCollective) and not isinstance(op, ops.CollectiveBroadcast):  # it has one source
        for axis, groups in groups_over(program.mesh):
            if groups != op.groups:
                # Its result goes to a tensor that the program made for it.
                yield f"call the {name} over {axis}", keeping_type(with_attributes(groups=groups))
    if isinstance(op, ops.CollectivePermute):
        pairs = tuple((target, source) for source, target in op.pairs)
        yield f"turn the direction of the {name}", with_attributes(pairs=pairs)


def _bias_after(graph: Graph, node: Node) -> Iterator[NamedReplacement]:
    """``all_reduce(x + b)`` to ``all_reduce(x) + b``."""
    if not isinstance(node.op, ops.AllReduce):
        return
    total = graph.nodes[node.operands[0]]
    if not isinstance(total.op, ops.Add):
        return
    for index in (1, 0):

        def build(editor: Editor, old: Node, index: int = index) -> int:
            operands = editor.nodes[old.operands[0]].operands
            return editor.add(ops.Add(), editor.add(old.op, operands[1 - index]), operands[index])

        which = "second" if index else "first"
        yield f"add the {which} term of {total.span} after the all_reduce at {node.span}", build


def _after(graph: Graph, node: Node) -> str:
    """Where a node's result is there to be changed: after its line, or inside of it where that line reads it."""
    if isinstance(node.op, ops.Input):
        return f"on {node.op.label}, before anything reads it"
    end = node.span.file, node.span.line
    readers = (n for n in graph.nodes if any(graph.nodes[operand] is node for operand in n.operands))
    is_inside = any((reader.span.file, reader.span.line) == end for reader in readers)
    return f"after the {call_operator(node.op)}{_INSIDE}{node.span}" if is_inside else f"after {node.span}"


def _insertions(mesh: Mesh, node: Node, where: str) -> Iterator[NamedReplacement]:
    kinds = ("maximum",) if isinstance(node.op, ops.Reduce) and node.op.kind == "maximum" else ("sum",)
    for axis, groups in groups_over(mesh):
        for kind in kinds:
            what = "all_reduce" if kind == "sum" else f"all_reduce({kind})"
            yield f"insert {what} over {axis} {where}", _followed_by(ops.AllReduce(kind, groups))
    if not node.type.dtype.is_float:
        return
    for axis, groups in groups_over(mesh):
        for dimension in range(node.type.rank):
            what = f"over {axis} along axis {dimension} {where}"
            yield f"insert all_gather {what}", _followed_by(ops.AllGather(dimension, groups))
            yield f"insert reduce_scatter {what}", _followed_by(ops.ReduceScatter("sum", dimension, groups))


def _followed_by(op: Operator) -> Replacement:
    return lambda editor, node: editor.add(op, editor.add(node.op, *node.operands))


def _times(factor: float) -> Replacement:
    def build(editor: Editor, node: Node) -> int:
        value = editor.add(node.op, *node.operands)
        return editor.add(ops.Multiply(), value, editor.add(ops.Constant(node.type, (factor,))))

    return build
