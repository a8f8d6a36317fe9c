"""Plans whose sizes are symbols: what the plans of the program at several sizes have in common.

A planner compares sizes, so it works on numbers. It is asked at several tuples of sizes, and where the plans differ in
numbers alone, one plan with symbols is all of them. The proof of that plan, at symbols, is what says that it is right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from rewright.ir.graph import Graph
from rewright.ir.sizes import size_symbols, substitute_sizes, with_sizes
from rewright.ir.types import DType
from rewright.optimize.kernel import Kernel
from rewright.optimize.planning.costs import Machine
from rewright.optimize.planning.plan import KernelStep, LibraryStep, Plan, Step
from rewright.optimize.planning.planner import Planner
from rewright.optimize.scalars.expressions import Bound, Expression, Table
from rewright.optimize.sizes.alike import (
    NotAlike,
    Number,
    choose_samples,
    interpolate,
    merge,
    tuples_of,
)
from rewright.optimize.sizes.counting import fold_counts
from rewright.terms.index import Atom, Index, Quotient, Remainder, Variable, collect, quotient, remainder


def symbolic_plan(
    graph: Graph, machine: Machine, hints: Mapping[str, int], apart: frozenset[int] = frozenset()
) -> Plan:
    """The plan of a prepared graph for all sizes of its symbols; ``hints`` are those of an example.

    ``apart`` are nodes that are left to a library. Raises NotAlike where plans for several sizes are not the same, or
    there are too many symbols.
    """
    taken = {size for node in graph.nodes for size in node.type.shape if isinstance(size, int)}
    samples = choose_samples({name: hints.get(name, 1) for name in size_symbols(graph)}, taken)
    plans: list[Plan] = []
    first: Planner | None = None
    for sizes in tuples_of(samples):
        planner = Planner(fold_counts(with_sizes(graph, sizes)), apart, machine=machine, like=first)
        plans.append(planner.plan())
        first = first or planner
    return _Common(plans, lambda values: interpolate(samples, values)).plan(graph)


def plan_at(plan: Plan, sizes: Mapping[str, int]) -> Plan:
    """The plan with numbers for its symbols."""
    return _Common([plan], lambda values: substitute_sizes(values[0], sizes)).plan(with_sizes(plan.graph, sizes))


class _Common:
    """The one plan that several are, whose numbers are what ``number`` makes of theirs."""

    def __init__(self, plans: Sequence[Plan], number: Number) -> None:
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
        return merge(values, self.whole, self.special)

    def special(self, values: Sequence[Any]) -> Any:
        """Expressions, names, and records with numbers of expressions; NotImplemented for other parts."""
        first = values[0]
        if isinstance(first, Expression):
            return self.expression(values)
        if isinstance(first, str):
            return self.name(values)
        if isinstance(first, Kernel):
            self.value([k.stores for k in values])  # what sweeps compare is a part of what is stored
        if isinstance(first, frozenset):
            return self.numbers(values)
        return NotImplemented

    def numbers(self, sets: Sequence[frozenset[int]]) -> frozenset[int]:
        """Sets of expressions by number."""
        keys = [key for key in self.known if key[0] in sets[0]]
        if any(frozenset(key[n] for key in keys) != found for n, found in enumerate(sets)):
            raise NotAlike("plans compare different values")
        return frozenset(self.known[key].number for key in keys)

    def name(self, names: Sequence[str]) -> str:
        """A loop: those of reductions have names with their sizes in them."""
        if len(set(names)) == 1:
            return names[0]
        key, stems = tuple(names), {name.rpartition("_")[0] for name in names}
        if len(stems) > 1 or not all(name.rpartition("_")[2].isdigit() for name in names):
            raise NotAlike(f"at one size there is {names[0]}, and at another one {names[-1]}")
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


__all__ = ["plan_at", "symbolic_plan"]
