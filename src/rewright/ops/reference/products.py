"""Matrix products of flattened or transposed operands, written as products of the operands as they were.

Frameworks flatten batch and sequence axes before a matrix product and unflatten them afterwards. The sharding of the
axes is lost to sight in between, so the product is written on the original axes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from rewright import ops
from rewright.ir.dims import Dim, Shape, product
from rewright.ir.graph import GraphBuilder
from rewright.ops.reference.groups import Group, merged_axes


def inserted_ones(source: Shape, target: Shape) -> Group | None:
    """The target axis of each source axis where the target only adds axes of size one, else None."""
    places: list[int] = []
    for axis, size in enumerate(target):
        if len(places) < len(source) and source[len(places)] == size:
            places.append(axis)
        elif size != 1:
            return None
    return tuple(places) if len(places) == len(source) else None


def inserts_ones(b: GraphBuilder, position: int) -> bool:
    """Whether a node is a broadcast that only adds axes of size one."""
    node = b.node(position)
    if not isinstance(node.op, ops.BroadcastInDim):
        return False
    kept = tuple(node.type.shape[axis] for axis in node.op.dimensions)
    added = [size for axis, size in enumerate(node.type.shape) if axis not in node.op.dimensions]
    ordered = all(first < second for first, second in itertools.pairwise(node.op.dimensions))
    return ordered and kept == b.type(node.operands[0]).shape and all(size == 1 for size in added)


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand as an earlier tensor: operand axis ``a`` flattens the axes ``groups[a]`` of ``position``.

    ``shape`` is that of the earlier tensor, or one it is still to be reshaped to.
    """

    builder: GraphBuilder
    position: int
    shape: Shape
    groups: tuple[Group, ...]

    @staticmethod
    def of(builder: GraphBuilder, position: int) -> Operand:
        """The operand as it is."""
        shape = builder.type(position).shape
        return Operand(builder, position, shape, tuple((axis,) for axis in range(len(shape))))

    def sizes(self, axis: int) -> Shape:
        """Sizes of the axes that an operand axis flattens."""
        return tuple(self.shape[i] for i in self.groups[axis])

    def earlier(self) -> Iterator[Operand]:
        """This operand and the tensors it is a transpose or flattening of, furthest first."""
        inner = self._before()
        if inner is not None:
            yield from inner.earlier()
        yield self

    def _before(self) -> Operand | None:
        node = self.builder.node(self.position)
        if not node.operands:
            return None
        shape = self.builder.type(node.operands[0]).shape
        steps: tuple[Group, ...] | None = None
        if isinstance(node.op, ops.Transpose):
            steps = tuple((axis,) for axis in node.op.permutation)
        elif isinstance(node.op, ops.Reshape):
            steps = merged_axes(shape, node.type.shape)
        elif isinstance(node.op, ops.BroadcastInDim) and inserts_ones(self.builder, self.position):
            places = {axis: (place,) for place, axis in enumerate(node.op.dimensions)}
            steps = tuple(places.get(axis, ()) for axis in range(node.type.rank))
        if steps is None:
            return None
        groups = tuple(tuple(i for axis in group for i in steps[axis]) for group in self.groups)
        return Operand(self.builder, node.operands[0], shape, groups)

    def flat(self, axes: Group) -> Group:
        """The axes of the earlier tensor that some operand axes flatten, in order."""
        return tuple(i for axis in axes for i in self.groups[axis])

    def merge_axes(self, axes: Group) -> Operand | None:
        """The earlier tensor reshaped so that each of some operand axes is one axis; None where that moves elements."""
        whole = [self.groups[axis] for axis in axes if len(self.groups[axis]) != 1]
        if () in whole or any(group != tuple(range(group[0], group[0] + len(group))) for group in whole):
            return None
        lengths = {group[0]: len(group) for group in whole}
        shape: list[Dim] = []
        moved: dict[int, int] = {}
        place = 0
        while place < len(self.shape):
            count = lengths.get(place, 1)
            moved.update({axis: len(shape) for axis in range(place, place + count)})
            shape.append(product(self.shape[place : place + count]))
            place += count
        groups = tuple(tuple(dict.fromkeys(moved[axis] for axis in group)) for group in self.groups)
        return Operand(self.builder, self.position, tuple(shape), groups)

    def node(self) -> int:
        """Position of the tensor in its shape."""
        if self.builder.type(self.position).shape == self.shape:
            return self.position
        return self.builder.add(ops.Reshape(self.shape), self.position)


def absorb(op: ops.DotGeneral, left: Operand, right: Operand) -> tuple[ops.DotGeneral, int, int] | None:
    """The product on earlier tensors with the most axes, with its operands; None where it already is.

    Its result has the same elements in row-major order.
    """
    lhs_free, rhs_free = op.free_axes(len(left.groups), len(right.groups))
    lefts = [x for x in left.earlier() if _in_order(x.flat(lhs_free))]
    rights = [y for y in right.earlier() if _in_order(y.flat(rhs_free))]
    pairs = [pair for x, y in itertools.product(lefts, rights) if (pair := _match(op, x, y))]
    x, y = max(pairs, key=lambda pair: len(pair[0].shape) + len(pair[1].shape), default=(left, right))
    if (x, y) == (left, right):
        return None
    plain = ops.DotGeneral(
        x.flat(op.lhs_batch), y.flat(op.rhs_batch), x.flat(op.lhs_contracting), y.flat(op.rhs_contracting)
    )
    return plain, x.node(), y.node()


def _in_order(axes: Group) -> bool:
    return all(a < b for a, b in itertools.pairwise(axes))


def _match(op: ops.DotGeneral, x: Operand, y: Operand) -> tuple[Operand, Operand] | None:
    """Both operands with batch and contracting axes that agree, where need be after merging those that do not."""
    pairs = list(zip(op.lhs_batch + op.lhs_contracting, op.rhs_batch + op.rhs_contracting, strict=True))
    different = [(a, b) for a, b in pairs if x.sizes(a) != y.sizes(b)]
    if not different:
        return x, y
    first, second = x.merge_axes(tuple(a for a, _ in different)), y.merge_axes(tuple(b for _, b in different))
    if first is None or second is None or any(first.sizes(a) != second.sizes(b) for a, b in pairs):
        return None
    return first, second
