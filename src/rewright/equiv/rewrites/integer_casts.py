"""Whole numbers that are cast to integers and back, as codes of quantised tensors are: such casts leave them alone.

A cast to an integer cuts off the fraction. What was rounded, or counted, has none. Whether an integer type holds the
number is another question, which programs are asked as they are written.
"""

from __future__ import annotations

from rewright import ops
from rewright.ir.graph import GraphBuilder, Node
from rewright.ir.types import DType
from rewright.proof.rewriting.parts import convert_node
from rewright.refine.rewriting.drafts import Draft


def without_casts(draft: Draft) -> Draft:
    """The program without casts of whole numbers to a type between the one that they have and the one that they get."""
    graph = draft.graph
    known = draft.facts

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        if not isinstance(node.op, ops.Convert) or node.type.dtype is DType.BOOL:
            return None
        before = graph.nodes[node.operands[0]]
        if not isinstance(before.op, ops.Convert) or not known[before.operands[0]].whole:
            return None
        inner = builder.node(operands[0])
        is_number = isinstance(inner.op, ops.Convert) and inner.type.dtype is not DType.BOOL
        return convert_node(builder, inner.operands[0], node.type) if is_number else None

    return draft.rebuild(make)
