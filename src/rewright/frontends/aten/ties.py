"""Places of elements among which some are equal: what PyTorch promises of them, and what a program takes for granted.

``argmax``, ``argmin``, and ``max`` and ``min`` along an axis give the first place. ``topk`` and ``kthvalue`` promise
nothing; a sort keeps the order of equal elements only where it is stable, though PyTorch's own sorts always do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from typing import Literal

from rewright import ops
from rewright.analysis.values import facts_of
from rewright.frontends.aten.pruning import live_nodes
from rewright.ir.graph import Graph, Node
from rewright.ops.facts import Facts


@dataclass(frozen=True)
class Promise:
    """What is promised of the places that a node gives."""

    first: Literal["any", "usual"]
    """Which of equal elements comes first: any of them; or the first one, which is usual and not promised."""
    chooser: str
    """What chooses, attributes included: two that differ may choose differently among equals."""

    @property
    def name(self) -> str:
        """The operator that chooses."""
        return self.chooser.partition(" ")[0]


_MOST_LINES = 4


def with_ties(graph: Graph, ties: Mapping[int, Promise], superseded: Set[int] = frozenset()) -> tuple[Graph, list[str]]:
    """The graph, and what it takes for granted of the places that some nodes give.

    The place of the largest among elements of which some must be equal, since there are fewer values than elements,
    is a function that nothing is known of: PyTorch's own.
    """
    live = live_nodes(graph, superseded) & ties.keys()
    chosen = sorted(position for position in live if ties[position].first == "any")
    facts = facts_of(graph) if chosen else []
    tied = [p for p in chosen if _must_be_equal(facts[graph.nodes[p].operands[0]], graph, graph.nodes[p])]
    nodes = list(graph.nodes)
    for position in tied:
        nodes[position] = _opaque(nodes[position], ties[position].chooser)
    assumed: list[str] = []
    for name in dict.fromkeys(ties[p].name for p in chosen):
        lines = _lines(graph, [p for p in chosen if p not in tied and ties[p].name == name])
        assumed += [f"no two elements are equal among which {name} chooses at {lines}"] if lines else []
    lines = _lines(graph, sorted(position for position in live if ties[position].first == "usual"))
    if lines:
        assumed.append(f"equal elements keep their order in the sort at {lines}, as stable sorts have it")
    return (replace(graph, nodes=tuple(nodes)) if tied else graph), assumed


def _must_be_equal(known: Facts, graph: Graph, node: Node) -> bool:
    """Whether there are more elements along the axis than values that they may have."""
    assert isinstance(node.op, ops.Ordering)
    size = graph.nodes[node.operands[0]].type.shape[node.op.axis]
    if not known.whole or not known.is_finite or not isinstance(size, int):
        return False
    return known.high - known.low + 1 < size


def _opaque(node: Node, chooser: str) -> Node:
    return replace(node, op=ops.CustomCall("places", (("chooser", chooser),), (node.type,), 0))


def _lines(graph: Graph, positions: Iterable[int]) -> str:
    found = list(dict.fromkeys(str(graph.nodes[position].span) for position in positions))
    more = f" and {len(found) - _MOST_LINES} more" if len(found) > _MOST_LINES else ""
    return ", ".join(found[:_MOST_LINES]) + more
