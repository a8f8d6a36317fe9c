"""Kernels as Triton: tiles in registers, products on the matrix units.

The text is a Python module. Without a GPU it runs in Triton's interpreter, which is how its values are tested, and it
can be compiled for a given architecture (``compiled``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from rewright.ir.types import DType
from rewright.optimize.expressions import walk
from rewright.optimize.kernel import Kernel, Store, Sweep
from rewright.optimize.phases import new_estimates, phases, variants
from rewright.optimize.planning import Plan
from rewright.optimize.roles import outside
from rewright.optimize.triton_limits import Part
from rewright.optimize.triton_products import DEPTH, Products
from rewright.optimize.triton_scalars import TYPES, padded
from rewright.optimize.triton_values import Context, Way

CONSTANTS = ("BM", "BN", "UPCAST", "DESCRIPTORS", "AHEAD")
"""What is fixed when a kernel is compiled: rows and lanes of a tile, whether operands are widened (in the interpreter),
whether tiles are read through tensor descriptors, and how many steps ahead of their use all loads are."""
TOGETHER = 4
"""Tiles between two looks whether anything still changes."""


class Printer(Products):
    """Prints one kernel; ``tensors`` are its arguments."""

    def __init__(self, plan: Plan, kernel: Kernel) -> None:
        super().__init__(plan, kernel)
        stored = [s.tensor for s in kernel.stores]
        read = {e.tensor for s in kernel.stores for e in walk(s.value) if e.op == "load" and e.tensor >= 0}
        self.tensors = tuple(dict.fromkeys([*sorted(read), *stored]))

    def text(self) -> str:
        """The jitted function."""
        arguments = ", ".join(f"t{t}" for t in self.tensors)
        lines = [
            "@triton.jit",
            f"def {self.kernel.name}({arguments}, {', '.join(f'{name}: tl.constexpr' for name in CONSTANTS)}):",
        ]
        for t in self.tensors:
            node = self.graph.nodes[t]
            lines.append(f"    # t{t}: {getattr(node.op, 'label', node.op.name)} {node.type} {node.span}")
        c = Context(lines, 1, {}, {})
        huge = any(math.prod(self.shape(t)) >= 1 << 31 for t in self.tensors)
        wide = ".to(tl.int64)" if huge else ""
        c.line(f"blocks = ({self.rows} + BM - 1) // BM")
        c.line(f"rest = tl.program_id(0){wide} // blocks")
        for loop in reversed(self.kernel.grid):
            c.line(f"{loop.name} = rest % {loop.size}")
            c.line(f"rest = rest // {loop.size}")
            c.places[loop.name] = loop.name
        block = len(lines)
        c.line(f"first = tl.program_id(0){wide} % blocks * BM")
        c.line("row = first + tl.arange(0, BM)")
        c.line(f"{self.row_name} = row[:, None]")
        c.places[self.row_name] = self.row_name
        c.ways[self.row_name] = Way(0, "first", "BM")
        c.line(f"row_in = ({self.row_name} < {self.rows}) | ({self.rows} % BM == 0)")
        c.guards[self.row_name] = "row_in"
        if self.kernel.features is not None:
            f = self.kernel.features
            self.ranges[f.name] = (0, f.size - 1)
            c.line(f"{f.name}_ = tl.arange(0, {padded(f.size)})")
        for sweep in self.kernel.sweeps:
            self.sweep(c, sweep)
        if self.later_is_longer:
            lines[block] = f"    first = (blocks - 1 - tl.program_id(0){wide} % blocks) * BM  # the longest first"
        self.finals(c)
        return "\n".join(lines) + "\n"

    def sweep(self, c: Context, sweep: Sweep) -> None:
        """The loop over tiles of a lane."""
        lane = sweep.lane
        self.ranges[lane.name] = (0, lane.size - 1)
        for product in sweep.products:
            self.ranges[product.depth.name] = (0, product.depth.size - 1)
        for running in sweep.running:
            self.start(c, running)
        lefts = {p.value.number: self.left(c, p) for p in sweep.products if p.depth.size <= DEPTH}
        self.finish_states(c)
        found = variants(self.table, sweep)
        parts = self.parts(c, sweep, found)
        for estimate, _ in sweep.remainders:
            c.line(f"guess{estimate.leaf.number} = tl.zeros([BM, 1], tl.float32)")
        mark, self.outside = len(c.lines), [] if self.kernel.has_products else None
        for part in parts:
            self.loop(c, sweep, part, lefts)
        c.lines[mark:mark], self.outside = self.outside or [], None
        self.descriptors.clear()
        self.settle(c, sweep)
        self.done += sweep.running

    def loop(self, c: Context, sweep: Sweep, part: Part, lefts: Mapping[int, str]) -> None:
        """A loop over tiles of a lane."""
        lane, low, high, body = sweep.lane, part.low, part.high, c.inner()
        if part.when:
            body.line(f"if {part.when}:")
            body = body.inner(1)
        if _settles(sweep):
            body.line(f"for some in range({low}, {high}, {TOGETHER} * BN):")
            states = " & ".join(f"(tl.min({self.state[r.value.number]}) == 1)" for r in sweep.running)
            body = body.inner(1)
            body.line(f"if not ({states}):  # stops once nothing changes any more")
            low, high, body = "some", f"tl.minimum(some + {TOGETHER} * BN, {high})", body.inner(1)
        ahead = ", num_stages=AHEAD" if self.kernel.has_products else ""
        body.line(f"for begin in tl.range({low}, {high}, BN{ahead}):")
        body = body.inner(1)
        body.line("lane = begin + tl.arange(0, BN)")
        body.line(f"{lane.name} = lane[None, :]")
        body.places[lane.name] = lane.name
        body.ways[lane.name] = Way(1, "begin", "BN")
        if not part.whole:
            body.line(f"lane_in = ({lane.name} < {lane.size}) | ({lane.size} % BN == 0)")
            body.guards[lane.name] = "lane_in"
        if part.tests:
            body.line(f"if not ({' | '.join(f'({t})' for t in part.tests)}):")
            body = body.inner(1)
        self.tile(body, sweep, part, lefts)

    def tile(self, c: Context, sweep: Sweep, part: Part, lefts: Mapping[int, str]) -> None:
        """Products, phases, sums over features."""
        factors = [e for running, _ in part.work.bodies for e in running.factors or ()]
        used = {e.number for value in (*part.work.values(), *factors) for e in outside(value)}
        for product in sweep.products:
            if product.value.number in used:
                c.names[product.value.number] = self.product(c, sweep, product, lefts)
        known: set[int] = set()
        bodies = {r.value.number: (r, body) for r, body in part.work.bodies}
        for phase in phases(sweep, self.kernel):
            for estimate in new_estimates(phase, known):
                self.estimate(c, sweep, estimate)
            for running in phase:
                self.renew(c, sweep, *bodies[running.value.number])
        for store, value in part.work.stores:
            self.put(c, replace(store, value=value))

    def finals(self, c: Context) -> None:
        """What is stored once for a row."""
        if not self.kernel.finals:
            return
        self.finish_states(c)
        feature = self.kernel.features
        for store in self.kernel.finals:
            if feature is None or feature.name not in store.axes:
                self.put(c, store)
        if feature is not None:
            c.line(f"{feature.name} = {feature.name}_[None, :]")
            c.places[feature.name] = feature.name
            c.ways[feature.name] = Way(1, "0", str(padded(feature.size)))
            if padded(feature.size) != feature.size:
                c.line(f"feature_in = {feature.name} < {feature.size}")
                c.guards[feature.name] = "feature_in"
            for running in self.done:
                if running.factors is not None:
                    c.names[running.value.number] = self.finished(c, running)
            for store in self.kernel.finals:
                if feature.name in store.axes:
                    self.put(c, store)

    def put(self, c: Context, store: Store) -> None:
        """Write a tile of a tensor."""
        kind = self.graph.nodes[store.tensor].type
        parts, stride = list[str](), 1
        for axis, size in zip(reversed(store.axes), reversed(self.shape(store.tensor)), strict=True):
            parts.append(f"{stride} * {c.places[axis]}" if size > 1 or axis in c.ways else "0")
            stride *= size
        guards = " & ".join(g for n, g in c.guards.items() if n in store.axes or n == self.row_name) or "True"
        value = self.value(c, store.value)
        place = f"({' + '.join(reversed(parts)) or '0'})"
        zero = " + ".join(
            ["0 * row[:, None]", *(f"0 * {c.places[n]}" for n in store.axes if n in c.ways and n != self.row_name)]
        )
        kind_name = TYPES[kind.dtype]
        if kind.dtype is DType.BOOL:
            stored = f"({value}) & (({zero}) == 0)"
        else:
            stored = f"({value}).to({kind_name}) + tl.zeros_like({zero}).to({kind_name})"
        c.line(f"tl.store(t{store.tensor} + {place} + ({zero}), {stored}, mask={guards})")


def _settles(sweep: Sweep) -> bool:
    kinds = {r.value.bound.kind for r in sweep.running if r.value.bound}
    return bool(kinds) and kinds <= {"or"} and not sweep.stores
