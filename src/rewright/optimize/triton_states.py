"""States of reductions in Triton: how they start, follow other states after a tile, and end."""

from __future__ import annotations

from rewright.ir.types import DType
from rewright.optimize.constants import power_of_two
from rewright.optimize.estimates import Estimate
from rewright.optimize.expressions import Expression, walk
from rewright.optimize.growing import Growth
from rewright.optimize.kernel import Kernel, Running, Sweep
from rewright.optimize.planning import Plan
from rewright.optimize.triton_limits import Limits
from rewright.optimize.triton_scalars import TYPES, function, is_empty, literal, padded
from rewright.optimize.triton_values import Context
from rewright.optimize.values import identity


class States(Limits):
    """Prints states of one kernel."""

    def __init__(self, plan: Plan, kernel: Kernel) -> None:
        super().__init__(plan, kernel)
        self.state: dict[int, str] = {}
        self.done: list[Running] = []

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
        if update.factor.number in c.names:
            return c.names[update.factor.number]
        text = self.followed(c, update.factor, running, "old", "safe")
        tests = " | ".join(is_empty(f"old{e.number}", e) for e in update.extrema)
        name = c.names[update.factor.number] = self.fresh("factor")
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
