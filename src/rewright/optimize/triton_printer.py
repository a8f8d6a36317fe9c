"""Kernels as Triton: pointer loads, tiles in registers, products on the matrix units.

The text is a Python module. Without a GPU it runs in Triton's interpreter, which is how its values are tested, and it
can be compiled for
a given architecture (``compiled``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from rewright.ir.errors import RewrightError
from rewright.ir.types import DType
from rewright.optimize.constants import power_of_two
from rewright.optimize.estimates import Estimate
from rewright.optimize.expressions import Expression, walk
from rewright.optimize.growing import Growth
from rewright.optimize.kernel import Kernel, Product, Running, Store, Sweep
from rewright.optimize.phases import body_of, new_estimates, phases, variants
from rewright.optimize.planning import Plan
from rewright.optimize.triton_limits import Limits
from rewright.optimize.triton_scalars import TYPES, function, is_empty, literal, padded
from rewright.optimize.triton_values import Context
from rewright.optimize.values import identity

DEPTH = 256
"""Products over more elements than this go in steps."""


@dataclass(frozen=True)
class Tiles:
    """Sizes of tiles of a kernel, powers of two."""

    rows: int
    lanes: int
    warps: int = 4
    stages: int = 2


class Printer(Limits):
    def __init__(self, plan: Plan, kernel: Kernel) -> None:
        super().__init__(plan, kernel)
        stored = [s.tensor for s in kernel.stores]
        read = {e.tensor for s in kernel.stores for e in walk(s.value) if e.op == "load" and e.tensor >= 0}
        self.tensors = tuple(dict.fromkeys([*sorted(read), *stored]))
        self.state: dict[int, str] = {}
        self.done: list[Running] = []

    def text(self) -> str:
        """The jitted function."""
        arguments = ", ".join(f"t{t}" for t in self.tensors)
        lines = [
            "@triton.jit",
            f"def {self.kernel.name}({arguments}, BM: tl.constexpr, BN: tl.constexpr, UPCAST: tl.constexpr):",
        ]
        for t in self.tensors:
            node = self.graph.nodes[t]
            lines.append(f"    # t{t}: {getattr(node.op, 'label', node.op.name)} {node.type} {node.span}")
        c = Context(lines, 1, {}, {})
        huge = any(math.prod(self.shape(t)) >= 1 << 31 for t in self.tensors)
        wide = ".to(tl.int64)" if huge else ""
        c.line(f"rest = tl.program_id(1){wide}")
        for loop in reversed(self.kernel.grid):
            c.line(f"{loop.name} = rest % {loop.size}")
            c.line(f"rest = rest // {loop.size}")
            c.places[loop.name] = loop.name
        c.line(f"first = tl.program_id(0){wide} * BM")
        c.line("row = first + tl.arange(0, BM)")
        c.line(f"{self.row_name} = row[:, None]")
        c.places[self.row_name] = self.row_name
        c.line(f"row_in = {self.row_name} < {self.rows}")
        c.guards[self.row_name] = "row_in"
        if self.kernel.features is not None:
            f = self.kernel.features
            self.ranges[f.name] = (0, f.size - 1)
            c.line(f"{f.name}_ = tl.arange(0, {padded(f.size)})")
        for sweep in self.kernel.sweeps:
            self.sweep(c, sweep)
        self.finals(c)
        return "\n".join(lines) + "\n"

    # --- sweeps

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
        low, high, tests = self.limits(c, sweep, found)
        for estimate, _ in sweep.remainders:
            c.line(f"guess{estimate.leaf.number} = tl.zeros([BM, 1], tl.float32)")
        c.line(f"for begin in range({low}, {high}, BN):")
        body = c.inner(1)
        body.line("lane = begin + tl.arange(0, BN)")
        body.line(f"{lane.name} = lane[None, :]")
        body.places[lane.name] = lane.name
        body.line(f"lane_in = {lane.name} < {lane.size}")
        body.guards[lane.name] = "lane_in"
        if tests:
            body.line(f"if not ({' | '.join(f'({t})' for t in tests)}):")
            body = body.inner(1)
        if _settles(sweep):
            states = " & ".join(f"(tl.min({self.state[r.value.number]}) == 1)" for r in sweep.running)
            body.line(f"if not ({states}):  # stops once nothing changes any more")
            body = body.inner(1)
        self.tile(body, sweep, lefts)
        self.settle(c, sweep)
        self.done += sweep.running

    def start(self, c: Context, running: Running) -> None:
        """The state before the first tile."""
        assert running.value.bound is not None
        name = self.state[running.value.number] = self.fresh("state")
        kind = running.value.dtype
        dtype = (
            "tl.float32"
            if kind.is_float and kind is not DType.F64
            else "tl.int32"
            if kind is DType.BOOL
            else TYPES[kind]
        )
        first = literal(identity(running.value.bound.kind), kind)
        first = str(int(first == "True")) if kind is DType.BOOL else first
        wide, rows = "1", "1" if running.is_shared else "BM"
        if running.factors is not None:
            assert self.kernel.features is not None
            wide = str(padded(self.kernel.features.size))
        c.line(f"{name} = tl.full([{rows}, {wide}], {first}, {dtype})")

    def finish_states(self, c: Context) -> None:
        """Names for reductions that are finished."""
        for running in self.done:
            if running.factors is None and running.value.number not in c.names:
                c.names[running.value.number] = self.finished(c, running)

    def finished(self, c: Context, running: Running) -> str:
        """A finished reduction."""
        text = self.state[running.value.number]
        if running.value.dtype is DType.BOOL:
            text = f"({text} != 0)"
        for weight in running.update.weights:
            text = f'tl.where({self.state[weight.number]} == 0.0, float("nan"), {text})'
        for e in running.update.undefined:
            text = f'tl.where({is_empty(self.state[e.number], e)}, float("nan"), {text})'
        if running.update.finish is not None:
            text = f"({text} * {self.value(c, running.update.finish)})"
        name = self.fresh("v")
        c.line(f"{name} = {text}")
        return name

    def left(self, c: Context, product: Product) -> str:
        """The left operand of a product for a block of rows."""
        inner = c.inner()
        depth = product.depth
        self.add_depth(inner, depth.name, depth.size, f"tl.arange(0, {padded(depth.size)})[None, :]", "across")
        return self.operand(inner, product.left, "tl.float64")

    def add_depth(self, c: Context, name: str, size: int, tile: str, way: str) -> None:
        """Put the index of a product in scope, along one way of a tile; each way has a variable of its own."""
        text = f"{name}_{way}"
        c.line(f"{text} = {tile}")
        c.places[name] = text
        c.line(f"{text}_in = {text} < {size}")
        c.guards[name] = f"{text}_in"

    def operand(self, c: Context, e: Expression, upcast: str = "tl.float32") -> str:
        """An operand of a product in the dtype that the matrix units take; the interpreter has none of 16 bits."""
        text = self.value(c, e)
        kind = e.dtype
        name = self.fresh("operand")
        guards = [g for n, g in c.guards.items() if n in e.free and n not in (self.row_name,)]
        if guards and e.op != "load":
            text = f"tl.where({' & '.join(guards)}, {text}, 0.0)"
        narrow = kind in (DType.F16, DType.BF16)
        c.line(f"{name} = ({text}).to({TYPES[kind] if narrow else 'tl.float32'})")
        if narrow or upcast != "tl.float32":
            c.line(f"if UPCAST:\n{'    ' * (c.indent + 1)}{name} = {name}.to({upcast})")
        return name

    # --- one tile

    def tile(self, c: Context, sweep: Sweep, lefts: Mapping[int, str]) -> None:
        """Products, phases, sums over features."""
        for product in sweep.products:
            c.names[product.value.number] = self.product(c, sweep, product, lefts)
        known: set[int] = set()
        for phase in phases(sweep, self.kernel):
            for estimate in new_estimates(phase, known):
                self.estimate(c, sweep, estimate)
            for running in phase:
                self.renew(c, sweep, running)
        for store in sweep.stores:
            self.put(c, store)

    def product(self, c: Context, sweep: Sweep, product: Product, lefts: Mapping[int, str]) -> str:
        """A product of tiles, in steps where it is deep.

        What is computed again in another kernel has to be equal in every bit, with operands that changed sides too. On
        a device it is, as its sums have one order; in the interpreter sums are those of float64, rounded once.
        """
        name, depth = self.fresh("product"), product.depth
        inner = c.inner()
        if product.value.number in lefts:
            self.add_depth(inner, depth.name, depth.size, f"tl.arange(0, {padded(depth.size)})[:, None]", "down")
            right = self.operand(inner, product.right, "tl.float64")
            c.line(f'{name} = tl.dot({lefts[product.value.number]}, {right}, input_precision="ieee").to(tl.float32)')
            return name
        c.line(f"{name} = tl.zeros([BM, BN], tl.float64 if UPCAST else tl.float32)")
        c.line(f"for deep in range(0, {depth.size}, 64):")
        loop = c.inner(1)
        first, second = loop.inner(), loop.inner()
        self.add_depth(first, depth.name, depth.size, "deep + tl.arange(0, 64)[None, :]", "across")
        left = self.operand(first, product.left, "tl.float64")
        self.add_depth(second, depth.name, depth.size, "deep + tl.arange(0, 64)[:, None]", "down")
        right = self.operand(second, product.right, "tl.float64")
        loop.line(f'{name} = tl.dot({left}, {right}, {name}, input_precision="ieee")')
        c.line(f"{name} = {name}.to(tl.float32)")
        return name

    def renew(self, c: Context, sweep: Sweep, running: Running) -> None:
        """The new state after a tile."""
        number = running.value.number
        assert running.value.bound is not None
        state, kind = self.state[number], running.value.bound.kind
        factor = self.factor(c, running)
        if running.factors is not None:
            self.accumulate(c, sweep, running, factor)
            return
        source = body_of(self.table, running)
        body = self.value(c, source)
        flag = running.value.dtype is DType.BOOL
        first = literal(identity(kind), running.value.dtype)
        shape = "" if {self.row_name, sweep.lane.name} <= source.free else " + tl.zeros([BM, BN], tl.float32)"
        if flag:
            body, first, shape = f"({body}).to(tl.int32)", str(int(first == "True")), ""
        if not flag and not running.value.dtype.is_float:
            shape = f" + tl.zeros([BM, BN], {TYPES[running.value.dtype]})"  # indices are narrower than their states
        c.line(f"whole{number} = tl.where(row_in & lane_in, {body}{shape}, {first})")
        call = {"sum": "sum", "maximum": "max", "minimum": "min", "or": "max", "and": "min"}.get(kind)
        if call is None:
            raise RewrightError(f"no Triton for a reduction of kind {kind}; use target='cpu'")
        c.line(f"part{number} = tl.{call}(whole{number}, 1)[:, None]")
        c.line(f"old{number} = {state}")
        old = state if factor is None else f"{state} * {factor}"
        if running.update.growth is not None:
            old = f"({state} + {self.growth(c, running, running.update.growth)})" + (f" * {factor}" if factor else "")
        if running.update.reset is not None:
            old = self.reset(c, running, old)
        exact = number in sweep.exact
        if exact:
            found = f"tl.max((whole{number} != whole{number}).to(tl.int32), 1)[:, None]"
            c.line(f'part{number} = tl.where({found} > 0, float("nan"), part{number})')
        joined = {
            "sum": f"{old} + part{number}",
            "max": f"tl.maximum({old}, part{number})",
            "min": f"tl.minimum({old}, part{number})",
        }
        joint = joined[call]
        if exact:  # no maximum or minimum of the device keeps NaN
            either = f"(old{number} != old{number}) | (part{number} != part{number})"
            joint = f'tl.where({either}, float("nan"), {joint})'
        c.line(f"{state} = {joint}")
        name = state
        if kind in ("maximum", "minimum") and running.value.dtype.is_float:
            name = f"safe{number}"
            c.line(f"{name} = tl.where({state} == {first}, 0.0, {state})  # nothing yet: any number will do")
            if number in sweep.grown:
                c.line(f"from{number} = tl.where(old{number} == {first}, 0.0, old{number})")
        c.names[number] = name
        c.names[self.table.renewed(running.value).number] = state

    def estimate(self, c: Context, sweep: Sweep, estimate: Estimate) -> None:
        """What is taken for a value that is known at the end only, from before and after the tile."""
        number, total = estimate.leaf.number, estimate.sum.number
        if estimate.weight is None:
            seen = f"tl.minimum(begin + BN, {sweep.lane.size})"
            c.line(f"guess{number} = {self.state[total]} * ({estimate.count!r} / {seen})")
            c.line(f"was{number} = old{total} * ({estimate.count!r} / tl.maximum(begin, 1))")
        else:
            weight = estimate.weight.number
            for name, top, bottom in (
                ("guess", self.state[total], self.state[weight]),
                ("was", f"old{total}", f"old{weight}"),
            ):
                c.line(f"{name}{number} = tl.where({bottom} == 0.0, 0.0, {top} / {bottom})")
        c.names[number] = f"guess{number}"

    def settle(self, c: Context, sweep: Sweep) -> None:
        """Means as they are, and what follows them, where the sweep knows how far its estimates are from them."""
        gaps: dict[int, str] = {}
        for estimate, left in sweep.remainders:
            number = estimate.leaf.number
            gaps[self.table.plain("subtract", (estimate.renewed, estimate.leaf)).number] = f"rest{number}"
            c.line(f"rest{number} = {self.state[left.value.number]} / {sweep.lane.size}")
        inner = c.inner()
        inner.names.update(gaps)
        for running in sweep.settled:
            assert running.update.growth is not None
            text = running.update.growth.text(
                lambda e: self.closed(inner, e, {*gaps}), lambda e: self.state[e.number], str(sweep.lane.size)
            )
            state = self.state[running.value.number]
            c.line(f"{state} = {state} + {text}")
        for estimate, _ in sweep.remainders:
            number = estimate.leaf.number
            c.line(f"{self.state[estimate.sum.number]} = (guess{number} + rest{number}) * {sweep.lane.size}")

    def reset(self, c: Context, running: Running, old: str) -> str:
        """The state, or what it starts again from where the extremum that it follows has moved."""
        assert running.update.reset is not None
        (e,), number = running.update.depends, running.value.number
        moved = f"({self.state[e.number]} == old{e.number}) | (old{e.number} != old{e.number})"
        c.line(f"kept{number} = {moved} | (begin == 0)")
        return f"tl.where(kept{number}, {old}, {self.value(c, running.update.reset.value)})"

    def growth(self, c: Context, running: Running, growth: Growth) -> str:
        """What a state grows by, for all that was seen."""
        pairs = [(other, coefficient) for coefficient, other in growth.others]
        parts = [f"old{o.number} * {self.followed(c, e, running, 'from', 'safe')}" for o, e in pairs]
        if growth.each is not None:
            parts.append(f"begin * {self.followed(c, growth.each, running, 'from', 'safe')}")
        return f"({' + '.join(parts)})"

    def factor(self, c: Context, running: Running) -> str | None:
        """What the state is multiplied with when the states that it follows have changed."""
        update = running.update
        if update.factor is None:
            return None
        text = self.followed(c, update.factor, running, "old", "safe")
        tests = " | ".join(is_empty(f"old{e.number}", e) for e in update.extrema)
        name = self.fresh("factor")
        c.line(f"{name} = tl.where({tests}, 0.0, {text})")
        return name

    def followed(self, c: Context, e: Expression, running: Running, before: str, after: str) -> str:
        """An expression over the values that a state follows, from before and after the tile."""
        update, known = running.update, dict(c.names)
        for old, new in zip(update.depends, update.renewed, strict=True):
            c.names[old.number], c.names[new.number] = f"{before}{old.number}", f"{after}{old.number}"
        if update.growth is not None:
            c.names.update(update.growth.names())
        text = self.closed(c, e, {n.number for pair in update.moves for n in pair})
        c.names.clear()
        c.names.update(known)
        return text

    def closed(self, c: Context, e: Expression, named: set[int]) -> str:
        """An expression over named values as one text."""
        if e.number in named:
            return c.names[e.number]
        if not any(x.number in named for x in walk(e)):
            return self.value(c, e)
        if (exponent := power_of_two(e)) is not None:
            return f"tl.exp2({self.closed(c, exponent, named)})"
        return function(e, [self.closed(c, a, named) for a in e.arguments])

    def accumulate(self, c: Context, sweep: Sweep, running: Running, factor: str | None) -> None:
        """A sum over features as a product on the matrix units."""
        assert running.factors is not None and self.kernel.features is not None
        weight, item = running.factors
        state = self.state[running.value.number]
        feature = self.kernel.features
        inner = c.inner()
        inner.line(f"{feature.name} = {feature.name}_[None, :]")
        inner.places[feature.name] = feature.name
        inner.line(f"{feature.name}_in = {feature.name} < {feature.size}")
        inner.guards[feature.name] = f"{feature.name}_in"
        inner.names = {r.value.number: c.names[r.value.number] for r in self.done if r.value.number in c.names}
        self.add_depth(inner, sweep.lane.name, sweep.lane.size, "lane[:, None]", "down")
        items = self.operand(inner, item)
        grown = [r.update.growth for r in sweep.running if r.update.growth is not None]
        if any(other is running.value for growth in grown for _, other in growth.others):
            c.line(f"old{running.value.number} = {state}")
        if running.is_shared:
            c.line(f"{state} = {state} + tl.sum({items}.to(tl.float32), 0)[None, :]")
            return
        bounded = weight.op == "exponential" and bool(running.update.depends)
        narrow = item.dtype if item.dtype is DType.BF16 or (bounded and item.dtype is DType.F16) else DType.F32
        value = self.value(c, weight)
        if not {self.row_name, sweep.lane.name} <= weight.free:
            value = f"({value} + tl.zeros([BM, BN], tl.float32))"
        name = self.fresh("weight")
        c.line(f"{name} = tl.where(lane_in, {value}, 0.0)")
        if narrow is not DType.F32:
            c.line(f"{name} = {name}.to({items}.dtype)")
        else:
            c.line(f"{items} = {items}.to(tl.float32)")
        if running.update.growth is not None:
            c.line(f"{state} = {state} + {self.growth(c, running, running.update.growth)}")
        if factor is not None:
            c.line(f"{state} = {state} * {factor}")
        c.line(f'{state} = tl.dot({name}, {items}, {state}, input_precision="ieee")')

    # --- the end

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
            parts.append(f"{stride} * {c.places[axis]}" if size > 1 or axis in c.guards else "0")
            stride *= size
        guards = " & ".join(g for n, g in c.guards.items() if n in store.axes or n == self.row_name) or "True"
        value = self.value(c, store.value)
        place = f"({' + '.join(reversed(parts)) or '0'})"
        zero = " + ".join(
            ["0 * row[:, None]", *(f"0 * {c.places[n]}" for n in store.axes if n in c.guards and n != self.row_name)]
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
