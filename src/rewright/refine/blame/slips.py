"""Small slips where there is nothing to compare with: bounds off by one, and pieces put together in another order.

Which rows belong to a rank is computed from constants of its own, which the sequential program does not have, and data
goes to other ranks in steps that it does not have either. So the twin decides: a change after which all is right
names the place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from rewright import ops
from rewright.ir.graph import Graph
from rewright.ir.placement import Placement, RankProgram
from rewright.refine.blame.editing import Site, sites
from rewright.refine.blame.repairs import Repair, slips
from rewright.refine.case import Case, Ran

_MOST_CHANGES = 96
_DEPTH = 12
"""How far back bounds are looked for, in operators."""
_FLOAT_DEPTH = 4
"""How many of these may compute with floats: masks and indices are made of integers."""


@dataclass(frozen=True)
class Slip:
    """A small change after which the values agree, and the place of it."""

    site: Site
    repair: Repair


def slip(case: Case, ran: Ran, roots: Iterable[Mapping[int, int]], outputs: Sequence[str]) -> Slip | None:
    """The first small change, behind some places, with which outputs are right; None where there is none."""
    if ran.twin is None:
        return None
    region = _region(case.program, roots)
    expected: dict[str, Placement] = {name: p for name, p in case.expected.items() if name in case.sequential.outputs}
    for site, repair, twin in islice(slips(case.program, ran.twin, region), _MOST_CHANGES):
        if twin.compare(expect=expected, outputs=outputs, stop_early=True).agrees:
            return Slip(site, repair)
    return None


def _region(program: RankProgram, roots: Iterable[Mapping[int, int]]) -> list[Site]:
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
    return isinstance(node.op, ops.Constant) and node.type.dtype.is_integer and len(node.op.values) == 1
