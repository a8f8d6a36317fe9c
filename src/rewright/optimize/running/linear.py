"""A matrix product and the bias that is added to it, as one call of the library."""

from __future__ import annotations

from rewright import ops
from rewright.frontends.torch.eager.operators import TORCH, Call, numbers
from rewright.ir.graph import Graph
from rewright.optimize.planning.linear import addends


def bind_linear(graph: Graph, position: int) -> tuple[Call, tuple[int, ...]]:
    """What computes the sum of a product and a bias, and its operands: bias, left and right."""
    found = addends(graph, position)
    assert found is not None
    node, inner = graph.nodes[position], graph.nodes[found[0]]
    op = inner.op
    assert isinstance(op, ops.DotGeneral)
    rows, columns = op.free_axes(*(graph.nodes[p].type.rank for p in inner.operands))
    axes = {"left": [*rows, *op.lhs_contracting], "right": [*op.rhs_contracting, *columns]}
    kind = str(TORCH[node.type.dtype]).removeprefix("torch.")
    call = Call("linear", {**axes, "shape": numbers(node.type.shape), "kind": kind})
    return call, (found[1], *inner.operands)
