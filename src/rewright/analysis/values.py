"""What the elements of every node of a program may be, over the reals: one pass from the inputs on.

    >>> facts = facts_of(graph)
    >>> facts[position].is_finite

Inputs are real numbers, and integers of their type, unless more or less is said of them. Floats are exact reals;
integers are those of the machine, so that a sum that does not fit may be anything. A rank program is read with those
that it meets in collectives: :func:`facts_of_ranks`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from rewright import ops
from rewright.analysis.meetings import Meeting, Step, match_collectives
from rewright.analysis.rows import related
from rewright.analysis.support import Support
from rewright.ir.graph import Graph, Node
from rewright.ir.types import DType
from rewright.ops.agreement import CollectiveMismatch
from rewright.ops.facts import REAL, Facts, fits, in_dtype, is_no_number, join, of_dtype, rounded

Given = Mapping[str, Facts]
"""What is known of inputs, by name."""
_NOTHING: Given = MappingProxyType({})
_SUMS = (ops.Reduce, ops.ReduceWindow, ops.DotGeneral, ops.Convolution, ops.Scatter)


@dataclass(frozen=True)
class Setting:
    """How values are read."""

    given: Given = field(default_factory=lambda: _NOTHING)
    floats: Facts = REAL
    """What a float input may be of which nothing is given."""
    is_rounded: bool = False
    """Whether floats are those of a machine, which overflow and underflow, in place of exact reals."""


REALS = Setting()


class Values:
    """The facts of a program's nodes by position, computed one after the other."""

    def __init__(self, graph: Graph, setting: Setting = REALS) -> None:
        self.graph, self.setting = graph, setting
        self.facts: dict[int, Facts] = {}
        self.wraps: set[int] = set()
        """Nodes that compute an integer that its type may not hold."""
        self._support = Support(graph, self.facts)

    def step(self, position: int, sent: Sequence[Facts] | None = None) -> Facts:
        """Compute the facts of a node; ``sent`` are those of all that it meets in a collective."""
        node = self.graph.nodes[position]
        if isinstance(node.op, ops.Input):
            found = self._given(node.op)
        elif isinstance(node.op, ops.Collective) and not isinstance(node.op, ops.Send):
            found = _received(node, sent) if sent is not None else of_dtype(node.type.dtype)
        else:
            found = self._computed(position, [self.facts[p] for p in node.operands])
        self.facts[position] = found
        if not found.is_finite or found.zero:
            self.facts[position] = self._support.strengthened(position)
        return self.facts[position]

    def assume(self, position: int, known: Facts) -> None:
        """Go on with other facts of a node that was computed."""
        self.facts[position] = known

    def _given(self, op: ops.Input) -> Facts:
        known = self.setting.given.get(op.label)
        if known is None:
            known = self.setting.floats if op.tensor.dtype.is_float else of_dtype(op.tensor.dtype)
        return replace(known, exact=True)

    def _computed(self, position: int, operands: Sequence[Facts]) -> Facts:
        node = self.graph.nodes[position]
        assert isinstance(node.op, ops.TensorOperator)
        types = [self.graph.nodes[p].type for p in node.operands]
        found = related(self.graph, node, operands, node.op.facts(operands, types, node.type))
        if node.type.dtype.is_integer and not fits(found, node.type.dtype):
            self.wraps.add(position)
        found = _exact(node, found, operands)
        if self.setting.is_rounded:
            found = rounded(found, node.type.dtype, accumulates=isinstance(node.op, _SUMS))
        return found


def _received(node: Node, sent: Sequence[Facts]) -> Facts:
    """What a collective gives of what all of its members send."""
    assert isinstance(node.op, ops.TensorOperator)
    every = join(*sent)
    found = every if isinstance(node.op, ops.Recv) else node.op.facts([every], [node.type], node.type)
    return _exact(node, found, sent)


def _exact(node: Node, found: Facts, operands: Sequence[Facts]) -> Facts:
    """The facts in the node's type, and whether the machine has the same numbers."""
    assert isinstance(node.op, ops.TensorOperator)
    dtype = node.type.dtype
    held = in_dtype(found, dtype)
    if isinstance(node.op, ops.Constant):
        return replace(held, exact=True)
    moves = bool(node.op.moves(len(operands)))
    is_kept = dtype is DType.BOOL or moves or is_no_number(found) or fits(found, dtype)
    return replace(held, exact=is_kept and all(known.exact for known in operands))


def facts_of(graph: Graph, setting: Setting = REALS) -> list[Facts]:
    """What every node's elements may be, where nothing is known of what comes from other ranks."""
    values = Values(graph, setting)
    return [values.step(position) for position in range(len(graph.nodes))]


def facts_of_ranks(graphs: Sequence[Graph], setting: Setting = REALS) -> list[list[Facts]]:
    """What every node's elements may be in programs that run together."""
    ranks = [Values(graph, setting) for graph in graphs]
    for _ in walk(ranks):
        pass
    return [[values.facts[position] for position in range(len(values.graph.nodes))] for values in ranks]


def walk(ranks: Sequence[Values]) -> Iterator[tuple[int, int]]:
    """Compute the facts of all nodes of programs that run together; yields (rank, position) after each node.

    Where the ranks do not meet, nothing is known of what they receive.
    """
    graphs = [values.graph for values in ranks]
    try:
        schedule = match_collectives(graphs) if len(graphs) > 1 else None
    except CollectiveMismatch:
        schedule = None
    if schedule is None:
        for rank, values in enumerate(ranks):
            for position in range(len(values.graph.nodes)):
                values.step(position)
                yield rank, position
        return
    for event in schedule:
        if isinstance(event, Step):
            ranks[event.rank].step(event.position)
            yield event.rank, event.position
            continue
        for rank, position, sent in _delivered(ranks, event):
            ranks[rank].step(position, sent)
            yield rank, position


def _delivered(ranks: Sequence[Values], meeting: Meeting) -> Iterator[tuple[int, int, list[Facts]]]:
    """The nodes that get something in a meeting, with the facts of all that is sent."""
    first, position = meeting.nodes[0]
    if isinstance(ranks[first].graph.nodes[position].op, ops.Send):
        yield *meeting.nodes[1], [ranks[first].facts[position]]
        return
    sent = [ranks[r].facts[ranks[r].graph.nodes[p].operands[0]] for r, p in meeting.nodes]
    for rank, position in meeting.nodes:
        yield rank, position, sent
