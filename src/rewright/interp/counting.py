"""What integer tensors count: which axis their values index, followed through a graph.

Two integer tensors are in one class where values pass between them unchanged, or are compared or shifted. The axes
that a class indexes bound its values; token ids, positions and labels find their range this way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rewright import ops
from rewright.analysis.moving import laid_out
from rewright.ir.dims import Dim
from rewright.ir.graph import Graph
from rewright.ir.union_find import UnionFind
from rewright.ops.base import integer_limits
from rewright.ops.counts import Counts

_LONGEST_CODE = (1 << 16) - 1


@dataclass
class Counting:
    """What one class of integer tensors counts."""

    indexed: list[Dim] = field(default_factory=list[Dim])
    """The sizes of the axes that they are indices along."""
    numbered: list[Dim] = field(default_factory=list[Dim])
    """The sizes of the axes whose places some of them are."""
    compared: set[int] = field(default_factory=set[int])
    """Constant values that are tested for equality, or divided by."""
    digits: bool = False
    """Whether binary digits are taken from the numbers."""
    divided: bool = False
    """Whether quotients or remainders of the numbers are taken."""
    scaled: bool = False
    """Whether whole multiples of the numbers are taken, which says that they are no flags."""

    def bound(self) -> Dim | None:
        """One more than the largest value that every use allows, or None where nothing bounds it."""
        sizes = self.indexed or self.numbered
        known = [size for size in sizes if isinstance(size, int)]
        return min(known) if known else (sizes[0] if sizes else None)

    def take(self, other: Counting) -> None:
        """Count what another class counts too."""
        self.indexed += other.indexed
        self.numbered += other.numbered
        self.compared |= other.compared
        self.digits |= other.digits
        self.divided |= other.divided
        self.scaled |= other.scaled


class ValueClasses(Counts):
    """The classes of the integer tensors of a graph, by what they count; linear in its size."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._integers = {position for position, node in enumerate(graph.nodes) if node.type.dtype.is_integer}
        self._classes = UnionFind[int]()
        self._counting = {position: Counting() for position in self._integers}
        for position, node in enumerate(graph.nodes):
            assert isinstance(node.op, ops.TensorOperator)
            node.op.relate_counts(self, node.operands, position)

    def of(self, position: int) -> Counting:
        """What an integer node at this position counts."""
        return self._counting[self._classes.find(position)]

    def same(self, tensors: Sequence[int], /) -> None:
        first, *others = dict.fromkeys(self._classes.find(p) for p in tensors if p in self._integers) or (-1,)
        for other in others:
            self._classes.union(first, other)
            self._counting[first].take(self._counting.pop(other))

    def index(self, places: int, tensor: int, axis: int, /) -> None:
        if places in self._integers:
            self.of(places).indexed.append(self._size(tensor, axis))

    def number(self, result: int, tensor: int, axis: int, /) -> None:
        if result in self._integers:
            self.of(result).numbered.append(self._size(tensor, axis))

    def _size(self, tensor: int, axis: int) -> Dim:
        return self.graph.nodes[tensor].type.shape[axis]

    def test(self, operands: Sequence[int], /) -> None:
        for operand in operands:
            value = self._constant(operand)
            if value is not None:
                self.of(operand).compared.add(value)

    def multiply(self, result: int, operands: Sequence[int], /) -> None:
        for operand, factor in zip(operands, map(self._constant, reversed(operands)), strict=True):
            if factor is not None and abs(factor) > 1:
                self.of(operand).scaled = True

    def divide(self, result: int, operands: Sequence[int], /) -> None:
        """Quotients take binary digits from numbers where the type is so short that it holds codes."""
        dtype, divisor = self.graph.nodes[result].type.dtype, self._constant(operands[1])
        if divisor:  # what is divided is no flag
            self.of(operands[0]).compared.add(abs(divisor))
        self._take_apart(operands, dtype.is_integer and integer_limits(dtype)[1] <= _LONGEST_CODE)

    def digits(self, result: int, operands: Sequence[int], /) -> None:
        self._take_apart(operands, True)

    def _take_apart(self, operands: Sequence[int], is_code: bool) -> None:
        for operand in operands:
            if operand in self._integers and not isinstance(self.graph.nodes[operand].op, ops.Constant):
                self.of(operand).digits |= is_code
                self.of(operand).divided = True

    def _constant(self, position: int) -> int | None:
        """The integer that fills a constant, laid out or not, or None."""
        node = self.graph.nodes[laid_out(self.graph, position)]
        value = ops.splat(node.op) if position in self._integers and node.type.dtype.is_integer else None
        return None if value is None else int(value)
