"""Four properties of every axis of every tensor, read off the denotations of operators.

- *reduce dependency*: how readers combine elements along the axis: each at its own place, or by a sum, a maximum, ...
- *broadcast*: whether the value depends on its index along the axis at all.
- *size*: how many elements there are.
- *value*: what the value may be (:mod:`rewright.analysis.values`): whether it can be infinite, zero or negative.

Operators are not known here by name: what matters is what a denotation reads, at which index, and under which fold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rewright.analysis.values import facts_of
from rewright.ir.graph import Graph, Node
from rewright.ir.operator import Unsupported
from rewright.ir.types import DType
from rewright.ops.base import TensorOperator
from rewright.ops.facts import Facts, of_dtype
from rewright.terms.index import Index, Variable
from rewright.terms.scalar import Apply, Choose, Fold, Number, Read, Scalar, Table
from rewright.terms.walk import condition_indices, elements, index_variables


@dataclass
class Axis:
    """What is known of one axis of a tensor."""

    size: object
    broadcast: bool
    """Whether the value is the same at every index of the axis."""
    uses: set[str] = field(default_factory=set[str])
    """``parallel``, or the kinds of folds that readers combine the axis with; ``moved``: read at another index."""


@dataclass
class Properties:
    """What is known of one tensor."""

    axes: list[Axis]
    facts: Facts


def properties(graph: Graph) -> list[Properties]:
    """The properties of every node, in order."""
    found: list[Properties] = []
    for node, known in zip(graph.nodes, facts_of(graph), strict=True):
        scalar = denotation(graph, node)
        depends = _depends(scalar, node, [found[p] for p in node.operands])
        axes = [Axis(size, axis not in depends) for axis, size in enumerate(node.type.shape)]
        found.append(Properties(axes, known))
        if scalar is None:
            for p in node.operands:
                for axis in found[p].axes:
                    axis.uses.add("opaque")
        else:
            for operand, axis, use in _uses(scalar, {}):
                found[node.operands[operand]].axes[axis].uses.add(use)
    return found


def denotation(graph: Graph, node: Node) -> Scalar | None:
    """The denotation of a node, where its operator has one."""
    if not isinstance(node.op, TensorOperator):
        return None
    scalar = node.op.denote([graph.nodes[p].type for p in node.operands])
    return None if isinstance(scalar, Unsupported) else scalar


def _depends(scalar: Scalar | None, node: Node, operands: list[Properties]) -> set[int]:
    """The axes that a value depends on."""
    every = set(range(node.type.rank))
    if scalar is None:
        return every
    names = {Variable(f"i{axis}"): axis for axis in every}
    found: set[int] = set()
    for part in subscalars(scalar):
        if isinstance(part, Read):
            for axis, index in enumerate(part.index):
                if not operands[part.operand].axes[axis].broadcast:
                    found |= {names[v] for v in index_variables(index) if v in names}
        elif isinstance(part, (Number, Table)):
            found |= {names[v] for v in index_variables(part.index) if v in names}
        elif isinstance(part, Choose):
            for index in condition_indices(part.condition):
                found |= {names[v] for v in index_variables(index) if v in names}
    return found


def subscalars(value: Scalar) -> Iterator[Scalar]:
    """A scalar and all scalars in it, those that indices are computed from included."""
    yield value
    inner: list[Scalar] = []
    if isinstance(value, Apply):
        inner += value.arguments
    elif isinstance(value, Choose):
        inner += [value.on_true, value.on_false]
    elif isinstance(value, Fold):
        inner.append(value.body)
    elif isinstance(value, Read):
        inner += [e.value for index in value.index for e in elements(index)]
    for part in inner:
        yield from subscalars(part)


def _uses(value: Scalar, folds: Mapping[Variable, str]) -> Iterator[tuple[int, int, str]]:
    """For every read of an operand's axis how it is used."""
    if isinstance(value, Fold):
        yield from _uses(value.body, {**folds, value.binder: value.kind})
    elif isinstance(value, Read):
        for axis, index in enumerate(value.index):
            yield value.operand, axis, _use(index, folds)
            for e in elements(index):
                yield from _uses(e.value, folds)
    elif isinstance(value, Apply):
        for argument in value.arguments:
            yield from _uses(argument, folds)
    elif isinstance(value, Choose):
        yield from _uses(value.on_true, folds)
        yield from _uses(value.on_false, folds)


def _use(index: Index, folds: Mapping[Variable, str]) -> str:
    kinds = {folds[v] for v in index_variables(index) if v in folds}
    if kinds:
        return sorted(kinds)[0]
    return "parallel" if index.as_variable() is not None else "moved"


def property_lines(graph: Graph) -> list[str]:
    """The properties of every tensor of a graph as text."""
    lines: list[str] = []
    for position, (node, found) in enumerate(zip(graph.nodes, properties(graph), strict=True)):
        axes = "; ".join(_axis_text(axis) for axis in found.axes)
        lines.append(f"  %{position} {node.op.name} [{axes}]{_values_text(found.facts, node.type.dtype)}")
    return lines


def _values_text(facts: Facts, dtype: DType) -> str:
    """An interval, with ends in it or not; nothing where a value may be any number of its type."""
    low, high, least, most = facts.bottom, facts.top, of_dtype(dtype).low, of_dtype(dtype).high
    if facts.is_finite and low <= least and most <= high:
        return ""
    return f"  in {'[' if facts.contains(low) else '('}{low:g}, {high:g}{']' if facts.contains(high) else ')'}"


def _axis_text(axis: Axis) -> str:
    uses = f" -> {', '.join(sorted(axis.uses))}" if axis.uses else ""
    return f"{axis.size}{' broadcast' if axis.broadcast else ''}{uses}"
