"""Kernels made cheaper by rules of the library: quotients of exponentials, powers of two, scales that are folded.

Four rewrites, each taken where it makes a plan cheaper (``costs``):

- *the log domain*: ``exp(s - m) / l`` with a divisor that varies along the lane becomes ``exp(s - (m + log l))``, where
  s comes of numbers of 16 bits: the sum of m and log l is rounded at the size of m, which float32 programs would show;
- *base two*: every exponential becomes a power of two, and the division by log 2 that its exponent then has goes
  inwards through sums, choices, maxima and matrix products until it meets a factor that is there anyway, or the
  smaller operand of a product;
- *scales outside*: ``s - m`` with ``s = x c`` and the maximum m of s becomes ``(x - m / c) c``, where m / c is the
  maximum of x: what was rounded at the size of s is rounded at the size of the difference (``units``);
- *statistics*: what a kernel reads of a row by way of one value is stored as that value: one logarithm of a sum in
  place of a maximum and a sum.

Every step is an instance of a rule with its evidence (``laws``), and the result is proved to be what was planned before
(``proofs``). Log 2 is exact in all of that; printed code rounds constants once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from rewright import ops
from rewright.ir.graph import Node
from rewright.ir.types import DType, TensorType
from rewright.optimize.kernel import Kernel, Store
from rewright.optimize.online.units import unit
from rewright.optimize.planning.costs import operations
from rewright.optimize.planning.outline import Outline
from rewright.optimize.planning.plan import KernelStep, LibraryStep, Plan, Step
from rewright.optimize.planning.roles import Cut, Job, arrange
from rewright.optimize.proving.laws import laws
from rewright.optimize.scalars.constants import closed_value, power_of_two
from rewright.optimize.scalars.expressions import Expression, Table, walk
from rewright.optimize.scalars.facts import Known
from rewright.optimize.scalars.values import exact_extrema

INWARDS = (
    "minus-infinity-over",
    "product-over",
    "quotient-over",
    "conversion-over",
    "sum-over",
    "difference-over",
    "negation-over",
    "select-over",
    "max-over",
    "min-over",
    "dot-over",
    "dividend-over",
    "factor-over",
)
"""The laws by which a division by a number goes inwards, in the order in which they are tried."""
IN_LOGARITHMS = ("exp-difference-over", "exp-over")
"""The laws by which a quotient goes into an exponent, in the order in which they are tried."""
IN_PRODUCTS = ("dot-over", "dot-times")
"""The laws by which a number goes into an operand of a product."""
NARROW = (DType.F16, DType.BF16)


@dataclass(frozen=True)
class Rewritten:
    """A plan by the laws, and what its new statistics stand for: where they are read, and where they are stored."""

    plan: Plan
    read: Mapping[int, Expression]
    """By the number of a load of a statistic, what was computed there before."""
    made: Mapping[int, Expression]
    """By the tensor of a statistic, the value over what its kernel stored before."""
    laws: Mapping[str, int]
    """How often each law was used."""
    divisors: tuple[Expression, ...] = ()
    """The numbers that extrema were divided by, besides log 2."""


def rewritten(plan: Plan) -> Rewritten | None:
    """A cheaper plan by the laws; None where there is none."""
    best, found, exact = cost(plan), None, False
    for candidate in _candidates(plan):
        logarithms = not candidate.laws.keys().isdisjoint(IN_LOGARITHMS)
        if exact and logarithms and not candidate.divisors:
            continue  # the logarithm of a sum apart from the maximum: their sum is rounded at the size of that
        exact = exact or (logarithms and bool(candidate.divisors))
        if cost(candidate.plan) < best:
            best, found = cost(candidate.plan), candidate
    return found


def _candidates(plan: Plan) -> Iterator[Rewritten]:
    """What the choices make of a plan, each combination that differs; scales outside of differences first."""
    again, tried = multiplies_again(plan), list[_Rewriter]()
    for outside, logarithms, products in product((True, False), repeat=3):
        if (products and again) or any(one.is_same(outside, logarithms, products) for one in tried):
            continue
        tried.append(_Rewriter(plan, outside, logarithms, products))
        found = tried[-1].found()
        if found is not None:
            yield found


def multiplies_again(plan: Plan) -> bool:
    """Whether two kernels compute one matrix product: both have to round it alike, as what they share is its maximum.

    A scale that goes into an operand would go into another operand in a kernel whose lane is the other one.
    """
    seen: set[frozenset[int]] = set()
    for kernel in plan.kernels:
        products = [p.value for sweep in kernel.sweeps for p in sweep.products]
        mine = {frozenset(e.tensor for e in walk(value) if e.op == "load") for value in products}
        if mine & seen:
            return True
        seen |= mine
    return False


def log_two(table: Table, dtype: DType) -> Expression:
    """The logarithm of two, as the exact number that it is."""
    return table.plain("log", (table.constant(2.0, dtype),))


def cost(plan: Plan) -> float:
    """The operations of all kernels."""
    return sum(operations([s.value for s in kernel.stores], sizes_of(kernel)) for kernel in plan.kernels)


def sizes_of(kernel: Kernel) -> dict[str, int]:
    """The loops of what a kernel stores."""
    loops = [*kernel.grid, *(loop for loop in (kernel.rows, kernel.features) if loop is not None)]
    loops += [sweep.lane for sweep in kernel.sweeps if sweep.stores]
    return {loop.name: loop.count for loop in loops}


def largest(dtype: DType) -> float:
    """The largest finite number of the dtype that values of a dtype are computed in."""
    return float(np.finfo(np.float64 if dtype is DType.F64 else np.float32).max)


@dataclass
class _Rewriter:
    source: Plan
    outside: bool
    """Whether scales of what is compared with its maximum stay outside of the difference."""
    logarithms: bool
    """Whether quotients go into the log domain."""
    products: bool
    """Whether scales go into operands of matrix products."""
    used: dict[str, int] = field(default_factory=dict[str, int])
    nodes: list[Node] = field(default_factory=list[Node])
    sunk: dict[int, Expression] = field(default_factory=dict[int, Expression])
    read: dict[int, Expression] = field(default_factory=dict[int, Expression])
    made: dict[int, Expression] = field(default_factory=dict[int, Expression])
    rounded: list[Expression] = field(default_factory=list[Expression])
    units: dict[int, Expression] = field(default_factory=dict[int, Expression])
    """Numbers other than log 2 that divisions inside are by."""
    outer: frozenset[str] = frozenset()
    """The loops of the kernel at hand that are no reductions."""

    def found(self) -> Rewritten | None:
        """The plan with what is known of it."""
        plan = self.plan()
        if plan is None:
            return None
        return Rewritten(plan, self.read, self.made, self.used, tuple(self.units.values()))

    def is_same(self, outside: bool, logarithms: bool, products: bool) -> bool:
        """Whether other choices make the same plan, as what differs was a choice nowhere."""
        return (
            (outside == self.outside or (self.outside and not self.units))
            and (logarithms == self.logarithms or (self.logarithms and self.used.keys().isdisjoint(IN_LOGARITHMS)))
            and (products == self.products or (self.products and self.used.keys().isdisjoint(IN_PRODUCTS)))
        )

    def plan(self) -> Plan | None:
        """The plan with every kernel rewritten; None where nothing changed or loops find no roles."""
        self.table = self.source.table
        self.known = Known(self.source.defined, defined=True)
        self.stored = frozenset(s.tensor for kernel in self.source.kernels for s in kernel.stores)
        stores: dict[str, list[Store]] = {}
        for kernel in self.source.kernels:
            self.outer = frozenset(sizes_of(kernel))
            values = [s.value for s in kernel.stores]
            if self.outside:
                values = self.mapped(values, "exponential", self.in_units)
            if self.logarithms:
                values = self.mapped(values, "divide", self.in_logarithms)
            values = self.mapped(values, "divide", self.folded)
            values = self.mapped(values, "exponential", self.in_base_two)
            stores[kernel.name] = [replace(s, value=v) for s, v in zip(kernel.stores, values, strict=True)]
        if not self.used:
            return None
        for kernel in self.source.kernels:
            self.statistics(kernel.name, stores)
        stores = {name: self.without_raw_extrema(found) for name, found in stores.items()}
        return None if self.rounds_more(stores) else self.finished(stores)

    def finished(self, stores: dict[str, list[Store]]) -> Plan | None:
        """The plan with other stores."""
        steps: list[Step] = []
        try:
            for step in self.source.steps:
                steps.append(self.step(step, stores) if isinstance(step, KernelStep) else step)
        except Cut:
            return None
        first = len(self.source.graph.nodes)
        graph = replace(self.source.graph, nodes=(*self.source.graph.nodes, *self.nodes))
        memory = self.source.memory | frozenset(range(first, first + len(self.nodes)))
        return replace(self.source, graph=graph, memory=memory, steps=tuple(steps))

    def step(self, step: KernelStep, stores: dict[str, list[Store]]) -> KernelStep:
        """One kernel with what it now stores; raises Cut where its loops have other roles."""
        kernel, now = step.kernel, stores[step.kernel.name]
        if list(kernel.stores) == now:
            return step
        rows = kernel.rows.name if kernel.rows is not None else None
        found = arrange(self.table, Job(tuple(now), sizes_of(kernel), rows), kernel.name)
        same = (found.grid, found.rows, found.features) == (kernel.grid, kernel.rows, kernel.features)
        if not same or len(found.sweeps) != len(kernel.sweeps):
            raise Cut("rewritten values need other loops", ())
        return KernelStep(found)

    # --- exponentials

    def mapped(
        self, values: Sequence[Expression], op: str, change: Callable[[Expression], Expression]
    ) -> list[Expression]:
        """Values with every call of a function changed, from the inside out."""
        done: dict[int, Expression] = {}

        def visit(e: Expression) -> Expression:
            if e.number not in done:
                found = self.table.rebuilt(e, visit, lambda i: i) if e.arguments and e.index is None else e
                done[e.number] = change(found) if found.op == op else found
            return done[e.number]

        return [visit(value) for value in values]

    def by(self, name: str, e: Expression) -> Expression | None:
        """What the law of a name makes of an expression."""
        return next(laws()[name].instances(self.table, e, self.holds), None)

    def count(self, name: str) -> None:
        """Note that a law was used."""
        self.used[name] = self.used.get(name, 0) + 1

    def in_logarithms(self, e: Expression) -> Expression:
        """A quotient of an exponential, where the divisor is known before the pass and varies along the lane."""
        divisor = e.arguments[1]
        if not any(x.dtype in NARROW for x in walk(e.arguments[0])):
            return e  # m + log l has fewer bits after the point than m and l, which shows where nothing else is rounded
        if any(x.bound is not None for x in walk(divisor)) or divisor.free <= self.outer:
            return e
        for name in IN_LOGARITHMS:
            found = self.by(name, e)
            if found is not None:
                self.count(name)
                return found
        return e

    def folded(self, e: Expression) -> Expression:
        """A quotient by a number, where a factor or the smaller operand of a product takes it in."""
        if closed_value(e.arguments[1]) is None:
            return e
        for name in ("product-over", "quotient-over", "dot-over"):
            found = self.good_instance(name, e)
            if found is not None:
                return self.good_instance("dot-times", found) or found
        return e

    def in_units(self, e: Expression) -> Expression:
        """An exponential of a difference from a maximum, with what both are multiples of outside of the difference."""
        scale = unit(self.table, e.arguments[0], self.stored)
        if scale is None:
            return e
        self.units[scale.number] = scale
        self.count("over-and-back")
        bare = e.arguments[0]
        if closed_value(scale) != 1:
            bare = self.inwards(self.table.plain("divide", (bare, scale)))
        return self.table.plain("exponential", (self.table.plain("multiply", (bare, scale)),))

    def in_base_two(self, e: Expression) -> Expression:
        """An exponential as a power of two, with the division by log 2 as far inside as it goes."""
        if power_of_two(e) is not None:
            return e
        found = self.by("exp-in-base-two", e)
        assert found is not None
        self.count("exp-in-base-two")
        return self.inwards(found)

    def inwards(self, e: Expression) -> Expression:
        """An expression in which divisions by log 2, and by units, are as far inside as they go."""

        def sunk(x: Expression) -> Expression | None:
            return self.sink(x) if x.op == "divide" and self.goes_inside(x.arguments[1]) else None

        return self.table.replace(e, sunk)

    def goes_inside(self, e: Expression) -> bool:
        """Whether divisions by a number go inwards."""
        return e.number in self.units or self.is_two(e)

    def is_two(self, e: Expression) -> bool:
        """Whether a value is log 2, in whatever float type."""
        return e.op == "log" and e.arguments[0].op == "constant" and e.arguments[0].value == 2

    def sink(self, e: Expression) -> Expression:
        """A division by a number taken inside by the first law that applies; laws keep the divisor."""
        if e.number not in self.sunk:
            self.sunk[e.number] = e
            for name in INWARDS:
                found = self.good_instance(name, e)
                if found is not None:
                    self.sunk[e.number] = self.good_instance("dot-times", found) or self.inwards(found)
                    self.note_rounding(name, e, self.sunk[e.number])
                    break
            else:
                self.note_rounding("", e, e)
        return self.sunk[e.number]

    def note_rounding(self, name: str, e: Expression, found: Expression) -> None:
        """Note where values along the lane are rounded at their own size that were not rounded before.

        A factor that is no power of two rounds with or without log 2 in it, and so does a matrix product. Programs of
        16 bits round their values far more coarsely.
        """
        inner = e.arguments[0]
        if self.overflows(name, inner, found):
            self.rounded.append(found)
        if closed_value(e) is not None or inner.op == "log" or any(x.dtype in NARROW for x in walk(inner)):
            return
        if not name:
            self.rounded.append(e)
        elif name in ("product-over", "quotient-over") and found.op == "multiply":
            factors = [closed_value(a) for a in inner.arguments]
            if all(f is None or abs(math.frexp(f)[0]) == 0.5 for f in factors):
                self.rounded.append(found)

    def overflows(self, name: str, inner: Expression, found: Expression) -> bool:
        """Whether a division by log 2 may make infinity of a number: the least one of a dtype, as a mask has it.

        Where all keys of a query have it, exponentials of differences are one, and those of infinities no number. A
        mask in memory may hold it, of bfloat16 too; what float16 holds is small in the float32 that it is computed in.
        """
        stored = inner
        while stored.op.startswith("convert_"):
            stored = stored.arguments[0]
        if not name and stored.op == "load" and stored.dtype is DType.BF16:
            return True
        numbers = [value for x in (found, *found.arguments) if (value := closed_value(x)) is not None]
        return any(largest(inner.dtype) < abs(value) < math.inf for value in numbers)

    def rounds_more(self, stores: Mapping[str, Sequence[Store]]) -> bool:
        """Whether a value that is rounded and was not is still there."""
        found = {e.number for kept in stores.values() for e in walk(*(s.value for s in kept))}
        return any(e.number in found for e in self.rounded)

    def good_instance(self, name: str, e: Expression) -> Expression | None:
        """What a law makes of an expression, where that saves work."""
        found = next((f for f in laws()[name].instances(self.table, e, self.holds) if self.good(name, f)), None)
        if found is not None:
            self.count(name)
        return found

    def good(self, name: str, found: Expression) -> bool:
        """Whether an instance of a law is one that saves work, and rounds nothing that was exact."""
        if name in IN_PRODUCTS:  # the operand that is scaled once for all of the lane, unless narrow
            assert found.bound is not None
            scaled = found.arguments[0].arguments[0]
            if not self.products:
                return False
            narrow = any(x.dtype in NARROW for x in walk(scaled))
            return not narrow and scaled.free - {found.bound.index} <= self.outer
        if name == "factor-over":
            scaled = next((a for a in found.arguments if a.op == "divide" and self.goes_inside(a.arguments[1])), None)
            return scaled is not None and scaled.free < found.free
        return True

    def holds(self, kind: str, value: Expression) -> bool:
        """Whether a divisor satisfies a condition: it is not zero where the program has a value."""
        return kind == "compare_NE" or self.known.facts(value).is_nonnegative

    def without_raw_extrema(self, stores: list[Store]) -> list[Store]:
        """Stores in which an extremum that is there divided by a number is that times it, and not computed twice.

        Where elements are compared with it, or where it is what is stored, it has to be one of them in every bit.
        """
        found = {e.number for e in walk(*(s.value for s in stores))}
        exact = exact_extrema([s.value for s in stores])
        instead: dict[int, Expression] = {}
        for e in walk(*(s.value for s in stores)):
            if e.number in exact:
                continue
            if e.bound is not None and e.bound.kind in ("maximum", "minimum") and e.dtype.is_float:
                for number in (log_two(self.table, e.dtype), *self.units.values()):
                    scaled = self.sunk.get(self.table.plain("divide", (e, number)).number)
                    if scaled is not None and scaled.number in found:
                        instead[e.number] = self.table.plain("multiply", (scaled, number))
                        self.count("over-and-back")
        return [replace(s, value=self.table.replace(s.value, lambda e: instead.get(e.number))) for s in stores]

    # --- statistics of rows

    def statistics(self, reader: str, stores: dict[str, list[Store]]) -> None:
        """Store what a kernel computes from stored values of a row, in place of those values."""
        outputs = set(self.source.graph.outputs.values())
        for producer in self.source.kernels:
            made = {s.tensor: s for s in producer.stores if s.tensor not in outputs}
            for value in self.of_one_row([s.value for s in stores[reader]], made):
                if value not in walk(*(s.value for s in stores[reader])):
                    continue  # a part of it was stored just now
                read = {e.tensor for e in walk(value) if e.op == "load"}
                zero = self.table.constant(0.0, value.dtype)
                rest = [
                    self.table.replace(s.value, lambda e, x=value, z=zero: z if e is x else None)
                    for found in stores.values()
                    for s in found
                ]
                if any(e.op == "load" and e.tensor in read for e in walk(*rest)) or self.is_needed(read):
                    continue
                self.store(value, producer, made, stores)

    def is_needed(self, tensors: set[int]) -> bool:
        """Whether a library reads one of some stored tensors."""
        plan = Outline.of(self.source)
        return any(tensors & plan.reads(s) for s in plan.steps if isinstance(s, LibraryStep))

    def of_one_row(self, values: Sequence[Expression], made: Mapping[int, Store]) -> list[Expression]:
        """The largest parts of values that are functions of stored tensors alone, all read at one place."""
        found: dict[int, Expression] = {}
        plain: set[int] = set()
        for e in walk(*values):
            own = e.tensor in made if e.op == "load" else e.op not in ("reduce", "index")
            if own and (e.op == "load" or all(a.number in plain for a in e.arguments)):
                plain.add(e.number)
        seen: set[int] = set()
        stack = list(values)
        while stack:
            e = stack.pop()
            if e.number in seen:
                continue
            seen.add(e.number)
            if e.op != "load" and e.number in plain and self.is_statistic(e, made):
                found[e.number] = e
            else:
                stack.extend(e.arguments)
        return list(found.values())

    def is_statistic(self, e: Expression, made: Mapping[int, Store]) -> bool:
        """Whether a value is a function of tensors of one kernel, read at one place."""
        leaves = [x for x in walk(e) if x.op == "load"]
        inside = {a.number for x in leaves for a in x.arguments for a in walk(a)}
        plain = all(x.op not in ("reduce", "index") or x.number in inside for x in walk(e))
        axes = {made[x.tensor].axes for x in leaves if x.tensor in made}
        alike = len(axes) == 1 and len({x.arguments for x in leaves}) == 1
        return e.dtype.is_float and plain and alike and all(x.tensor in made for x in leaves)

    def store(
        self,
        value: Expression,
        producer: Kernel,
        made: Mapping[int, Store],
        stores: dict[str, list[Store]],
    ) -> None:
        """Store a value in place of the tensors that it is computed from, and read it."""
        leaf = next(e for e in walk(value) if e.op == "load")
        old = self.source.graph.nodes[leaf.tensor]
        kind = TensorType(old.type.shape, DType.F64 if old.type.dtype is DType.F64 else DType.F32)
        position = len(self.source.graph.nodes) + len(self.nodes)
        self.nodes.append(Node(ops.Input(f"statistic of a row by {producer.name}", kind), (), kind, old.span))
        mine = {s.tensor: s.value for s in stores[producer.name]}
        read = {e.tensor for e in walk(value) if e.op == "load"}
        own = self.table.replace(value, lambda e: mine[e.tensor] if e.op == "load" else None)
        place = made[leaf.tensor].axes
        self.outer = frozenset(sizes_of(producer))
        kept = [s for s in stores[producer.name] if s.tensor not in read]
        stores[producer.name] = [*kept, Store(position, place, self.inwards(own))]
        loaded = self.table.load(position, leaf.arguments, kind.dtype)
        before = {s.tensor: s.value for s in producer.stores}
        self.made[position] = self.table.replace(value, lambda e: before[e.tensor] if e.op == "load" else None)
        self.read[loaded.number] = value
        for reader in sorted(stores.keys() - {producer.name}):  # several kernels may compute it
            stores[reader] = [
                replace(s, value=self.table.replace(s.value, lambda e: loaded if e is value else None))
                for s in stores[reader]
            ]
