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
from rewright.analysis.meetings import LocalNode, Meeting, match_collectives
from rewright.analysis.needs import assume_condition, condition, rounds_large
from rewright.analysis.related import facts_of_rows, looks_around
from rewright.analysis.support import Support
from rewright.ir.graph import Graph, Node
from rewright.ir.types import DType
from rewright.ops.agreement import CollectiveMismatch
from rewright.ops.facts import (
    REAL,
    TRUTH,
    Facts,
    fits,
    in_dtype,
    is_no_number,
    join,
    meet,
    of_dtype,
    round_facts,
    whole_limit,
)

Given = Mapping[str, Facts]
"""What is known of inputs, by name."""
_NOTHING: Given = MappingProxyType({})
Assumed = Mapping[int, Facts]
"""What is taken to be known of nodes, by position, besides what they compute."""
_NO_NODE: Assumed = MappingProxyType({})


@dataclass(frozen=True)
class Setting:
    """How values are read."""

    given: Given = field(default_factory=lambda: _NOTHING)
    floats: Facts = REAL
    """What a float input may be where nothing is given about it."""
    is_rounded: bool = False
    """Whether floats are those of a machine, which overflow and underflow, in place of exact reals."""
    decides: bool = True
    """Whether a comparison of known numbers has a known truth value; else it may go either way."""
    assumes: bool = False
    """Whether each node is taken to be defined once it is noted what that needs."""


REALS = Setting()


@dataclass(frozen=True)
class _Found:
    """What was computed for a node, and what was noted of it."""

    operands: tuple[Facts, ...]
    """Kept alive: they are known by their identity."""
    facts: Facts
    wraps: bool
    is_rounded: bool
    open: str


class _Known:
    """Facts of operators on operands with facts: layers and ranks are mostly alike."""

    def __init__(self) -> None:
        self._one: dict[Facts, Facts] = {}
        self.found: dict[tuple[object, ...], _Found] = {}

    def one(self, facts: Facts) -> Facts:
        """The same facts, as the one object that all equal ones are."""
        return self._one.setdefault(facts, facts)


class Values:
    """The facts of a program's nodes by position, computed one after the other.

    Programs of ranks are mostly alike: what has the same operators on the same facts has those of the program before.
    """

    def __init__(
        self, graph: Graph, setting: Setting = REALS, before: Values | None = None, taken: Assumed = _NO_NODE
    ) -> None:
        self.graph, self.setting = graph, setting
        self._taken = taken
        self.facts: dict[int, Facts] = {}
        self.open: dict[int, str] = {}
        """What must hold at nodes that were taken to be defined, in words."""
        self.wraps: set[int] = set()
        """Nodes that compute integers that their type may not hold."""
        self._rounded: set[int] = set()
        """Whole numbers of many digits that a float type has rounded."""
        self._before, self._shift = before, 0
        self._alike: dict[int, int] = {}
        """The nodes of the program before that compute the same from the same."""
        self._support = Support(graph, self.facts)
        self._known = _Known() if before is None else before._known
        self._equal = [] if before is None or before._taken or taken else _equal_nodes(before.graph, graph)
        """At which positions the program before has the same operator on the same operands."""

    def step(self, position: int, sent: Sequence[Facts] | None = None) -> Facts:
        """Compute the facts of a node; ``sent`` are those of all that it meets in a collective."""
        node = self.graph.nodes[position]
        if sent is None and self._equal and self._equal[position]:
            known = self._of_before(position, node)
            if known is not None:
                return known
        is_local = not node.op.is_met or isinstance(node.op, ops.Send)
        if is_local and self._is_repeated(node, position):
            return self.facts[position]
        if isinstance(node.op, ops.Input):
            found = self._known.one(self._given(node.op))
        elif is_local:
            found = self._looked_up(position, [self.facts[p] for p in node.operands])
        else:
            found = self._receive(position, [of_dtype(node.type.dtype)] if sent is None else sent)
            found = self._known.one(found)
            self._is_received_alike(position, found)
        if position in self._taken:
            found = meet(found, self._taken[position])
        self.facts[position] = found
        return found

    def assume(self, position: int, known: Facts) -> None:
        """Go on with other facts of a node that was computed."""
        self.facts[position] = known

    def _of_before(self, position: int, node: Node) -> Facts | None:
        """The facts of a node that the program before has too; None where that has other ones or none yet."""
        before, alike = self._before, self._alike
        for operand in node.operands:
            if alike.get(operand) != operand:
                return None
        known = None if before is None else before.facts.get(position)
        if before is None or known is None:
            return None
        self.facts[position] = known
        alike[position] = position
        self._take_over(position, position, before)
        return known

    def _is_repeated(self, node: Node, position: int) -> bool:
        """Whether a node is one of the program before, whose facts it then has."""
        before, other = self._before, position + self._shift
        if before is None or other not in before.facts:
            return False
        twin = before.graph.nodes[other]
        if type(twin.op) is not type(node.op):
            self._shift = self._realign(node, position)
            other = position + self._shift
            twin = before.graph.nodes[other]
        if len(twin.operands) != len(node.operands):
            return False
        for mine, its in zip(node.operands, twin.operands, strict=True):
            if self._alike.get(mine) != its:
                return False
        if twin.op != node.op or twin.type != node.type or other not in before.facts:
            return False
        if (self._taken or before._taken) and self._taken.get(position) != before._taken.get(other):
            return False
        self._alike[position] = other
        self.facts[position] = before.facts[other]
        self._take_over(position, other, before)
        return True

    def _take_over(self, position: int, other: int, before: Values) -> None:
        """Note of a node what was noted of one of the program before."""
        if other in before.wraps:
            self.wraps.add(position)
        if other in before._rounded:
            self._rounded.add(position)
        if other in before.open:
            self.open[position] = before.open[other]

    def _realign(self, node: Node, position: int) -> int:
        """By how many nodes the program before is ahead from here on."""
        assert self._before is not None
        nodes = self._before.graph.nodes
        for shift in (self._shift + d for d in (1, -1, 2, -2, 3, -3)):
            other = position + shift
            if 0 <= other < len(nodes) and nodes[other].op == node.op and nodes[other].type == node.type:
                return shift
        return self._shift

    def _is_received_alike(self, position: int, found: Facts) -> None:
        """Note that a collective gives what one of the program before gives: the same facts from the same operator."""
        other, before = position + self._shift, self._before
        is_same = before is not None and before.facts.get(other) == found
        if is_same and before is not None and type(before.graph.nodes[other].op) is type(self.graph.nodes[position].op):
            self._alike[position] = other

    def _given(self, op: ops.Input) -> Facts:
        known = self.setting.given.get(op.label)
        if known is None:
            known = self.setting.floats if op.tensor.dtype.is_float else of_dtype(op.tensor.dtype)
        whole = known.whole or not op.tensor.dtype.is_float
        return known if known.exact and known.whole is whole else replace(known, whole=whole, exact=True)

    def _looked_up(self, position: int, operands: Sequence[Facts]) -> Facts:
        """The facts of a node, as of an earlier one of the same operator on the same facts where that decides them."""
        node = self.graph.nodes[position]
        if not operands or looks_around(node):
            return self._known.one(self._compute(position, operands))
        types = [self.graph.nodes[p].type for p in node.operands]
        flags = [p in self._rounded for p in node.operands] if self._rounded else ()
        key = (node.op, node.type, *types, *map(id, operands), *flags)
        found = self._known.found.get(key)
        if found is None:
            facts = self._known.one(self._compute(position, operands))
            noted = position in self.wraps, position in self._rounded, self.open.get(position, "")
            self._known.found[key] = _Found(tuple(operands), facts, *noted)
            return facts
        if found.wraps:
            self.wraps.add(position)
        if found.is_rounded:
            self._rounded.add(position)
        if found.open:
            self.open[position] = found.open
        return found.facts

    def _compute(self, position: int, operands: Sequence[Facts]) -> Facts:
        node = self.graph.nodes[position]
        assert isinstance(node.op, ops.TensorOperator)
        types = [self.graph.nodes[p].type for p in node.operands]
        found = node.op.facts(operands, types, node.type)
        found = facts_of_rows(self.graph, node, operands, found, casts=not self.setting.is_rounded)
        if not self.setting.decides and isinstance(node.op, ops.Compare):
            found = TRUTH
        wraps = node.type.dtype.is_integer and not fits(found, node.type.dtype)
        if wraps:
            self.wraps.add(position)
        found = _exact(node, found, operands)
        if self.setting.is_rounded:
            found = round_facts(found, node.type.dtype, accumulates=node.op.accumulates)
        elif isinstance(node.op, ops.Reduce) and (found.may_be_infinite or found.zero):
            found = self._supported(position, found)
        return self._define(position, operands, found, wraps=wraps)

    def _define(self, position: int, operands: Sequence[Facts], found: Facts, *, wraps: bool) -> Facts:
        """The facts of a node that is taken to be defined, where that is asked; what it needs is noted."""
        if not self.setting.assumes:
            return found
        wanted = condition(self.graph, position, operands, found, wraps=wraps)
        wanted = wanted or self._of_rounded(position, operands, found)
        if not wanted:
            return found
        self.open[position] = wanted
        return assume_condition(self.graph, position, operands, found)

    def _of_rounded(self, position: int, operands: Sequence[Facts], found: Facts) -> str:
        """What must hold where whole numbers that a float type has rounded become integers, or are compared."""
        node = self.graph.nodes[position]
        rounded_ones = [p for p in node.operands if p in self._rounded]
        if node.type.dtype.is_float:
            if rounds_large(self.graph, position, operands) or (rounded_ones and found.whole):
                self._rounded.add(position)
            return ""
        is_order = isinstance(node.op, ops.Compare) and all(known.low != known.high for known in operands)
        if not rounded_ones or not (node.type.dtype.is_integer or is_order):
            return ""
        dtype = self.graph.nodes[rounded_ones[0]].type.dtype
        return (
            f"the whole numbers that it reads are at most {whole_limit(dtype):,}, as {dtype.value} rounds larger ones"
        )

    def _receive(self, position: int, sent: Sequence[Facts]) -> Facts:
        """What a collective gives of what all of its members send."""
        node, every = self.graph.nodes[position], join(*sent)
        assert isinstance(node.op, ops.TensorOperator)
        found = every if isinstance(node.op, ops.Recv) else node.op.facts([every], [node.type], node.type)
        wraps = node.type.dtype.is_integer and not fits(found, node.type.dtype)
        if wraps:
            self.wraps.add(position)
        return self._define(position, [every], _exact(node, found, sent), wraps=wraps)

    def _supported(self, position: int, found: Facts) -> Facts:
        """The facts of a reduction of whose every row some elements are known to be real or positive."""
        self.facts[position] = found
        real, positive = self._support.strengthens(position)
        plus, minus = found.plus_infinity and not real, found.minus_infinity and not real
        return replace(found, plus_infinity=plus, minus_infinity=minus, zero=found.zero and not positive)


def _equal_nodes(one: Graph, other: Graph) -> list[bool]:
    """By position whether two programs of one length have the same node there; empty for others."""
    if len(one.nodes) != len(other.nodes):
        return []
    pairs = zip(one.nodes, other.nodes, strict=True)
    return [a is b or (a.operands, a.op, a.type) == (b.operands, b.op, b.type) for a, b in pairs]


def _exact(node: Node, found: Facts, operands: Sequence[Facts]) -> Facts:
    """The facts in the node's type, and whether the machine has the same numbers."""
    assert isinstance(node.op, ops.TensorOperator)
    dtype = node.type.dtype
    held = in_dtype(found, dtype)
    if isinstance(node.op, ops.Constant):
        return replace(held, exact=True)
    moves = bool(node.op.moves(len(operands)))
    is_kept = dtype is DType.BOOL or moves or is_no_number(found) or fits(found, dtype)
    exact = is_kept and all(known.exact for known in operands)
    return held if held.exact is exact else replace(held, exact=exact)


def facts_of(graph: Graph, setting: Setting = REALS) -> list[Facts]:
    """What every node's elements may be, where nothing is known of what comes from other ranks."""
    values = Values(graph, setting)
    return [values.step(position) for position in range(len(graph.nodes))]


def facts_of_ranks(graphs: Sequence[Graph]) -> list[list[Facts]]:
    """What every node's elements may be in programs that run together."""
    found = values_of_ranks(graphs)
    return [[values.facts[position] for position in range(len(values.graph.nodes))] for values in found]


def values_of_ranks(graphs: Sequence[Graph], setting: Setting = REALS, taken: Sequence[Assumed] = ()) -> list[Values]:
    """The values of programs that run together; ``taken`` is what is assumed of the nodes of each, if of any."""
    ranks: list[Values] = []
    for number, graph in enumerate(graphs):
        own = taken[number] if taken else _NO_NODE
        ranks.append(Values(graph, setting, ranks[-1] if ranks else None, own))
    _walk(ranks)
    return ranks


def _walk(ranks: Sequence[Values]) -> None:
    """Compute the facts of all nodes; where the ranks do not meet, nothing is known of what they receive."""
    graphs = [values.graph for values in ranks]
    try:
        schedule = match_collectives(graphs) if len(graphs) > 1 else None
    except CollectiveMismatch:
        schedule = None
    if schedule is None:
        for values in ranks:
            for position in range(len(values.graph.nodes)):
                values.step(position)
        return
    for event in schedule:
        if isinstance(event, LocalNode):
            ranks[event.rank].step(event.position)
        else:
            for rank, position, sent in _deliver(ranks, event):
                ranks[rank].step(position, sent)


def _deliver(ranks: Sequence[Values], meeting: Meeting) -> Iterator[tuple[int, int, list[Facts]]]:
    """The nodes that get something in a meeting, with the facts of all that is sent."""
    first, position = meeting.nodes[0]
    if isinstance(ranks[first].graph.nodes[position].op, ops.Send):
        yield *meeting.nodes[1], [ranks[first].facts[position]]
        return
    sent = [ranks[r].facts[ranks[r].graph.nodes[p].operands[0]] for r, p in meeting.nodes]
    for rank, position in meeting.nodes:
        yield rank, position, sent
