"""Matrix products of flattened or transposed operands, written as products of the operands as they were.

Frameworks flatten batch and sequence axes before a matrix product and unflatten them afterwards. The sharding of the
axes is lost to sight in between, so the product is written on the original axes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from rewright import ops
from rewright.ir.dims import Dim, Shape
from rewright.ir.graph import GraphBuilder

Group = tuple[int, ...]


def merged_axes(source: Shape, target: Shape) -> tuple[Group, ...] | None:
    """For each target axis the consecutive source axes it flattens, or None where a source axis is split."""
    groups: list[Group] = []
    place = 0
    for size in target:
        start, total = place, 1
        grown: Dim = total
        while grown != size and place < len(source):
            grown = grown * source[place]
            place += 1
            if isinstance(grown, int) and isinstance(size, int) and grown > size:
                return None
        if grown != size:
            return None
        if size == 1 and place < len(source) and source[place] == 1 and place == start:
            place += 1
        groups.append(tuple(range(start, place)))
    if any(size != 1 for size in source[place:]):
        return None
    if groups and place < len(source):
        groups[-1] = (*groups[-1], *range(place, len(source)))
    return tuple(groups) if groups or not source else None


def inserted_ones(source: Shape, target: Shape) -> Group | None:
    """The target axis of each source axis where the target only adds axes of size one, else None."""
    places: list[int] = []
    for axis, size in enumerate(target):
        if len(places) < len(source) and source[len(places)] == size:
            places.append(axis)
        elif size != 1:
            return None
    return tuple(places) if len(places) == len(source) else None


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand as an earlier tensor: operand axis ``a`` flattens the axes ``groups[a]`` of ``position``."""

    builder: GraphBuilder
    position: int
    groups: tuple[Group, ...]

    @staticmethod
    def of(builder: GraphBuilder, position: int) -> Operand:
        """The operand as it is."""
        return Operand(builder, position, tuple((axis,) for axis in range(builder.type(position).rank)))

    @property
    def shape(self) -> Shape:
        """Shape of the earlier tensor."""
        return self.builder.type(self.position).shape

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
        if isinstance(node.op, ops.Transpose):
            steps: tuple[Group, ...] | None = tuple((axis,) for axis in node.op.permutation)
        elif isinstance(node.op, ops.Reshape):
            steps = merged_axes(self.builder.type(node.operands[0]).shape, node.type.shape)
        else:
            return None
        if steps is None:
            return None
        groups = tuple(tuple(i for axis in group for i in steps[axis]) for group in self.groups)
        return Operand(self.builder, node.operands[0], groups)

    def flat(self, axes: Group) -> Group:
        """The axes of the earlier tensor that some operand axes flatten, in order."""
        return tuple(i for axis in axes for i in self.groups[axis])


@dataclass(frozen=True, slots=True)
class Plain:
    """A product on earlier tensors; its result has the same elements in row-major order."""

    op: ops.DotGeneral
    left: int
    right: int


def absorb(op: ops.DotGeneral, left: Operand, right: Operand) -> Plain | None:
    """The product on the earliest tensors that it can be written on, or None where it already is."""
    lhs_free, rhs_free = op.free_axes(len(left.groups), len(right.groups))
    for x in left.earlier():
        if not _in_order(x.flat(lhs_free)):
            continue
        for y in right.earlier():
            if x.position == left.position and y.position == right.position:
                return None
            if _in_order(y.flat(rhs_free)) and _pairs_match(op, x, y):
                plain = ops.DotGeneral(
                    x.flat(op.lhs_batch),
                    y.flat(op.rhs_batch),
                    x.flat(op.lhs_contracting),
                    y.flat(op.rhs_contracting),
                )
                return Plain(plain, x.position, y.position)
    return None


def _in_order(axes: Group) -> bool:
    return all(a < b for a, b in itertools.pairwise(axes))


def _pairs_match(op: ops.DotGeneral, x: Operand, y: Operand) -> bool:
    pairs = zip(op.lhs_batch + op.lhs_contracting, op.rhs_batch + op.rhs_contracting, strict=True)
    return all(x.sizes(a) == y.sizes(b) for a, b in pairs)
