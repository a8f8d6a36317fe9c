"""Which axis the values of integer tensors are positions along."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rewright import ops
from rewright.ir.graph import Graph
from rewright.ops.counts import Counts
from rewright.refine.shrink.space import AxisSpace

MOST_TABLE_VALUES = 64
"""Tables with more different integers keep the axis that they count."""


def measured(graph: Graph, offsets: Sequence[int]) -> set[int]:
    """Entries that keep their sizes: what floats count along, where numbers of the program say something about these.

    ``(i - j).float() < 64.0`` is a window of 64, as ``i - j < 64`` is. Numbers among floats do not become smaller with
    an axis, so what counts along it keeps its size. An angle, as of a rotary embedding, is compared with nothing.
    A size that is written as a sum of numbers, which kernels compare their places with, is kept too.
    """
    users = graph.users()
    found: set[int] = set()
    for position, node in enumerate(graph.nodes):
        entries = _counted(graph, offsets, position) if node.type.dtype.is_float else []
        if entries and _is_measured(graph, users, position):
            found.update(entries)
        if node.type.dtype.is_integer and isinstance(node.op, ops.Reduce) and node.op.kind == "sum":
            (operand,) = node.operands
            if isinstance(graph.nodes[operand].op, ops.Constant):
                found.update(offsets[operand] + axis for axis in node.op.dimensions)
    return found


def _counted(graph: Graph, offsets: Sequence[int], position: int) -> list[int]:
    """What the floats of a node count along: places as floats, integers that become floats, and sums of ones."""
    node = graph.nodes[position]
    if isinstance(node.op, ops.Iota):
        return [offsets[position] + node.op.dimension]
    if not node.operands:
        return []
    operand = node.operands[0]
    if isinstance(node.op, ops.Convert):
        source = graph.nodes[operand].type
        return [offsets[operand] + source.rank] if source.dtype.is_integer else []
    axes: Sequence[int] = ()
    if isinstance(node.op, ops.Reduce) and node.op.kind == "sum":
        axes = node.op.dimensions
    elif isinstance(node.op, ops.ReduceWindow) and node.op.kind == "sum":
        axes = [axis for axis, width in enumerate(node.op.window) if width != 1]
    return [offsets[operand] + axis for axis in axes] if axes and _is_no_data(graph, operand) else []


def _is_no_data(graph: Graph, position: int) -> bool:
    """Whether floats are numbers of the program, or truth values or integers as floats."""
    while isinstance(graph.nodes[position].op, ops.View):
        position = graph.nodes[position].operands[0]
    node = graph.nodes[position]
    if isinstance(node.op, ops.Select):
        return all(_is_no_data(graph, p) for p in node.operands[1:])
    is_converted = isinstance(node.op, ops.Convert) and not graph.nodes[node.operands[0]].type.dtype.is_float
    return is_converted or isinstance(node.op, ops.Constant)


def _is_measured(graph: Graph, users: Sequence[Sequence[int]], start: int) -> bool:
    seen: set[int] = set()
    stack, meets_number, decides = [start], False, False
    while stack:
        p = stack.pop()
        if p in seen:
            continue
        seen.add(p)
        node = graph.nodes[p]
        meets_number |= any(_is_number(graph, o) for o in node.operands)
        decides |= not node.type.dtype.is_float
        if node.type.dtype.is_float:
            stack.extend(u for u in users[p] if isinstance(graph.nodes[u].op, (ops.Elementwise, ops.Layout)))
            stack = [u for u in stack if not isinstance(graph.nodes[u].op, ops.Trigonometric)]
    return meets_number and decides


def _is_number(graph: Graph, position: int) -> bool:
    """Whether a node is a number of the program that is not zero, or a table of such."""
    while isinstance(graph.nodes[position].op, ops.View):
        position = graph.nodes[position].operands[0]
    op = graph.nodes[position].op
    return isinstance(op, ops.Constant) and any(value and abs(value) != math.inf for value in op.values)


class Values(Counts):
    """The entries for values of one graph in a space of axes."""

    def __init__(self, space: AxisSpace, graph: Graph, offsets: list[int]) -> None:
        self.space, self.graph, self.offsets = space, graph, offsets

    def entry(self, position: int) -> int:
        """The entry for the values of a node."""
        return self.offsets[position] + self.graph.nodes[position].type.rank

    def counts(self, position: int) -> bool:
        """Whether the values of a node are integers."""
        return self.graph.nodes[position].type.dtype.is_integer

    def same(self, tensors: Sequence[int], /) -> None:
        linked = [self.entry(p) for p in tensors if self.counts(p)]
        for other in linked[1:]:
            self.space.link(linked[0], other)

    def index(self, places: int, tensor: int, axis: int, /) -> None:
        if self.counts(places):
            self.space.link(self.entry(places), self.offsets[tensor] + axis % self.graph.nodes[tensor].type.rank)

    def number(self, result: int, tensor: int, axis: int, /) -> None:
        self.index(result, tensor, axis)

    def constant(self, result: int, numbers: Sequence[float | int | bool], /) -> None:
        if self.counts(result):
            values = set(map(int, numbers))
            if len(values) > MOST_TABLE_VALUES:
                self.space.fix((self.entry(result),))
            else:
                sizes = {abs(value) for value in values if value}  # ``j > i - 64`` and ``i < j + 64`` are one window
                self.space.constants.extend((self.entry(result), size) for size in sorted(sizes))

    def mix(self, result: int, operands: Sequence[int], /) -> None:
        if self.counts(result):
            self.space.fix(map(self.entry, (result, *operands)))

    def multiply(self, result: int, operands: Sequence[int], /) -> None:
        """A product with a flag counts what the other factor counts; other products keep everything."""
        counted = [p for p in operands if self.counts(p) and not self._is_flag(p)]
        if len(counted) < len(operands):
            self.same([result, counted[0] if counted else operands[1]])
        else:
            self.mix(result, operands)

    def _is_flag(self, position: int) -> bool:
        node = self.graph.nodes[position]
        while isinstance(node.op, ops.View):
            node = self.graph.nodes[node.operands[0]]
        if isinstance(node.op, ops.Constant):
            return set(node.op.values) <= {0, 1}
        return isinstance(node.op, ops.Convert) and not self.counts(node.operands[0])

    def total(self, result: int, operand: int, axes: Sequence[int], /) -> None:
        """Sums of flags along an axis are positions along it."""
        if self.counts(result) and not self._is_flag(operand):
            self.mix(result, [operand])
        elif len(axes) == 1:
            self.number(result, operand, axes[0])
