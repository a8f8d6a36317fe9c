"""What integer tensors count: which axis their values index, followed through a graph.

Two integer tensors are in one class where values pass between them unchanged, or are compared or shifted. The axes
that a class indexes bound its values; token ids, positions and labels find their range this way.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from rewright import ops
from rewright.ir.dims import Dim
from rewright.ir.graph import Graph, Node
from rewright.ir.types import DType
from rewright.ops.base import integer_limits

_MOVING: tuple[type, ...] = (
    ops.BroadcastInDim,
    ops.Reshape,
    ops.Transpose,
    ops.Slice,
    ops.Pad,
    ops.Concatenate,
    ops.Reverse,
    ops.AllGather,
    ops.AllReduce,
    ops.AllToAll,
    ops.CollectivePermute,
    ops.CollectiveBroadcast,
    ops.Send,
)
_COMBINING: tuple[type, ...] = (
    ops.Add,
    ops.Subtract,
    ops.Maximum,
    ops.Minimum,
    ops.Clamp,
    ops.Compare,
    ops.Remainder,
)
"""Operators whose integer operands (and integer result) count the same thing."""
_DIGITS: tuple[type, ...] = (ops.And, ops.Or, ops.Xor)
_QUOTIENTS: tuple[type, ...] = (ops.Divide, ops.Remainder)
"""Operators that take binary digits from numbers: the second ones do where the type is so short that it holds codes."""
_LONGEST_CODE = (1 << 16) - 1


@dataclass(frozen=True)
class Use:
    """Indices of a gather, scatter or dynamic slice: the tensor that is indexed, along an axis."""

    indexed: int
    axis: int
    indices: int
    node: int


@dataclass
class Counting:
    """What one class of integer tensors counts."""

    uses: list[Use] = field(default_factory=list[Use])
    iotas: list[int] = field(default_factory=list[int])
    constants: list[int] = field(default_factory=list[int])
    """Positions of the nodes."""
    compared: set[int] = field(default_factory=set[int])
    """Constant values that are tested for equality, or divided by."""
    digits: bool = False
    """Whether binary digits are taken from the numbers."""
    divided: bool = False
    """Whether quotients or remainders of the numbers are taken."""
    scaled: bool = False
    """Whether whole multiples of the numbers are taken, which says that they are no flags."""


@dataclass(frozen=True)
class ValueClasses:
    """The classes of a graph: a representative for every integer node, and what each class counts."""

    representative: dict[int, int]
    counting: dict[int, Counting]

    def of(self, position: int) -> Counting:
        """What the node at this position counts."""
        return self.counting[self.representative[position]]


def value_classes(graph: Graph) -> ValueClasses:
    """Group the integer tensors of a graph by what they count; linear in its size."""
    parent: dict[int, int] = {p: p for p, node in enumerate(graph.nodes) if node.type.dtype.is_integer}

    def find(position: int) -> int:
        while parent[position] != position:
            parent[position] = parent[parent[position]]
            position = parent[position]
        return position

    for position, node in enumerate(graph.nodes):
        linked = [p for p in linked_values(node, position) if p in parent]
        for other in linked[1:]:
            parent[find(other)] = find(linked[0])
    representative = {position: find(position) for position in parent}
    counting: defaultdict[int, Counting] = defaultdict(Counting)
    for position, node in enumerate(graph.nodes):
        _record(graph, position, node, representative, counting)
    return ValueClasses(representative, {root: counting[root] for root in set(representative.values())})


def linked_values(node: Node, position: int) -> list[int]:
    """The positions among operands and result whose values count the same thing."""
    if isinstance(node.op, _MOVING + _COMBINING):
        return [position, *node.operands]
    if isinstance(node.op, ops.Select):
        return [position, *node.operands[1:]]
    if isinstance(node.op, ops.Convert | ops.Gather | ops.DynamicSlice | ops.TopK | ops.Sort):
        return [position, node.operands[0]] if _keeps_values(node) else []
    if isinstance(node.op, ops.Reduce | ops.ReduceWindow):
        return [position, node.operands[0]] if node.op.kind in ("maximum", "minimum") else []
    if isinstance(node.op, ops.DynamicUpdateSlice):
        return [position, *node.operands[:2]]
    if isinstance(node.op, ops.Scatter):
        return [position, node.operands[0], node.operands[2]]
    return []


def _keeps_values(node: Node) -> bool:
    return not (isinstance(node.op, ops.Sort | ops.TopK) and node.op.result == "indices")


def index_uses(node: Node, position: int) -> list[Use]:
    """Where the operands of a node are read as indices."""
    if isinstance(node.op, ops.Gather):
        return [Use(node.operands[0], axis, node.operands[1], position) for axis in node.op.start_index_map]
    if isinstance(node.op, ops.Scatter):
        axes = node.op.scatter_dims_to_operand_dims
        return [Use(node.operands[0], axis, node.operands[1], position) for axis in axes]
    if isinstance(node.op, ops.DynamicSlice | ops.DynamicUpdateSlice):
        first = 1 if isinstance(node.op, ops.DynamicSlice) else 2
        return [Use(node.operands[0], axis, p, position) for axis, p in enumerate(node.operands[first:])]
    return []


def _record(
    graph: Graph, position: int, node: Node, representative: dict[int, int], counting: defaultdict[int, Counting]
) -> None:
    for use in index_uses(node, position):
        if use.indices in representative:
            counting[representative[use.indices]].uses.append(use)
    if position in representative:
        if isinstance(node.op, ops.Iota):
            counting[representative[position]].iotas.append(position)
        if isinstance(node.op, ops.Constant):
            counting[representative[position]].constants.append(position)
    if isinstance(node.op, ops.Divide | ops.Remainder) and node.operands[0] in representative:
        divisor = constant_value(graph, node.operands[1])
        if divisor:  # what is divided is no flag
            counting[representative[node.operands[0]]].compared.add(abs(divisor))
    if isinstance(node.op, _DIGITS + _QUOTIENTS) and position in representative:
        is_code = isinstance(node.op, _DIGITS) or _is_short(node.type.dtype)
        for operand in node.operands:
            if not isinstance(graph.nodes[operand].op, ops.Constant):
                counting[representative[operand]].digits |= is_code
                counting[representative[operand]].divided = True
    if isinstance(node.op, ops.Multiply) and position in representative:
        factors = [constant_value(graph, operand) for operand in node.operands]
        for operand, factor in zip(node.operands, reversed(factors), strict=True):
            counting[representative[operand]].scaled |= factor is not None and abs(factor) > 1
    if isinstance(node.op, ops.Compare) and node.op.direction in ("EQ", "NE"):
        for operand in node.operands:
            source = constant_value(graph, operand)
            if source is not None and operand in representative:
                counting[representative[operand]].compared.add(source)


def _is_short(dtype: DType) -> bool:
    return integer_limits(dtype)[1] <= _LONGEST_CODE


def constant_value(graph: Graph, position: int) -> int | None:
    """The integer that fills a constant, seen through broadcasts and conversions, or None."""
    node = graph.nodes[position]
    while isinstance(node.op, ops.BroadcastInDim | ops.Reshape | ops.Convert):
        node = graph.nodes[node.operands[0]]
    if isinstance(node.op, ops.Constant) and len(node.op.values) == 1 and node.type.dtype.is_integer:
        return int(node.op.values[0])
    return None


def bound(graph: Graph, counting: Counting) -> Dim | None:
    """One more than the largest value that every use of a class allows, or None where nothing bounds it."""
    sizes: list[Dim] = [graph.nodes[use.indexed].type.shape[use.axis] for use in counting.uses]
    if not sizes:
        for position in counting.iotas:
            op = graph.nodes[position].op
            assert isinstance(op, ops.Iota)
            sizes.append(op.tensor.shape[op.dimension])
    known = [size for size in sizes if isinstance(size, int)]
    return min(known) if known else (sizes[0] if sizes else None)
