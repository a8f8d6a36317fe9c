"""The elements of a graph's nodes in normal form, read off the operators' own denotations."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import TypeVar

from rewright.ir.dims import Dim
from rewright.ir.graph import Graph, Node
from rewright.ir.operator import Operator, Unsupported
from rewright.ir.types import DType, TensorType
from rewright.terms import index as places
from rewright.terms import scalar as scalars
from rewright.terms.index import Index, Variable, result_index
from rewright.terms.normal.arithmetic.binders import name_binders
from rewright.terms.normal.arithmetic.bits import bitwise
from rewright.terms.normal.arithmetic.cases import branch, each, finite, truth
from rewright.terms.normal.arithmetic.division import floor_quotient, floor_remainder
from rewright.terms.normal.denoting.casts import bits_of, declare_bounds, holds, truncate
from rewright.terms.normal.denoting.functions import Functions, Grade
from rewright.terms.normal.denoting.needs import Kind, Need, Variables, is_trivial, where_met
from rewright.terms.normal.denoting.sorts import of_sort, read, sort_of
from rewright.terms.normal.denoting.tables import entry
from rewright.terms.normal.facts.context import Context
from rewright.terms.normal.facts.guards import (
    MISSING,
    Choice,
    Infinite,
    Leaf,
    Value,
    at_least,
    at_least_zero,
    boolean,
    constant,
    is_zero,
)
from rewright.terms.normal.folds.last import last_over, may_be_absent
from rewright.terms.normal.folds.last_terms import joined
from rewright.terms.normal.folds.maxima import max_over, negative
from rewright.terms.normal.folds.presence import may_be_infinite
from rewright.terms.normal.folds.products import product_over
from rewright.terms.normal.folds.sums import sum_over
from rewright.terms.normal.polynomials.atoms import (
    ONE,
    ZERO,
    Element,
    Function,
    Guard,
    Indicator,
    Polynomial,
    TooHard,
    polynomial,
    symbol,
)
from rewright.terms.normal.polynomials.ranged import Fold
from rewright.terms.scalar import Scalar
from rewright.terms.walk import elements, subterms

Place = tuple[Polynomial, ...]
Environment = Mapping[Variable, Polynomial]
Sizes = Callable[[Dim], Polynomial]
_T = TypeVar("_T")


class Denoter:
    """Denotes nodes of one graph. Values are remembered for as long as the facts hold under which they were found.

    ``has_poles``: the logarithm of zero is minus infinity; else logarithms need what they are of to be positive.
    """

    def __init__(
        self, context: Context, graph: Graph, sizes: Sizes, grade: Grade = "real", *, has_poles: bool = True
    ) -> None:
        self.context = context
        self.graph = graph
        self.sizes = sizes
        self.needs: list[Need] = []
        """What had to hold for the values denoted so far."""
        self.lookups: list[Need] | None = None
        """Where given, what had to hold for reads at places computed from data."""
        self._functions = Functions(context, grade, self._require, has_poles)
        self._grade = grade
        self._variables: list[tuple[str, Polynomial, Polynomial]] = []
        self._base = len(context.trail)
        self._scalars: dict[int, Scalar] = {}
        # In the keys of what is remembered, so that nothing else is ever taken for this one, also when it is gone.
        self._identity = object()

    def value(self, position: int, index: Place) -> Value:
        """The element of a node at an index. Raises TooHard and OutOfTime."""
        key = (self._identity, position, index)
        found = self.context.memo(key)
        if found is None:
            found = self.apart(lambda: self._denote(position, index))
            self.context.remember(key, found)
        value, needs = found
        self.needs += needs
        return value

    def apart(self, value: Callable[[], _T]) -> tuple[_T, tuple[Need, ...]]:
        """A value with what has to hold for it, which is not noted elsewhere."""
        before, self.needs = self.needs, []
        try:
            found = value()
            return found, tuple(dict.fromkeys(self.needs))
        finally:
            self.needs = before

    def shape(self, position: int) -> Place:
        """The sizes of a node."""
        return tuple(self.sizes(size) for size in self.graph.nodes[position].type.shape)

    def looks_up(self, position: int) -> bool:
        """Whether a node reads an operand at a place computed from data."""
        node = self.graph.nodes[position]
        if not node.operands:
            return False
        reads = (part for part in subterms(self._scalar(position, node)) if isinstance(part, scalars.Read))
        return any(_is_computed(i) for read in reads for i in read.index)

    def lookups_of(
        self, position: int, binders: Sequence[tuple[str, Polynomial, Polynomial]], node: Node
    ) -> list[Need]:
        """What has to hold for the reads of one node, at an index of fresh variables."""
        before, self._variables = self._variables, [*binders]
        try:
            found = self.lookups_at(position, [symbol(name) for name, _, _ in binders])
            return [need for need in found if need.operation == node.op.name]
        finally:
            self._variables = before

    def lookups_at(self, position: int, place: Sequence[Polynomial]) -> list[Need]:
        """What has to hold for the reads at places computed from data that one element of a node needs."""
        self.lookups = []
        try:
            variables = [index.as_variable() for index in result_index(len(place))]
            at = {name: value for name, value in zip(variables, place, strict=True) if name is not None}
            _Reader(self, position).scalar(self._scalar(position, self.graph.nodes[position]), at)
            return self.lookups
        finally:
            self.lookups = None

    def _denote(self, position: int, index: Place) -> Value:
        node = self.graph.nodes[position]
        label = getattr(node.op, "label", None)
        if not node.operands and label is not None:
            return self._input(label, node.type.dtype, index)
        variables = [place.as_variable() for place in result_index(len(index))]
        environment = {name: i for name, i in zip(variables, index, strict=True) if name is not None}
        return _Reader(self, position).scalar(self._scalar(position, node), environment)

    def _scalar(self, position: int, node: Node) -> Scalar:
        if position not in self._scalars:
            found = _denotation(node.op, self.operand_types(node))
            if isinstance(found, Unsupported):
                raise TooHard(f"{node.op.name}, which has no denotation: {found.why}")
            self._scalars[position] = found
        return self._scalars[position]

    def operand_types(self, node: Node) -> list[TensorType]:
        """The types of the operands of a node."""
        return [self.graph.nodes[p].type for p in node.operands]

    def _input(self, label: str, dtype: DType, index: Place) -> Value:
        if dtype is DType.BOOL:
            return truth(self.context, boolean(Element(label, index, True)))
        if dtype.is_integer:
            declare_bounds(self.context, label, dtype)
        return read(self.context, label, index, dtype.is_integer)

    def _require(self, kind: Kind, value: Polynomial, operation: str) -> None:
        if is_trivial(self.context, kind, value):
            return
        variables: Variables = tuple(self._variables)
        self.needs.append(Need(kind, value, tuple(self.context.trail[self._base :]), variables, operation))

    def fold(self, fold: scalars.Fold, is_float: bool, is_boolean: bool, body: Callable[[Polynomial], Value]) -> Value:
        """A fold of ``body`` over ``0 <= k < size``; the facts about k hold in the body only."""
        name, size, kind = self.context.fresh("k"), self.sizes(fold.size), fold.kind
        if kind == "last" and size == ZERO:
            return MISSING
        with self.context.ranges([(name, ZERO, size)]):
            self._variables.append((name, ZERO, size))
            try:
                value = body(symbol(name))
                if kind in ("sum", "product", "last"):
                    value = each(self.context, self._functions.settle, value)
            finally:
                self._variables.pop()
        if kind == "sum" and not (is_float and self._grade == "move"):
            found = sum_over(self.context, name, size, value)
            in_parts = isinstance(value, Choice) and name in value.free
            return each(self.context, partial(joined, self.context), found) if in_parts else found
        if kind in ("maximum", "minimum") or (is_boolean and kind != "last"):
            empty = constant(fold.identity.value) if isinstance(fold.identity, scalars.Fixed) else MISSING
            return self.extreme(kind, empty, name, size, value)
        if kind == "product" and self._grade != "move" and sort_of(value) == "finite":
            with suppress(TooHard):
                return product_over(self.context, name, size, value, not is_float)
        known = last_over(self.context, name, size, value, body) if kind == "last" else None
        return self._as_written(kind, name, size, value) if known is None else known

    def extreme(self, kind: str, empty: Value, name: str, size: Polynomial, value: Value) -> Value:
        """A maximum, or a minimum as minus the maximum of negatives; truth values are zero and one.

        ``empty`` is what it is of nothing.
        """
        lowest = kind in ("minimum", "and")
        boolean = kind in ("and", "or")
        found = max_over(self.context, name, size, self._opposite(value, boolean) if lowest else value)

        def leaf(one: Value) -> Value:
            if isinstance(one, Infinite) and one.sign < 0:
                return empty
            if may_be_infinite(one) is not None and not isinstance(empty, Infinite):
                raise TooHard(f"a {kind} that may be of nothing, which is {empty}")
            return self._opposite(one, boolean) if lowest else one

        return each(self.context, leaf, found)

    def _opposite(self, value: Value, is_boolean: bool) -> Value:
        """What turns the order around: the negation of a truth value, else minus the value."""
        return each(self.context, _not, value) if is_boolean else negative(value)

    def _as_written(self, kind: str, name: str, size: Polynomial, value: Value) -> Value:
        """A fold of which only what it combines is known; it is a number where all of that is."""
        if isinstance(value, Choice) and name not in value.guard.free:
            go = partial(self._as_written, kind, name, size)
            return branch(self.context, value.guard, partial(go, value.yes), partial(go, value.no))
        body = name_binders(self.context, [(name, ZERO, size)], (0,), _formal(value))
        return of_sort(self.context, Fold(kind, size, body), sort_of(value))

    def choose(self, predicate: Value, yes: Callable[[], Value], no: Callable[[], Value]) -> Value:
        """One of two values by a truth value."""

        def leaf(one: Value) -> Value:
            if not isinstance(one, Polynomial):
                raise TooHard(f"a choice by {one}")
            return branch(self.context, at_least(one, 1), yes, no)

        return each(self.context, leaf, predicate)

    def apply(self, name: str, arguments: tuple[Value, ...], is_float: bool) -> Value:
        """A scalar function of guarded values."""
        return self._functions.apply(name, arguments, is_float)

    def truth_about(self, name: str, arguments: tuple[Value, ...], needs: Sequence[Need]) -> Value:
        """A comparison of floats, or whether one is finite, where these have needs.

        What is not a number is not finite. A comparison has some truth value there, of which nothing is known but that
        it is the same for the same operands, as a quotient by zero may be infinite or not a number.
        """
        if any(len(need.variables) > len(self._variables) for need in needs):
            raise TooHard(f"{name} of a reduction that may not be defined")

        def undefined() -> Value:
            if name == "is_finite":
                return ZERO
            formal = tuple(_formal(argument) for argument in arguments)
            return truth(
                self.context, Guard("true", polynomial(Function(f"{name} of what is not defined", formal, True)))
            )

        known = self.context.trail[self._base :]
        return where_met(self.context, needs, known, lambda: self.apply(name, arguments, True), undefined)

    def logical(self, name: str, arguments: tuple[Value, ...]) -> Value:
        """Not, and, or, exclusive or, of truth values as zero and one.

        Conjunction and disjunction of what is not decided are a minimum and a maximum.
        """

        def leaf(*leaves: Leaf) -> Value:
            decided = any(finite(one).constant() is not None for one in leaves)
            if decided or name not in ("and", "or"):
                return _LOGICAL[name](*leaves)
            if name == "or":
                return self.apply("maximum", leaves, False)
            found = self.apply("maximum", tuple(_not(one) for one in leaves), False)
            return each(self.context, _not, found)

        return each(self.context, leaf, *arguments)

    def settle(self, leaf: Leaf) -> Value:
        """A value as a choice between a number and an infinity, where it is a maximum that may be one of nothing."""
        return self._functions.settle(leaf)

    def bitwise(self, name: str, arguments: tuple[Value, ...], dtype: DType = DType.I64) -> Value:
        """A bitwise function of integers."""
        width = bits_of(dtype) if dtype.is_unsigned else None

        def leaf(*leaves: Leaf) -> Value:
            found = bitwise(self.context, name, [finite(one) for one in leaves], width)
            return self._functions.opaque(name, leaves, True) if found is None else found

        return each(self.context, leaf, *arguments)

    def opaque(self, name: str, arguments: tuple[Value, ...], integer: bool) -> Value:
        """An uninterpreted function of its arguments."""

        def leaf(*leaves: Leaf) -> Value:
            return self._functions.opaque(name, leaves, integer)

        return each(self.context, leaf, *arguments)

    @property
    def exact_casts(self) -> bool:
        """Whether every cast keeps its value; in data movement those that may not are functions of their own."""
        return self._grade == "real"

    @cached_property
    def largest(self) -> int:
        """The size of the largest tensor; one of symbolic size may be as large as any."""
        sizes = [node.type.size() for node in self.graph.nodes]
        return max((n if isinstance(n, int) else sys.maxsize for n in sizes), default=0)

    def look_up(self, node: Node, operand: int, places: Place) -> None:
        """Note that an element is read at a place computed from data, which must be inside the operand."""
        if self.lookups is None:
            return
        sizes = [self.sizes(size) for size in self.graph.nodes[node.operands[operand]].type.shape]
        path, variables = tuple(self.context.trail[self._base :]), tuple(self._variables)
        for place, size in zip(places, sizes, strict=True):
            for value in (place, size - place - 1):
                self.lookups.append(Need("not negative", value, path, variables, node.op.name))


def _denotation(op: Operator, operands: Sequence[TensorType]) -> Scalar | Unsupported:
    denote = getattr(op, "denote", None)
    if denote is None:
        return Unsupported("it is no operator of this package")
    return denote(operands)


def _formal(value: Value) -> Polynomial:
    """A guarded value as a polynomial over indicators in which infinities and absence are constants of their own."""
    if isinstance(value, Choice):
        yes, no = _formal(value.yes), _formal(value.no)
        return no + polynomial(Indicator(value.guard)) * (yes - no)
    return value if isinstance(value, Polynomial) else polynomial(Function(f"={value}", ()))


class _Reader:
    """Reads the denotation of one node."""

    def __init__(self, denoter: Denoter, position: int) -> None:
        self.denoter = denoter
        self.context = denoter.context
        self.node = denoter.graph.nodes[position]
        self.types = denoter.operand_types(self.node)

    def scalar(self, value: Scalar, at: Environment) -> Value:
        """The value where index variables have values."""
        if isinstance(value, scalars.Read):
            return self._read(value, at)
        if isinstance(value, scalars.Apply):
            return self._apply(value, at)
        if isinstance(value, scalars.Choose):
            return self._when(
                value.condition, at, lambda: self.scalar(value.on_true, at), lambda: self.scalar(value.on_false, at)
            )
        if isinstance(value, scalars.Fold):
            dtype = self._dtype(value.body)
            return self.denoter.fold(
                value,
                dtype.is_float,
                dtype is DType.BOOL,
                lambda place: self.scalar(value.body, {**at, value.binder: place}),
            )
        if isinstance(value, scalars.Number):
            return self._index(value.index, at)
        if isinstance(value, scalars.Table):
            return self._entry(value, at)
        return constant(value.value) if isinstance(value, scalars.Fixed) else MISSING

    def _read(self, value: scalars.Read, at: Environment) -> Value:
        places = tuple(self._index(i, at) for i in value.index)
        source = self.node.operands[value.operand]
        if not any(_is_computed(i) for i in value.index):
            return self.denoter.value(source, tuple(p for p in places if isinstance(p, Polynomial)))

        def leaf(*found: Value) -> Value:
            index = tuple(p for p in found if isinstance(p, Polynomial))
            if len(index) != len(found):
                raise TooHard(f"{self.node.op.name} at an index that is infinite or absent")
            self.denoter.look_up(self.node, value.operand, index)
            return self.denoter.value(source, index)

        return each(self.context, leaf, *places)

    def _apply(self, value: scalars.Apply, at: Environment) -> Value:
        name = value.function
        if name == "select":
            predicate, yes, no = value.arguments
            return self.denoter.choose(
                self.scalar(predicate, at), lambda: self.scalar(yes, at), lambda: self.scalar(no, at)
            )
        if name == "otherwise":
            return self._otherwise(value, at)
        dtype = self._dtype(value.arguments[0])
        if dtype.is_float and name == "convert_i1":
            return self._truth("compare_NE", (*value.arguments, scalars.Fixed(0.0)), at)
        if dtype.is_float and (name == "is_finite" or name.startswith("compare_")):
            return self._truth(name, value.arguments, at)
        arguments = tuple(self.scalar(a, at) for a in value.arguments)
        if name.startswith("convert_"):
            before = dtype if self.denoter.exact_casts else self._before(value.arguments[0], dtype)
            return self._convert(before, name.removeprefix("convert_"), arguments[0])
        if name in _LOGICAL:
            if dtype is not DType.BOOL:
                return self.denoter.bitwise(name, arguments, dtype)
            return self.denoter.logical(name, arguments)
        return self.denoter.apply(name, arguments, dtype.is_float)

    def _truth(self, name: str, operands: Sequence[Scalar], at: Environment) -> Value:
        """A truth value about floats, which there is also where these are not defined: no such one is finite."""
        arguments, needs = self.denoter.apart(lambda: tuple(self.scalar(a, at) for a in operands))
        return self.denoter.truth_about(name, arguments, needs)

    def _otherwise(self, value: scalars.Apply, at: Environment) -> Value:
        first, second = value.arguments

        def leaf(one: Value) -> Value:
            if one == MISSING:
                return self.scalar(second, at)
            if not isinstance(one, Polynomial) or not may_be_absent(one):
                return one
            return self.denoter.opaque("otherwise", (one, self.scalar(second, at)), False)

        return each(self.context, leaf, self.scalar(first, at))

    def _convert(self, source: DType, target: str, value: Value) -> Value:
        """Exact casts are the identity, and a float becomes an integer by a function that keeps integers."""
        if target == DType.BOOL.value:
            return value if source is DType.BOOL else self.denoter.apply("compare_NE", (value, ZERO), source.is_float)
        if target.startswith(("i", "ui")) and source.is_float:
            return each(self.context, truncate, each(self.context, self.denoter.settle, value))
        if self.denoter.exact_casts or target == source.value or holds(DType(target), source):
            return value
        return self.denoter.opaque(f"convert_{target}", (value,), not DType(target).is_float)

    def _entry(self, value: scalars.Table, at: Environment) -> Value:
        def leaf(place: Leaf) -> Value:
            return entry(self.context, value.values, place, self.denoter.largest)

        return each(self.context, leaf, self._index(value.index, at))

    def _when(
        self,
        condition: scalars.Condition,
        at: Environment,
        yes: Callable[[], Value],
        no: Callable[[], Value],
    ) -> Value:
        """One of two values by a condition; later parts of a conjunction are read where earlier ones hold."""
        if isinstance(condition, scalars.AllOf):
            if not condition.conditions:
                return yes()
            rest = scalars.AllOf(condition.conditions[1:])
            return self._when(condition.conditions[0], at, lambda: self._when(rest, at, yes, no), no)

        def leaf(one: Value) -> Value:
            if not isinstance(one, Polynomial):
                raise TooHard(f"a condition on {one}")
            make = at_least_zero if isinstance(condition, scalars.AtLeastZero) else is_zero
            return branch(self.context, make(one), yes, no)

        return each(self.context, leaf, self._index(condition.index, at))

    def _index(self, index: Index, at: Environment) -> Value:
        """An index expression; guarded where it is computed from data."""
        total: Value = self.denoter.sizes(index.constant)
        for atom, coefficient in index.terms:
            factor = self.denoter.sizes(coefficient)
            total = _combine(self.context, total, factor, self._atom(atom, at))
        return total

    def _atom(self, atom: places.Atom, at: Environment) -> Value:
        if isinstance(atom, Variable):
            return at[atom]
        if isinstance(atom, places.Element):
            return self.scalar(atom.value, at)
        function = floor_quotient if isinstance(atom, places.Quotient) else floor_remainder

        def leaf(one: Value) -> Value:
            if not isinstance(one, Polynomial):
                raise TooHard(f"a quotient of {one}")
            return function(self.context, one, self.denoter.sizes(atom.divisor))

        return each(self.context, leaf, self._index(atom.numerator, at))

    def _before(self, value: Scalar, dtype: DType) -> DType:
        """The dtype that an operand had before casts that hold all of its numbers."""
        if not isinstance(value, scalars.Read):
            return dtype
        nodes = self.denoter.graph.nodes
        node = nodes[self.node.operands[value.operand]]
        while node.op.name == "convert" and holds(node.type.dtype, nodes[node.operands[0]].type.dtype):
            node = nodes[node.operands[0]]
        return node.type.dtype

    def _dtype(self, value: Scalar) -> DType:
        """The type of a scalar inside a denotation."""
        if isinstance(value, scalars.Read):
            return self.types[value.operand].dtype
        if isinstance(value, scalars.Apply):
            if value.function.startswith("compare_") or value.function == "is_finite":
                return DType.BOOL
            if value.function.startswith("convert_"):
                return DType(value.function.removeprefix("convert_"))
            return self._dtype(value.arguments[1 if value.function == "select" else 0])
        if isinstance(value, scalars.Choose):
            chosen = value.on_false if isinstance(value.on_true, (scalars.Fixed, scalars.Absent)) else value.on_true
            return self._dtype(chosen)
        if isinstance(value, scalars.Fold):
            return self._dtype(value.body)
        if isinstance(value, (scalars.Number, scalars.Absent)):
            return DType.I64
        constant = value.values[0] if isinstance(value, scalars.Table) else value.value
        return DType.BOOL if isinstance(constant, bool) else DType.F64 if isinstance(constant, float) else DType.I64


def _and(left: Leaf, right: Leaf) -> Value:
    return finite(left) * finite(right)


def _or(left: Leaf, right: Leaf) -> Value:
    return finite(left) + finite(right) - finite(left) * finite(right)


def _xor(left: Leaf, right: Leaf) -> Value:
    return finite(left) + finite(right) - finite(left) * finite(right) * 2


def _not(value: Leaf) -> Value:
    return ONE - finite(value)


_LOGICAL: dict[str, Callable[..., Value]] = {"and": _and, "or": _or, "xor": _xor, "not": _not, "not_unsigned": _not}


def _combine(context: Context, total: Value, factor: Polynomial, value: Value) -> Value:
    if isinstance(total, Polynomial) and isinstance(value, Polynomial):
        return total + factor * value

    def leaf(one: Leaf, other: Leaf) -> Value:
        return finite(one) + factor * finite(other)

    return each(context, leaf, total, value)


def _is_computed(index: Index) -> bool:
    return next(elements(index), None) is not None
