"""Machine arithmetic that differs from that over the reals, as uninterpreted functions.

Over the reals nothing is rounded, every number equals itself and a cast keeps every whole number. A machine rounds, has
infinities and NaN, and casts that do not fit. A small rounding error is no matter for a proof over the reals; but a
comparison, a cast to integers, an order or a step function can turn it into another value, and then it matters what was
rounded. So these read their operands *as computed*: arithmetic below them is a function of its
arguments, and only what is exact by the analysis of values (:mod:`rewright.analysis`) is what it is over the reals.
The same goes for arithmetic on infinities that are written down, and for places and counts that a float type does not
hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from rewright import ops
from rewright.analysis.moving import moved_operands
from rewright.analysis.values import Setting, facts_of
from rewright.ir.errors import UnsupportedOperator
from rewright.ir.graph import Graph, Node
from rewright.ir.operator import Operator
from rewright.ir.printing import print_attributes
from rewright.ir.types import DType, TensorType
from rewright.ops.base import Array, Real
from rewright.ops.elementwise import Elementwise
from rewright.ops.facts import REAL, UNKNOWN, fits
from rewright.terms.normal.denoting.functions import TOTAL

MACHINE = Setting(floats=UNKNOWN, is_rounded=True)
"""Inputs are anything that their types hold, and floats are rounded."""
_SWAPPED = {"GT": "LT", "GE": "LE"}
Numbers = dict[object, int]


@dataclass(frozen=True, slots=True)
class AsComputed(Elementwise):
    """The rounded result of an operator: an uninterpreted function of its arguments."""

    of: str
    tensor: TensorType
    name: ClassVar[str] = "as_computed"

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        return self.tensor

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        raise UnsupportedOperator(f"{self.of} as a machine computes it cannot be run here; run the module")

    def function(self, dtype: DType) -> str:
        return f"{TOTAL}{self.of}"


def as_on_machines(left: Graph, right: Graph) -> tuple[Graph, Graph]:
    """Two graphs in which machine arithmetic that the reals do not know is a function of its arguments.

    What is computed alike on both sides is the same function.
    """
    numbers: Numbers = {}
    return _Machine(left, numbers).run(), _Machine(right, numbers).run()


class _Machine:
    """Rewrites one graph: each node over the reals, and as computed where that is needed."""

    def __init__(self, graph: Graph, numbers: Numbers) -> None:
        self.graph = graph
        self.facts = facts_of(graph, MACHINE)
        self.infinite = self._may_be_infinite()
        self.numbers = self._number(numbers)
        self.nodes: list[Node] = []
        self.values: list[int] = []
        self.computed: dict[int, int] = {}

    def run(self) -> Graph:
        for place in range(len(self.graph.nodes)):
            self.values.append(self._value(place))
        inputs = {name: self.values[place] for name, place in self.graph.inputs.items()}
        outputs = {name: self.values[place] for name, place in self.graph.outputs.items()}
        return replace(self.graph, nodes=tuple(self.nodes), inputs=inputs, outputs=outputs)

    # --- what is known of the nodes

    def _may_be_infinite(self) -> set[int]:
        """Nodes that may be infinite although all inputs are numbers: an infinity is written down."""
        found: set[int] = set()
        over_reals = facts_of(self.graph)
        for place, node in enumerate(self.graph.nodes):
            reads_infinite = isinstance(node.op, ops.Leaf) or not found.isdisjoint(node.operands)
            if reads_infinite and not over_reals[place].is_finite:
                found.add(place)
        return found

    def _number(self, known: Numbers) -> list[int]:
        """Equal numbers for nodes that are the same operators on the same values, on both sides."""
        found: list[int] = []
        for node in self.graph.nodes:
            key = (node.op, tuple(found[operand] for operand in node.operands), node.type)
            found.append(known.setdefault(key, len(known)))
        return found

    def _is_exact(self, place: int) -> bool:
        """Whether the machine's elements are the numbers that they are over the reals."""
        return self.facts[place].exact and self.facts[place].is_finite

    def _is_float(self, place: int) -> bool:
        return self.graph.nodes[place].type.dtype.is_float

    def _tells_apart(self, node: Node) -> bool:
        """Whether rounding an operand may change the result altogether."""
        floats = [operand for operand in node.operands if self._is_float(operand)]
        if not floats or all(map(self._is_exact, floats)):
            return False
        if isinstance(node.op, ops.Ordering):
            return True
        if not node.type.dtype.is_float:
            return not moved_operands(node)
        return isinstance(node.op, Elementwise) and not moved_operands(node) and self._has_steps(node.op, node)

    def _has_steps(self, op: Elementwise, node: Node) -> bool:
        """Whether a function jumps at numbers other than zero, or gives whole numbers for any."""
        record = op.record(node.type.dtype)
        if record is not None and record.values.jumps in ("halves", "everywhere"):
            return True
        types = [self.graph.nodes[operand].type for operand in node.operands]
        return op.facts([REAL] * len(types), types, node.type).whole

    # --- nodes

    def _add(self, op: Operator, operands: Sequence[int], like: Node) -> int:
        self.nodes.append(Node(op, tuple(operands), like.type, like.span))
        return len(self.nodes) - 1

    def _value(self, place: int) -> int:
        """A node over the reals, and as computed where a rounding or an infinity would decide."""
        node = self.graph.nodes[place]
        if self._tells_apart(node):
            return self._apart(node)
        own = self._add(node.op, [self.values[operand] for operand in node.operands], node)
        if isinstance(node.op, ops.Iota) and self._is_float(place) and not self.facts[place].exact:
            return self._named(place, own)
        reads_infinite = not self.infinite.isdisjoint(node.operands) and not moved_operands(node)
        has_order = isinstance(node.op, ops.Extremum)  # which infinities have a place in
        return self._as_computed(place) if reads_infinite and not has_order else own

    def _apart(self, node: Node) -> int:
        """A node that tells roundings apart, of operands as computed."""
        op = node.op
        if isinstance(op, ops.Compare):
            return self._compare(node, op.direction, node.operands)
        operands = [self._as_computed(operand) for operand in node.operands]
        if isinstance(op, Elementwise) and not node.type.dtype.is_float:
            if isinstance(op, ops.Convert) and self._fits(node):
                return self._add(op, operands, node)
            return self._add(_named(op, node), operands, node)
        return self._add(op, operands, node)

    def _fits(self, node: Node) -> bool:
        return all(self._is_exact(o) and fits(self.facts[o], node.type.dtype) for o in node.operands)

    def _compare(self, node: Node, direction: str, operands: tuple[int, ...]) -> int:
        """A comparison as a function: greater is less the other way round, and unequal is not equal."""
        if direction in _SWAPPED:
            return self._compare(node, _SWAPPED[direction], operands[::-1])
        if direction == "NE":
            return self._add(ops.Not(), [self._compare(node, "EQ", operands)], node)
        if direction == "EQ":
            operands = self._in_order(operands)
        computed = [self._as_computed(operand) for operand in operands]
        return self._add(AsComputed(f"compare_{direction}", node.type), computed, node)

    def _in_order(self, operands: tuple[int, ...]) -> tuple[int, ...]:
        """Operands whose order does not matter, in the same order on both sides."""
        return tuple(sorted(operands, key=self.numbers.__getitem__))

    def _as_computed(self, place: int) -> int:
        """A node as a machine computes it: equal wherever it is written in the same way."""
        if place not in self.computed:
            self.computed[place] = self._compute(place)
        return self.computed[place]

    def _compute(self, place: int) -> int:
        node = self.graph.nodes[place]
        if not node.type.dtype.is_float or isinstance(node.op, ops.Leaf) or self._is_exact(place):
            return self.values[place] if place < len(self.values) else self._as_function(place)
        if moved_operands(node):
            return self._add(node.op, [self._as_computed(operand) for operand in node.operands], node)
        return self._as_function(place)

    def _as_function(self, place: int) -> int:
        """A node as a function of its operands, or of all its ancestors where it is not elementwise."""
        node = self.graph.nodes[place]
        if not isinstance(node.op, Elementwise):
            return self._named(place, self.values[place] if place < len(self.values) else self._plain(place))
        operands = node.operands
        record = node.op.record(node.type.dtype)
        if record is not None and record.has("commutative"):
            operands = self._in_order(operands)
        return self._add(_named(node.op, node), [self._as_computed(operand) for operand in operands], node)

    def _plain(self, place: int) -> int:
        node = self.graph.nodes[place]
        return self._add(node.op, [self.values[operand] for operand in node.operands], node)

    def _named(self, place: int, own: int) -> int:
        """A value named by all its ancestors, so that no other is equal to it."""
        node = self.graph.nodes[place]
        return self._add(AsComputed(f"{node.op.name} number {self.numbers[place]}", node.type), [own], node)


def _named(op: Operator, node: Node) -> AsComputed:
    told = print_attributes(op)
    return AsComputed(f"{op.name}{told} {node.type.dtype.value}", node.type)
