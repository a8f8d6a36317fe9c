"""Products of groups of rows, each with a matrix of its own, as experts take the tokens that were sorted by expert."""

from __future__ import annotations

from rewright import ops
from rewright.ir.graph import GraphBuilder
from rewright.ops.reference import building as rb

ASCENDING = "groups of a grouped product end in ascending order"
"""What these definitions assume: kernels that run over rows in order would read some of them twice otherwise."""


def membership(b: GraphBuilder, ends: int, rows: int) -> int:
    """Which row is in which group, (rows, groups): in that of which number so many groups end at or before the row.

    ``ends`` is (groups,), in ascending order; ``rows`` is a node whose first axis is as long as there are rows.
    """
    dtype, shape = b.type(ends).dtype, (b.type(rows).shape[0], b.type(ends).shape[0])
    over = rb.compare(b, "LE", rb.broadcast_along(b, ends, shape, 1), rb.iota(b, shape, 0, dtype))
    group = rb.reduce(b, "sum", rb.convert(b, over, dtype), [1])
    return rb.compare(b, "EQ", b.add(ops.BroadcastInDim(shape, (0,)), group), rb.iota(b, shape, 1, dtype))


def grouped_matrix(b: GraphBuilder, x: int, weight: int, ends: int) -> int:
    """Rows (rows, inner) times the matrix of their group of (groups, inner, outer); rows of no group give zero."""
    products = rb.dot(b, x, weight, ([1], [1]))  # (rows, groups, outer)
    return rb.reduce(b, "sum", _of_group(b, products, membership(b, ends, x)), [1])


def grouped_outer(b: GraphBuilder, x: int, y: int, ends: int) -> int:
    """For each group the product of its rows of (rows, inner), transposed, with those of (rows, outer)."""
    (rows, inner), groups = b.type(x).shape, b.type(ends).shape[0]
    every = b.add(ops.BroadcastInDim((rows, groups, inner), (0, 2)), x)
    return rb.dot(b, _of_group(b, every, membership(b, ends, x)), y, ([0], [0]))


def _of_group(b: GraphBuilder, values: int, member: int) -> int:
    """Values (rows, groups, ..) where the row is in the group, zero elsewhere."""
    shape = b.type(values).shape
    spread = b.add(ops.BroadcastInDim(shape, (0, 1)), member)
    return rb.select(b, spread, values, rb.splat_like(b, 0, values))
