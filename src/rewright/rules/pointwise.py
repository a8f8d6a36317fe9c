"""Rules between elements at one place, in programs of any shape, with conditions that facts decide.

``max(A, 0) = A where A >= 0`` is written of a matrix and says the same of every shape, since no element of either side
reads another place. So it is matched without sizes, with the operands of what commutes in either order, and numbers are
seen through their layouts. Rules in which elements move, or types of numbers change, are matched with their sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from rewright import ops
from rewright.analysis.evenness import splat
from rewright.analysis.values import Setting, facts_of
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, TensorType
from rewright.ops.facts import Facts
from rewright.rules.rule import Rule

Bound = Mapping[str, int]
"""The nodes that inputs of a rule are, by name."""
Numbers = Callable[[int], float | None]
"""The number that all elements of a node of a program are; None where they are not known to be one."""


def match_elements(rule: Rule, graph: Graph, position: int, known: Sequence[Facts], number: Numbers) -> Bound | None:
    """What a rule with one result reads where a node is its left side; None where it is not, or a condition is open."""
    (root,) = rule.left.outputs.values()
    found = _bindings(rule.left, root, graph, position, number, {})
    return next((bound for bound in found if _holds(rule, {n: known[p] for n, p in bound.items()})), None)


def _bindings(
    pattern: Graph, place: int, graph: Graph, position: int, number: Numbers, bound: Bound
) -> Iterator[Bound]:
    own, node, value = pattern.nodes[place], graph.nodes[position], splat(pattern, place)
    if _kind(own.type.dtype) != _kind(node.type.dtype):
        return
    if isinstance(own.op, ops.Input):
        if bound.get(own.op.label, position) == position:
            yield {**bound, own.op.label: position}
    elif value is not None:
        yield from [bound] if number(position) == value else []
    elif own.op == node.op and isinstance(own.op, ops.Elementwise):
        for operands in (node.operands, node.operands[::-1]) if isinstance(own.op, ops.Monoid) else (node.operands,):
            grown = [bound]
            for inner, operand in zip(own.operands, operands, strict=True):
                grown = [more for one in grown for more in _bindings(pattern, inner, graph, operand, number, one)]
            yield from grown


def _kind(dtype: DType) -> object:
    return dtype is DType.BOOL, dtype.is_float


def _holds(rule: Rule, known: Mapping[str, Facts]) -> bool:
    """Whether the conditions of a rule are certainly true of elements of which this is known."""
    if rule.facts is None:
        return True
    found = facts_of(rule.facts, Setting(given=known))
    return all(found[p].low >= 1 and not found[p].nan for p in rule.facts.outputs.values())


def build_right(rule: Rule, builder: GraphBuilder, kind: TensorType, operands: Mapping[str, int]) -> int:
    """Append the right side of a rule, of a result of this type."""
    places: list[int] = []
    for position, node in enumerate(rule.right.nodes):
        value, dtype = splat(rule.right, position), kind.dtype if node.type.dtype.is_float else node.type.dtype
        if isinstance(node.op, ops.Input):
            places.append(operands[node.op.label])
        elif value is not None:
            places.append(builder.add(ops.Constant(TensorType(kind.shape, dtype), (value,))))
        else:
            places.append(builder.add(node.op, *(places[p] for p in node.operands)))
    (root,) = rule.right.outputs.values()
    return places[root]
