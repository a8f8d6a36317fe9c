"""Products of groups of rows, each with a matrix of its own, as experts take the tokens that were sorted by expert."""

from __future__ import annotations

from rewright import ops
from rewright.ir.dims import Dim
from rewright.ir.graph import GraphBuilder
from rewright.ops.reference import building as rb
from rewright.ops.reference.simplifying import SimplifyingBuilder

ASCENDING = "groups of a grouped product end in ascending order"
"""What these definitions assume: kernels that run over rows in order would read some of them twice otherwise."""


def group_of_rows(b: GraphBuilder, ends: int, shape: tuple[Dim, Dim]) -> int:
    """For each of (rows, groups) the number of the row's group, (rows,): so many groups end at or before the row.

    ``ends`` is (groups,), in ascending order.
    """
    dtype = b.type(ends).dtype
    over = rb.compare(b, "LE", rb.broadcast_along(b, ends, shape, 1), rb.iota(b, shape, 0, dtype))
    return rb.reduce(b, "sum", rb.convert(b, over, dtype), [1])


def membership(b: GraphBuilder, ends: int, rows: int) -> int:
    """Which row is in which group, (rows, groups).

    ``ends`` is (groups,), in ascending order; ``rows`` is a node whose first axis is as long as there are rows.
    """
    dtype, shape = b.type(ends).dtype, (b.type(rows).shape[0], b.type(ends).shape[0])
    group = group_of_rows(b, ends, shape)
    return rb.compare(b, "EQ", b.add(ops.BroadcastInDim(shape, (0,)), group), rb.iota(b, shape, 1, dtype))


def grouped_matrix(b: GraphBuilder, x: int, weight: int, ends: int) -> int:
    """Rows (rows, inner) times the matrix of their group of (groups, inner, outer); rows of no group give zero.

    Where it is known how groups end, they are products of their own, one after the other.
    """
    groups = _known_groups(b, x, ends)
    if groups is not None:
        (_, inner, outer), parts = b.type(weight).shape, list[int]()
        for group, (start, end) in enumerate(groups):
            matrix = rb.reshape(b, rb.slice_axis(b, weight, 0, group, group + 1), (inner, outer))
            parts.append(rb.dot(b, rb.slice_axis(b, x, 0, start, end), matrix, ([1], [0])))
        last, rows = groups[-1][1], b.type(x).shape[0]
        return rb.concatenate(b, [*parts, rb.splat(b, 0, (rows - last, outer), b.type(x).dtype)], 0)
    products = rb.dot(b, x, weight, ([1], [1]))  # (rows, groups, outer)
    return rb.reduce(b, "sum", _of_group(b, products, membership(b, ends, x)), [1])


def grouped_outer(b: GraphBuilder, x: int, y: int, ends: int) -> int:
    """For each group the product of its rows of (rows, inner), transposed, with those of (rows, outer)."""
    known = _known_groups(b, x, ends)
    if known is not None:
        sides = [tuple(rb.slice_axis(b, side, 0, start, end) for side in (x, y)) for start, end in known]
        products = [rb.dot(b, left, right, ([0], [0])) for left, right in sides]
        return rb.concatenate(b, [rb.insert_ones(b, product, [0]) for product in products], 0)
    (rows, inner), groups = b.type(x).shape, b.type(ends).shape[0]
    every = b.add(ops.BroadcastInDim((rows, groups, inner), (0, 2)), x)
    return rb.dot(b, _of_group(b, every, membership(b, ends, x)), y, ([0], [0]))


def _known_groups(b: GraphBuilder, x: int, ends: int) -> list[tuple[int, int]] | None:
    """Where each group of the rows of ``x`` starts and ends, where that is known and they follow each other."""
    found = b.known(ends) if isinstance(b, SimplifyingBuilder) else None
    rows = b.type(x).shape[0]
    limits = [] if found is None else [int(end) for end in found]
    if not limits or not isinstance(rows, int) or [0, *limits, rows] != sorted([0, *limits, rows]):
        return None
    return list(zip([0, *limits[:-1]], limits, strict=True))


def _of_group(b: GraphBuilder, values: int, member: int) -> int:
    """Values (rows, groups, ..) where the row is in the group, zero elsewhere."""
    shape = b.type(values).shape
    spread = b.add(ops.BroadcastInDim(shape, (0, 1)), member)
    return rb.select(b, spread, values, rb.splat_like(b, 0, values))
