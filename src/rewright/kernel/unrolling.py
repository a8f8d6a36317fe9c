"""Folds over a few elements, written out: a program that works on parts of its rows has one fold for each part."""

from __future__ import annotations

from functools import reduce
from math import prod

from rewright.ir.dims import Dim
from rewright.ir.graph import Graph, Node
from rewright.kernel.counting import counted
from rewright.ops import Add, BroadcastInDim, DotGeneral, Maximum, Minimum, Multiply, Reduce
from rewright.ops.reference import building as rb
from rewright.ops.reference.simplifying import SimplifyingBuilder

_MOST = 8
_STEPS = {"sum": Add, "maximum": Maximum, "minimum": Minimum}


def unrolled(graph: Graph) -> Graph | None:
    """The graph with folds and products over at most eight elements as one operator after the other.

    None where it has no such folds.
    """
    b = SimplifyingBuilder(graph.name)
    places: dict[int, int] = {}
    is_other = False
    for old, node in enumerate(graph.nodes):
        b.span = node.span
        operands = [places[p] for p in node.operands]
        is_count = isinstance(node.op, Reduce) and counted(graph, old) is not None  # which both programs divide by
        found = None if is_count else _written_out(b, node, operands)
        is_other |= found is not None
        places[old] = b.add(node.op, *operands) if found is None else found
    for name, position in graph.outputs.items():
        b.output(name, places[position])
    return b.build() if is_other else None


def _written_out(b: SimplifyingBuilder, node: Node, operands: list[int]) -> int | None:
    if isinstance(node.op, Reduce) and node.op.kind in _STEPS:
        return _fold(b, node.op, operands[0])
    return _product(b, node, node.op, operands) if isinstance(node.op, DotGeneral) else None


def _fold(b: SimplifyingBuilder, op: Reduce, operand: int) -> int | None:
    """A fold along axes of which some are short."""
    shape = b.type(operand).shape
    short = [axis for axis in op.dimensions if _is_short(shape[axis])]
    if not short:
        return None
    step, position = _STEPS[op.kind](), operand
    for axis in sorted(short, reverse=True):
        rest = tuple(size for n, size in enumerate(b.type(position).shape) if n != axis)
        parts = [
            rb.reshape(b, rb.slice_axis(b, position, axis, k, k + 1), rest)
            for k in range(int(shape[axis]))  # pyright: ignore[reportArgumentType]
        ]
        position = reduce(lambda left, right: b.add(step, left, right), parts)
    left = [axis - sum(gone < axis for gone in short) for axis in op.dimensions if axis not in short]
    return rb.reduce(b, op.kind, position, left) if left else position


def _product(b: SimplifyingBuilder, node: Node, op: DotGeneral, operands: list[int]) -> int | None:
    """A product of tensors whose axes that are summed are short."""
    left, right = operands
    shapes = [b.type(p).shape for p in operands]
    sizes = [shapes[0][axis] for axis in op.lhs_contracting]
    if not all(map(_is_short, sizes)) or prod(size for size in sizes if isinstance(size, int)) > _MOST:
        return None
    batch = len(op.lhs_batch)
    free = [
        [axis for axis in range(len(shape)) if axis not in (*summed, *batched)]
        for shape, summed, batched in (
            (shapes[0], op.lhs_contracting, op.lhs_batch),
            (shapes[1], op.rhs_contracting, op.rhs_batch),
        )
    ]
    full = (*node.type.shape, *sizes)
    after = len(node.type.shape)
    one = _spread(b, left, full, op.lhs_batch, free[0], op.lhs_contracting, batch, after)
    other = _spread(b, right, full, op.rhs_batch, free[1], op.rhs_contracting, batch + len(free[0]), after)
    product = b.add(Multiply(), one, other)
    return _fold(b, Reduce("sum", tuple(range(after, after + len(sizes)))), product)


def _spread(
    b: SimplifyingBuilder,
    operand: int,
    full: tuple[Dim, ...],
    batched: tuple[int, ...],
    free: list[int],
    summed: tuple[int, ...],
    first: int,
    after: int,
) -> int:
    """An operand along the axes of the result and those that are summed."""
    places = {axis: n for n, axis in enumerate(batched)}
    places |= {axis: first + n for n, axis in enumerate(free)}
    places |= {axis: after + n for n, axis in enumerate(summed)}
    order = sorted(places, key=lambda axis: places[axis])
    moved = rb.transpose(b, operand, order)
    return b.add(BroadcastInDim(full, tuple(places[axis] for axis in order)), moved)


def _is_short(size: Dim) -> bool:
    return isinstance(size, int) and 1 <= size <= _MOST
