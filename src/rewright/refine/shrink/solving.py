"""One scale for every component of axes, such that all relations hold at the small sizes too."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import islice

from rewright.refine.shrink.space import AxisSpace, Merge
from rewright.refine.shrink.units import IDENTITY, Scale, scales

MOST_ROUNDS = 60


class Solution:
    """The scale of every component; found by trying the strongest scales first and weakening those that fail."""

    def __init__(self, space: AxisSpace) -> None:
        self.space = space
        _refine_products(space)
        self.positions: defaultdict[int, set[int]] = defaultdict(set)
        self.largest: defaultdict[int, int] = defaultdict(int)
        self._gather_positions()
        self.products: dict[int, Merge] = {}
        for merge in space.merges:
            self.products.setdefault(space.find(merge.merged), merge)
        self.pinned = {space.find(axis) for axis in space.pins}
        self._open_loops()
        self.order = self._order()
        self._push_positions()
        self.level: defaultdict[int, int] = defaultdict(int)
        self.long = {space.find(axis) for axis in space.tokens}
        self.chosen: dict[int, Scale] = {}
        self.solve()

    def scale(self, axis: int) -> Scale:
        """The scale of the component of an axis (or of integer values)."""
        return self.chosen.get(self.space.find(axis), IDENTITY)

    def new_size(self, axis: int) -> int:
        """The small size of an axis."""
        return self.scale(axis)(self.space.sizes[axis])

    def value(self, entry: int, value: int) -> int:
        """What becomes of an integer that is a position along some axis, or a distance; others stay as they are."""
        inside = 0 < abs(value) <= self.largest[self.space.find(entry)] + 1
        scaled = self.scale(entry)(abs(value)) if inside else abs(value)
        return scaled if value >= 0 else -scaled

    def weaken(self, axes: Iterable[int]) -> None:
        """Give up the scales with which some relation between these axes fails."""
        for root in {self.space.find(axis) for axis in axes}:
            merge = self.products.get(root)
            if merge is None:
                self.level[root] += 1
            else:
                self.pinned.update((root, self.space.find(merge.outer), self.space.find(merge.inner)))

    def solve(self) -> None:
        """Choose scales until every product and every sum holds; in the end the identity does."""
        for _ in range(MOST_ROUNDS):
            self._spread_pins()
            self.chosen = {}
            for root in reversed(self.order):
                self.chosen[root] = self._choose(root)
            failed = self._failures()
            if not failed:
                return
            self.weaken(failed)
        self.chosen = {}

    def _gather_positions(self) -> None:
        find = self.space.find
        for axis, size in enumerate(self.space.sizes):
            root = find(axis)
            self.positions[root].add(size)
            self.largest[root] = max(self.largest[root], size)
        for axis, position in self.space.cuts:
            self.positions[find(axis)].add(abs(position))
        for axis, value in self.space.constants:
            if value <= self.largest[find(axis)] + 1:
                self.positions[find(axis)].add(value)

    def _open_loops(self) -> None:
        """A product in the component of one of its factors is a multiple of it: the other factor keeps its size.

        So it is where a rank holds one head of several: the axis of its heads is the axis within a head.
        """
        for root, merge in list(self.products.items()):
            factors = [self.space.find(merge.outer), self.space.find(merge.inner)]
            if root in factors:
                del self.products[root]
                self.pinned.update(factor for factor in factors if factor != root)

    def _order(self) -> list[int]:
        """Components so that a product comes before its factors; those on a cycle keep their sizes."""
        order: list[int] = []
        state: dict[int, int] = {}
        for start in list(self.positions):
            stack = [(start, False)]
            while stack:
                root, done = stack.pop()
                if done:
                    state[root] = 2
                    order.append(root)
                elif state.get(root) is None:
                    state[root] = 1
                    stack.append((root, True))
                    stack.extend((factor, False) for factor in self._factors(root))
                elif state[root] == 1:
                    self.pinned.add(root)
        return order[::-1]

    def _factors(self, root: int) -> list[int]:
        merge = self.products.get(root)
        return [self.space.find(merge.outer), self.space.find(merge.inner)] if merge else []

    def _push_positions(self) -> None:
        """A position along a product is a position along its outer factor."""
        for root in self.order:
            merge = self.products.get(root)
            if merge is None:
                continue
            inner, outer = self.space.sizes[merge.inner], self.space.find(merge.outer)
            self.positions[outer].update((2 * p + inner) // (2 * inner) for p in self.positions[root])

    def _spread_pins(self) -> None:
        """Factors of a product that keeps its size keep theirs."""
        for root in self.order:
            if root in self.pinned:
                self.pinned.update(self._factors(root))

    def _choose(self, root: int) -> Scale:
        merge = self.products.get(root)
        if root in self.pinned or not self.largest[root]:
            return IDENTITY
        if merge is None:
            options = islice(scales(self.positions[root], root in self.long), self.level[root], None)
            return next(options, IDENTITY)
        outer = self.chosen.get(self.space.find(merge.outer), IDENTITY)
        small = self.scale(merge.inner)(self.space.sizes[merge.inner])
        return Scale(outer.unit * self.space.sizes[merge.inner], outer.small * small)

    def _failures(self) -> set[int]:
        failed: set[int] = set()
        for root in self.order:
            if root in self.products and not self.chosen[root].fits(self.positions[root]):
                failed.add(root)
        for merge in self.space.merges:
            if self.new_size(merge.merged) != self.new_size(merge.outer) * self.new_size(merge.inner):
                failed.update((merge.merged, merge.outer, merge.inner))
        for axis, total, parts in self.space.sums:
            scale = self.scale(axis)
            if scale(total) != sum(scale(part) for part in parts):
                failed.add(axis)
        return failed


def _refine_products(space: AxisSpace) -> None:
    """Relate the factors of all products in one component, until each has one way to be split."""
    for _ in range(MOST_ROUNDS):
        _drop_repetitions(space)
        first: dict[int, Merge] = {}
        changed = False
        for merge in space.merges[:]:
            other = first.setdefault(space.find(merge.merged), merge)
            if other is not merge and _agree(space, other, merge):
                changed = True
                first.pop(space.find(merge.merged), None)
        if not changed:
            return


def _drop_repetitions(space: AxisSpace) -> None:
    find, sizes = space.find, space.sizes
    seen: dict[tuple[int, int, int, int, int], Merge] = {}
    for m in space.merges:
        seen.setdefault((find(m.merged), find(m.outer), sizes[m.outer], find(m.inner), sizes[m.inner]), m)
    space.merges = list(seen.values())


def _agree(space: AxisSpace, left: Merge, right: Merge) -> bool:
    """Make two splits of one component the same; says whether that changed anything."""
    a, b = space.sizes[left.inner], space.sizes[right.inner]
    if a == b:
        same = space.find(left.inner) == space.find(right.inner) and space.find(left.outer) == space.find(right.outer)
        space.link(left.inner, right.inner)
        space.link(left.outer, right.outer)
        return not same
    if max(a, b) % min(a, b):
        fresh = {left.inner, left.outer, right.inner, right.outer} - space.pins
        space.fix(fresh)
        return bool(fresh)
    large, small = (left, right) if a > b else (right, left)
    _split_inner(space, large, small.inner)
    return True


def _split_inner(space: AxisSpace, merge: Merge, inner: int) -> None:
    """Rewrite ``outer * (middle * inner)`` as ``(outer * middle) * inner``."""
    middle = space.new_axis(space.sizes[merge.inner] // space.sizes[inner])
    both = space.new_axis(space.sizes[merge.outer] * space.sizes[middle])
    space.merges.remove(merge)
    space.merge(merge.inner, middle, inner)
    space.merge(both, merge.outer, middle)
    space.merge(merge.merged, both, inner)
