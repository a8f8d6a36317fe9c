"""Reading off at which sizes and numbers a scheme is two programs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

from rewright import ops
from rewright.ir.dims import Dim, SizeExpr, divide, product
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.operator import Operator
from rewright.ir.types import DType

Sides = tuple[Graph, Graph]
Values = tuple[float | int | bool, ...]
"""The elements of a constant."""
Where = tuple[int, int]
"""A side, 0 or 1, and a node of it."""


def inverse(value: float | bool) -> float | None:
    """The inverse of a number where it is exact in floating point."""
    found = 1 / value if value and math.isfinite(value) else math.inf
    return found if math.isfinite(found) and Fraction(found) * Fraction(value) == 1 else None


@dataclass(frozen=True)
class Given:
    """A number or a table of numbers that is whatever it is, or with the other sign, or the inverse of that."""

    name: str
    negated: bool = False
    inverted: bool = False

    def value(self, values: Values) -> Values | None:
        """What the constant is where the given one is known, and the other way round; None where no float is that."""
        if self.inverted:
            found = inverse(values[0]) if len(values) == 1 else None
            if found is None:
                return None
            values = (found,)
        return tuple(-value for value in values) if self.negated else values


@dataclass(frozen=True)
class Counted:
    """A number that is a size, or one divided by a size."""

    size: Dim
    inverted: bool = False

    def value(self, size: Dim, dtype: DType) -> Values | None:
        """The constant of an element type at a size; None where there is none."""
        if not isinstance(size, int):
            return None
        if not self.inverted:
            return (float(size) if dtype.is_float else size,)
        found = inverse(float(size))
        return None if found is None else (found,)

    def read(self, values: Values) -> int | None:
        """The size at which a constant is this number."""
        value = inverse(values[0]) if self.inverted else values[0]
        return int(value) if value is not None and len(values) == 1 and float(value).is_integer() else None


Number = Given | Counted


def with_operators(graph: Graph, operators: Iterable[Operator | None]) -> Graph | None:
    """The program with other operators in the same places; None where there is none, or where they do not fit."""
    builder = GraphBuilder(graph.name)
    try:
        for node, op in zip(graph.nodes, operators, strict=True):
            if op is None:
                return None
            if isinstance(op, ops.Input):
                builder.input(op.label, op)
            else:
                builder.add(op, *node.operands)
    except (RewrightError, TypeError):
        return None
    for name, position in graph.outputs.items():
        builder.output(name, position)
    return builder.build()


def canonical(left: Graph, right: Graph) -> Sides:
    """Both programs with their nodes in the order in which the results read them, and inputs named in that order."""
    names: dict[str, str] = {}
    return _in_order(left, names), _in_order(right, names)


def _in_order(graph: Graph, names: dict[str, str]) -> Graph:
    builder = GraphBuilder("part")
    places: dict[int, int] = {}
    labels = {position: name for name, position in graph.inputs.items()}
    for name, root in graph.outputs.items():
        stack = [root]
        while stack:
            position = stack[-1]
            node = graph.nodes[position]
            waiting = [p for p in node.operands if p not in places]
            if waiting:
                stack.extend(reversed(waiting))
                continue
            stack.pop()
            if position in places:
                continue
            if position in labels:
                label = names.setdefault(labels[position], f"t{len(names)}")
                places[position] = builder.input(label, ops.Input(label, node.type))
            else:
                places[position] = builder.add(node.op, *(places[p] for p in node.operands))
        builder.output(name, places[root])
    return builder.build()


@dataclass(frozen=True)
class Reading:
    """The sizes and the given numbers at which a scheme may be two programs."""

    sizes: Mapping[str, Dim]
    given: Mapping[str, Values]


def read(scheme: Sides, numbers: Mapping[Where, Number], sides: Sides) -> Reading | None:
    """The sizes and numbers that a scheme must have to be two programs; None where there are none."""
    equations: list[tuple[Dim, Dim]] = []
    given: dict[str, Values] = {}
    for side, (mine, theirs) in enumerate(zip(scheme, sides, strict=True)):
        if len(mine.nodes) != len(theirs.nodes):
            return None
        for position, (own, other) in enumerate(zip(mine.nodes, theirs.nodes, strict=True)):
            number = numbers.get((side, position))
            is_table = isinstance(own.op, ops.Input) and number is not None
            kind = ops.Constant if is_table else type(own.op)
            if type(other.op) is not kind or own.type.rank != other.type.rank:
                return None
            equations += zip(own.type.shape, other.type.shape, strict=True)
            equations += [] if is_table else _pairs(own.op, other.op)
            if isinstance(other.op, ops.Constant) and isinstance(number, Given):
                values = number.value(other.op.values)
                if values is None:
                    return None
                given.setdefault(number.name, values)
            elif isinstance(other.op, ops.Constant) and isinstance(number, Counted):
                size = number.read(other.op.values)
                if size is None:
                    return None
                equations.append((number.size, size))
    sizes = _solve(equations)
    return None if sizes is None else Reading(sizes, given)


def _pairs(mine: Operator, theirs: Operator) -> Iterator[tuple[Dim, Dim]]:
    """The sizes among the attributes of two operators of one kind, side by side as far as they can be."""

    def pairs(a: Any, b: Any) -> Iterator[tuple[Dim, Dim]]:
        if isinstance(a, SizeExpr) and isinstance(b, int | SizeExpr):
            yield a, b
        elif isinstance(a, tuple) and isinstance(b, tuple):
            for one, other in zip(cast("tuple[Any, ...]", a), cast("tuple[Any, ...]", b), strict=False):
                yield from pairs(one, other)

    for f in dataclasses.fields(cast(Any, mine)):
        yield from pairs(getattr(mine, f.name), getattr(theirs, f.name))


def _solution(own: Dim, other: Dim, found: Mapping[str, Dim]) -> dict[str, Dim] | None:
    """The one size of an expression that is not known yet, from what the expression is; None where there are more."""
    assert isinstance(own, SizeExpr)
    unknown = [name for name in own.symbols() if name not in found]
    if len(unknown) > 1:
        return None
    if not unknown:
        return {}
    (name,) = unknown
    factor: Dim = 0
    rest: Dim = 0
    for monomial, coefficient in own.terms:
        times = monomial.count(name)
        others = coefficient * product(found[n] for n in monomial if n != name)
        if times > 1:
            return None
        factor, rest = (factor + others, rest) if times else (factor, rest + others)
    size = divide(other - rest, factor)
    return None if size is None else {name: size}


def _solve(equations: Sequence[tuple[Dim, Dim]]) -> dict[str, Dim] | None:
    """Sizes from expressions and what they are, one unknown after the other; None where some are left open."""
    found: dict[str, Dim] = {}
    waiting = [(own, other) for own, other in equations if isinstance(own, SizeExpr)]
    while waiting:
        rest: list[tuple[Dim, Dim]] = []
        for own, other in waiting:
            solution = _solution(own, other, found)
            if solution is None:
                rest.append((own, other))
            else:
                found.update(solution)
        if len(rest) == len(waiting):
            return None
        waiting = rest
    return found
