"""Which nodes are computed for each place of a tensor of indices by itself, and along which of their axes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rewright.analysis.evenness import follows
from rewright.ir.graph import Graph, Node
from rewright.ops.base import Following


@dataclass(frozen=True)
class Placed:
    """A tensor whose elements each depend on an index tensor at one place alone."""

    core: int
    """The index tensor."""
    axes: tuple[int, ...]
    """The axes of the place, in the order of the index tensor's axes."""


def trace_places(graph: Graph, node: Node, known: Mapping[int, Placed]) -> Placed | None:
    """Of what place the elements of a node are, where some of its operands are known to be of one.

    Of several that are computed with rows all have to be at one place: along axes of the result that they share.
    """
    found = follows(graph, node)
    if found is None:
        return None
    own = {_move(known[p], axes) for p, axes in zip(node.operands, found, strict=True) if p in known}
    (one,) = own if len(own) == 1 else (None,)
    return one


def _move(place: Placed, axes: Following) -> Placed | None:
    """The place as the result has it; None where an axis of it is not there, or not as a whole."""
    moved = tuple(to for axis in place.axes if (to := axes[axis]) is not None)
    return Placed(place.core, moved) if len(moved) == len(place.axes) else None
