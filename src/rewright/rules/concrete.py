"""A rule's programs at numbers: every parameter replaced by a value."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, cast

from rewright.ir.dims import Dim, SizeExpr
from rewright.ir.errors import TypeMismatch
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.operator import Operator
from rewright.ir.types import TensorType
from rewright.rules.rule import Rule
from rewright.terms.conditions import holds
from rewright.terms.parameters import Sort, value_of

Values = Mapping[str, int]
_LEAST: dict[Sort, int] = {"size": 1, "natural": 0}


def concrete(graph: Graph, values: Values) -> Graph:
    """The graph at values for all parameters; raises TypeMismatch where it is not valid there."""
    builder = GraphBuilder(graph.name)
    for node in graph.nodes:
        builder.add(concrete_operator(node.op, values), *node.operands, span=node.span)
    built = builder.build()
    return dataclasses.replace(built, inputs=dict(graph.inputs), outputs=dict(graph.outputs))


def concrete_operator(op: Operator, values: Values) -> Operator:
    """The operator with sizes in its attributes replaced."""
    changed: dict[str, Any] = {}
    for field in dataclasses.fields(cast(Any, op)):
        before = getattr(op, field.name)
        after = _replace(before, values)
        if after is not before:
            changed[field.name] = after
    return cast(Operator, dataclasses.replace(cast(Any, op), **changed)) if changed else op


def _replace(value: Any, values: Values) -> Any:
    if isinstance(value, SizeExpr):
        return value_of(value, values)
    if isinstance(value, TensorType):
        shape = _replace(value.shape, values)
        return value if shape is value.shape else value.with_shape(shape)
    if isinstance(value, tuple):
        items = cast("tuple[Any, ...]", value)
        after = tuple(_replace(item, values) for item in items)
        return items if all(a is b for a, b in zip(after, items, strict=True)) else after
    return value


def applies(rule: Rule, values: Values, form: bool = True) -> bool:
    """Whether sizes satisfy a rule's conditions and make its left side valid.

    That includes what its symbolic form needs, which is what the proof assumed and a match has to check; without
    ``form`` only what it needs at these numbers, which is what the rule seems to say.
    """
    sorts = rule.parameters
    if any(values[name] < _LEAST.get(sort, values[name]) for name, sort in sorts.items() if name in values):
        return False
    if not all(holds(condition, lambda size: value_of(size, values)) for condition in rule.conditions):
        return False
    if form:
        return all(low <= high for graph in _assuming_graphs(rule) for low, high in demands(graph, values))
    try:
        for graph in _assuming_graphs(rule):
            concrete(graph, values)
    except TypeMismatch:
        return False
    return True


def _assuming_graphs(rule: Rule) -> list[Graph]:
    return [rule.left, *([rule.facts] if rule.facts is not None else [])]


def demands(graph: Graph, values: Values) -> list[tuple[int, int]]:
    """The inequalities that the operators of a pattern need, at values."""
    found: list[tuple[Dim, Dim]] = []
    for node in graph.nodes:
        wanted = getattr(node.op, "demands", None)
        if wanted is not None:
            found += [(d.low, d.high) for d in wanted([graph.nodes[p].type for p in node.operands])]
        found += [(0, size) for size in node.type.shape]
    return [(value_of(low, values), value_of(high, values)) for low, high in found]


def both_sides(rule: Rule, values: Values) -> tuple[Graph, Graph | TypeMismatch]:
    """Both programs at values; the error where the right side is not valid there."""
    left = concrete(rule.left, values)
    try:
        return left, concrete(rule.right, values)
    except TypeMismatch as error:
        return left, error
