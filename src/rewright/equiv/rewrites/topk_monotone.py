"""Choices of the largest elements under functions that keep their order.

Where programs choose after different functions, each ``top_k`` gets the tensor in front of them, and the functions are
applied to the values that it chose.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rewright import ops
from rewright.ir.graph import Graph
from rewright.proof.rewriting.laws.growing import Growing
from rewright.refine.rewriting.drafts import Draft


def chosen_alike(drafts: Sequence[Draft]) -> tuple[Draft, ...]:
    """The programs with their choices made among the tensors in front of functions that keep the order.

    They are returned as they are where all of them choose after the same functions.
    """
    laws = [Growing(draft.graph, draft.facts) for draft in drafts]
    choices = [_choices(draft.graph, law) for draft, law in zip(drafts, laws, strict=True)]
    known, every = ([{one[k] for one in own} for own in choices] for k in (0, 1))
    if any(all(own == functions[0] for own in functions) for functions in (known, every)):
        return tuple(drafts)
    return tuple(draft.by_law("growing", law) for draft, law in zip(drafts, laws, strict=True))


_Names = tuple[str, ...]


def _choices(graph: Graph, law: Growing) -> list[tuple[_Names, _Names]]:
    """By choice the functions that it comes after: those that are known to grow, and all of single elements.

    Of a rank less may be known, as of what others send it.
    """
    chains = [law.chain(p) for p in graph.live() if isinstance(graph.nodes[p].op, ops.TopK)]
    return [(known := law.functions(chain), (*known, *_in_front(graph, chain[-1]))) for chain in chains if chain]


def _in_front(graph: Graph, position: int) -> Iterator[str]:
    """The functions of single elements that end at a node, by their first operands."""
    node = graph.nodes[position]
    while isinstance(node.op, ops.Elementwise) and node.type.dtype.is_float:
        if not isinstance(node.op, ops.Convert):
            yield node.op.name
        node = graph.nodes[node.operands[0]]
