"""From graphs to expressions: denotations are composed until tensors in memory are met."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.operator import Unsupported
from rewright.ir.types import DType
from rewright.ops.base import TensorOperator
from rewright.ops.layout import View
from rewright.optimize.planning.parting import JOINED, parted_at
from rewright.optimize.scalars.expressions import Bound, Expression, Table, walk
from rewright.optimize.scalars.ranges import Span, decide_sign, number_span, simplify_index
from rewright.terms.index import Element, Index, Quotient, Variable, collect, quotient, remainder, variable
from rewright.terms.scalar import AllOf, Apply, AtLeastZero, Choose, Condition, Fixed, Fold, Number, Read, Scalar
from rewright.terms.scalar import Table as Fixeds

Places = tuple[Index, ...]


class NotScalar(RewrightError):
    """An operator whose elements are no expression; it is left to a library."""


DEEP = 4
"""So many reductions around a projection are more than one kernel has, whatever they are."""


MOST_READ = 5000
"""So many elements of nodes are read for one tensor. In benchmarks it takes up to 2,114, but for Mamba: 8,409."""


class TooDeep(Exception):
    """A node is read inside of too many reductions, or in too many places; it has to be stored."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


class Reader:
    """Expressions for elements of one graph; ``memory`` are the positions of tensors that are stored.

    Every reduction has a loop of its own, so that what is inside of several is read once for each way into it: a deep
    network would never be read to its inputs. Reading one of the ``projections`` that deep raises TooDeep.
    """

    def __init__(
        self,
        graph: Graph,
        table: Table,
        memory: Collection[int],
        origin: dict[Expression, tuple[int, Places]] | None = None,
        projections: Collection[int] = (),
        denotations: dict[int, Scalar | Unsupported] | None = None,
        most: int | None = None,
    ) -> None:
        self.graph, self.table, self.memory = graph, table, frozenset(memory)
        self.projections, self.most = projections, most
        self.depth = 0
        """How many reductions are around what is read."""
        self.origin = {} if origin is None else origin
        """For a reduction the node that it is, and at which index."""
        self.denotations = {} if denotations is None else denotations
        """Of the nodes that were read, also for other tensors in memory."""
        self._known: dict[tuple[int, Places], Expression] = {}
        self._read = 0
        """How many elements were read, of all nodes."""
        self._costs: Counter[int] = Counter()
        """For each node how many were read for its elements, but for the first one."""
        self._settled: dict[Index, Index] = {}
        self.ranges: dict[str, Span] = {}
        """The first and the last value of loop indices whose sizes are known."""
        self._fresh = 0

    def root(self, position: int, names: tuple[str, ...]) -> Expression:
        """The element of a tensor at named loop indices; the tensor itself is computed, though it is stored."""
        for name, size in zip(names, self.graph.nodes[position].type.shape, strict=True):
            if isinstance(size, int):
                self.ranges[name] = (0, size - 1)
        return self._compute(position, tuple(variable(name) for name in names))

    def value(self, position: int, places: Places) -> Expression:
        """The element of a tensor at an index."""
        node = self.graph.nodes[position]
        if position in self.memory:
            return self.table.load(position, tuple(self.table.index(i) for i in places), node.type.dtype)
        key = (position, places)
        if key not in self._known:
            before = self._read
            self._known[key] = self._compute(position, places)
            found = self._read - before
            self._costs[position] += found if position in self._costs else 0
        return self._known[key]

    def _compute(self, position: int, places: Places) -> Expression:
        node = self.graph.nodes[position]
        if self.depth >= DEEP and position in self.projections:
            raise TooDeep(position)
        self._read += 1
        if self.most is not None and self._read > self.most:
            raise TooDeep(self._costliest())
        if not isinstance(node.op, TensorOperator):
            raise NotScalar(f"{node.op.name} at {node.span} has no denotation")
        if position not in self.denotations:
            self.denotations[position] = node.op.denote([self.graph.nodes[p].type for p in node.operands])
        scalar = self.denotations[position]
        if isinstance(scalar, Unsupported):
            raise NotScalar(f"{node.op.name} at {node.span}: {scalar.why}")
        environment = {Variable(f"i{axis}"): place for axis, place in enumerate(places)}
        found = _Conversion(self, node.operands, environment, node.type.dtype).scalar(scalar)
        if found.op == "reduce":
            self.origin.setdefault(found, (position, places))
        return found

    def _costliest(self) -> int:
        """The node that is worth the most to store; the last one of those that are worth the same, and no view."""
        whole = [p for p in self._costs if not isinstance(self.graph.nodes[p].op, View)]
        return max(whole or self._costs, key=lambda p: (self._costs[p], p))

    def rename(self, value: Expression, places: Mapping[str, Index]) -> Expression:
        """The expression with loop indices replaced; reductions in it are still known as the nodes that they are."""
        keys = frozenset(places)
        for e in list(walk(value)):
            if e in self.origin and e.free & keys:
                position, old = self.origin[e]
                moved = tuple(self.table.relabel(i, places, lambda x: self.table.substitute(x, places)) for i in old)
                self.origin.setdefault(self.table.substitute(e, places), (position, moved))
        return self.table.substitute(value, places)

    def settle(self, index: Index) -> Index:
        """The index without digits that have one value."""
        if index not in self._settled:
            self._settled[index] = simplify_index(index, self.ranges)
        return self._settled[index]

    def temporary(self) -> str:
        """A name for an index that nothing else uses."""
        self._fresh += 1
        return f"?{self._fresh}"


class _Conversion:
    """One denotation with operands and index filled in."""

    def __init__(
        self, reader: Reader, operands: tuple[int, ...], places: Mapping[Variable, Index], dtype: DType
    ) -> None:
        self.reader, self.table, self.operands = reader, reader.table, operands
        self.places, self.dtype = dict(places), dtype

    def scalar(self, value: Scalar) -> Expression:
        table = self.table
        if isinstance(value, Read):
            return self.reader.value(self.operands[value.operand], tuple(self.index(i) for i in value.index))
        if isinstance(value, Apply):
            if value.function == "otherwise":
                raise NotScalar("a value that may be absent")
            arguments = [self.scalar(a) for a in value.arguments]
            found = self.digit(value.function, arguments)
            return table.apply(value.function, *arguments) if found is None else found
        if isinstance(value, Number):
            return table.index(self.index(value.index))
        if isinstance(value, Choose):
            condition = self.condition(value.condition)
            if condition.op == "constant":
                return self.scalar(value.on_true if condition.value else value.on_false)
            return table.apply("select", condition, self.scalar(value.on_true), self.scalar(value.on_false))
        if isinstance(value, Fold):
            return self.fold(value)
        if isinstance(value, Fixed):
            return table.constant(value.value, DType.BOOL if isinstance(value.value, bool) else self.dtype)
        if isinstance(value, Fixeds):
            raise NotScalar("a table of constants")
        raise NotScalar("a value that may be absent")

    def digit(self, function: str, arguments: list[Expression]) -> Expression | None:
        """A quotient or remainder of an index by a number, as masks of blocks have; None for anything else."""
        if function not in ("divide_integer", "remainder") or not arguments[0].dtype.is_integer:
            return None
        (value, by), known = arguments, None
        if value.index is not None and by.op == "constant" and by.value > 0:
            known = number_span(value.index, self.reader.ranges)
        if value.index is None or known is None or known[0] < 0:
            return None
        found = (quotient if function == "divide_integer" else remainder)(value.index, int(by.value))
        return self.table.index(self.reader.settle(found), value.dtype)

    def fold(self, value: Fold) -> Expression:
        if value.kind == "last" or not isinstance(value.size, int):
            raise NotScalar(f"a fold of kind {value.kind} over {value.size}")
        name = self.reader.temporary()
        self.reader.ranges[name] = (0, value.size - 1)
        places = {**self.places, value.binder: variable(name)}
        inner = _Conversion(self.reader, self.operands, places, self.dtype)
        self.reader.depth += 1
        body = inner.scalar(value.body)
        self.reader.depth -= 1
        return self.reduced(value.kind, name, body, value.size)

    def reduced(self, kind: str, name: str, body: Expression, size: int) -> Expression:
        """The reduction of a body over an index, without the few elements at an end that are something else."""
        if size == 1:
            return self.reader.rename(body, {name: Index(0)})
        parted = parted_at(self.table, name, body, size)
        if parted is not None:
            whole = self.reduced(kind, name, parted.most, parted.size)
            for element in parted.elements:
                whole = self.table.apply(JOINED.get(kind, kind), whole, element)
            return whole
        final = f"r{level(body, name)}_{size}"
        renamed = self.reader.rename(body, {name: variable(final)})
        return self.table.reduce(Bound(kind, final, size), renamed)

    def condition(self, condition: Condition) -> Expression:
        if isinstance(condition, AllOf):
            parts = [self.condition(c) for c in condition.conditions]
            total = parts[0]
            for part in parts[1:]:
                total = self.table.apply("and", total, part)
            return total
        index = self.index(condition.index)
        least = isinstance(condition, AtLeastZero)
        if (known := decide_sign(index, least, self.reader.ranges)) is not None:
            return self.table.constant(known, DType.BOOL)
        return self.table.plain("at_least_zero" if least else "is_zero", (self.table.index(index),))

    def index(self, index: Index) -> Index:
        name = index.as_variable()
        if name is not None and name in self.places:
            return self.places[name]
        total = Index(index.constant)
        for atom, factor in index.terms:
            if isinstance(atom, Variable):
                part = self.places.get(atom, collect(0, [(atom, 1)]))
            elif isinstance(atom, Element):
                part = self.table.opaque(self.scalar(atom.value))
            else:
                inner = self.index(atom.numerator)
                part = quotient(inner, atom.divisor) if isinstance(atom, Quotient) else remainder(inner, atom.divisor)
            total = total + part * factor
        return self.reader.settle(total)


def level(value: Expression, name: str) -> int:
    """One more than the highest level of a reduction over something that depends on the index.

    Reductions over the same values get the same name for their index, whatever else is in their bodies.
    """
    known: dict[int, int] = {}

    def visit(e: Expression) -> int:
        if name not in e.free:
            return 0
        if e.number not in known:
            inner = max((visit(a) for a in e.arguments), default=0)
            if e.bound is not None:
                inner = max(inner, 1 + int(e.bound.index[1:].split("_")[0]))
            known[e.number] = inner
        return known[e.number]

    return visit(value)


__all__ = ["NotScalar", "Reader", "level", "variable"]
