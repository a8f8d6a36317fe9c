"""Lifting whole programs: the sequential one first, then all ranks in lock step, over one store of terms."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field

from rewright import ops
from rewright.analysis.meetings import LocalNode, Meeting
from rewright.claims.language import Addend, Opaque, View
from rewright.ir.graph import Graph
from rewright.ir.operator import Operator
from rewright.ir.placement import Placement
from rewright.ir.types import TensorType
from rewright.lifting.arithmetic.collectives import meet
from rewright.lifting.journal import SEQUENTIAL, Journal
from rewright.lifting.layers.induction import Contraction, Layered, NotContracted, Period, contraction
from rewright.lifting.layers.reuse import Reuse
from rewright.lifting.layers.stream import Integers, Repeat, Stream, Walks, schedule_of
from rewright.lifting.masks.integers import integer_part
from rewright.lifting.moves.layout import concatenate, slice_axis, tidy
from rewright.lifting.moves.opaque import as_view, opaque
from rewright.lifting.recognition.sums import Recogniser
from rewright.lifting.terms.algebra import EFFORT, Algebra
from rewright.lifting.terms.forms import USUAL, Forms
from rewright.lifting.terms.index import identity
from rewright.lifting.terms.store import ONE, Named
from rewright.lifting.terms.template import Instance, have_equal_form, terms_of
from rewright.lifting.terms.trace import Trace
from rewright.lifting.terms.value import NotAView, Pieces, Value
from rewright.lifting.transfer import transfer

_ADDITIVE = (ops.Add, ops.Subtract)
_CONTRACTING = (ops.DotGeneral, ops.Reduce)

_OFTEN = 50
"""How many times as much may be looked at for a proof that is written down."""

UNKNOWN = -1
"""Stands for the value of a node inside of a stretch that was not lifted by itself."""


class BudgetExceeded(Exception):
    """The wall-clock budget ran out while programs were lifted."""


@dataclass
class Lifted:
    """The values of every node, as identities of interned values."""

    graph: Graph
    values: list[int] = field(default_factory=list[int])


class Lifter:
    """Lifts programs over one store of terms; equal operators on equal values are computed once.

    With ``reuse``, stretches that repeat are lifted once where that is right for all of them; nodes inside of the
    others then have no value of their own. With ``contract``, only three stretches of those that follow each other are
    lifted at all, where that is right for all of them.
    """

    def __init__(
        self,
        deadline: float | None = None,
        *,
        reuse: bool = False,
        contract: bool = False,
        forms: Forms = USUAL,
        walks: Walks | None = None,
        journal: Journal | None = None,
    ) -> None:
        # With a journal nothing is remembered from one step to the next.
        self.algebra = Algebra(forms, Recogniser, EFFORT if journal is None else EFFORT * _OFTEN)
        self._recogniser = self.algebra.recogniser
        self.deadline = deadline
        self.stop: Callable[[], bool] = lambda: False
        """Says, from one node to the next, that nothing will come of it."""
        self.reuse = reuse
        self.contract = contract
        self.contraction: Contraction | None = None
        """What was left out of both programs."""
        self.layered: list[Layered] = []
        """The streams of both programs, and what was left out of each."""
        self.values: list[Value] = []
        self.steps: dict[str, int] = {"lifted": 0, "shared": 0, "collectives": 0, "reused": 0, "left out": 0}
        self.walks = Walks() if walks is None else walks
        """What is shared with other liftings of the same programs."""
        self.walking = 0.0
        """Seconds spent on the order of nodes and on what repeats, without lifting any."""
        self.journal = journal
        """Where every step is written down, for a certificate."""
        self.hidden: dict[int, int] = {}
        """Values that have names, and the value of that name."""
        self._shift: dict[int, int] = {}
        """By name of what crosses from the first stretch of a period that of what crosses from the second."""
        self._reduced: set[int] = set()
        """Values that members of a group added up, and sums with these: the model may add all of it up at once."""
        self._numbers: dict[Value, int] = {}
        self._memo: dict[tuple[object, ...], int] = {}
        self._copies: Sequence[Callable[[], None]] = ()
        """What gives the sequential nodes of layers that were lifted as earlier ones their values."""
        self._given: Sequence[Mapping[str, Value]] = ()
        """What the inputs of the ranks are."""

    def intern(self, value: Value) -> int:
        """The identity of a value."""
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = len(self.values)
            self.values.append(value)
        return found

    def input(self, name: str, kind: TensorType) -> Value:
        """A program input as one window of its own term."""
        term = self.algebra.terms.input(name, kind.rank)
        return View(tuple((n,) for n in kind.shape), (Addend(ONE, term, identity(kind.rank)),))

    def sequential(self, graph: Graph, given: Mapping[str, Value] | None = None) -> Lifted:
        """Lift the sequential program; its inputs are the terms that everything is expressed in.

        The integer part goes first: a guard such as ``label != ignore_index`` stands before the look-up that tells
        which labels exist, and guards are kept within what their values can be.
        """
        with self._walk():
            integers = integer_part(graph)
        self._alone(integers, given or {}, is_first=True)
        self._memo.clear()
        # What was tested on the way is lifted again, with all the facts.
        self.algebra.facts.tests.clear()
        lifted = self._alone(graph, given or {})
        self.algebra.finish_sequential()
        return lifted

    def _alone(self, graph: Graph, given: Mapping[str, Value], *, is_first: bool = False) -> Lifted:
        """Lift a program of one device; the first time nothing is written down, nor left out."""
        inputs = {
            node.op.label: given.get(name) or self.input(name, node.type)
            for name, position in graph.inputs.items()
            if isinstance((node := graph.nodes[position]).op, ops.Input)
        }
        with self._walk():
            anchored = _anchored(graph)
        lifted = [Lifted(graph, [UNKNOWN] * len(graph.nodes))]
        run = Run(self, lifted, [inputs], [anchored], SEQUENTIAL, None if is_first else self.journal)
        self._lift(run, self.contract and not is_first)
        self._copies = run.copies
        return lifted[0]

    def ranks(self, graphs: Sequence[Graph], inputs: Sequence[Mapping[str, Value]]) -> list[Lifted]:
        """Lift the programs of all ranks together; raises CollectiveMismatch where collectives do not meet."""
        self.algebra.expect(len(graphs))
        self._given = inputs
        run = self._of_ranks(graphs, inputs)
        self._lift(run, self.contract)
        return run.lifted

    def _of_ranks(self, graphs: Sequence[Graph], inputs: Sequence[Mapping[str, Value]]) -> Run:
        lifted = [Lifted(graph, [UNKNOWN] * len(graph.nodes)) for graph in graphs]
        return Run(self, lifted, inputs, [frozenset() for _ in graphs], 0, self.journal)

    def complete(self, graphs: Sequence[Graph]) -> list[Lifted]:
        """The ranks' programs with every layer lifted by itself; gives every sequential node its value too.

        What was lifted by itself before is only looked up, by the values of its operands.
        """
        for copy in self._copies:
            copy()
        run = self._of_ranks(graphs, self._given)
        self._one_by_one(run)
        return run.lifted

    def _one_by_one(self, run: Run) -> None:
        with self._walk():
            steps = schedule_of([own.graph for own in run.lifted], alone=run.first == SEQUENTIAL)
        for step in steps:
            run.step(step)

    def _lift(self, run: Run, contract: bool) -> None:
        graphs, alone = [own.graph for own in run.lifted], run.first == SEQUENTIAL
        if not self.reuse:
            self._one_by_one(run)
            return
        with self._walk():
            whole = self.walks.of(graphs, alone=alone)
            # What is written down is a schedule, in the order of each program.
            whole = whole.shared_first() if run.journal is None else whole
            entries, found = whole.entries, whole.found
            shorter = self._shorter(entries, found, graphs, run.first) if contract else None
        if shorter is not None:
            self._contract(entries, shorter, run)
            return
        position = 0
        for repeat in found:
            run.stretch(entries, position, repeat.start)
            reuse = Reuse(self, run, entries, repeat.length)
            for start in range(repeat.start, repeat.stop, repeat.length):
                reuse.stretch(start)
            position = repeat.stop
        run.stretch(entries, position, len(entries))

    @contextmanager
    def _walk(self) -> Generator[None]:
        """Count the seconds of what visits every node of the programs."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.walking += time.perf_counter() - started

    def _shorter(
        self, entries: Stream, found: Sequence[Repeat], graphs: Sequence[Graph], first: int
    ) -> Contraction | None:
        """The contraction of a stream; that of the ranks is to be the one of the sequential program."""
        if first == SEQUENTIAL:
            self.contraction = contraction(entries, found, graphs)
            self.layered = [] if self.contraction is None else [Layered(graphs, entries, self.contraction)]
            return self.contraction
        if self.contraction is None:
            return None
        shorter = contraction(entries, found, graphs, self.contraction)
        if shorter is None:
            raise NotContracted
        self.layered.append(Layered(graphs, entries, shorter))
        return shorter

    def _contract(self, entries: Stream, shorter: Contraction, run: Run) -> None:
        """Lift what a contraction does not leave out; raises NotContracted where that does not speak for the rest."""
        sequential = run.first == SEQUENTIAL
        if sequential:
            run.name({entries.places[e] for p in shorter.periods for n in range(-1, p.count) for e in p.crossings(n)})
        run.swap(shorter.swapped)
        needed = shorter.inputs_read(entries)
        position = 0
        for period in sorted(shorter.periods, key=lambda p: p.start):
            run.stretch(entries, position, period.start)
            reuse = Reuse(self, run, entries, period.length)
            reuse.stretch(period.start)
            reuse.stretch(period.stretch(1))
            run.inputs(entries, needed[(needed >= period.stretch(2)) & (needed < period.stretch(-1))])
            run.repeat(entries, period)
            reuse.stretch(period.stretch(-1))
            self._step(entries, period, run, sequential)
            position = period.stop
        run.stretch(entries, position, len(entries))
        self.steps["left out"] += shorter.left_out

    def _step(self, entries: Stream, period: Period, run: Run, sequential: bool) -> None:
        """The induction step: what crosses from the second stretch is what crosses from the first, one layer on."""
        terms = self.algebra.terms
        for here, there in zip(period.crossings(0), period.crossings(1), strict=True):
            values = [self.values[run.lifted[r].values[p]] for r, p in (entries.places[here], entries.places[there])]
            if not have_equal_form(*values):
                raise NotContracted
            for before, after in zip(*map(terms_of, values), strict=True):
                if sequential:
                    fits = all(isinstance(terms.label(t), Named) for t in (before, after))
                    fits = fits and self._shift.setdefault(before, after) == after
                else:
                    fits = self._shift.get(before) == after
                if not fits:
                    raise NotContracted

    def node(self, op: Operator, lifted: Lifted, position: int) -> int:
        """Lift one node that its program computes alone."""
        node = lifted.graph.nodes[position]
        operands = tuple(lifted.values[p] for p in node.operands)
        if UNKNOWN in operands:
            raise NotContracted
        # Equal numbers of different dtypes are one value, but an operator may treat them differently.
        kinds = tuple(lifted.graph.nodes[p].type.dtype for p in node.operands)
        key = (op, node.type) if isinstance(op, ops.Leaf) else (op, operands, kinds)
        self.algebra.count_use(op.name)
        found = self._memo.get(key)
        if found is not None:
            self.steps["shared"] += 1
            return found
        self.check_budget()
        self.steps["lifted"] += 1
        types = [lifted.graph.nodes[p].type for p in node.operands]
        value = transfer(self.algebra, op, [self.values[v] for v in operands], types, node.type)
        assert value.shape == node.type.shape, (op, value.shape, node.type.shape)
        reduced = self._recogniser is not None and (
            (isinstance(op, _ADDITIVE) and not self._reduced.isdisjoint(operands))
            or (not self.algebra.sequential and _adds_up_parts(op, self.values[operands[0]] if operands else None))
        )
        if reduced and self._recogniser is not None:
            value = tidy(self._recogniser.recognise_parts(value))
        if self._recogniser is not None and self.algebra.forms.quotients and isinstance(op, _CONTRACTING):
            value = tidy(self._recogniser.recognise_sums(value))
        result = self._memo[key] = self.intern(value)
        if reduced:
            self._reduced.add(result)
        return result

    def check_budget(self) -> None:
        """Raise BudgetExceeded after the deadline, or where nothing will come of it."""
        if (self.deadline is not None and time.monotonic() > self.deadline) or self.stop():
            raise BudgetExceeded

    def trace_afresh(self, work: Callable[[], None]) -> Trace:
        """Do some lifting as if nothing had been lifted before, and note all that it reads and makes."""
        trace = Trace()
        before, self._memo = self._memo, {}
        self.algebra.forget()
        try:
            with self.algebra.terms.traced(trace):
                work()
        finally:
            self._memo = before | self._memo
        return trace

    def trace_within(self, work: Callable[[], None]) -> tuple[int, ...]:
        """Do some lifting and tell which terms it looked into or made, within whatever is being traced."""
        inner, terms = Trace(), self.algebra.terms
        self.algebra.forget()
        with terms.traced(inner) as outer:
            work()
        if outer is not None:
            outer.include(inner)
        # Who reads an operator without laws uses no more than its name; who makes it says what it is.
        used = (t for t, made, _ in inner.events if made is not None or not isinstance(terms.label(t), Opaque))
        return tuple(dict.fromkeys((*used, *sorted(inner.opened))))

    def meeting(self, step: Meeting, lifted: Sequence[Lifted]) -> int | None:
        """Lift one collective on all its members; the value of which they hold chunks then, if that is so."""
        self.steps["collectives"] += 1
        nodes = [lifted[rank].graph.nodes[position] for rank, position in step.nodes]
        self.algebra.count_use(nodes[0].op.name)
        if isinstance(nodes[-1].op, ops.Message):
            (sender, sent), (receiver, received) = step.nodes
            lifted[receiver].values[received] = lifted[sender].values[sent]
            return None
        operands = [lifted[rank].values[node.operands[0]] for (rank, _), node in zip(step.nodes, nodes, strict=True)]
        if UNKNOWN in operands:
            raise NotContracted
        values = [self.values[v] for v in operands]
        members = [rank for rank, _ in step.nodes]
        operators = [node.op for node in nodes]
        try:
            results, whole = meet(self.algebra, operators, values, nodes[0].type.dtype, members)
        except NotAView:
            results, whole = self._unknown(operators, values, [node.type for node in nodes]), None
        if self._recogniser is not None and isinstance(nodes[0].op, ops.Combining):
            known = {id(result): result for result in results}
            found = {number: self._recogniser.recognise_parts(result) for number, result in known.items()}
            results = [found[id(result)] for result in results]
            self._reduced.update(self.intern(tidy(result)) for result in found.values())
        # Where all members hold one value it is one object, which is long where they are many.
        numbers: dict[int, int] = {}
        for (rank, position), result in zip(step.nodes, results, strict=True):
            if id(result) not in numbers:
                numbers[id(result)] = self.intern(tidy(result))
            lifted[rank].values[position] = numbers[id(result)]
        return None if whole is None else self.intern(tidy(whole))

    def _unknown(
        self, operators: Sequence[Operator], values: Sequence[Value], types: Sequence[TensorType]
    ) -> list[Value]:
        """A collective on values without common digits: for every member a function of all operands."""
        views = [as_view(self.algebra, value) for value in values]
        keys = [((tuple(operators), member), ()) for member in range(len(types))]
        whole: list[Mapping[int, int]] = [{} for _ in views]
        return [opaque(self.algebra, key, views, kind, whole) for key, kind in zip(keys, types, strict=True)]

    def window(self, value: Value, placement: Placement, rank: int) -> Value:
        """What a rank holds of a global value under a placement that is not partial."""
        for axis, runs in enumerate(placement.runs[rank]):
            parts = [slice_axis(value, axis, start, start + length) for start, length in runs]
            value = concatenate(parts, axis) if parts else slice_axis(value, axis, 0, 0)
        return value


class Run:
    """Lifting the nodes of some programs, one step of a schedule after the other."""

    def __init__(
        self,
        lifter: Lifter,
        lifted: list[Lifted],
        inputs: Sequence[Mapping[str, Value]],
        anchored: Sequence[Set[int]],
        first: int,
        journal: Journal | None = None,
    ) -> None:
        self.lifter = lifter
        self.lifted = lifted
        self.journal = journal
        self.first = first
        """The first of the programs: a rank, or SEQUENTIAL."""
        self._inputs = [dict(own) for own in inputs]
        self._anchored = anchored
        self._named: Set[tuple[int, int]] = frozenset()
        self.copies: list[Callable[[], None]] = []
        """What gives the nodes of sequential layers that were lifted as earlier ones their values."""

    def name(self, places: Set[tuple[int, int]]) -> None:
        """Give a name to what these nodes compute, which hides what it is made of."""
        self._named = places

    def swap(self, inputs: Mapping[str, str]) -> None:
        """Let inputs be what others are."""
        for own in self._inputs:
            own.update({label: own[stands] for label, stands in inputs.items() if label in own})

    def inputs(self, entries: Stream, wanted: Integers) -> None:
        """Lift these entries of a stream, which are inputs."""
        for entry in wanted.tolist():
            self.stretch(entries, entry, entry + 1)

    def repeat(self, entries: Stream, period: Period) -> None:
        """Give what the second stretch computes to the last but one, and what it reads to that one."""
        pairs = zip(period.crossings(0), period.crossings(period.count - 3), strict=True)
        second, last = period.stretch(1), period.stretch(-2)
        for here, there in (*pairs, *((second + k, last + k) for k in range(period.length))):
            if not entries.inputs[here]:
                (rank, position), (other, place) = entries.places[here], entries.places[there]
                self.lifted[other].values[place] = self.lifted[rank].values[position]

    def stretch(self, entries: Stream, start: int, stop: int) -> None:
        """Lift the steps of a stretch of the stream."""
        for step in entries.steps[start:stop]:
            if step is not None:
                self.step(step)

    def step(self, step: LocalNode | Meeting) -> None:
        """Lift one step, and write it down where there is a journal."""
        if self.journal is None:
            self._lift(step)
            return
        places = [(step.rank, step.position)] if isinstance(step, LocalNode) else list(step.nodes)
        nodes = [self.lifted[rank].graph.nodes[position] for rank, position in places]
        if isinstance(nodes[0].op, ops.Input):
            self._lift(step)
            return
        whole: list[int | None] = []
        looked_into = self.lifter.trace_within(lambda: whole.append(self._lift(step)))
        received = isinstance(nodes[-1].op, ops.Message)
        if received:
            places, nodes = places[-1:], nodes[-1:]
        values = [self.lifted[rank].values[position] for rank, position in places]
        operands = [self.lifted[r].values[p] for (r, _), n in zip(places, nodes, strict=True) for p in n.operands]
        key = tuple(node.op for node in nodes), tuple(operands), tuple(values)
        named = [(rank + self.first, position) for rank, position in places]
        self.journal.note(named, values, key, looked_into, isinstance(step, Meeting) and not received, whole[0])

    def _lift(self, step: LocalNode | Meeting) -> int | None:
        if isinstance(step, Meeting):
            return self.lifter.meeting(step, self.lifted)
        own = self.lifted[step.rank]
        op = own.graph.nodes[step.position].op
        if isinstance(op, ops.Input):
            own.values[step.position] = self.lifter.intern(self._inputs[step.rank][op.label])
        elif isinstance(op, ops.Send):
            own.values[step.position] = own.values[own.graph.nodes[step.position].operands[0]]
        else:
            value = self.lifter.node(op, own, step.position)
            own.values[step.position] = self.lifter.hidden.get(value, value)
            if step.position in self._anchored[step.rank]:
                self._anchor(own, step.position)
            if (step.rank, step.position) in self._named:
                self._hide(own, step.position)
        return None

    def _hide(self, own: Lifted, position: int) -> None:
        """Give a name to the terms of a value."""
        values, terms = self.lifter.values, self.lifter.algebra.terms
        value = values[own.values[position]]
        made = list(dict.fromkeys(terms_of(value)))
        if any(terms.open[term] for term in made):
            raise NotContracted
        numbers = {term: k for k, term in enumerate(made)}
        names = [term if isinstance(terms.label(term), Named) else terms.name(term) for term in made]
        shown = own.values[position]
        own.values[position] = self.lifter.hidden[shown] = self.lifter.intern(Instance(numbers, names).value(value))

    def _anchor(self, own: Lifted, position: int) -> None:
        """Keep a sum whole; in a piece where it adds nothing it is an operand, which stays what it was."""
        values, terms = self.lifter.values, self.lifter.algebra.terms
        before = {t for p in own.graph.nodes[position].operands for t in terms_of(values[own.values[p]])}
        for term in dict.fromkeys(terms_of(values[own.values[position]])):
            if term not in before:
                terms.mark(terms.anchors.add, term)


def _adds_up_parts(op: Operator, value: Value | None) -> bool:
    """Whether a sum is over an axis that is in parts: what an all-to-all brought from every rank, say."""
    return isinstance(op, ops.Reduce) and op.kind == "sum" and isinstance(value, Pieces) and value.axis in op.dimensions


def _anchored(graph: Graph) -> set[int]:
    """Additions that something other than another addition reads, directly or through layout."""
    plain: set[int] = set()
    for position in range(len(graph.nodes) - 1, -1, -1):
        node = graph.nodes[position]
        is_passed_on = position not in plain and isinstance(node.op, (ops.Layout, ops.Convert))
        if type(node.op) not in _ADDITIVE and not is_passed_on:
            plain.update(node.operands)
    return {p for p in plain if type(graph.nodes[p].op) in _ADDITIVE}


__all__ = ["BudgetExceeded", "Lifted", "Lifter", "Pieces"]
