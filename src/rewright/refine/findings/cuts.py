"""What the ranks should hold at a place where they part from the sequential program."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from rewright import ops
from rewright.analysis.moving import laid_out, moved_operands
from rewright.blame.divergence import Divergence, Search
from rewright.blame.editing import Site
from rewright.blame.places import Place
from rewright.interp.placing import has_shapes, placements
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, Node
from rewright.ir.placement import Placement, place
from rewright.refine.case import Case

_REDUCING = (ops.AllReduce, ops.ReduceScatter)


@dataclass(frozen=True)
class Cut:
    """A sequential node, the place of the ranks that should hold it, and the placement that it should have there."""

    sequential: int
    place: Place
    placement: Placement


def cut_by_values(case: Case, search: Search, found: Divergence) -> Cut | None:
    """What the ranks should hold at a place, as the cleanest placement with the shapes that they have there."""
    node = case.sequential.nodes[found.sequential]
    if not node.type.dtype.is_float:
        return None  # positions and masks are what they are: nothing says what random ones would show
    fitting = [found.placement] if found.placement else search.holding.by_shapes(found.sequential, found.place)[:1]
    try:
        likely = [place(node.type.shape, case.program.mesh, placement.printed) for placement in fitting]
    except RewrightError:
        return None
    return _cut(case, found.sequential, found.place, (placement for placement in likely if not placement.partial))


def cut_by_shapes(case: Case, position: int | None, site: Site) -> Cut | None:
    """The same where no values say what belongs there."""
    graphs, mesh = case.program.graphs, case.program.mesh
    if position is None or len(site) < len(graphs):
        return None
    likely = placements(case.sequential.nodes[position].type.shape, mesh)
    return _cut(case, position, tuple(site[rank] for rank in range(len(graphs))), likely)


def _cut(case: Case, position: int, at: Place, likely: Iterable[Placement]) -> Cut | None:
    """The one of some placements that has the shapes of the ranks; None where several have: which is meant is open."""
    graphs = case.program.graphs
    held = [graph.nodes[p].type.shape for graph, p in zip(graphs, at, strict=True)]
    if is_added_up_later(graphs[0], at[0]):
        return None
    fitting = list(islice((placement for placement in likely if has_shapes(placement, held)), 2))
    return Cut(position, at, fitting[0]) if len(fitting) == 1 else None


def is_added_up_later(graph: Graph, position: int) -> bool:
    """Whether what a node gives is added up over the ranks before anything but linear operators reads it.

    The ranks may then be meant to hold addends there, so that no shape says what they should hold.
    """
    readers = graph.users()
    stack, seen = [position], {position}
    while stack:
        read = stack.pop()
        for reader in readers[read]:
            node = graph.nodes[reader]
            if isinstance(node.op, _REDUCING):
                return True
            if reader not in seen and _is_linear(graph, node, read):
                seen.add(reader)
                stack.append(reader)
    return False


def _is_linear(graph: Graph, node: Node, read: int) -> bool:
    """Whether a node is linear in an operand; by what it sorts it is not."""
    if isinstance(node.op, ops.Scaling):
        return any(isinstance(graph.nodes[laid_out(graph, p)].op, ops.Constant) for p in node.operands)
    return isinstance(node.op, ops.Linear) or (read in moved_operands(node) and not isinstance(node.op, ops.Ordering))
