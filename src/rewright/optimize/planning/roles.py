"""Which loop does what in a kernel: grid, rows, lanes, features; and what has to be cut off where no roles fit."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rewright.optimize.kernel import Kernel, Loop, Product, Running, Store, Sweep
from rewright.optimize.online.derive import derive, helpers, product_of, products, with_helpers
from rewright.optimize.online.update import Update
from rewright.optimize.scalars.expressions import Expression, Table, unreduced_parts, walk
from rewright.optimize.scalars.simplify import as_index

FEATURE_LIMIT = 512
"""The widest accumulator that a kernel keeps for a row."""
ROWS = 16
"""More rows than these may be others, if these are side by side in memory."""
SMALL = 64
"""Reductions of this many elements may be computed anew for every row."""


class Cut(Exception):
    """No roles fit; the reductions that are to be computed by kernels of their own, and why."""

    def __init__(self, why: str, values: Iterable[Expression], library: bool = False) -> None:
        super().__init__(why)
        self.values = tuple(values)
        self.library = library
        """Whether they are plain matrix products, which a library computes best."""


@dataclass(frozen=True)
class Job:
    """The stores of one kernel, as expressions over the loops ``sizes``."""

    stores: tuple[Store, ...]
    sizes: Mapping[str, int]
    rows: str | None = None
    """The loop that is tiled, where that is decided already."""

    @property
    def units(self) -> list[str]:
        """The loops over unit axes."""
        return [name for name, size in self.sizes.items() if size == 1]


def reductions(*values: Expression) -> list[Expression]:
    """All reductions in expressions, inner ones first."""
    return [e for e in walk(*values) if e.bound is not None]


def shown(values: Iterable[Expression], sweeps: Iterable[Sweep]) -> frozenset[int]:
    """The extrema that one of the values has without a sum that follows them by a factor, by number.

    NaN would be lost there: an extremum takes no notice of it, and leaves it to the sum.
    """
    follow: dict[int, set[int]] = {}
    for r in (r for sweep in sweeps for r in sweep.running):
        for e in r.update.extrema:
            follow.setdefault(e.number, set()).add(r.value.number)
    found: set[int] = set()
    for value in values:
        outer = _outermost(value)
        found |= {number for number in outer if not follow.get(number, set[int]()) & outer}
    return frozenset(found)


def _outermost(value: Expression) -> set[int]:
    """The reductions in a value that are inside of no other one, by number."""
    return {e.number for e in unreduced_parts(value) if e.bound is not None}


def compared(values: Iterable[Expression]) -> frozenset[int]:
    """The reductions that are compared or chosen in values, or in what these reduce, by number."""
    found: set[int] = set()
    seen: set[tuple[int, bool]] = set()
    stack = [(value, False) for value in values]
    while stack:
        e, inside = stack.pop()
        if (e.number, inside) in seen:
            continue
        seen.add((e.number, inside))
        if e.bound is not None:
            found |= {e.number} if inside else set[int]()
            inside = False
        chosen = inside or e.op.startswith("compare_") or e.op == "select"
        stack.extend((a, chosen) for a in e.arguments)
    return frozenset(found)


def arrange(table: Table, job: Job, name: str) -> Kernel:
    """The kernel of a job; raises Cut with what has to be computed before."""
    return _Arranger(table, job).kernel(name)


class _Arranger:
    def __init__(self, table: Table, job: Job) -> None:
        self.table, self.job = table, job
        self.outer = frozenset(job.sizes)
        values = [s.value for s in job.stores]
        found = reductions(*values)
        self.stream = [e for e in found if e.free <= self.outer]
        self.lanes = {e.bound.index for e in self.stream if e.bound}
        self.inner = [e for e in found if not e.free <= self.outer and e.free <= self.outer | self.lanes]

    def kernel(self, name: str) -> Kernel:
        self.check_plain()
        if not self.stream:
            return self.map_kernel(name)
        rows = self.job.rows or self.choose_rows()
        if rows is not None and not self.inner and self.is_feature_without(rows):
            rows = None
        products = self.tile_products(rows)
        features, lane_out = self.other_loops(rows)
        special = {rows, features, lane_out}
        grid = tuple(Loop(n, s) for n, s in self.job.sizes.items() if n not in special)
        self.check_free(rows, features)
        sweeps = self.sweeps(rows, features, products)
        finals = tuple(s for s in self.job.stores if lane_out is None or lane_out not in s.axes)
        along = tuple(s for s in self.job.stores if lane_out is not None and lane_out in s.axes)
        if along:
            assert lane_out is not None
            sweeps.append(Sweep(Loop(lane_out, self.job.sizes[lane_out]), (), (), along))
        values = [s.value for s in self.job.stores]
        read = compared(values) | shown((s.value for s in self.job.stores if s.returned), sweeps)
        sweeps = [replace(sweep, compared=read) for sweep in sweeps]
        return Kernel(name, grid, self.loop(rows), self.loop(features), tuple(sweeps), finals)

    def loop(self, name: str | None) -> Loop | None:
        """A loop by name."""
        return None if name is None else Loop(name, self.job.sizes[name])

    # --- what is left to others

    def check_plain(self) -> None:
        """A matrix product of stored tensors, with nothing to fuse into it, is a library's."""
        plain = [e for e in self.stream if self.is_plain_product(e)]
        if plain:
            raise Cut("a matrix product of stored tensors", plain, library=True)

    def is_plain_product(self, e: Expression) -> bool:
        """Whether a reduction is a sum of products with an index of its own on either side, and nothing else inside."""
        assert e.bound is not None
        if e.bound.kind != "sum" or e.bound.count <= 4 or any(b.bound for b in walk(e.arguments[0])):
            return False
        factors = [f for f, sign in products(e.arguments[0]) if e.bound.index in f.free and sign > 0]
        if len(factors) < 2:
            return False
        own = [f.free - {e.bound.index} for f in factors]
        sides = [v for v in e.free if self.job.sizes.get(v, 1) > 1 and not all(v in o for o in own)]
        lefts = [v for v in sides if v in own[0]]
        return bool(lefts) and len(lefts) < len(sides)

    # --- loops

    def map_kernel(self, name: str) -> Kernel:
        """No reductions: rows and lanes are the last two loops of the first store."""
        axes = self.job.stores[0].axes
        lane = axes[-1] if axes else None
        rows = axes[-2] if len(axes) > 1 else None
        grid = tuple(Loop(n, s) for n, s in self.job.sizes.items() if n not in (lane, rows))
        if lane is None:
            return Kernel(name, grid, None, None, (), self.job.stores)
        sweep = Sweep(Loop(lane, self.job.sizes[lane]), (), (), self.job.stores)
        return Kernel(name, grid, self.loop(rows), None, (sweep,), ())

    def choose_rows(self) -> str | None:
        """The loop that is tiled: one that an operand of a matrix product does not have, else the largest."""
        votes: dict[str, int] = {}
        for e in self.inner:
            bound = e.bound
            assert bound is not None
            factors = [f for f, _ in products(e.arguments[0]) if bound.index in f.free]
            for factor in factors:
                if factor.free & self.lanes:
                    for v in (e.free - factor.free) & self.outer:
                        votes[v] = votes.get(v, 0) + 1
        candidates = {v for v in votes if self.job.sizes[v] > 1} or set(votes)
        if not candidates:
            shared = [e.free for e in self.stream]
            every = set[str]().union(*shared)
            candidates = {v for v in every if all(v in free for free in shared)} or every
        if not candidates:
            return None
        if self.inner:
            return max(sorted(candidates), key=lambda v: self.job.sizes[v])
        beside = self.side_by_side()
        return max(sorted(candidates), key=lambda v: (min(self.job.sizes[v], ROWS), v in beside, self.job.sizes[v]))

    def side_by_side(self) -> set[str]:
        """The loops along which neighbours in memory are read."""
        loads = [e for e in walk(*(s.value for s in self.job.stores)) if e.op == "load" and e.arguments]
        places = [as_index(e.arguments[-1]) for e in loads]
        return {str(atom) for place in places if place is not None for atom, step in place.terms if step == 1}

    def other_loops(self, rows: str | None) -> tuple[str | None, str | None]:
        """The feature loop and the lane that is stored along, if there are such."""
        every = frozenset[str]().union(*(e.free for e in self.stream))
        featured = [v for v in sorted(every - {rows}) if self.is_feature(v, rows)]
        along = sorted(self.outer - every, key=lambda v: self.job.sizes[v])
        axes = self.job.stores[0].axes
        single = [v for v in axes[-1:] if v in along and not featured]
        along = [v for v in along if self.job.sizes[v] > 1] or single
        if along and featured:
            raise Cut("accumulators that another loop shares", [e for e in self.stream if featured[0] in e.free])
        if len(along) > 1:
            raise Cut("a statistic that several loops share", self.stream)
        if len(featured) > 1:
            raise Cut("accumulators over several loops", [e for e in self.stream if e.free & set(featured)])
        if featured and self.job.sizes[featured[0]] > FEATURE_LIMIT:
            wide = [e for e in self.stream if featured[0] in e.free]
            raise Cut("an accumulator that is too wide", wide, library=True)
        return (featured[0] if featured else None), (along[0] if along else None)

    def is_feature(self, v: str, rows: str | None) -> bool:
        """Whether a loop occurs in a factor of sums only, beside another factor that varies with the row."""
        if self.job.sizes[v] == 1 or any(v in e.free for e in self.inner):
            return False
        if all(v in e.free for e in self.stream) and not self.inner:
            return False  # a plain product; where its operand is one, that is computed once for all features
        parts = [self.split(e, v) for e in self.stream if v in e.free]
        # The items of a tile are packed once for all rows of a block.
        packed = all(part is not None and (rows is None or rows not in part[1].free) for part in parts)
        return packed and any(part is not None and part[0].op != "constant" for part in parts)

    def is_feature_without(self, rows: str) -> bool:
        """Whether a loop is one of features if every row has a kernel's task to itself, and not otherwise.

        The mean of a sequence's elements under its mask is such: weights and items are both of one row.
        """
        others = sorted(frozenset[str]().union(*(e.free for e in self.stream)) - {rows})
        return not any(self.is_feature(v, rows) for v in others) and any(self.is_feature(v, None) for v in others)

    def split(
        self, e: Expression, feature: str, body: Expression | None = None
    ) -> tuple[Expression, Expression] | None:
        """Weight and item of a sum of products; the weight of a sum that all rows share is one."""
        assert e.bound is not None
        body = e.arguments[0] if body is None else body
        if e.bound.kind != "sum" or not e.dtype.is_float:  # products of tiles are computed in floats
            return None
        factors = list(products(body))
        items = [f for f in factors if feature in f[0].free]
        weights = [f for f in factors if feature not in f[0].free]
        if not items or any(reductions(f) for f, _ in items):
            return None
        weight, item = product_of(self.table, weights), product_of(self.table, items)
        if item is None:
            return None
        return (self.table.constant(1.0, body.dtype) if weight is None else weight), item

    def check_free(self, rows: str | None, features: str | None) -> None:
        """A reduction that rows do not share with is cut off where it is worth it."""
        if rows is None or self.job.sizes[rows] == 1:
            return
        again = [e for e in self.stream if rows not in e.free and e.bound and e.bound.count > SMALL]
        if again and not all(self.is_helper(e) for e in again):
            raise Cut("a reduction that all rows share", again)

    def tile_products(self, rows: str | None) -> list[Product]:
        """Inner reductions as products of tiles; raises Cut with those that are none, and are alike."""
        found: list[Product] = []
        failed: list[tuple[Expression, Cut]] = []
        for e in self.inner:
            try:
                found.append(self.tile_product(e, rows))
            except Cut as cut:
                failed.append((e, cut))
        if failed:
            first, why = failed[0]
            alike = [cut.values for e, cut in failed if (e.free, e.bound) == (first.free, first.bound)]
            raise Cut(str(why), dict.fromkeys(e for values in alike for e in values))
        return found

    def is_helper(self, e: Expression) -> bool:
        """Whether another sum of the pass moves by this one."""
        assert e.bound is not None
        lane = e.bound.index
        same = [x for x in self.stream if x.bound == e.bound]
        return any(e.arguments[0] is body for x in same for body in helpers(self.table, x.arguments[0], lane, same))

    def tile_product(self, e: Expression, rows: str | None) -> Product:
        """An inner reduction as a product of tiles; raises Cut where it is none."""
        bound = e.bound
        assert bound is not None
        lanes = e.free & self.lanes
        single = bound.kind == "sum" and e.dtype.is_float and len(lanes) == 1
        inside = reductions(e.arguments[0])
        is_flat = not any(reductions(x.arguments[0]) for x in inside)
        if inside and is_flat and sum(map(self.count, inside)) <= self.count(e):
            raise Cut("a product of tiles would reduce it again for every element", inside)
        if single and rows in e.free and not reductions(e.arguments[0]):
            (lane,) = lanes
            factors = list(products(e.arguments[0]))
            right = [f for f in factors if lane in f[0].free]
            left = [f for f in factors if lane not in f[0].free]
            if not any(rows in f.free for f, _ in right):
                first, second = product_of(self.table, left), product_of(self.table, right)
                if first is not None and second is not None and bound.index in second.free:
                    return Product(e, first, second, Loop(bound.index, bound.size))
        raise Cut("a reduction inside of another one", [e])

    def count(self, e: Expression) -> int:
        """The elements of a reduction, each index that it depends on taken once."""
        every = reductions(*(s.value for s in self.job.stores))
        sizes = {x.bound.index: x.bound.count for x in every if x.bound} | dict(self.job.sizes)
        return math.prod(sizes[name] for name in e.free)

    # --- sweeps

    def sweeps(self, rows: str | None, features: str | None, found: Collection[Product]) -> list[Sweep]:
        """Reductions in as few passes as their dependencies allow."""
        passes: list[tuple[Loop, list[Running]]] = []
        place: dict[int, int] = {}
        for e in self.stream:
            assert e.bound is not None
            lane = Loop(e.bound.index, e.bound.size)
            earliest = 0
            for other in self.stream:
                if other.number in place and _uses(e, other):
                    earliest = max(earliest, place[other.number])
            chosen = self.insert(passes, earliest, lane, e, features)
            place[e.number] = chosen
        return [
            Sweep(lane, tuple(p for p in found if lane.name in p.value.free and _needs(running, p)), tuple(running), ())
            for lane, running in passes
        ]

    def insert(
        self,
        passes: list[tuple[Loop, list[Running]]],
        earliest: int,
        lane: Loop,
        e: Expression,
        features: str | None,
    ) -> int:
        """Put a reduction into the earliest pass that it fits into."""
        assert e.bound is not None
        body = e.arguments[0]
        for number in range(earliest, len(passes)):
            if passes[number][0] != lane:
                continue
            here = [r.value for r in passes[number][1]]
            if e in here:  # as a helper of another one
                return number
            update = derive(self.table, e.bound.kind, body, lane.name, here)
            found = [] if update is None else [*passes[number][1], self.running(e, update, features)]
            means = any(x.bound is not None and x.bound.kind == "sum" and _uses(body, x) for x in here)
            if means and (update is None or update.estimated):
                found = self.with_helpers([*here, e], lane.name, features) or found
            mine = next((r for r in found if r.value is e), None)
            if mine is not None and self.has_place(mine, features):
                passes[number] = (lane, found)
                return number
        update = derive(self.table, e.bound.kind, body, lane.name, ())
        assert update is not None
        passes.append((lane, [self.running(e, update, features)]))
        return len(passes) - 1

    def with_helpers(self, values: Sequence[Expression], lane: str, features: str | None) -> list[Running]:
        """The reductions of a pass with the sums that they move by; nothing where one has no place in it."""
        updates = with_helpers(self.table, values, lane) or {}
        found = [self.running(e, update, features) for e, update in updates.items()]
        return found if all(self.has_place(running, features) for running in found) else []

    @staticmethod
    def has_place(running: Running, features: str | None) -> bool:
        """Whether a state is one number of a row, or a sum over features that moves by numbers of a row alone."""
        update = running.update
        if features not in running.value.free:
            return True
        if running.factors is None or update.reset is not None:
            return False
        grown = [] if update.growth is None else [*update.growth.coefficients, *(e for e, _ in update.moves)]
        own = [] if update.growth is None else [e for _, e in update.growth.others]
        return not any(features in e.free for e in grown if e not in own)

    def running(self, e: Expression, update: Update, features: str | None) -> Running:
        """A reduction with its state; a sum over features as a product of tiles."""
        if features is None or features not in e.free:
            return Running(e, update.body, update, None)
        factors = self.split(e, features, update.body)
        if factors is None and self.split(e, features) is not None:  # whose weight is outside of the sum
            factors = self.table.constant(1.0, update.body.dtype), update.body
        return Running(e, update.body, update, factors)


def _uses(value: Expression, part: Expression) -> bool:
    return any(e is part for e in walk(value))


def _needs(running: Collection[Running], product: Product) -> bool:
    return any(_uses(r.body, product.value) for r in running)
