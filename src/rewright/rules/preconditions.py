"""Conditions under which a rule may hold: what its left side needs to be defined, and orders seen in examples."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from rewright import ops
from rewright.ir.dims import Dim
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.operator import Operator
from rewright.ir.types import TensorType
from rewright.ops.elementwise import Direction
from rewright.terms.conditions import AtMost

_NEEDS: dict[type[Operator], tuple[int, Direction]] = {
    ops.Divide: (1, "NE"),
    ops.Remainder: (1, "NE"),
    ops.Log: (0, "GT"),
    ops.Sqrt: (0, "GE"),
    ops.Rsqrt: (0, "GT"),
}
"""The operand that an operator is not defined for all values of, and how it compares with zero where it is."""

Vector = tuple[int, ...]
"""The values of one number in all examples."""
Order = tuple[Vector, Vector]


def partial_nodes(graph: Graph) -> list[int]:
    """The nodes that are not defined for all values of their operands."""
    return [position for position, node in enumerate(graph.nodes) if type(node.op) in _NEEDS]


def definedness(graph: Graph, numbers: Collection[int]) -> Graph | None:
    """That some of the partial nodes of a program, by number, are defined: a boolean program over its inputs."""
    wanted = [position for number, position in enumerate(partial_nodes(graph)) if number in numbers]
    if not wanted:
        return None
    builder = GraphBuilder(graph.name)
    place: dict[int, int] = {}
    last = max(wanted)
    for position, node in enumerate(graph.nodes[:last]):
        operands = [place[p] for p in node.operands]
        if isinstance(node.op, ops.Input):
            place[position] = builder.input(node.op.label, node.op)
        else:
            place[position] = builder.add(node.op, *operands)
    for number, position in enumerate(wanted):
        operand, direction = _NEEDS[type(graph.nodes[position].op)]
        value = graph.nodes[position].operands[operand]
        builder.output(str(number), _compared(builder, place[value], graph.nodes[value].type, direction))
    return builder.build()


def _compared(builder: GraphBuilder, value: int, kind: TensorType, direction: Direction) -> int:
    zero = builder.add(ops.Constant(kind, (0.0 if kind.dtype.is_float else 0,)))
    return builder.add(ops.Compare(direction), value, zero)


def orders(vectors: Sequence[Vector]) -> Iterator[Order]:
    """Pairs of numbers of which one is at most the other in every example, and less in one."""
    for low in vectors:
        for high in vectors:
            if low != high and all(a <= b for a, b in zip(low, high, strict=True)):
                yield low, high


def conditions(found: Sequence[Order], expressions: Mapping[Vector, Dim]) -> tuple[AtMost, ...]:
    """The orders as conditions on sizes."""
    return tuple(AtMost(expressions[low], expressions[high]) for low, high in found)
