"""Kernels as plain torch, tile by tile: the reference of what the kernel IR means.

Every loop index is a dimension, in the order grid, rows, lane, depth, features. Tensors are read by index tensors
that broadcast. States are updated
and followed exactly as the other printers do; speed is no aim.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from rewright.ir.errors import RewrightError
from rewright.ir.types import DType
from rewright.ops.functions import FUNCTIONS
from rewright.optimize.constants import closed_value, power_of_two
from rewright.optimize.estimates import Estimate
from rewright.optimize.execution import TORCH, Launch, Runner
from rewright.optimize.expressions import Expression, walk
from rewright.optimize.growing import Growth
from rewright.optimize.kernel import Kernel, Running, Store, Sweep
from rewright.optimize.phases import body_of, new_estimates, phases
from rewright.optimize.planning import Plan
from rewright.optimize.ranges import span
from rewright.optimize.values import identity
from rewright.terms.index import Index, Quotient, Remainder, Variable

TILE = 32
"""Elements of a lane in one step."""

_REDUCE = {"sum": "sum", "maximum": "amax", "minimum": "amin", "or": "any", "and": "all", "product": "prod"}
_JOIN = {
    "sum": "{0} + {1}",
    "product": "{0} * {1}",
    "maximum": "torch.maximum({0}, {1})",
    "minimum": "torch.minimum({0}, {1})",
    "or": "{0} | {1}",
    "and": "{0} & {1}",
}


class _Printer:
    def __init__(self, plan: Plan, kernel: Kernel) -> None:
        self.plan, self.graph, self.table, self.kernel = plan, plan.graph, plan.table, kernel
        stored = [s.tensor for s in kernel.stores]
        read = {e.tensor for s in kernel.stores for e in walk(s.value) if e.op == "load" and e.tensor >= 0}
        self.tensors = tuple(dict.fromkeys([*sorted(read), *stored]))
        self.dims = [loop.name for loop in kernel.grid] + ([kernel.rows.name] if kernel.rows else [])
        self.rank = len(self.dims) + 3
        self.real = "torch.float64" if kernel.is_wide else "torch.float32"
        self.lines: list[str] = []
        self.names: dict[int, str] = {}
        self.count = 0
        self.ranges: dict[str, tuple[int, int]] = {}
        self.state: dict[int, str] = {}

    def line(self, text: str, indent: int = 1) -> None:
        """A line of code."""
        self.lines.append("    " * indent + text)

    def text(self) -> str:
        """The function of the kernel."""
        self.lines = [f"def {self.kernel.name}({', '.join(f't{t}' for t in self.tensors)}):"]
        for t in self.tensors:
            node = self.graph.nodes[t]
            self.line(f"# t{t}: {getattr(node.op, 'label', node.op.name)} {node.type} {node.span}")
        loops = list(self.kernel.grid)
        if self.kernel.rows is not None:
            loops.append(self.kernel.rows)
        for number, loop in enumerate(loops):
            self.loop(loop.name, f"torch.arange({loop.size})", loop.size, number)
        if self.kernel.features is not None:
            self.loop(
                self.kernel.features.name,
                f"torch.arange({self.kernel.features.size})",
                self.kernel.features.size,
                self.rank - 1,
            )
        for sweep in self.kernel.sweeps:
            self.sweep(sweep)
        for store in self.kernel.finals:
            self.put(store, 1)
        return "\n".join(self.lines) + "\n"

    def loop(self, name: str, values: str, size: int, place: int, indent: int = 1) -> None:
        """A loop index as a dimension."""
        shape = ["1"] * self.rank
        shape[place] = "-1"
        self.line(f"{name} = ({values}).view({', '.join(shape)})", indent)
        self.ranges[name] = (0, size - 1)

    def sweep(self, sweep: Sweep) -> None:
        """One pass in tiles."""
        lane, rank = sweep.lane, self.rank
        for running in sweep.running:
            assert running.value.bound is not None
            name = self.state[running.value.number] = f"state{running.value.number}"
            kind = self.kind(running.value.dtype)
            first = _literal(identity(running.value.bound.kind), running.value.dtype, self.real)
            self.line(f"{name} = torch.full(({'1, ' * rank}), {first}.item(), dtype={kind})")
        for product in sweep.products:
            depth = product.depth
            self.loop(depth.name, f"torch.arange({depth.size})", depth.size, rank - 2)
        self.line(f"for begin in range(0, {lane.size}, {TILE}):")
        self.loop(lane.name, f"torch.arange(begin, min(begin + {TILE}, {lane.size}))", lane.size, rank - 3, 2)
        outside = dict(self.names)
        for product in sweep.products:
            left, right = self.value(product.left, 2), self.value(product.right, 2)
            self.name(product.value, f"({left} * {right}).sum({rank - 2}, keepdim=True)", 2)
        known: set[int] = set()
        for phase in phases(sweep, self.kernel):
            for estimate in new_estimates(phase, known):
                self.estimate(sweep, estimate)
            for running in phase:
                self.renew(sweep, running)
        for store in sweep.stores:
            self.put(store, 2)
        self.names = outside
        self.settle(sweep)
        for running in sweep.running:
            text = self.state[running.value.number]
            for weight in running.update.weights:
                text = f"torch.where({self.state[weight.number]} == 0, float('nan'), {text})"
            for e in running.update.undefined:
                assert e.bound is not None
                first = _literal(identity(e.bound.kind), e.dtype, self.real)
                text = f"torch.where({self.state[e.number]} == {first}, float('nan'), {text})"
            if running.update.finish is not None:
                text = f"{text} * {self.value(running.update.finish, 1)}"
            self.name(running.value, text, 1)

    def renew(self, sweep: Sweep, running: Running) -> None:
        """The new state after a tile."""
        number = running.value.number
        bound = running.value.bound
        assert bound is not None
        state, update = self.state[number], running.update
        factor = None
        if update.factor is not None:
            known = self.followed(running, "old", "safe")
            fresh = f"old{update.depends[0].number}"
            tests = " | ".join(
                f"(old{e.number} == {_literal(identity(e.bound.kind), e.dtype, self.real)})"
                for e in update.extrema
                if e.bound
            )
            factor = f"factor{number}"
            text = self.closed(update.factor, known)
            self.line(f"{factor} = torch.where({tests}, torch.zeros_like({fresh}), {text})", 2)
        body = self.value(body_of(self.table, running), 2)
        if sweep.lane.name not in running.body.free:
            body = f"({body} + 0 * {sweep.lane.name})"
        axis = self.rank - 3
        self.line(f"part{number} = ({body}).{_REDUCE[bound.kind]}({axis}, keepdim=True)", 2)
        self.line(f"old{number} = {state}", 2)
        old = state if factor is None else f"({state} * {factor})"
        if update.growth is not None:
            old = f"({state} + {self.growth(running, update.growth)})" + (f" * {factor}" if factor else "")
        if update.reset is not None:
            (e,) = update.depends
            moved = f"({self.state[e.number]} == old{e.number}) | (old{e.number} != old{e.number})"
            self.line(f"kept{number} = {moved} | (begin == 0)", 2)
            old = f"torch.where(kept{number}, {old}, {self.value(update.reset.value, 2)})"
        self.line(f"{state} = {_JOIN[bound.kind].format(old, f'part{number}')}", 2)
        name = state
        if bound.kind in ("maximum", "minimum") and running.value.dtype.is_float:
            first = _literal(identity(bound.kind), running.value.dtype, self.real)
            name = f"safe{number}"
            self.line(f"{name} = torch.where({state} == {first}, torch.zeros_like({state}), {state})", 2)
            if number in sweep.grown:
                self.line(
                    f"from{number} = torch.where(old{number} == {first}, torch.zeros_like(old{number}), old{number})", 2
                )
        self.names[number] = name
        self.names[self.table.renewed(running.value).number] = state

    def estimate(self, sweep: Sweep, estimate: Estimate) -> None:
        """What is taken for a value that is known at the end only, from before and after the tile."""
        number, total, size = estimate.leaf.number, estimate.sum.number, sweep.lane.size
        if estimate.weight is None:
            seen = f"min(begin + {TILE}, {size})"
            self.line(f"guess{number} = {self.state[total]} * ({estimate.count!r} / {seen})", 2)
            self.line(f"was{number} = old{total} * ({estimate.count!r} / max(begin, 1))", 2)
        else:
            weight = estimate.weight.number
            for name, top, bottom in (
                ("guess", self.state[total], self.state[weight]),
                ("was", f"old{total}", f"old{weight}"),
            ):
                self.line(f"{name}{number} = torch.where({bottom} == 0, {bottom}, {top} / {bottom})", 2)
        self.names[number] = f"guess{number}"

    def settle(self, sweep: Sweep) -> None:
        """Means as they are, and what follows them, where the sweep knows how far its estimates are from them."""
        names: dict[int, str] = {}
        for estimate, left in sweep.remainders:
            number = estimate.leaf.number
            names[self.table.plain("subtract", (estimate.renewed, estimate.leaf)).number] = f"rest{number}"
            self.line(f"rest{number} = {self.state[left.value.number]} / {sweep.lane.size}", 1)
        for running in sweep.settled:
            assert running.update.growth is not None
            text = running.update.growth.text(
                lambda e: self.closed(e, names), lambda e: self.state[e.number], str(sweep.lane.size)
            )
            state = self.state[running.value.number]
            self.line(f"{state} = {state} + {text}", 1)
        for estimate, _ in sweep.remainders:
            number = estimate.leaf.number
            self.line(f"{self.state[estimate.sum.number]} = (guess{number} + rest{number}) * {sweep.lane.size}", 1)

    @staticmethod
    def followed(running: Running, before: str, after: str) -> dict[int, str]:
        """The names of the values that a state follows, from before and after the tile."""
        pairs = list(zip(running.update.depends, running.update.renewed, strict=True))
        return {e.number: f"{before}{e.number}" for e, _ in pairs} | {n.number: f"{after}{e.number}" for e, n in pairs}

    def growth(self, running: Running, growth: Growth) -> str:
        """What a state grows by, for all that was seen."""
        known = self.followed(running, "from", "safe") | growth.names()
        return growth.text(lambda coefficient: self.closed(coefficient, known))

    def closed(self, e: Expression, known: Mapping[int, str]) -> str:
        """An expression over named values."""
        if e.number in known:
            return known[e.number]
        if not any(x.number in known for x in walk(e)):
            return self.value(e, 2)
        if (exponent := power_of_two(e)) is not None:
            return f"torch.exp2({self.closed(exponent, known)})"
        return self.function(e, [self.closed(a, known) for a in e.arguments])

    def put(self, store: Store, indent: int) -> None:
        """Write to a tensor."""
        value = self.value(store.value, indent)
        where = ", ".join(store.axes) or "..."
        self.line(
            f"t{store.tensor}[{where}] = ({value}).to(t{store.tensor}.dtype)" + ("" if store.axes else ".reshape(())"),
            indent,
        )

    def kind(self, dtype: DType) -> str:
        """The dtype of a computation."""
        return self.real if dtype.is_float else str(TORCH[dtype])

    def name(self, e: Expression, text: str, indent: int) -> str:
        """Give a value a name."""
        self.count += 1
        name = f"v{self.count}"
        self.line(f"{name} = {text}", indent)
        self.names[e.number] = name
        return name

    def value(self, e: Expression, indent: int) -> str:
        """An expression as a tensor over all dimensions."""
        if e.op == "constant":
            return _literal(e.value, e.dtype, self.real)
        if (number := closed_value(e)) is not None:
            return _literal(number, e.dtype, self.real)
        if e.number in self.names:
            return self.names[e.number]
        if e.op == "index" and e.index is not None:
            return self.name(e, self.index(e.index, indent), indent)
        if e.op == "load":
            return self.name(e, self.load(e, indent), indent)
        if (exponent := power_of_two(e)) is not None:
            return self.name(e, f"torch.exp2({self.value(exponent, indent)})", indent)
        return self.name(e, self.function(e, [self.value(a, indent) for a in e.arguments]), indent)

    def index(self, index: Index, indent: int) -> str:
        """An index."""
        parts = [str(index.constant)]
        for atom, factor in index.terms:
            if isinstance(atom, Variable):
                text = self.value(self.table.named(atom.name), indent) if atom.name.startswith("@") else atom.name
            elif isinstance(atom, (Quotient, Remainder)):
                inner = self.index(atom.numerator, indent)
                text = f"(({inner}) {'//' if isinstance(atom, Quotient) else '%'} {atom.divisor})"
            else:
                raise RewrightError("no torch for an index that is computed so")
            parts.append(f"{factor} * {text}")
        return f"({' + '.join(parts)})"

    def load(self, e: Expression, indent: int) -> str:
        """Elements of a tensor."""
        node = self.graph.nodes[e.tensor]
        places: list[str] = []
        for place, size in zip(e.arguments, node.type.shape, strict=True):
            text = str(int(place.value)) if place.op == "constant" else self.value(place, indent)
            found = span(place.index, self.ranges) if place.index is not None else None
            if place.op != "constant" and (
                found is None or found[0] < 0 or not isinstance(size, int) or found[1] >= size
            ):
                text = f"({text}).clamp(0, {size} - 1)"
            places.append(text)
        text = f"t{e.tensor}[{', '.join(places) or '...'}]"
        return f"{text}.to({self.real})" if e.dtype.is_float else text

    def function(self, e: Expression, a: list[str]) -> str:
        """A scalar function."""
        if e.op.startswith("convert_"):
            return f"({a[0]}).to({self.kind(e.dtype)})"
        if e.op in ("at_least_zero", "is_zero"):
            return f"({a[0]} {'>=' if e.op == 'at_least_zero' else '=='} 0)"
        if e.op not in FUNCTIONS or (text := FUNCTIONS[e.op].in_torch) is None:
            raise RewrightError(f"no torch for the function {e.op}")
        return text.format(*a)


def _literal(value: float | int | bool, dtype: DType, real: str) -> str:
    kind = real if dtype.is_float else str(TORCH[dtype])
    if dtype.is_float:
        return f"torch.tensor(float('{float(value)!r}'), dtype={kind})"
    if isinstance(value, float) and math.isinf(value):  # it is the identity of a maximum or minimum
        return f"torch.tensor(torch.iinfo({kind}).{'max' if value > 0 else 'min'}, dtype={kind})"
    return f"torch.tensor({bool(value) if dtype is DType.BOOL else int(value)}, dtype={kind})"


def module_text(plan: Plan) -> str:
    """The module of all kernels of a plan."""
    head = '"""Generated by rewright: the kernels of a plan in plain torch."""\n\nimport torch\n\n\n'
    return head + "\n\n".join(_Printer(plan, k).text() for k in plan.kernels)


def runner(plan: Plan) -> Runner:
    """A runner of the plan in plain torch."""
    scope: dict[str, Any] = {}
    exec(compile(module_text(plan), "<kernels>", "exec"), scope)  # text that was printed above, and nothing else
    launches: dict[str, tuple[tuple[int, ...], Launch]] = {}
    for kernel in plan.kernels:
        launches[kernel.name] = _Printer(plan, kernel).tensors, _launch(scope[kernel.name])
    return Runner(plan, launches)


def _launch(function: Any) -> Launch:
    def launch(tensors: Sequence[torch.Tensor]) -> None:
        function(*tensors)

    return launch
