"""All axes of all graphs, and what is known about how their sizes depend on each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rewright.ir.dims import Dim
from rewright.ir.graph import Graph
from rewright.ir.union_find import UnionFind
from rewright.ops.sizes import Attributes


@dataclass(frozen=True, slots=True)
class Merge:
    """``merged`` is the row-major product of the axes ``outer`` and ``inner``."""

    merged: int
    outer: int
    inner: int


@dataclass(frozen=True, slots=True)
class At:
    """A position or a length along an axis, which becomes smaller with it."""

    axis: int
    position: int


class AxisSpace:
    """Axes by number, grouped into components by union-find; numbers stand for positions along them.

    Every node has one entry per axis, and one more for the values of an integer tensor, which are positions along
    some axis; further axes that no node has come from refining reshapes.
    """

    def __init__(self, graphs: Sequence[Graph]) -> None:
        self.sizes: list[int] = []
        """Size of every axis; 0 for the entries of values."""
        self.offsets: list[list[int]] = []
        for graph in graphs:
            offsets: list[int] = []
            for node in graph.nodes:
                offsets.append(len(self.sizes))
                self.sizes.extend(size if isinstance(size, int) else 0 for size in node.type.shape)
                self.sizes.append(0)
            self.offsets.append(offsets)
        self._components = UnionFind[int]()
        self.attributes: list[list[Attributes]] = [[] for _ in graphs]
        """By graph and node, the attributes that are sizes."""
        self.cuts: list[tuple[int, int]] = []
        """Positions and lengths that mean something along an axis."""
        self.constants: list[tuple[int, int]] = []
        """Integers in the programs that are compared with or added to positions along an axis."""
        self.merges: list[Merge] = []
        self.sums: list[tuple[int, int, tuple[int, ...]]] = []
        """Axis, total, parts: lengths along one component; the total is the sum of the parts."""
        self.pins: set[int] = set()
        """Axes that have to keep their sizes."""
        self.tokens: set[int] = set()
        """Axes of integer inputs, which are kept longer so that many values fit in one run."""

    def find(self, axis: int) -> int:
        """The representative of the component."""
        return self._components.find(axis)

    def link(self, left: int, right: int) -> None:
        """Put two axes (or values) into one component."""
        self._components.union(*sorted((self.find(left), self.find(right))))

    def value(self, axis: int) -> int:
        """The size of an axis."""
        return self.sizes[axis]

    def same(self, left: int, right: int) -> None:
        """Two axes of one size depend on each other, unless the size is 1, which never changes."""
        if self.sizes[left] != 1:
            self.link(left, right)

    def fix(self, axes: Iterable[int]) -> None:
        """Sizes that must not change."""
        self.pins.update(axes)

    def whole(self, axis: int) -> At:
        """An attribute that is the size of an axis."""
        return At(axis, self.sizes[axis])

    def slice(self, result: int, source: int, low: Dim, high: Dim, step: int) -> tuple[At, At]:
        """Where an axis is cut is a position along it."""
        if step != 1:
            self.fix((result, source))
        else:
            self.same(result, source)
            self.cut(source, number(low), number(high))
        return At(source, number(low)), At(source, number(high))

    def pad(self, result: int, source: int, low: Dim, high: Dim) -> tuple[At, At]:
        """The longer axis has three parts."""
        if low or high:
            self.link(result, source)
            self.total(result, (number(low), self.sizes[source], number(high)))
        else:
            self.same(result, source)
        return At(source, number(low)), At(source, number(high))

    def join(self, result: int, parts: Sequence[int]) -> None:
        """All parts are lengths along one axis."""
        for part in parts:
            self.link(result, part)
        self.total(result, [self.sizes[part] for part in parts])

    def divide(self, source: int, lengths: Sequence[Dim]) -> tuple[At, ...]:
        """All parts are lengths along one axis."""
        parts = list(map(number, lengths))
        self.total(source, parts)
        return tuple(At(source, part) for part in parts)

    def slide(self, result: int, source: int, width: Dim, low: Dim, high: Dim) -> tuple[At, At, At]:
        """The width of a window is a length along the axis."""
        lengths = number(width), number(low), number(high)
        self.link(result, source)
        self.cut(source, *lengths)
        return At(source, lengths[0]), At(source, lengths[1]), At(source, lengths[2])

    def part(self, part: int, source: int) -> None:
        """A part of an axis is a length along it."""
        self.link(part, source)

    def chosen(self, count: int, source: int) -> None:
        """Fewer elements than all are a number of their own."""
        if self.sizes[count] == self.sizes[source]:
            self.same(count, source)
        else:
            self.fix((count, source))

    def cut(self, axis: int, *positions: int) -> None:
        """Positions or lengths along an axis have to scale with it."""
        self.cuts.extend((axis, position) for position in positions if position)

    def total(self, axis: int, parts: Sequence[int]) -> None:
        """Lengths that are laid one after the other along an axis; their partial sums are positions."""
        position = 0
        for part in parts:
            position += part
            self.cut(axis, part, position)
        self.sums.append((axis, position, tuple(parts)))

    def merge(self, merged: int, outer: int, inner: int) -> None:
        """Record that one axis is the product of two."""
        self.merges.append(Merge(merged, outer, inner))

    def new_axis(self, size: int) -> int:
        """An axis that no node has."""
        self.sizes.append(size)
        return len(self.sizes) - 1

    def regroup(self, left: Sequence[int], right: Sequence[int]) -> None:
        """Two lists of axes with one row-major product: relate them by their common refinement.

        Axes are compared from the innermost one; the larger of two is split by the smaller. Where neither size
        divides the other, all that are left keep their sizes.
        """
        ones, others = [a for a in left if self.sizes[a] != 1], [a for a in right if self.sizes[a] != 1]
        if any(self.sizes[a] == 0 for a in [*ones, *others]):
            self.fix([*ones, *others])
            return
        while ones and others:
            a, b = ones[-1], others[-1]
            if self.sizes[a] == self.sizes[b]:
                self.link(a, b)
                ones.pop()
                others.pop()
            elif self.sizes[a] % self.sizes[b] == 0:
                ones[-1] = self._split(a, b)
                others.pop()
            elif self.sizes[b] % self.sizes[a] == 0:
                others[-1] = self._split(b, a)
                ones.pop()
            else:
                self.fix([*ones, *others])
                return

    def _split(self, axis: int, inner: int) -> int:
        outer = self.new_axis(self.sizes[axis] // self.sizes[inner])
        self.merge(axis, outer, inner)
        return outer


def number(size: Dim) -> int:
    """A size that is known to be a number."""
    assert isinstance(size, int)
    return size
