"""Convolutions by few elements as sums of products with shifted inputs, where programs have other convolutions.

A causal convolution over time is a convolution in one program, and a sum of shifted inputs in another one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

from rewright import ops
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ops.reference import convolution as reference
from rewright.refine.rewriting.drafts import Draft


def shifted_alike(drafts: Sequence[Draft]) -> tuple[Draft, ...]:
    """The programs with small convolutions as sums; as they are where all of them have the same convolutions."""
    kinds = [Counter(n.op for n in draft.graph.nodes if isinstance(n.op, ops.Convolution)) for draft in drafts]
    if all(kind == kinds[0] for kind in kinds):
        return tuple(drafts)
    return tuple(draft.rebuilt(partial(_made, draft.graph)) for draft in drafts)


def _made(graph: Graph, builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
    if not isinstance(node.op, ops.Convolution) or not all(graph.nodes[p].type.is_static() for p in node.operands):
        return None
    x, kernel = operands
    return reference.as_products(builder, node.op, x, kernel)
