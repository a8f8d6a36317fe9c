"""Convolutions by few elements as sums of products with shifted inputs, where programs have other convolutions.

A causal convolution over time is a convolution in one program, and a sum of shifted inputs in another one.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from functools import partial

from rewright import ops
from rewright.equiv.building import rebuilt
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.types import TensorType

_MOST_PLACES = 16
"""Kernels of more elements are left alone."""


def shifted_alike(graphs: Sequence[Graph]) -> tuple[Graph, ...]:
    """The programs with small convolutions as sums; as they are where all of them have the same convolutions."""
    kinds = [Counter(n.op for n in graph.nodes if isinstance(n.op, ops.Convolution)) for graph in graphs]
    if all(kind == kinds[0] for kind in kinds):
        return tuple(graphs)
    return tuple(rebuilt(graph, partial(_made, graph)) for graph in graphs)


def _made(graph: Graph, builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
    op = node.op
    if not isinstance(op, ops.Convolution) or not all(graph.nodes[p].type.is_static() for p in node.operands):
        return None
    widths = [int(str(n)) for n in builder.type(operands[1]).shape[2:]]
    pads = [side for both in op.padding for side in both]
    if math.prod(widths) > _MOST_PLACES or set(op.lhs_dilation) != {1} or not all(str(n).isdigit() for n in pads):
        return None
    low, high = ((0, 0, *sides) for sides in zip(*op.padding, strict=True))
    zero = builder.add(ops.Constant(TensorType((), node.type.dtype), (0.0,)))
    padded = builder.add(ops.Pad(low, high, (0,) * len(low)), operands[0], zero)
    parts = [_at(builder, op, node, padded, operands[1], place) for place in itertools.product(*map(range, widths))]
    total = parts[0]
    for part in parts[1:]:
        total = builder.add(ops.Add(), total, part)
    return total


def _at(
    builder: GraphBuilder, op: ops.Convolution, node: Node, padded: int, kernel: int, place: tuple[int, ...]
) -> int:
    """What one place of the kernel adds."""
    result = tuple(int(str(n)) for n in node.type.shape)
    (count, channels), (made, inner) = (tuple(int(str(n)) for n in builder.type(p).shape[:2]) for p in (padded, kernel))
    starts = tuple(p * d for p, d in zip(place, op.rhs_dilation, strict=True))
    ends = tuple(s + (n - 1) * by + 1 for s, n, by in zip(starts, result[2:], op.strides, strict=True))
    seen = builder.add(ops.Slice((0, 0, *starts), (count, channels, *ends), (1, 1, *op.strides)), padded)
    ones = (1,) * len(place)
    own = builder.add(ops.Slice((0, 0, *place), (made, inner, *(p + 1 for p in place)), (1, 1, *ones)), kernel)
    groups = op.feature_groups
    if inner == 1 and made == groups:
        weight = builder.add(ops.Reshape((made,)), own)
        return builder.add(ops.Multiply(), seen, builder.add(ops.BroadcastInDim(result, (1,)), weight))
    seen = builder.add(ops.Reshape((count, groups, inner, *result[2:])), seen)
    weight = builder.add(ops.Reshape((groups, made // groups, inner)), own)
    product = builder.add(ops.DotGeneral((0,), (1,), (2,), (2,)), weight, seen)  # (group, output, sequence, places)
    order = (2, 0, 1, *range(3, 3 + len(place)))
    return builder.add(ops.Reshape(result), builder.add(ops.Transpose(order), product))
