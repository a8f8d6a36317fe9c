"""A rule whose sizes and numbers are parameters, as two programs, so that its instances are recognised."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

from rewright import ops
from rewright.ir.digest import digest
from rewright.ir.dims import Dim, SizeExpr, at_most
from rewright.ir.errors import RewrightError
from rewright.ir.expression import expression
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.operator import Operator
from rewright.ir.types import DType, TensorType
from rewright.rules.free_sizes import substitute
from rewright.rules.reading import Counted, Given, Number, Reading, Sides, Where, canonical, read, with_operators
from rewright.rules.rule import Rule
from rewright.terms.conditions import AtMost


@dataclass(frozen=True)
class Scheme:
    """Two programs whose sizes and numbers are parameters, and which compute the same whatever these are.

    The graphs have the constants of the example that they were made from; ``numbers`` says which of them may be others.
    """

    left: Graph
    right: Graph
    numbers: tuple[tuple[Where, Number], ...] = ()
    positive: tuple[str, ...] = ()
    """Given numbers that are above zero."""
    narrowed: bool = False
    """Whether sizes are numbers that the operators would leave free, because no more was proved."""

    @cached_property
    def rule(self) -> Rule:
        """The statement, with the given numbers as inputs."""
        known = dict(self.numbers)
        left, right = (_side_with_inputs(graph, side, known) for side, graph in enumerate((self.left, self.right)))
        return Rule("lemma", "", left, right, _demand(left, right), self._facts(), "generalised from one instance")

    def _facts(self) -> Graph | None:
        if not self.positive:
            return None
        builder = GraphBuilder("facts")
        kinds = {n.name: self.node(where).type.dtype for where, n in self.numbers if isinstance(n, Given)}
        for number, name in enumerate(self.positive):
            kind = TensorType((), kinds[name])
            given = builder.input(name, ops.Input(name, kind))
            zero = builder.add(ops.Constant(kind, (0.0 if kind.dtype.is_float else 0,)))
            builder.output(str(number), builder.add(ops.Compare("GT"), given, zero))
        return builder.build()

    def node(self, where: Where) -> Node:
        """A node of one of the sides."""
        return (self.left, self.right)[where[0]].nodes[where[1]]

    def is_number(self, where: Where) -> bool:
        """Whether a node is a constant with one element."""
        return _is_number(self.node(where))

    @cached_property
    def statement(self) -> str:
        """What it says, as an equation; ``n0`` and so on are sizes, ``c0`` and so on numbers or tables."""
        known = dict(self.numbers)
        sides = (_side_with_inputs(g, side, known, shown=True) for side, g in enumerate((self.left, self.right)))
        bounds = [f"{c.low} <= {c.high}" for c in self.rule.conditions if isinstance(c, AtMost)]
        where = [*bounds, *(f"{name} > 0" for name in self.positive)]
        said = " == ".join(expression(graph, next(iter(graph.outputs))) for graph in sides)
        return f"{said} where {', '.join(where)}" if where else said

    @cached_property
    def is_general(self) -> bool:
        """Whether anything in it is a parameter."""
        return bool(self.numbers) or bool(self.rule.parameters)

    def check(self) -> None:
        """Raise RewrightError where the parts do not belong together, as in a file that was written by hand."""
        labels = set(self.left.inputs) | set(self.right.inputs)
        kinds: dict[str, tuple[bool, DType]] = {}
        tables: set[str] = set()
        for (side, position), number in self.numbers:
            nodes = (self.left, self.right)[side].nodes if side in (0, 1) else ()
            node = nodes[position] if 0 <= position < len(nodes) else None
            is_table = node is not None and isinstance(node.op, ops.Input) and isinstance(number, Given)
            if node is None or not (is_table or _is_number(node)):
                raise RewrightError(f"{number} is no number of the programs")
            if number.inverted and not (_is_number(node) and node.type.dtype.is_float):
                raise RewrightError(f"{number} is no inverse of a number")
            if is_table:
                tables.add(node.op.label)  # type: ignore[union-attr]
            if isinstance(number, Given):
                kind = _is_number(node), node.type.dtype
                if kinds.setdefault(number.name, kind) != kind:
                    raise RewrightError(f"{number.name!r} is two kinds of numbers")
        if len(dict(self.numbers)) != len(self.numbers) or (labels - tables) & kinds.keys():
            raise RewrightError("a number has two meanings")
        if any(not kinds.get(name, (False, None))[0] for name in self.positive):
            raise RewrightError("what is above zero is no given number")
        if len(self.left.outputs) != 1 or self.left.outputs.keys() != self.right.outputs.keys():
            raise RewrightError("the sides are not about one tensor")

    def covers(self, left: Graph, right: Graph) -> bool:
        """Whether two programs are an instance: these programs at some sizes and numbers that are allowed."""
        return self.covers_canonical(canonical(left, right))

    def covers_canonical(self, sides: Sides) -> bool:
        """As :meth:`covers`, of programs in their canonical form.

        The programs at the sizes and numbers that were read off are made, and must be those that were given.
        """
        found = read((self.left, self.right), dict(self.numbers), sides)
        if found is None or any(found.given[name][0] <= 0 for name in self.positive):
            return False
        if not all(math.isfinite(value) for values in found.given.values() for value in values):
            return False
        mine = (_instance(graph, side, dict(self.numbers), found) for side, graph in enumerate((self.left, self.right)))
        same = all(graph is not None and digest(graph) == digest(own) for graph, own in zip(mine, sides, strict=True))
        return same and self._allows(found.sizes)

    def _allows(self, sizes: Mapping[str, Dim]) -> bool:
        """Whether the rule is about sizes: all of at least one, and such that both sides are well formed."""
        needs = [*_needs(self.rule.left), *_needs(self.rule.right)]
        named = all(at_most(1, size) is True for size in sizes.values())
        return named and all(at_most(substitute(low, sizes), substitute(high, sizes)) is True for low, high in needs)


def _side_with_inputs(graph: Graph, side: int, numbers: Mapping[Where, Number], *, shown: bool = False) -> Graph:
    """One side of the rule: given numbers are inputs, and a size that is a number is a sum of so many ones.

    To be ``shown``, such a size is an input of its name.
    """
    builder = GraphBuilder(graph.name)
    places: list[int] = []
    inputs: dict[str, int] = {}
    for position, node in enumerate(graph.nodes):
        number = numbers.get((side, position))
        if isinstance(node.op, ops.Input) and number is None:
            made = builder.input(node.op.label, node.op)
        elif number is None:
            made = builder.add(node.op, *(places[p] for p in node.operands))
        else:
            made = _number(builder, node, number, inputs, shown=shown)
        places.append(made)
    for name, position in graph.outputs.items():
        builder.output(name, places[position])
    return builder.build()


def _number(builder: GraphBuilder, node: Node, number: Number, inputs: dict[str, int], *, shown: bool) -> int:
    """A constant as what it stands for."""
    is_number = _is_number(node)
    kind = TensorType((), node.type.dtype) if is_number else node.type
    if isinstance(number, Counted) and not shown:
        ones = builder.add(ops.Constant(TensorType((number.size,), kind.dtype), (_one(kind),)))
        made = builder.add(ops.Reduce("sum", (0,)), ones)
    else:
        label = number.name if isinstance(number, Given) else str(number.size)
        if label not in inputs:
            inputs[label] = builder.input(label, ops.Input(label, kind))
        made = inputs[label]
        if builder.type(made) != kind:  # a size, which is shown once, in another type of integers
            made = builder.add(ops.Convert(kind.dtype), made)
    if number.inverted:
        made = builder.add(ops.Divide(), builder.add(ops.Constant(kind, (_one(kind),))), made)
    if isinstance(number, Given) and number.negated:
        made = builder.add(ops.Negate(), made)
    return builder.add(ops.BroadcastInDim(node.type.shape, ()), made) if is_number and node.type.rank else made


def _one(kind: TensorType) -> float | int:
    return 1.0 if kind.dtype.is_float else 1


def _is_number(node: Node) -> bool:
    return ops.splat(node.op) is not None


def _needs(graph: Graph) -> Iterator[tuple[Dim, Dim]]:
    """The inequalities that make a program well formed."""
    for node in graph.nodes:
        wanted = getattr(node.op, "demands", None)
        if wanted is not None:
            yield from ((d.low, d.high) for d in wanted([graph.nodes[p].type for p in node.operands]))
        yield from ((0, size) for size in node.type.shape)


def _demand(left: Graph, right: Graph) -> tuple[AtMost, ...]:
    """What the right side needs and the left one may not."""
    known = set(_needs(left))
    wanted = dict.fromkeys(need for need in _needs(right) if need not in known and at_most(*need) is not True)
    return tuple(AtMost(low, high) for low, high in wanted)


def _instance(graph: Graph, side: int, numbers: Mapping[Where, Number], found: Reading) -> Graph | None:
    """One side at sizes and numbers; None where it is not well formed there."""
    return with_operators(
        graph, (_at(node.op, numbers.get((side, position)), found) for position, node in enumerate(graph.nodes))
    )


def _at(before: Operator, number: Number | None, found: Reading) -> Operator | None:
    """An operator at sizes and numbers; None where no constant says the number."""
    op = cast(Operator, replace(cast(Any, before), **_resize(before, found.sizes)))
    if number is None or not isinstance(op, ops.Constant | ops.Input):
        return op
    if isinstance(number, Given):
        values = number.value(found.given[number.name])
    else:
        values = number.value(substitute(number.size, found.sizes), op.tensor.dtype)
    return None if values is None else ops.Constant(op.tensor, values)


def _resize(op: Operator, sizes: Mapping[str, Dim]) -> dict[str, Any]:
    """The attributes of an operator that change where sizes are replaced."""

    def resized(value: Any) -> Any:
        if isinstance(value, SizeExpr):
            return substitute(value, sizes)
        if isinstance(value, TensorType):
            return value.with_shape(resized(value.shape))
        return tuple(map(resized, cast("tuple[Any, ...]", value))) if isinstance(value, tuple) else value

    before = {f.name: getattr(op, f.name) for f in dataclasses.fields(cast(Any, op))}
    return {name: after for name, value in before.items() if (after := resized(value)) != value}
