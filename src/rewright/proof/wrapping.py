"""Short integers that are counted from the other end: arithmetic of 8 or 16 bits whose results may not fit.

Proofs take whole numbers to have no end. Of integers of 32 and 64 bits, which count tokens and places, that is an
assumption like others. Packed and quantised weights have all numbers of their type: ``w - 8`` of unsigned bytes is not
the number ``w - 8``. Programs with such numbers are proved once more with the remainders written out, which says that
they are equal as they count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from rewright import ops
from rewright.analysis.ends import Bound, as_facts
from rewright.analysis.values import Setting, Values
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.rebuilding import rebuild
from rewright.ir.types import DType, TensorType
from rewright.ops.facts import fits, integer_range

SHORT = frozenset({DType.I8, DType.U8, DType.I16, DType.U16})
"""Integer types that may take any of their values."""
_ANYTHING: Mapping[str, Bound] = MappingProxyType({})
WRAPS = (
    "the programs are equal if no {0} is too large for its type at {1}, which a number of that type may be; cast "
    "before, or give the values of weights"
)


def wrapping(graphs: Sequence[Graph], given: Mapping[str, Bound] = _ANYTHING) -> str:
    """Where whole numbers of some program may not be what they count up to, in words; empty where all fit.

    ``given`` are bounds of inputs by name.
    """
    for graph in graphs:
        found = _positions(graph, given)
        if found:
            node = graph.nodes[min(found)]
            return WRAPS.format(node.type.dtype.value, node.span)
    return ""


def insert_wrapping(graph: Graph, given: Mapping[str, Bound] = _ANYTHING) -> Graph:
    """The program with every number that may not fit into its type counted from the other end by operators.

    It is the program itself where all numbers fit, and has the same inputs, outputs and collectives.
    """
    found = _positions(graph, given)

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        return _count(builder, builder.add(node.op, *operands), node.type) if position in found else None

    return rebuild(graph, make, whole=True) if found else graph


def wrapping_inputs(graphs: Sequence[Graph]) -> frozenset[str]:
    """Inputs from which numbers are computed that may not fit into their types."""
    return frozenset(
        name
        for graph in graphs
        for reached in [graph.ancestors(_positions(graph, _ANYTHING))]
        for name, position in graph.inputs.items()
        if position in reached
    )


def _positions(graph: Graph, given: Mapping[str, Bound]) -> frozenset[int]:
    """Nodes of short types whose results may not fit, and that an output or another rank reads."""
    if not any(node.type.dtype in SHORT for node in graph.nodes):
        return frozenset()
    values = Values(graph, Setting(given=as_facts(given), is_rounded=True))
    for position in range(len(graph.nodes)):
        values.step(position)
    met = [position for position, node in enumerate(graph.nodes) if node.op.is_met]
    live = graph.ancestors([*graph.outputs.values(), *met])
    return frozenset(
        p for p, node in enumerate(graph.nodes) if node.type.dtype in SHORT and p in live and _wraps(values, p)
    )


def _wraps(values: Values, position: int) -> bool:
    """Whether a node computes a number, or casts one, that its type may not hold."""
    node = values.graph.nodes[position]
    if isinstance(node.op, ops.Convert) and values.graph.nodes[node.operands[0]].type.dtype.is_float:
        # What is no number is not cast to one: that is a condition of its own, and nothing wraps.
        return not fits(replace(values.facts[node.operands[0]], whole=True, nan=False), node.type.dtype)
    return position in values.wraps


def _count(builder: GraphBuilder, position: int, kind: TensorType) -> int:
    """The number of a short type that is as far from another one as a whole count of the type's numbers."""
    low, high = integer_range(kind.dtype)
    wide = TensorType(kind.shape, DType.I64)

    def number(value: int) -> int:
        return builder.add(ops.Constant(wide, (value,)))

    place = builder.add(ops.Convert(DType.I64), position)
    place = builder.add(ops.Subtract(), place, number(low)) if low else place
    rest = builder.add(ops.Remainder(), place, number(high - low + 1))
    more = builder.add(ops.Add(), rest, number(high - low + 1))
    below = builder.add(ops.Compare("LT"), rest, number(0))
    rest = builder.add(ops.Select(), below, more, rest)
    rest = builder.add(ops.Add(), rest, number(low)) if low else rest
    return builder.add(ops.Convert(kind.dtype), rest)
