"""A matrix product and the bias that is added to it, as one call of the library."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from rewright import ops
from rewright.frontends.torch.eager.operators import TORCH, Call, numbers
from rewright.ir.graph import Graph
from rewright.optimize.planning.linear import addends


def bind_linear(graph: Graph, position: int) -> tuple[Call, tuple[int, ...]]:
    """What computes the sum of a product and a bias, and its operands: bias, left and right."""
    found = addends(graph, position)
    assert found is not None
    node, inner = graph.nodes[position], graph.nodes[found[0]]
    op, kind, shape = inner.op, TORCH[node.type.dtype], numbers(node.type.shape)
    assert isinstance(op, ops.DotGeneral)
    left, right = (graph.nodes[p].type.rank for p in inner.operands)
    rows, columns = op.free_axes(left, right)
    first, second = (*rows, *op.lhs_contracting), (*op.rhs_contracting, *columns)
    wide = [graph.nodes[inner.operands[1]].type.shape[axis] for axis in columns]
    several = len(columns) != 1

    def call(x: Sequence[torch.Tensor]) -> torch.Tensor:
        bias, a, b = (t.to(kind) for t in x)
        a = a.permute(first).flatten(0, -2) if a.ndim > 1 else a.reshape(1, -1)
        b = b.permute(second).flatten(1) if several else b.permute(second)
        spread = bias.repeat(math.prod(numbers(wide[:-1]))) if several else bias
        return torch.addmm(spread, a, b).reshape(shape)

    return call, (found[1], *inner.operands)
