"""Long lanes in pieces that run side by side: partial states, and a kernel that merges them.

With one query and few heads a kernel has fewer tasks than the machine has units, however many keys there are. What
lets a state follow another one within a pass also merges the states of pieces: where

    f(x, e') = f(x, e) * g(e, e')

the sum of ``f(x, e)`` over all x is the sum, over the pieces p, of their states times ``g(e_p, e)``, with e_p the
extremum of the piece and e that of all. A state that moves by an addend moves by it once for every element of the
piece, and one that starts again does so in every piece that does not hold the extremum. So the pieces are one more
loop of the grid, their states are tensors, and the merge is a kernel in the same IR, in which the states of the pieces
are what is read: every printer prints both, and no printer knows of it. The identities are those that are proved for
the kernel before it is split (``proofs``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from rewright import ops
from rewright.ir.graph import Graph, Node
from rewright.ir.types import DType, TensorType
from rewright.optimize.kernel import Kernel, Loop, Running, Store, Sweep
from rewright.optimize.online.update import Estimate, Growth, Update
from rewright.optimize.planning.costs import Machine, pieces_for
from rewright.optimize.planning.plan import KernelStep, Plan, Step
from rewright.optimize.planning.roles import Cut, Job, arrange
from rewright.optimize.scalars.expressions import Bound, Expression, Table
from rewright.optimize.scalars.values import identity, vanishes
from rewright.terms.index import Index, variable

PIECE = "piece"
"""The loop over the pieces of a lane."""
IDEMPOTENT = ("maximum", "minimum", "or", "and")
"""Reductions that an element may be given to twice."""
MOST = 64
"""The most pieces; a merge is one tile."""


def split_plan(plan: Plan, machine: Machine, pieces: int | None = None) -> Plan:
    """The plan with kernels split where the cost model of the machine says so, or all that can be into ``pieces``."""
    graph, steps, memory = plan.graph, list[Step](), set(plan.memory)
    decisions = list(plan.decisions)
    for step in plan.steps:
        found = None
        if isinstance(step, KernelStep) and is_mergeable(step.kernel):
            wanted = pieces if pieces is not None else pieces_for(graph, step.kernel, machine, MOST)
            found = split_kernel(graph, plan.table, step.kernel, wanted)
        if found is None:
            steps.append(step)
            continue
        memory |= set(range(len(graph.nodes), len(found.graph.nodes)))
        graph = found.graph
        steps += [KernelStep(found.partial), *(KernelStep(k) for k in found.merges)]
        decisions.append(f"{found.partial.name} is split: {found.why} for the units of {machine.name}")
    return replace(plan, graph=graph, memory=frozenset(memory), steps=tuple(steps), decisions=decisions)


def is_mergeable(kernel: Kernel) -> bool:
    """Whether a kernel is one pass whose states are all that it is for; what it then stores along may be short."""
    if not kernel.sweeps:
        return False
    first, *rest = kernel.sweeps
    short = all(not s.running and not s.products and s.lane.count <= MOST for s in rest)
    return bool(first.running) and not first.stores and short


@dataclass(frozen=True)
class Split:
    """A kernel that writes the states of pieces, and those that merge them; the graph has the states as nodes."""

    graph: Graph
    partial: Kernel
    merges: tuple[Kernel, ...]
    why: str


def split_kernel(graph: Graph, table: Table, kernel: Kernel, pieces: int) -> Split | None:
    """A kernel in about so many pieces; None where there is no such split, or no more than one piece."""
    sweep = kernel.sweeps[0]
    size = sweep.lane.count
    width = _width(sweep.running, size, min(pieces, MOST))
    if width is None:
        return None
    return _Splitter(graph, table, kernel, width).split()


def _with_empty_pieces(sweep: Sweep) -> Sweep:
    """The pass over a piece: one that a mask leaves nothing of adds zero, and is no number only in all of them."""
    running = tuple(replace(r, update=replace(r.update, undefined=())) for r in sweep.running)
    return replace(sweep, running=running)


def _width(running: tuple[Running, ...], size: int, pieces: int) -> int | None:
    """The elements of a piece: equal pieces where states count elements, else whole tiles; None for one piece."""
    if pieces < 2 or size < 2 * pieces:
        return None
    counted = any(
        r.update.reset is not None or (r.update.growth is not None and r.update.growth.counts) for r in running
    )
    if not counted or all(r.value.bound is not None and r.value.bound.kind in IDEMPOTENT for r in running):
        width = -(-size // pieces)
        tile = 64 if width > 128 else 1
        return width if size % pieces == 0 else -(-width // tile) * tile
    divisors = [n for n in range(2, pieces + 1) if size % n == 0]
    return size // divisors[-1] if divisors else None


@dataclass
class _Splitter:
    graph: Graph
    table: Table
    kernel: Kernel
    width: int
    partials: dict[int, Expression] = field(default_factory=dict[int, Expression])
    """The state of a piece, by the number of the reduction."""
    states: dict[int, int] = field(default_factory=dict[int, int])
    """The tensor of the states, by the number of the reduction."""
    merged: dict[int, Expression] = field(default_factory=dict[int, Expression])
    nodes: list[Node] = field(default_factory=list[Node])
    pieces: int = 1
    lane: str = ""
    """The loop over the elements of a piece."""
    place: Index = field(default_factory=lambda: Index(0))
    """The element of the lane that is an element of a piece."""
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    again: bool = False
    """Whether the last piece repeats the last element."""

    def split(self) -> Split | None:
        """Both kinds of kernels; None where roles do not fit."""
        sweep = self.kernel.sweeps[0]
        size = sweep.lane.count
        self.pieces = -(-size // self.width)
        self.lane = f"{sweep.lane.name.split('_')[0]}_{self.width}"
        self.place = variable(PIECE) * self.width + variable(self.lane)
        self.again = self.pieces * self.width != size and any(r.update.reset is not None for r in sweep.running)
        if self.again:  # what starts again sees the last element once more, and not an element that is not there
            last = self.table.constant(size - 1, DType.I64)
            self.place = self.table.opaque(self.table.apply("minimum", self.table.index(self.place), last))
        self.sizes = {loop.name: loop.count for loop in self.loops()}
        stores: list[Store] = []
        for running in sweep.running:
            value = self.partial(running)
            if value is None:
                return None
            axes = self.axes(running)
            position = self.states[running.value.number] = len(self.graph.nodes) + len(self.nodes)
            self.nodes.append(self.state_node(running, axes))
            stores.append(Store(position, axes, value, running.value.number in sweep.exact))
        try:
            partial = arrange(
                self.table,
                Job(tuple(stores), {**self.sizes, PIECE: self.pieces}, self.rows()),
                self.kernel.name,
            )
            merges = self.merges()
        except Cut:
            return None
        if len(partial.sweeps) != 1:
            return None
        partial = replace(partial, sweeps=tuple(map(_with_empty_pieces, partial.sweeps)))
        graph = replace(self.graph, nodes=(*self.graph.nodes, *self.nodes))
        why = f"{self.pieces} pieces of {self.width} of its {size} elements run side by side and are merged"
        return Split(graph, partial, merges, why)

    def loops(self) -> list[Loop]:
        """The loops of the kernel around the lane."""
        kernel = self.kernel
        return [*kernel.grid, *(loop for loop in (kernel.rows, kernel.features) if loop is not None)]

    def rows(self) -> str | None:
        """The loop that is tiled, as before."""
        return self.kernel.rows.name if self.kernel.rows is not None else None

    def axes(self, running: Running) -> tuple[str, ...]:
        """The axes of the states of the pieces; every row has its own."""
        features = self.kernel.features
        wide = features is not None and features.name in running.value.free
        return (PIECE, *(loop.name for loop in self.loops() if loop is not features or wide))

    def state_node(self, running: Running, axes: tuple[str, ...]) -> Node:
        """The tensor of the states of the pieces."""
        assert running.value.bound is not None
        sizes = {**self.sizes, PIECE: self.pieces}
        kind = TensorType(tuple(sizes[a] for a in axes), self.dtype(running))
        label = f"{running.value.bound.kind} of every piece of {self.kernel.name}"
        return Node(ops.Input(label, kind), (), kind)

    def dtype(self, running: Running) -> DType:
        """What a state is computed in."""
        if not running.value.dtype.is_float:
            return DType.BOOL if running.value.dtype is DType.BOOL else DType.I64
        return DType.F64 if self.kernel.is_wide else DType.F32

    # --- pieces

    def partial(self, running: Running) -> Expression | None:
        """The reduction over the elements of a piece; None where elements that are not there cannot be left out."""
        number = running.value.number
        if number not in self.partials:
            found = self._partial(running)
            if found is None:
                return None
            self.partials[number] = found
        return self.partials[number]

    def _partial(self, running: Running) -> Expression | None:
        bound = running.value.bound
        assert bound is not None
        sweep = self.kernel.sweeps[0]
        own = {e.number: self.partial(r) for r in sweep.running for e in running.update.depends if r.value is e}
        body = self.moved(running.update.body)
        followed: dict[int, Expression] = {}
        for e in running.update.depends:
            value = own.get(e.number)
            if value is None:
                return None
            followed[self.moved(e).number] = value
        if running.update.growth is not None:
            for estimate in running.update.growth.estimates:
                followed[self.moved(estimate.leaf).number] = self.estimate_of_piece(estimate, own)
        body = self.table.replace(body, lambda e: followed.get(e.number))
        return self.table.reduce(Bound(bound.kind, self.lane, self.width), self.guarded(bound.kind, body))

    def estimate_of_piece(self, estimate: Estimate, own: Mapping[int, Expression | None]) -> Expression:
        """The value that an estimate is of, for the elements of a piece; its sums have partial ones."""
        table, (total, weight) = self.table, (own[estimate.sum.number], None)
        if estimate.weight is not None:
            weight = own[estimate.weight.number]
        assert total is not None
        if weight is not None:
            return table.plain("divide", (total, weight))
        if estimate.count == 1:
            return table.apply("divide", total, table.constant(float(self.width), total.dtype))
        return table.apply("multiply", total, table.constant(float(self.pieces), total.dtype))

    def moved(self, e: Expression) -> Expression:
        """An expression at the element of a piece."""
        sweep = self.kernel.sweeps[0]
        return self.table.substitute(e, {sweep.lane.name: self.place})

    def guarded(self, kind: str, body: Expression) -> Expression:
        """The body where the piece has an element, and what changes nothing elsewhere."""
        sweep = self.kernel.sweeps[0]
        if self.again or self.pieces * self.width == sweep.lane.size:
            return body
        inside = self.table.plain("at_least_zero", (self.table.index(self.place * -1 + (sweep.lane.size - 1)),))
        for running in sweep.running:  # what a state follows is guarded first, and mostly that is enough
            if running.value.number in self.partials and running.value.dtype.is_float:
                known = self.partials[running.value.number].arguments[0]
                if known.op == "select" and known.arguments[0] is inside:
                    bare = known.arguments[1]
                    guard = {bare.number: known, **{e.number: e for e in self.partials.values()}}  # these have theirs
                    body = self.table.replace(body, lambda e, g=guard: g.get(e.number))
        if vanishes(self.table, kind, body, {inside: False}):
            return body
        return self.table.plain("select", (inside, body, self.table.constant(identity(kind), body.dtype)))

    # --- the merge

    def merges(self) -> tuple[Kernel, ...]:
        """One kernel for what has features, in which they are the rows, and one for what has none."""
        features = self.kernel.features
        found: list[Kernel] = []
        for wide in (False, True):
            stores = [s for s in self.kernel.stores if (features is not None and features.name in s.axes) == wide]
            if not stores:
                continue
            values = [replace(s, value=self.table.replace(s.value, self.total_of)) for s in stores]
            names = {a for s in stores for a in s.axes} | {v for s in values for v in s.value.free}
            every = self.sizes | {s.lane.name: s.lane.count for s in self.kernel.sweeps[1:]}
            sizes = {name: size for name, size in every.items() if name in names}
            rows = features.name if wide and features is not None else self.rows()
            job = Job(tuple(values), sizes, rows if rows in sizes else None)
            found.append(arrange(self.table, job, f"{self.kernel.name}_merge{len(found)}"))
        return tuple(found)

    def total_of(self, e: Expression) -> Expression | None:
        """The reduction over all pieces in place of one over the lane."""
        sweep = self.kernel.sweeps[0]
        running = next((r for r in sweep.running if r.value is e), None)
        if running is None:
            return None
        state = self.total(running)
        if running.update.finish is None:
            return state
        return self.table.apply("multiply", state, self.table.replace(running.update.finish, self.total_of))

    def state_of(self, running: Running) -> Expression:
        """The state of a piece as it is read."""
        places = [variable(self.piece()) if a == PIECE else variable(a) for a in self.axes(running)]
        tensor = self.states[running.value.number]
        kind = self.nodes[tensor - len(self.graph.nodes)].type.dtype
        return self.table.load(tensor, tuple(self.table.index(p) for p in places), kind)

    def piece(self) -> str:
        """The lane of the merge."""
        return f"r0_{self.pieces}"

    def total(self, running: Running) -> Expression:
        """The state of all pieces."""
        number, bound = running.value.number, running.value.bound
        assert bound is not None
        if number not in self.merged:
            body = self.taken(running, self.state_of(running))
            whole = self.table.reduce(Bound(bound.kind, self.piece(), self.pieces), body)
            self.merged[number] = self.where_weighed(running.update, whole, math.nan, self.total)
        return self.merged[number]

    def where_weighed(
        self, update: Update, value: Expression, other: float, of: Callable[[Running], Expression]
    ) -> Expression:
        """The value, and another one where the weights of a mean that the state follows add up to zero."""
        table = self.table
        for running in self.kernel.sweeps[0].running:
            if running.value in update.weights:
                weight = of(running)
                nothing = table.plain("compare_EQ", (weight, table.constant(0.0, weight.dtype)))
                value = table.plain("select", (nothing, table.constant(other, value.dtype), value))
        return value

    def taken(self, running: Running, state: Expression) -> Expression:
        """The state of a piece, taken from what it followed there to what is followed in all."""
        table, update = self.table, running.update
        sweep = self.kernel.sweeps[0]
        known: dict[int, Expression] = {}
        for e, new in zip(update.depends, update.renewed, strict=True):
            followed = next(r for r in sweep.running if r.value is e)
            known[e.number], known[new.number] = self.state_of(followed), self.total(followed)

        def at(value: Expression) -> Expression:
            return table.replace(value, lambda x: known.get(x.number))

        if update.growth is not None:
            state = self.grown(state, update, update.growth, known)
        if update.factor is not None:
            return table.apply("multiply", state, at(update.factor))
        if update.reset is not None:
            (e,) = update.depends
            own, total = known[e.number], known[update.renewed[0].number]
            same = table.plain("compare_EQ", (own, total))
            if own.dtype.is_float:  # where there is no number, the piece that has it is the one that counts
                same = table.plain("or", (same, table.plain("compare_NE", (own, own))))
            value = table.constant(update.reset.value.value, state.dtype)
            return table.plain("select", (same, state, value))
        return state

    def grown(self, state: Expression, update: Update, growth: Growth, known: Mapping[int, Expression]) -> Expression:
        """The state of a piece with what it grows by on the way to what is followed in all.

        A piece that a mask leaves nothing of has no extremum to follow another one from: it stays where it is.
        """
        table, places = self.table, dict(known)
        for e, new in zip(update.depends, update.renewed, strict=True):
            if e.bound is not None and e.bound.kind != "sum":
                nothing = table.constant(identity(e.bound.kind), e.dtype)
                empty = table.plain("compare_EQ", (known[e.number], nothing))
                places[e.number] = table.plain("select", (empty, known[new.number], known[e.number]))
        for estimate in growth.estimates:
            for place, number, seen in ((0, estimate.leaf.number, self.width), (1, estimate.renewed.number, 0)):
                total, *weight = (known[(e if place == 0 else table.renewed(e)).number] for e in estimate.sums)
                if weight:
                    zero = table.constant(0.0, total.dtype)
                    some = table.plain("divide", (total, weight[0]))
                    places[number] = table.plain("select", (table.plain("compare_EQ", (weight[0], zero)), zero, some))
                else:
                    count = table.constant(estimate.count, total.dtype)
                    elements = table.constant(float(seen or self.width * self.pieces), total.dtype)
                    places[number] = table.apply("divide", table.apply("multiply", total, count), elements)

        def at(value: Expression) -> Expression:
            return table.replace(value, lambda x: places.get(x.number))

        for coefficient, other in growth.others:
            state = table.apply("add", state, table.apply("multiply", at(coefficient), known[other.number]))
        if growth.each is not None:
            seen = table.constant(float(self.width), state.dtype)
            state = table.apply("add", state, table.apply("multiply", at(growth.each), seen))
        return self.where_weighed(update, state, 0.0, self.state_of)
