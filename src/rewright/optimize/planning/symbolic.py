"""Plans whose sizes are symbols: what the plans of the program at several sizes have in common.

A planner compares sizes, so it works on numbers. It is asked at two sizes of every symbol, primes near those of an
example that are no other size of the program, so that nothing is equal or divides by accident. Where the plans differ
in numbers alone, each number is the polynomial of the symbols that has these values: a loop of 131 and of 137 is one
of ``s``, and a constant of 130 and of 136 is ``s - 1``. That is a guess, and the proof of the plan, at symbols, is what
says that it is right.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, cast

from rewright.ir.dims import Dim, SizeExpr, divide, symbol
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.sizes import size_symbols, substitute_sizes, with_sizes
from rewright.ir.types import DType
from rewright.optimize.kernel import Kernel, Sweep
from rewright.optimize.planning.costs import Machine
from rewright.optimize.planning.counting import fold_counts
from rewright.optimize.planning.plan import KernelStep, LibraryStep, Plan, Step
from rewright.optimize.planning.planner import Planner
from rewright.optimize.scalars.expressions import Bound, Expression, Table, number_of
from rewright.terms.index import Atom, Index, Quotient, Remainder, Variable, collect, quotient, remainder

MOST_SYMBOLS = 3
"""A plan of n symbols is made of two to the power of n plans."""
LEAST = 7
"""No smaller size stands for a symbol: loops of a few steps are planned otherwise."""
Samples = Sequence[tuple[str, int, int]]
"""Symbols, each with two sizes."""


class NotAlike(RewrightError):
    """Plans that differ in more than numbers."""


def symbolic_plan(
    graph: Graph, machine: Machine, hints: Mapping[str, int], apart: frozenset[int] = frozenset()
) -> Plan:
    """The plan of a prepared graph for all sizes of its symbols; ``hints`` are those of an example.

    ``apart`` are nodes that are left to a library.

    Raises NotAlike where plans for several sizes are not the same, or there are too many symbols.
    """
    samples = choose_samples(graph, hints)
    plans: list[Plan] = []
    first: Planner | None = None
    for corner in itertools.product(*((a, b) for _, a, b in samples)):
        sizes = {name: size for (name, _, _), size in zip(samples, corner, strict=True)}
        planner = Planner(fold_counts(with_sizes(graph, sizes)), apart, machine=machine, like=first)
        plans.append(planner.plan())
        first = first or planner
    return _Common(plans, lambda values: interpolate(samples, [number_of(v) for v in values])).plan(graph)


def plan_at(plan: Plan, sizes: Mapping[str, int]) -> Plan:
    """The plan with numbers for its symbols."""
    return _Common([plan], lambda values: substitute_sizes(values[0], sizes)).plan(with_sizes(plan.graph, sizes))


def choose_samples(graph: Graph, hints: Mapping[str, int]) -> Samples:
    """Two primes for every symbol, of about the size that it has in the example, and equal to no other size."""
    names = size_symbols(graph)
    if not names or len(names) > MOST_SYMBOLS:
        raise NotAlike(f"plans are made for one to {MOST_SYMBOLS} symbols, and these are {len(names)}")
    taken = {size for node in graph.nodes for size in node.type.shape if isinstance(size, int)}
    found: list[tuple[str, int, int]] = []
    for name in names:
        pair: list[int] = []
        while len(pair) < 2:
            size = max(hints.get(name, LEAST), LEAST)
            while size in taken or any(size % n == 0 for n in range(2, int(size**0.5) + 1)):
                size += 1
            taken.add(size)
            pair.append(size)
        found.append((name, pair[0], pair[1]))
    return found


def interpolate(samples: Samples, values: Sequence[int]) -> Dim:
    """The polynomial, of degree one in every symbol, that has these values at all pairs of sizes, in order.

    Raises NotAlike where its coefficients are no integers.
    """
    if not samples:
        return values[0]
    name, low, high = samples[0]
    half = len(values) // 2
    first, second = (interpolate(samples[1:], part) for part in (values[:half], values[half:]))
    slope = divide(second - first, high - low)
    if slope is None:
        raise NotAlike(f"{first} at {name} = {low} and {second} at {name} = {high} are no polynomial")
    return first + slope * (symbol(name) - low)


class _Common:
    """The one plan that several are, whose numbers are what ``number`` makes of theirs."""

    def __init__(self, plans: Sequence[Plan], number: Callable[[Sequence[Dim]], Dim]) -> None:
        self.plans, self.whole = plans, number
        self.table = Table()
        self.known: dict[tuple[int, ...], Expression] = {}
        self.names: dict[tuple[str, ...], str] = {}

    def plan(self, graph: Graph) -> Plan:
        """The plan of all sizes."""
        first = self.plans[0]
        if any(p.memory != first.memory or len(p.steps) != len(first.steps) for p in self.plans):
            raise NotAlike("at other sizes other tensors are stored")
        steps = tuple(self.step(each) for each in zip(*(p.steps for p in self.plans), strict=True))
        return Plan(graph, self.table, first.memory, steps, list(first.decisions))

    def step(self, steps: Sequence[Step]) -> Step:
        """A step of all sizes."""
        if isinstance(steps[0], LibraryStep):
            positions = {s.position if isinstance(s, LibraryStep) else -1 for s in steps}
            if len(positions) > 1:
                raise NotAlike("at other sizes other operators are a library's")
            return steps[0]
        kernels = [s.kernel for s in steps if isinstance(s, KernelStep)]
        if len(kernels) < len(steps):
            raise NotAlike("at other sizes other operators are a library's")
        return KernelStep(cast("Kernel", self.value(kernels)))

    def value(self, values: Sequence[Any]) -> Any:
        """Any part of a kernel."""
        first = values[0]
        if isinstance(first, (int, SizeExpr)) and not isinstance(first, bool):
            return self.whole(values)
        if any(type(v) is not type(first) for v in values):
            raise NotAlike(f"one plan has {first!r}, and another one has another type")
        if isinstance(first, Expression):
            return self.expression(values)
        if isinstance(first, str):
            return self.name(values)
        if isinstance(first, tuple):
            if any(len(v) != len(cast("tuple[Any, ...]", first)) for v in values):
                raise NotAlike("plans have different numbers of parts")
            return tuple(self.value(each) for each in zip(*values, strict=True))
        if is_dataclass(first) and not isinstance(first, type):
            return self.record(values)
        if any(repr(v) != repr(first) for v in values):
            raise NotAlike(f"plans have {first!r} and another value")
        return first

    def record(self, values: Sequence[Any]) -> Any:
        """A dataclass, field by field; what a sweep compares are numbers of expressions, which are known by then."""
        first, made = values[0], dict[str, Any]()
        if isinstance(first, Kernel):
            self.value([k.stores for k in values])  # what sweeps compare is a part of what is stored
        numbers = [v.compared for v in values] if isinstance(first, Sweep) else None
        for field in fields(first):
            if field.name != "compared":
                made[field.name] = self.value([getattr(v, field.name) for v in values])
        if numbers is not None:
            made["compared"] = self.numbers(numbers)
        return type(first)(**made)

    def numbers(self, sets: Sequence[frozenset[int]]) -> frozenset[int]:
        """Sets of expressions by number."""
        keys = [key for key in self.known if key[0] in sets[0]]
        if any({key[n] for key in keys} != found for n, found in enumerate(sets)):
            raise NotAlike("plans compare different values")
        return frozenset(self.known[key].number for key in keys)

    def name(self, names: Sequence[str]) -> str:
        """A loop: those of reductions have names with their sizes in them."""
        if len(set(names)) == 1:
            return names[0]
        key = tuple(names)
        if key not in self.names:
            self.names[key] = f"{names[0].split('_')[0]}_n{len(self.names)}"
        return self.names[key]

    def expression(self, values: Sequence[Expression]) -> Expression:
        """An expression of all sizes."""
        key = tuple(e.number for e in values)
        if key not in self.known:
            self.known[key] = self.made(values)
        return self.known[key]

    def made(self, values: Sequence[Expression]) -> Expression:
        first, table = values[0], self.table
        if any((e.op, e.dtype, len(e.arguments)) != (first.op, first.dtype, len(first.arguments)) for e in values):
            return self.place(values)
        if first.op == "index":
            return self.place(values)
        if first.op == "constant":
            alike = all(repr(e.value) == repr(first.value) for e in values)
            return table.constant(first.value, first.dtype) if alike else self.number(values)
        if first.op == "load" and first.tensor < -1:
            pairs = zip(self.plans, values, strict=True)
            return table.renewed(self.expression([p.table.numbered(-2 - e.tensor) for p, e in pairs]))
        arguments = tuple(self.expression(each) for each in zip(*(e.arguments for e in values), strict=True))
        if first.op == "load":
            if any(e.tensor != first.tensor for e in values):
                raise NotAlike("plans read different tensors")
            return table.load(first.tensor, arguments, first.dtype)
        if first.bound is not None:
            return table.reduce(cast("Bound", self.value([e.bound for e in values])), arguments[0])
        return table.plain(first.op, arguments)

    def number(self, values: Sequence[Expression]) -> Expression:
        """A constant that differs with the sizes: a whole number, of integers or floats."""
        dtype = values[0].dtype
        if not dtype.is_float:
            return self.place(values)
        if any(e.op != "constant" or not float(e.value).is_integer() for e in values):
            raise NotAlike(f"plans have {values[0].value} and {values[-1].value} in the same place")
        size = self.whole([int(e.value) for e in values])
        whole = self.table.index(collect(size, []), DType.I64)
        return self.table.plain(f"convert_{dtype.value}", (whole,))

    def place(self, values: Sequence[Expression]) -> Expression:
        """An integer that is affine in loops, or a number of the sizes."""
        dtype, found = values[0].dtype, list[Index]()
        for e in values:
            if e.op == "index" and e.index is not None:
                found.append(e.index)
            elif e.op == "constant" and e.dtype.is_integer:
                found.append(Index(int(e.value)))
        if len(found) < len(values) or any(e.dtype is not dtype for e in values):
            raise NotAlike(f"plans have {values[0].op} and {values[-1].op} in the same place")
        return self.table.index(self.index(found), dtype)

    def index(self, values: Sequence[Index]) -> Index:
        """An index, term by term."""
        if any(len(i.terms) != len(values[0].terms) for i in values):
            raise NotAlike("plans read at different indices")
        total = collect(self.whole([i.constant for i in values]), [])
        for each in zip(*(i.terms for i in values), strict=True):
            factor = self.whole([f for _, f in each])
            total = total + self.atom([atom for atom, _ in each]) * factor
        return total

    def atom(self, atoms: Sequence[Atom]) -> Index:
        """A loop, a computed integer, or a digit."""
        first = atoms[0]
        if any(type(a) is not type(first) for a in atoms):
            raise NotAlike("plans read at different indices")
        if isinstance(first, Variable):
            names = [a.name for a in atoms if isinstance(a, Variable)]
            if any(name.startswith("@") for name in names):
                pairs = zip(self.plans, names, strict=True)
                return self.table.opaque(self.expression([p.table.named_integer(n) for p, n in pairs]))
            return Index(0, ((Variable(self.name(names)), 1),))
        digits = [a for a in atoms if isinstance(a, (Quotient, Remainder))]
        if len(digits) < len(atoms):
            raise NotAlike("plans read at different indices")
        inner = self.index([a.numerator for a in digits])
        divisor = self.whole([a.divisor for a in digits])
        return (quotient if isinstance(first, Quotient) else remainder)(inner, divisor)


__all__ = ["NotAlike", "choose_samples", "interpolate", "symbolic_plan"]
