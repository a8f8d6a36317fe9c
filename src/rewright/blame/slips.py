"""Small slips where there is nothing to compare with: bounds off by one, and pieces put together in another order.

Which rows belong to a rank is computed from constants of its own, which the sequential program does not have, and data
goes to other ranks in steps that it does not have either. So values decide: a change after which all is right
names the place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rewright import ops
from rewright.blame.editing import Edit, Editor, NamedReplacement, Replacement, Site, in_reverse, sites, with_attributes
from rewright.ir.errors import TypeMismatch
from rewright.ir.graph import Graph, Node
from rewright.ir.operator import call_operator
from rewright.ir.placement import RankProgram

_DEPTH = 12
"""How far back bounds are looked for, in operators."""
_FLOAT_DEPTH = 4
"""How many of these may compute with floats: masks and indices are made of integers."""


def slips(program: RankProgram, roots: Iterable[Site]) -> Iterator[Edit]:
    """Small changes behind some places: bounds and slices moved by one, other comparisons, other orders."""
    for site in _region(program, roots):
        nodes = [program.graphs[rank].nodes[position] for rank, position in site.items()]
        if all(isinstance(node.op, ops.Constant) and node.type.dtype.is_integer for node in nodes):
            yield from moved_constants(program, site)
        elif len({type(node.op) for node in nodes}) == 1:
            pieces = reordered(nodes[0]) if isinstance(nodes[0].op, ops.Concatenate) else ()
            small = (*pieces, *compared(nodes[0]), *moved_slices(nodes[0]))
            yield from (Edit(text, site, build) for text, build in small)


def _region(program: RankProgram, roots: Iterable[Site]) -> list[Site]:
    """Where slips are likely, not far behind some places: bounds, then cuts, and places of single ranks last."""
    reached: dict[int, set[int]] = {}
    for root in roots:
        for rank, position in root.items():
            reached.setdefault(rank, set()).update(_behind(program.graphs[rank], position))
    found = [{rank: p for rank, p in site.items() if p in reached.get(rank, ())} for site in sites(program)]
    whole = [site for site in found if len(site) == len(program.graphs)]
    whole.sort(key=lambda site: isinstance(program.graphs[0].nodes[site[0]].op, ops.Slice | ops.Concatenate))
    single = [site for site in found if 0 < len(site) < len(program.graphs)]
    return [*whole, *({rank: p} for site in single for rank, p in site.items())]


def _behind(graph: Graph, start: int) -> set[int]:
    best: dict[int, tuple[int, int]] = {start: (0, 0)}
    stack = [start]
    while stack:
        position = stack.pop()
        steps, floats = best[position]
        for operand in graph.nodes[position].operands:
            node = graph.nodes[operand]
            there = steps + 1, floats + node.type.dtype.is_float
            known = best.get(operand)
            if there[0] <= _DEPTH and there[1] <= _FLOAT_DEPTH and (known is None or there < known):
                best[operand] = there
                stack.append(operand)
    return {p for p in best if _may_slip(graph, p)}


def _may_slip(graph: Graph, position: int) -> bool:
    node = graph.nodes[position]
    if isinstance(node.op, ops.Slice | ops.Concatenate):
        return True
    if isinstance(node.op, ops.Compare):
        return graph.nodes[node.operands[0]].type.dtype.is_integer and node.op.direction not in ("EQ", "NE")
    return node.type.dtype.is_integer and ops.splat(node.op) is not None


def reordered(node: Node) -> Iterator[NamedReplacement]:
    if not isinstance(node.op, ops.Monoid) and node.operands != node.operands[::-1]:
        yield f"swap the operands of the {call_operator(node.op)} at {node.span}", in_reverse


def compared(node: Node) -> Iterator[NamedReplacement]:
    if isinstance(node.op, ops.Compare):
        for direction in {"LT": ("LE",), "LE": ("LT",), "GT": ("GE",), "GE": ("GT",)}.get(node.op.direction, ()):
            yield f"compare with {direction} at {node.span}", with_attributes(direction=direction)


def moved_slices(node: Node) -> Iterator[NamedReplacement]:
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
                    with_attributes(start=starts, limit=limits),
                )


def moved_constants(program: RankProgram, site: Site) -> Iterator[Edit]:
    """An integer constant off by one, on all ranks, then on one of them."""
    for shift in (-1, 1):
        span = program.graphs[min(site)].nodes[site[min(site)]].span
        word = "larger" if shift > 0 else "smaller"
        ranks = "" if len(site) == len(program.graphs) else f" on rank {min(site)}"
        yield Edit(f"make the integer constant at {span} one {word}{ranks}", site, _constant_plus(shift))
    for shift in (-1, 1):
        for rank, position in site.items():
            node = program.graphs[rank].nodes[position]
            if len(site) > 1 and (value := ops.splat(node.op)) is not None:
                text = f"use {value + shift} instead of {value} at {node.span} on rank {rank}"
                yield Edit(text, {rank: position}, _constant_plus(shift))


def _constant_plus(shift: int) -> Replacement:
    def build(editor: Editor, node: Node) -> int:
        if not isinstance(node.op, ops.Constant):
            raise TypeMismatch(f"{node.op.name} is no constant: the ranks have different operators here")
        return editor.add(ops.Constant(node.op.tensor, tuple(value + shift for value in node.op.values)))

    return build
