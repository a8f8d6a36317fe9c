"""A plan as a graph again: what its kernels compute, in operators, so that it can be proved to be the program.

Every expression becomes a tensor whose axes are the loops that it depends on. Reductions are as the kernel computes
them: the state is the reduction of its own body, and what is applied at the end is applied at the end. Rows, tiles and
the order of a sum are no part of the graph; that running states may follow each other is proved by itself (``proofs``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rewright import ops
from rewright.ir.dims import Dim, at_most, is_nonnegative
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, TensorType
from rewright.optimize.kernel import Kernel, Running, Store
from rewright.optimize.online.derive import product_of, products
from rewright.optimize.planning.cutting import cut_graph, is_moved
from rewright.optimize.planning.folding import digit_of
from rewright.optimize.planning.plan import LibraryStep, Plan, writes
from rewright.optimize.planning.windows import window_of
from rewright.optimize.proving.regraph_loads import Axes, Loads, NoGraph, Value
from rewright.optimize.scalars.expressions import Expression, walk
from rewright.optimize.scalars.ranges import span
from rewright.optimize.scalars.simplify import as_index
from rewright.optimize.sizes.counting import add_count
from rewright.terms.index import Index, Quotient, Remainder, Variable


def regraph(plan: Plan, as_computed: bool = True) -> Graph:
    """The graph of a plan; raises NoGraph where an index has no layout operator.

    With ``as_computed=False`` factors that a kernel applies at the end stay inside their sums.
    """
    return _Writer(plan, as_computed).graph()


def regraph_plan(plan: Plan) -> tuple[Graph, dict[int, int]]:
    """The graph of a plan with factors inside their sums, and where it has the tensors in memory; raises NoGraph."""
    writer = _Writer(plan, False)
    return writer.graph(), writer.memory


def store_graphs(plan: Plan, kernel: Kernel, store: Store, as_computed: bool = True) -> tuple[Graph, Graph]:
    """One stored tensor in terms of the stored tensors that its kernel reads: by the program, and by the plan."""
    read = sorted({e.tensor for e in walk(store.value) if e.op == "load" and e.tensor >= 0})
    names = {p: f"t{p}" for p in read if p != store.tensor}
    return cut_graph(plan.graph, store.tensor, names), _Writer(plan, as_computed).one(kernel, store, read)


@dataclass(frozen=True)
class Assumed:
    """What stands for a value in a proof: an input of the program, or that over a number."""

    label: str
    over: Expression | None = None


def value_graph(
    plan: Plan,
    kernel: Kernel,
    value: Expression,
    axes: Axes,
    read: Sequence[int],
    assumed: Mapping[int, Assumed],
) -> Graph:
    """A value of a kernel as a program of tensors ``read``, with some values as inputs of their own."""
    return _Writer(plan, False, assumed).alone(kernel, value, axes, read)


class _Writer(Loads):
    def __init__(self, plan: Plan, as_computed: bool, assumed: Mapping[int, Assumed] | None = None) -> None:
        self.as_computed = as_computed
        self.assumed = assumed or {}
        self.plan, self.source = plan, plan.graph
        super().__init__(GraphBuilder(plan.graph.name), plan.table)
        self.memory: dict[int, int] = {}
        self.known: dict[int, Value] = {}
        self.running: dict[int, Running] = {}
        self.inputs: dict[str, int] = {}
        """What stands for values, by label."""

    def graph(self) -> Graph:
        """All steps in order."""
        for name, position in self.source.inputs.items():
            self.memory[position] = self.builder.input(name, self.source.nodes[position].op)
        for position in self.plan.memory:
            if isinstance(self.source.nodes[position].op, ops.Constant):
                self.memory[position] = self.builder.add(self.source.nodes[position].op)
        for step in self.plan.steps:
            if isinstance(step, LibraryStep):
                self.library(step)
                continue
            try:
                self.kernel(step.kernel)
            except NoGraph as error:
                raise NoGraph(str(error), writes(step)) from None
        for name, position in self.source.outputs.items():
            self.builder.output(name, self.copied(position))
        return self.builder.build()

    def one(self, kernel: Kernel, store: Store, read: list[int]) -> Graph:
        """One store of a kernel over the tensors that it reads."""
        for p in read:
            self.memory[p] = self.builder.input(f"t{p}", ops.Input(f"t{p}", self.source.nodes[p].type))
        self.kernel(replace(kernel, sweeps=tuple(replace(s, stores=()) for s in kernel.sweeps), finals=(store,)))
        self.builder.output("0", self.memory[store.tensor])
        return self.builder.build()

    def alone(self, kernel: Kernel, value: Expression, axes: Axes, read: Sequence[int]) -> Graph:
        """One value of a kernel over the tensors that it reads."""
        for p in read:
            self.memory[p] = self.builder.input(f"t{p}", ops.Input(f"t{p}", self.source.nodes[p].type))
        self.kernel(replace(kernel, sweeps=tuple(replace(s, stores=()) for s in kernel.sweeps), finals=()))
        for e in walk(value):
            if e.bound is not None:
                self.sizes[e.bound.index] = e.bound.size
        self.sizes |= {sweep.lane.name: sweep.lane.size for sweep in kernel.sweeps}
        found = self.value(value)
        self.builder.output("0", self.ordered(self.spread(found, axes), axes))
        return self.builder.build()

    def stand_in(self, e: Expression, found: Assumed) -> Value:
        """The input that stands for a value."""
        axes = tuple(sorted(e.free))
        kind = TensorType(tuple(self.sizes[a] for a in axes), e.dtype)
        position = self.inputs.get(found.label)  # two values may be one input over different numbers
        if position is None:
            position = self.inputs[found.label] = self.builder.input(found.label, ops.Input(found.label, kind))
        if found.over is not None:
            number = self.spread(self.value(found.over), axes)[0]
            position = self.builder.add(ops.Divide(), position, number)
        return position, axes

    def library(self, step: LibraryStep) -> None:
        """A node as it is."""
        node = self.source.nodes[step.position]
        operands = [self.copied(p) for p in node.operands]
        self.memory[step.position] = self.builder.add(node.op, *operands, span=node.span)

    def copied(self, position: int) -> int:
        """A stored tensor, or a view of one."""
        if position not in self.memory:
            node = self.source.nodes[position]
            assert isinstance(node.op, ops.View), node.op
            self.memory[position] = self.builder.add(node.op, *(self.copied(p) for p in node.operands), span=node.span)
        return self.memory[position]

    # --- kernels

    def kernel(self, kernel: Kernel) -> None:
        """Everything that a kernel stores."""
        self.known.clear()
        self.sizes = {loop.name: loop.size for loop in kernel.grid}
        for loop in (kernel.rows, kernel.features):
            if loop is not None:
                self.sizes[loop.name] = loop.size
        self.running = {r.value.number: r for sweep in kernel.sweeps for r in sweep.running}
        for sweep in kernel.sweeps:
            self.sizes[sweep.lane.name] = sweep.lane.size
            for product in sweep.products:
                self.sizes[product.depth.name] = product.depth.size
        for store in kernel.stores:
            node = self.source.nodes[store.tensor]
            self.builder.span = node.span
            found = self.converted(self.value(store.value), node.type.dtype)
            missing = [a for a in store.axes if a not in found[1]]
            if missing:
                found = self.spread(found, tuple(store.axes))
            self.memory[store.tensor] = self.ordered(found, store.axes)

    def value(self, e: Expression) -> Value:
        """The tensor of an expression."""
        if e.number not in self.known:
            stand_in = self.assumed.get(e.number)
            self.known[e.number] = self.made(e) if stand_in is None else self.stand_in(e, stand_in)
        return self.known[e.number]

    def made(self, e: Expression) -> Value:
        """A new tensor."""
        if e.op == "constant":
            return self.builder.add(ops.Constant(TensorType((), e.dtype), (e.value,))), ()
        if e.op == "index" and e.index is not None:
            return self.index(e.index, e.dtype)
        if e.op == "load":
            return self.load(e)
        if e.op == "reduce":
            return self.reduction(e)
        if e.op in ("at_least_zero", "is_zero"):
            return self.condition(e)
        if e.op == "select" and (parts := self.parts_of(e)) is not None:
            return self.joined(e, *parts)
        values = self.alike([self.value(a) for a in e.arguments])
        axes = self.joint(values)
        return self.builder.add(function_of(e), *(self.spread(v, axes)[0] for v in values)), axes

    def parts_of(self, e: Expression) -> tuple[str, Dim, bool] | None:
        """The loop along which a choice is one value first and the other one after, where, and which comes first.

        None where the condition is about more than one loop, or the parts are not both read at the loop.
        """
        condition = e.arguments[0]
        index = as_index(condition.arguments[0]) if condition.op == "at_least_zero" else None
        if index is None or len(index.terms) != 1:
            return None
        ((atom, factor),) = index.terms
        if not isinstance(atom, Variable) or factor not in (1, -1) or atom.name.startswith("@"):
            return None
        # x >= -constant: the other value comes first; or x <= constant: this one does.
        place = -index.constant if factor == 1 else index.constant + 1
        name = atom.name
        parts = e.arguments[1:]
        loads = all(any(x.op == "load" for x in walk(part)) for part in parts)
        moved = any(is_moved(x, name) for part in parts for x in walk(part))
        inside = at_most(1, place) and at_most(place + 1, self.sizes[name])
        return (name, place, factor == -1) if inside and loads and moved else None

    def joined(self, e: Expression, name: str, place: Dim, first: bool) -> Value:
        """A choice by a loop as the concatenation of its parts, of which each has the loop to itself."""
        early, late = e.arguments[1:] if first else e.arguments[:0:-1]
        size = self.sizes[name]
        parts: list[Value] = []
        for value, start, count in ((early, 0, place), (late, place, size - place)):
            own = f"{name}from{start}of{count}"  # a name has one size: what was written for a part is known by it
            self.sizes[own] = count
            index = Index(start, ((Variable(own), 1),))
            position, axes = self.value(self.table.substitute(value, {name: index}))
            parts.append((position, tuple(name if a == own else a for a in axes)))
        axes = self.joint([*parts, (-1, (name,))])
        whole: list[int] = []
        for part, count in zip(self.alike(parts), (place, size - place), strict=True):
            self.sizes[name] = count
            whole.append(self.spread(part, axes)[0])
        self.sizes[name] = size
        return self.builder.add(ops.Concatenate(axes.index(name)), *whole), axes

    def alike(self, values: list[Value]) -> list[Value]:
        """Values of which all that are floats have the dtype of the first such: numbers have the wider one of a law."""
        kinds = [self.builder.type(position).dtype for position, _ in values]
        floats = [kind for kind in kinds if kind.is_float]
        if len(set(floats)) < 2:
            return values
        pairs = zip(values, kinds, strict=True)
        return [self.converted(value, floats[0]) if kind.is_float else value for value, kind in pairs]

    def condition(self, e: Expression) -> Value:
        """A condition on an index as a comparison of what is added in it with what is subtracted."""
        index = as_index(e.arguments[0])
        dtype = e.arguments[0].dtype
        assert index is not None
        start = 0 if is_nonnegative(index.constant) is False else index.constant
        plus = Index(start, tuple(t for t in index.terms if not isinstance(t[1], int) or t[1] > 0))
        minus = plus - index
        sides = [self.index(plus, dtype), self.index(minus, dtype)]
        axes = self.joint(sides)
        compare = ops.Compare("GE" if e.op == "at_least_zero" else "EQ")
        return self.builder.add(compare, *(self.spread(s, axes)[0] for s in sides)), axes

    def index(self, index: Index, dtype: DType) -> Value:
        """An index as a tensor."""
        parts: list[Value] = []
        for atom, factor in index.terms:
            if isinstance(atom, Variable) and atom.name.startswith("@"):
                iota, axes = self.converted(self.value(self.table.named_integer(atom.name)), dtype)
            else:
                iota, axes = self.atom(atom, dtype)
            if factor != 1:
                scale = self.filled(factor, self.builder.type(iota))
                iota = self.builder.add(ops.Multiply(), iota, scale)
            parts.append((iota, axes))
        if index.constant != 0 or not parts:
            parts.append((add_count(self.builder, index.constant, dtype), ()))
        total = parts[0]
        for part in parts[1:]:
            axes = self.joint([total, part])
            total = self.builder.add(ops.Add(), self.spread(total, axes)[0], self.spread(part, axes)[0]), axes
        return total

    def atom(self, atom: object, dtype: DType) -> Value:
        """A loop, or a digit of an index: by layout operators where they have it, else as the integer that it is."""
        digit = digit_of(atom, self.sizes)
        if digit is not None:
            iota = self.builder.add(ops.Iota(TensorType((digit[2],), dtype), 0))
            if not isinstance(atom, Variable):
                iota = self.repeated(iota, 0, atom, digit[0])
            return iota, (digit[0],)
        found = span(atom.numerator, self.ranges) if isinstance(atom, (Quotient, Remainder)) else None
        if found is None or not isinstance(atom, (Quotient, Remainder)):
            raise NoGraph(f"the index {atom} has no form in operators")
        turns = 0
        if not is_nonnegative(found[0]):  # integers are divided towards zero: what is divided is made positive
            if not isinstance(found[0], int) or not isinstance(atom.divisor, int):
                raise NoGraph(f"the index {atom} has no form in operators")
            turns = -(found[0] // atom.divisor)
        position, axes = self.index(atom.numerator + turns * atom.divisor, dtype)
        kind = self.builder.type(position)
        divisor = self.filled(atom.divisor, kind)
        if isinstance(atom, Remainder):
            return self.builder.add(ops.Remainder(), position, divisor), axes
        whole = self.builder.add(ops.Divide(), position, divisor)
        return (
            (self.builder.add(ops.Subtract(), whole, self.builder.add(ops.Constant(kind, (turns,)))), axes)
            if turns
            else (whole, axes)
        )

    def reduction(self, e: Expression) -> Value:
        """A reduction as the kernel computes it."""
        assert e.bound is not None
        running = self.running.get(e.number) if self.as_computed else None
        self.sizes[e.bound.index] = e.bound.size
        body = e.arguments[0] if running is None else running.body
        total = self.contracted(body, e) if e.bound.kind == "sum" else None
        if total is None and running is None:
            total = self.windowed(e)
        if total is None:
            position, axes = self.value(body)
            if e.bound.index not in axes:
                position, axes = self.spread((position, axes), (*axes, e.bound.index))
            place = axes.index(e.bound.index)
            total = self.builder.add(ops.Reduce(e.bound.kind, (place,)), position), (*axes[:place], *axes[place + 1 :])  # type: ignore[arg-type]
        if running is not None and running.update.finish is not None:
            return self.finished(total, running.update.finish)
        return total

    def windowed(self, e: Expression) -> Value | None:
        """A reduction of what is read along sliding windows, where it is one."""
        assert e.bound is not None
        sizes = {name: size for name, size in self.sizes.items() if isinstance(size, int)}
        found = window_of(self.table, e, sizes) if isinstance(e.bound.size, int) else None
        if found is None:
            return None
        self.sizes[found.place] = found.size
        position, axes = self.value(found.body)
        if found.place not in axes:
            return None
        own = axes.index(found.place)
        rank = range(len(axes))
        op = ops.ReduceWindow(
            e.bound.kind,  # type: ignore[arg-type]
            tuple(found.width if a == own else 1 for a in rank),
            tuple(found.stride if a == own else 1 for a in rank),
            tuple((found.low, found.high) if a == own else (0, 0) for a in rank),
        )
        return self.builder.add(op, position), tuple(found.loop if a == found.place else a for a in axes)

    def finished(self, total: Value, finish: Expression) -> Value:
        """The state with what is applied at the end."""
        op: ops.TensorOperator = ops.Multiply()
        if finish.op == "divide" and finish.arguments[0].op == "constant" and finish.arguments[0].value == 1:
            op, finish = ops.Divide(), finish.arguments[1]
        total, end = self.alike([total, self.value(finish)])
        axes = self.joint([total, end])
        return self.builder.add(op, self.spread(total, axes)[0], self.spread(end, axes)[0]), axes

    def contracted(self, body: Expression, e: Expression) -> Value | None:
        """A sum of products as a matrix product, where its two sides have loops of their own."""
        assert e.bound is not None
        factors = list(products(body))
        first = factors[0][0].free
        groups = [f for f in factors if f[0].free <= first], [f for f in factors if not f[0].free <= first]
        sides = [product_of(self.table, g) for g in groups]
        if sides[0] is None or sides[1] is None:
            return None
        left, right = self.value(sides[0]), self.value(sides[1])
        if e.bound.index not in left[1] or e.bound.index not in right[1]:
            return None
        if not set(left[1]) - set(right[1]) or not set(right[1]) - set(left[1]):
            return None
        dtype = self.builder.type(left[0]).dtype
        right = self.converted(right, dtype)
        batch = [a for a in left[1] if a in right[1] and a != e.bound.index]
        op = ops.DotGeneral(
            tuple(left[1].index(a) for a in batch),
            tuple(right[1].index(a) for a in batch),
            (left[1].index(e.bound.index),),
            (right[1].index(e.bound.index),),
        )
        rest = [a for v in (left, right) for a in v[1] if a not in batch and a != e.bound.index]
        return self.builder.add(op, left[0], right[0]), (*batch, *rest)


def function_of(e: Expression) -> ops.TensorOperator:
    """The operator that a function is; raises NoGraph where it is none."""
    found = ops.ELEMENTWISE.get(e.op)
    if found is None:
        raise NoGraph(f"the function {e.op} is no operator")
    return found
