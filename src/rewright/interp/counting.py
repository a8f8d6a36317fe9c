"""What integer tensors count: which axis their values index, followed through a graph.

Two integer tensors are in one class where values pass between them unchanged, or are compared or shifted. The axes
that a class indexes bound its values; token ids, positions and labels find their range this way.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from rewright import ops
from rewright.analysis.moving import laid_out, moved_operands
from rewright.ir.dims import Dim
from rewright.ir.graph import Graph, Node
from rewright.ir.types import DType
from rewright.ops.base import integer_limits

_QUOTIENTS: tuple[type, ...] = (ops.Divide, ops.Remainder)
"""They take binary digits from numbers where the type is so short that it holds codes."""
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
    op = node.op
    assert isinstance(op, ops.TensorOperator)
    if isinstance(op, ops.Reduce | ops.ReduceWindow) and op.kind not in ("maximum", "minimum"):
        return []  # how many there are along an axis is another question
    if isinstance(op, ops.Homogeneous | ops.Combining | ops.Collective):
        places = {operand for operand, _ in op.indexed(len(node.operands))}
        return [position, *(p for k, p in enumerate(node.operands) if k not in places)]
    return [position, *moved_operands(node)]


def index_uses(node: Node, position: int) -> list[Use]:
    """Where the operands of a node are read as indices."""
    assert isinstance(node.op, ops.TensorOperator)
    places = node.op.indexed(len(node.operands))
    return [Use(node.operands[0], axis, node.operands[k], position) for k, axis in places]


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
    if isinstance(node.op, (ops.Bitwise, *_QUOTIENTS)) and position in representative:
        is_code = isinstance(node.op, ops.Bitwise) or _is_short(node.type.dtype)
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
    """The integer that fills a constant, laid out or not, or None."""
    node = graph.nodes[laid_out(graph, position)]
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
