"""Candidate repairs of a rank program near a suspected node, and those that the numeric twin confirms.

A candidate is only a guess until the refinement check has been run on the repaired program.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, cast

from rewright import ops
from rewright.analysis.moving import LAYING_OUT
from rewright.ir.errors import TypeMismatch
from rewright.ir.graph import Graph, Node
from rewright.ir.operator import Operator, Unsupported
from rewright.ir.placement import Mesh, Placement, RankProgram
from rewright.ops.agreement import CollectiveMismatch
from rewright.ops.collectives import Groups
from rewright.refine.blame.editing import Editor, Replacement, Site, edit_program
from rewright.refine.twin.twin import Twin, make_twin


@dataclass(frozen=True)
class Edit:
    """A replacement of one node on the ranks of a site."""

    site: Site
    build: Replacement


@dataclass(frozen=True)
class Repair:
    """One change of all ranks (or one), in words, and the program with it."""

    text: str
    program: RankProgram
    edit: Edit | None = None
    """Where it was made and how, so that it can be made at other places too."""


_Edit = tuple[str, Replacement]


def candidates(program: RankProgram, site: Mapping[int, int]) -> Iterator[Repair]:
    """Repairs at a node, then at its operands and what they are laid out from, the most plausible first.

    Args:
        program: the programs of all ranks.
        site: the suspected node's position by rank.
    """
    for proposal in _proposals(program, site):
        repaired = proposal.apply(program)
        if repaired is not None:
            yield Repair(proposal.text, repaired, Edit(proposal.site, proposal.build))


def slips(program: RankProgram, twin: Twin, region: Iterable[Site]) -> Iterator[tuple[Site, Repair, Twin]]:
    """Small changes in a region, one at a time: bounds and slices moved by one, other comparisons, other orders.

    Args:
        program: the programs of all ranks.
        twin: their twin, at sizes that can be executed.
        region: places at which something is changed.

    Yields the place of each change, the changed programs, and their twin; nothing is checked yet.
    """
    for site in region:
        nodes = [program.graphs[rank].nodes[position] for rank, position in site.items()]
        edits: list[tuple[str, Site, Replacement]] = []
        if all(isinstance(node.op, ops.Constant) and node.type.dtype.is_integer for node in nodes):
            edits.extend(_moved_constants(program, site))
        elif len({type(node.op) for node in nodes}) == 1:
            pieces = _reordered(nodes[0]) if isinstance(nodes[0].op, ops.Concatenate) else ()
            small = (*pieces, *_compared(nodes[0]), *_moved_slices(nodes[0]))
            edits.extend((text, site, build) for text, build in small)
        for number, (text, where, build) in enumerate(edits):
            proposal = _Proposal((tuple(site.items()), number), text, where, build)
            tried, repaired = _retried(twin, proposal), proposal.apply(program)
            if tried is not None and repaired is not None:
                yield where, Repair(text, repaired, Edit(where, build)), tried


def confirmed(
    sequential: Graph,
    program: RankProgram,
    site: Mapping[int, int],
    expect: Mapping[str, Placement] | None = None,
    limit: int = 64,
    outputs: Collection[str] | None = None,
    twin: Twin | None = None,
) -> Iterator[Repair]:
    """The candidates (of the first ``limit``) with which the programs agree numerically.

    Args:
        expect: placements of outputs, as for ``Twin.compare``.
        outputs: the outputs that have to agree; all by default.
        twin: the twin of the unrepaired program; programs of full size are shrunk once, and repaired small.

    Yields none where nothing can be executed.
    """
    if twin is None:
        try:
            made = make_twin(sequential, program)
        except CollectiveMismatch:
            made = None
        if isinstance(made, Unsupported):
            return
        twin = made
    small = {p.key: p for p in _proposals(twin.program, site)} if twin is not None else {}
    for proposal in islice(_proposals(program, site), limit):
        alike = small.get(proposal.key)
        tried = _retried(twin, alike) if twin and alike else _fresh(sequential, proposal.apply(program))
        if tried is None or not tried.compare(expect=expect, outputs=outputs, stop_early=True).agrees:
            continue
        repaired = proposal.apply(program)
        if repaired is not None:
            yield Repair(proposal.text, repaired, Edit(proposal.site, proposal.build))


def _retried(twin: Twin, proposal: _Proposal) -> Twin | None:
    repaired = proposal.apply(twin.program)
    try:
        return None if repaired is None else twin.with_ranks(repaired)
    except CollectiveMismatch:
        return None


def _fresh(sequential: Graph, repaired: RankProgram | None) -> Twin | None:
    if repaired is None:
        return None
    try:
        made = make_twin(sequential, repaired)
    except CollectiveMismatch:
        return None
    return None if isinstance(made, Unsupported) else made


@dataclass(frozen=True)
class _Proposal:
    """An edit that has not been applied; the same key means the same edit of programs that differ in sizes only."""

    key: tuple[tuple[tuple[int, int], ...], int]
    text: str
    site: Site
    build: Replacement

    def apply(self, program: RankProgram) -> RankProgram | None:
        """The repaired program, or None where the edit does not type-check."""
        try:
            return edit_program(program, self.site, self.build)[0]
        except TypeMismatch:
            return None


def _proposals(program: RankProgram, site: Mapping[int, int]) -> Iterator[_Proposal]:
    for near in _neighbourhood(program, dict(site)):
        rank = min(near)
        node = program.graphs[rank].nodes[near[rank]]
        if any(type(program.graphs[r].nodes[p].op) is not type(node.op) for r, p in near.items()):
            continue  # what ranks compute at one line may be several operators
        edits = [(text, near, build) for text, build in _edits(program, rank, node)]
        if node.type.dtype.is_integer and all(_is_constant(program, r, p) for r, p in near.items()):
            edits.extend(_moved_constants(program, near))
        for number, (text, where, build) in enumerate(edits):
            yield _Proposal((tuple(near.items()), number), text, where, build)


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


def _edits(program: RankProgram, rank: int, node: Node) -> Iterator[_Edit]:
    is_real = node.type.dtype.is_float and not isinstance(node.op, ops.Constant)
    yield from _reordered(node)
    yield from _compared(node)
    yield from _moved_slices(node)
    is_scaling = isinstance(node.op, ops.Multiply | ops.Divide)
    if is_scaling:
        yield from _scalings(program.mesh, node)
    if isinstance(node.op, ops.Collective):
        yield from _at_collective(program, rank, node)
        yield from _bias_after(program.graphs[rank], node)
    elif is_real:
        yield from _insertions(program.mesh, node)
    if is_real and not is_scaling and not isinstance(node.op, ops.Input):
        yield from _scalings(program.mesh, node)


def _scalings(mesh: Mesh, node: Node) -> Iterator[_Edit]:
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


def _at_collective(program: RankProgram, rank: int, node: Node) -> Iterator[_Edit]:
    op, name = node.op, f"{node.op.name} at {node.span}"
    if program.graphs[rank].nodes[node.operands[0]].type == node.type if node.operands else False:
        yield f"remove the {name}", lambda editor, node: node.operands[0]
    if isinstance(op, ops.AllReduce | ops.ReduceScatter):
        for kind in ("sum", "maximum"):
            if kind != op.kind:
                yield f"make the {name} a {kind} instead of a {op.kind}", _with(kind=kind)
    if isinstance(op, ops.GroupCollective) and not isinstance(op, ops.CollectiveBroadcast):  # it has one source
        for axis, groups in groups_over(program.mesh):
            if groups != op.groups:
                yield f"call the {name} over {axis}", _over(groups)
    if isinstance(op, ops.CollectivePermute):
        pairs = tuple((target, source) for source, target in op.pairs)
        yield f"turn the direction of the {name}", _with(pairs=pairs)


def _bias_after(graph: Graph, node: Node) -> Iterator[_Edit]:
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


def _insertions(mesh: Mesh, node: Node) -> Iterator[_Edit]:
    kinds = ("maximum",) if isinstance(node.op, ops.Reduce) and node.op.kind == "maximum" else ("sum",)
    for axis, groups in groups_over(mesh):
        for kind in kinds:
            what = "all_reduce" if kind == "sum" else f"all_reduce({kind})"
            yield f"insert {what} over {axis} after {node.span}", _followed_by(ops.AllReduce(kind, groups))
    for axis, groups in groups_over(mesh):
        for dimension in range(node.type.rank):
            what = f"over {axis} along axis {dimension} after {node.span}"
            yield f"insert all_gather {what}", _followed_by(ops.AllGather(dimension, groups))
            yield f"insert reduce_scatter {what}", _followed_by(ops.ReduceScatter("sum", dimension, groups))


def _reordered(node: Node) -> Iterator[_Edit]:
    if not isinstance(node.op, ops.Monoid) and node.operands != node.operands[::-1]:
        yield f"swap the operands of {node.op.name} at {node.span}", _reverse


def _compared(node: Node) -> Iterator[_Edit]:
    if isinstance(node.op, ops.Compare):
        for direction in {"LT": ("LE",), "LE": ("LT",), "GT": ("GE",), "GE": ("GT",)}.get(node.op.direction, ()):
            yield f"compare with {direction} at {node.span}", _with(direction=direction)


def _moved_slices(node: Node) -> Iterator[_Edit]:
    op = node.op
    if not isinstance(op, ops.Slice):
        return
    for axis, (start, limit) in enumerate(zip(op.start, op.limit, strict=True)):
        for shift in (-1, 1):
            if isinstance(start, int) and start + shift >= 0 and (start, limit) != (0, node.type.shape[axis]):
                starts = (*op.start[:axis], start + shift, *op.start[axis + 1 :])
                limits = (*op.limit[:axis], limit + shift, *op.limit[axis + 1 :])
                yield (
                    f"slice axis {axis} from {start + shift} instead of {start} at {node.span}",
                    _with(start=starts, limit=limits),
                )


def _moved_constants(program: RankProgram, site: Site) -> Iterator[tuple[str, Site, Replacement]]:
    """An integer constant off by one, on all ranks, then on one of them."""
    for shift in (-1, 1):
        span = program.graphs[min(site)].nodes[site[min(site)]].span
        word = "larger" if shift > 0 else "smaller"
        ranks = "" if len(site) == len(program.graphs) else f" on rank {min(site)}"
        yield f"make the integer constant at {span} one {word}{ranks}", site, _constant_plus(shift)
    for shift in (-1, 1):
        for rank, position in site.items():
            node = program.graphs[rank].nodes[position]
            if len(site) > 1 and isinstance(node.op, ops.Constant) and len(node.op.values) == 1:
                value = node.op.values[0]
                text = f"use {value + shift} instead of {value} at {node.span} on rank {rank}"
                yield text, {rank: position}, _constant_plus(shift)


def _constant_plus(shift: int) -> Replacement:
    def build(editor: Editor, node: Node) -> int:
        if not isinstance(node.op, ops.Constant):
            raise TypeMismatch(f"{node.op.name} is no constant: the ranks have different operators here")
        return editor.add(ops.Constant(node.op.tensor, tuple(value + shift for value in node.op.values)))

    return build


def _followed_by(op: Operator) -> Replacement:
    return lambda editor, node: editor.add(op, editor.add(node.op, *node.operands))


def _times(factor: float) -> Replacement:
    def build(editor: Editor, node: Node) -> int:
        value = editor.add(node.op, *node.operands)
        return editor.add(ops.Multiply(), value, editor.add(ops.Constant(node.type, (factor,))))

    return build


def _reverse(editor: Editor, node: Node) -> int:
    return editor.add(node.op, *reversed(node.operands))


def _over(groups: Groups) -> Replacement:
    """The collective among others; its result goes to a tensor that the program made for it, and so keeps its size."""
    among = _with(groups=groups)

    def build(editor: Editor, node: Node) -> int:
        made = among(editor, node)
        if editor.type(made) != node.type:
            raise TypeMismatch(f"{node.op.name} over {groups} gives another size than there is room for")
        return made

    return build


def _with(**changes: object) -> Replacement:
    def build(editor: Editor, node: Node) -> int:
        if not all(hasattr(node.op, name) for name in changes):
            raise TypeMismatch(f"{node.op.name} has no {', '.join(changes)}: the ranks have different operators here")
        return editor.add(replace(cast(Any, node.op), **changes), *node.operands)

    return build
