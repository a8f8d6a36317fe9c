"""The checker of certificates: every equation is verified in order, and the last ones are the claim.

It trusts neither the engine that found the proof nor the certificate. It takes the meaning of an operator from its
denotation, and proves every step itself, as a lemma in the normal form of ``rewright.terms``; there is no search.
The equations of each rank are in the order of its program, so that the certificate is also a schedule in which all
collectives meet.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from rewright import ops
from rewright.ir.digest import digest
from rewright.ir.errors import Damaged, OtherPrograms, Refused, RewrightError
from rewright.ir.graph import Graph, Node
from rewright.ir.memory import pause_garbage_collection
from rewright.ir.operator import Operator, Unsupported
from rewright.ir.placement import RankProgram
from rewright.ir.types import TensorType
from rewright.ops.agreement import check_agreement, communicator_of, in_equal_parts, is_posted, meets, members
from rewright.proof.calls import check_calls
from rewright.proof.certificate import SEQUENTIAL, Certificate, Meeting, NodeEquation, Repetition
from rewright.proof.compared import compared_programs
from rewright.proof.conditions import Violated
from rewright.proof.facts import as_fact, assumptions, why_not
from rewright.proof.forms import Malformed, check_parts
from rewright.proof.ledger import Audit, Ledger, Store, Used, name_of
from rewright.proof.programs import Applied, Chunk, Collective, Exchanged, Subject
from rewright.proof.relations import Relations
from rewright.proof.repetition import Repeated, Stretch
from rewright.proof.rewriting.evidence import Checked

SECONDS = 30.0
"""For one lemma: few take more than one, and a machine that has much else to do is several times as slow."""


def audit(
    certificate: Certificate,
    sequential: Graph,
    program: RankProgram,
    store: Store | None = None,
    seconds: float = SECONDS,
    *,
    counts: bool = True,
    checked: Checked | None = None,
) -> Audit:
    """Verify a certificate for these programs, as they were captured; ``seconds`` is what one lemma may take.

    Where arithmetic of 8 or 16 bits may not fit, the certificate is about the programs with remainders written out;
    ``counts=False`` is for programs in which they are, or which hold nothing that does not fit. Where it assumes what
    rounded constants stand for, it is about the programs with these written out. ``checked`` holds lemmas of
    rewritings that were checked before.

    Raises Refused, naming the step, for anything that does not follow.
    """
    started = time.perf_counter()
    check_calls(certificate.calls, (sequential, *program.graphs))
    made = compared_programs(certificate, sequential, program, checked or Checked(seconds=seconds), counts=counts)
    elapsed = time.perf_counter() - started
    with pause_garbage_collection():
        found = _Checker(Ledger(certificate, made.sequential, made.program, store, seconds), made.taken).run()
    found.seconds = {"rewritings": elapsed, **found.seconds} if certificate.rewritings else found.seconds
    found.sequential = made.sequential
    return found


class _Checker:
    def __init__(self, ledger: Ledger, taken: tuple[str, ...]) -> None:
        self._ledger, self._taken = ledger, taken
        self._certificate = ledger.certificate
        self._last = [-1] * len(ledger.graphs)
        self._used: list[Used] = []
        self._stretches: dict[tuple[int, int], Stretch] = {}
        self._sources = _sources(ledger.program.graphs)
        self._calls = _calls(ledger.program.graphs)

    def run(self) -> Audit:
        relations = Relations(self._ledger)
        for phase, work in (
            ("programs", self._programs),
            ("forms", self._forms),
            ("facts", self._facts),
            ("inputs", relations.inputs),
            ("equations", self._equations),
            ("outputs", relations.outputs),
            ("assumptions", self._assumptions),
        ):
            started = time.perf_counter()
            work()
            self._ledger.audit.seconds[phase] = time.perf_counter() - started
        if not self._certificate.intact:
            raise Damaged("the certificate was changed after it was written: it is not the text of its contents")
        return self._ledger.audit

    def _programs(self) -> None:
        certificate, ledger = self._certificate, self._ledger
        if certificate.mesh != ledger.program.mesh.axes:
            raise OtherPrograms(f"the certificate is about the mesh {certificate.mesh}, not {ledger.program.mesh.axes}")
        stated = (certificate.sequential, *certificate.ranks)
        if len(stated) != len(ledger.graphs):
            raise OtherPrograms(f"the certificate is about {len(stated) - 1} ranks, not {len(ledger.graphs) - 1}")
        for program, (expected, graph) in enumerate(zip(stated, ledger.graphs, strict=True), start=SEQUENTIAL):
            if digest(graph, kinds=ledger.kinds[program + 1]) != expected:
                raise OtherPrograms(f"the certificate is not about the {name_of(program)} that was given")

    def _forms(self) -> None:
        terms = self._certificate.terms
        for number, value in enumerate(self._certificate.values):
            try:
                check_parts(value, terms)
            except Malformed as error:
                raise Refused(f"value {number} is no tensor: {error}") from None

    def _facts(self) -> None:
        ledger, facts, terms = self._ledger, self._certificate.facts, self._certificate.terms
        for number, fact in enumerate(facts):
            why = why_not(ledger.graphs[0], fact, terms, ledger.seconds, facts[:number])
            if why is not None:
                raise Refused(f"fact {number} does not follow: {why}")
            known = ledger.theory.facts.get(fact.term, ())
            ledger.theory.facts[fact.term] = (*known, as_fact(ledger.graphs[0], fact, terms))

    def _assumptions(self) -> None:
        """Verify that the certificate states what its proof rests on, all of it and nothing else."""
        certificate, stated = self._certificate, self._certificate.assumptions
        ledger, summed = self._ledger, {name for name, held in certificate.relations.items() if held.partial}
        try:
            own = assumptions(ledger.graphs, certificate.facts, certificate.terms, ledger.claim_of, summed)
        except Violated as error:
            raise Refused(f"the proof rests on a condition that cannot hold: {error}") from None
        wanted = tuple(dict.fromkeys((*own, *self._taken)))
        for text in wanted:
            if text not in stated:
                raise Refused(f"the proof rests on an assumption that the certificate does not state: {text}")
        if stated != wanted:
            other = next((text for text in stated if text not in wanted), "the same twice, or in another order")
            raise Refused(f"the certificate states an assumption that the proof does not need: {other}")

    def _equations(self) -> None:
        for number, equation in enumerate(self._certificate.equations):
            if isinstance(equation, NodeEquation):
                used = self._step(equation, f"equation {number}")
            elif isinstance(equation, Meeting):
                used = self._meeting(equation, f"equation {number}")
            else:
                used = self._repetition(equation, number)
            self._used.append(used)
            self._ledger.audit.equations += 1
        missing = self._ledger.missing()
        if missing is not None:
            raise Refused(f"no equation is about %{missing[1]} of the {name_of(missing[0])}")

    # --- one operator, one collective

    def _step(self, step: NodeEquation, where: str) -> Used:
        ledger = self._ledger
        node = self._node(step.program, step.position, where)
        where = f"{where} ({node.op.name} at %{step.position} of the {name_of(step.program)})"
        ledger.value(step.value, where)
        self._in_order(step.program, step.position, node, where)
        operands = [ledger.claim(step.program, p, where) for p in node.operands]
        if meets(node.op):
            raise Refused(f"{where} is a collective, which no rank computes alone")
        if isinstance(node.op, ops.Message):
            sent = operands[0] if isinstance(node.op, ops.Send) else self._receive(step, where)
            used = self._copied(sent, step.value, where)
        else:
            used = ledger.step(step, operands, where)
        ledger.enter(step.program, step.position, step.value, where)
        return used

    def _meeting(self, meeting: Meeting, where: str) -> Used:
        ledger = self._ledger
        nodes = [(rank, self._node(rank, position, where)) for rank, position, _ in meeting.members]
        if not nodes or any(rank < 0 or not node.operands for rank, node in nodes):
            raise Refused(f"{where} is no meeting of ranks")
        where = f"{where} ({nodes[0][1].op.name} of ranks {[rank for rank, _ in nodes]})"
        self._check_group(nodes, where)
        operands = [ledger.claim(rank, node.operands[0], where) for rank, node in nodes]
        found: list[Used] = []
        whole = None if meeting.whole is None else self._whole(nodes, where)
        if whole is not None and meeting.whole is not None:
            ledger.value(meeting.whole, where)
            found.append(ledger.prove(whole[0], operands, meeting.whole, meeting.unfold, where))
        for member, (rank, position, value) in enumerate(meeting.members):
            ledger.value(value, where)
            self._in_order(rank, position, nodes[member][1], where)
            if whole is None or meeting.whole is None:
                found.append(self._met(nodes, member, operands, value, meeting.unfold, where))
            else:
                chunk = Chunk(whole[1], whole[2], len(nodes), member)
                found.append(ledger.prove(chunk, [meeting.whole], value, meeting.unfold, where))
            ledger.enter(rank, position, value, where)
        self._match([(rank, position) for rank, position, _ in meeting.members], where)
        return Used.all(found)

    def _met(
        self,
        nodes: Sequence[tuple[int, Node]],
        member: int,
        operands: Sequence[int],
        value: int,
        unfold: tuple[int, ...],
        where: str,
    ) -> Used:
        """The value that one member of a group holds after a collective."""
        # The groups say who meets, and not what is computed: all groups have the same lemma.
        operators = tuple(_without_groups(node) for _, node in nodes)
        op, types, group = operators[0], self._types(nodes), [rank for rank, _ in nodes]
        got = Unsupported(f"{op.name} is no collective")
        if isinstance(op, ops.Collective):
            got = op.received(operators, [kind.shape for kind in types], group, member)
        if isinstance(got, Unsupported):
            raise Refused(f"{where} is no meeting that gives a value: {got.why}")
        if not got.pieces:
            kind = nodes[member][1].type
            zero = ops.Constant(kind, (0.0 if kind.dtype.is_float else 0,))
            return self._ledger.prove(Applied(zero, ()), [], value, unfold, where)
        if got.joined is None and got.reduction is None:
            return self._copied(operands[got.pieces[0].member], value, where)
        shared = isinstance(op, ops.Collective) and op.is_shared
        return self._ledger.prove(Collective(operators, types, 0 if shared else member), operands, value, unfold, where)

    def _whole(self, nodes: Sequence[tuple[int, Node]], where: str) -> tuple[Subject, TensorType, int]:
        """The value that the members of a group keep equal chunks of, its type, and the axis along which it is cut.

        That is the reduction of all operands, or what an exchange in equal parts leaves all members with.
        """
        op, types = nodes[0][1].op, self._types(nodes)
        if isinstance(op, ops.ReduceScatter):
            return Collective((ops.AllReduce(op.kind, ()),) * len(nodes), types, 0), types[0], op.dimension
        if not isinstance(op, ops.AllToAll) or not all(in_equal_parts(node.op) for _, node in nodes):
            raise Refused(f"{where} leaves no member an equal chunk of a whole")
        exchanged = Exchanged(types, op.split_dimension, op.concat_dimension)
        return exchanged, exchanged.whole, op.split_dimension

    def _types(self, nodes: Sequence[tuple[int, Node]]) -> tuple[TensorType, ...]:
        graphs = self._ledger.program.graphs
        return tuple(graphs[rank].nodes[node.operands[0]].type for rank, node in nodes)

    def _check_group(self, nodes: Sequence[tuple[int, Node]], where: str) -> None:
        graphs = self._ledger.program.graphs
        try:
            wanted = members(nodes[0][1], nodes[0][0], len(graphs))
            check_agreement(nodes, [graphs[rank].nodes[node.operands[0]].type for rank, node in nodes])
        except RewrightError as error:
            raise Refused(f"{where} is no meeting: {error}") from None
        if wanted != tuple(rank for rank, _ in nodes):
            raise Refused(f"{where} is a meeting of other ranks than the group {list(wanted)}")

    def _match(self, members: Sequence[tuple[int, int]], where: str) -> None:
        """Verify that each rank makes the call at the same position in its sequence of calls of the communicator."""
        if len({self._calls.get(member) for member in members}) != 1:
            raise Refused(f"{where} is a meeting of calls that other calls on their communicator come before")

    def _copied(self, source: int, value: int, where: str) -> Used:
        if source != value:
            raise Refused(f"{where} has another value than the tensor that was sent")
        return Used((), ())

    def _receive(self, step: NodeEquation, where: str) -> int:
        sender = self._sources.get((step.program, step.position))
        if sender is None:
            raise Refused(f"{where} receives what nobody sends")
        graphs = self._ledger.program.graphs
        arrives, kind = graphs[sender[0]].nodes[sender[1]].type, graphs[step.program].nodes[step.position].type
        if arrives != kind:
            raise Refused(f"{where} receives {arrives} and expects {kind}")
        return self._ledger.claim(*sender, where)

    def _node(self, program: int, position: int, where: str) -> Node:
        graphs = self._ledger.graphs
        if not SEQUENTIAL <= program < len(graphs) - 1 or not 0 <= position < len(graphs[program + 1].nodes):
            raise Refused(f"{where} is about a node that does not exist")
        return graphs[program + 1].nodes[position]

    def _in_order(self, program: int, position: int, node: Node, where: str) -> None:
        """Ranks run in program order; only a receive, and a collective that is posted, may be waited for later."""
        if type(node.op) is ops.Recv or is_posted(node.op):
            return
        if position <= self._last[program + 1]:
            raise Refused(f"{where} is about %{position}, which the {name_of(program)} runs earlier")
        self._last[program + 1] = position

    # --- stretches that repeat

    def _repetition(self, again: Repetition, number: int) -> Used:
        where = f"equation {number}"
        if not 0 <= again.first < again.last <= number:
            raise Refused(f"{where} repeats equations {again.first} to {again.last}, which are not earlier ones")
        block = slice(again.first, again.last)
        stretch = self._stretches.get((again.first, again.last))
        if stretch is None:
            stretch = Stretch(self._ledger, self._certificate.equations[block], self._used[block])
            self._stretches[again.first, again.last] = stretch
        repeated = Repeated(self._ledger, again, stretch, where)
        for program, first, last in repeated.ends():
            self._node(program, last, where)
            self._in_order(program, first, self._node(program, first, where), where)
            self._last[program + 1] = last
        repeated.enter()
        # Who met once meets again: equal operators have equal groups and agree in all else.
        for equation in self._certificate.equations[block]:
            if isinstance(equation, Meeting):
                self._match([(r, p + again.shifts[r + 1]) for r, p, _ in equation.members], where)
        return stretch.used


def _without_groups(node: Node) -> Operator:
    op = node.op
    if not isinstance(op, ops.GroupCollective):
        return op
    return replace(cast(Any, op), groups=(), communicator=0, posted=False)


def _calls(graphs: Sequence[Graph]) -> dict[tuple[int, int], tuple[frozenset[int], int, int]]:
    """For every collective its ranks, its communicator, and how many its rank called there before."""
    found: dict[tuple[int, int], tuple[frozenset[int], int, int]] = {}
    for rank, graph in enumerate(graphs):
        counts: defaultdict[tuple[frozenset[int], int], int] = defaultdict(int)
        for position, node in enumerate(graph.nodes):
            if not meets(node.op):
                continue
            try:
                channel = frozenset(members(node, rank, len(graphs))), communicator_of(node.op)
            except RewrightError:
                continue  # it meets nobody
            found[rank, position] = *channel, counts[channel]
            counts[channel] += 1
    return found


def _sources(graphs: Sequence[Graph]) -> dict[tuple[int, int], tuple[int, int]]:
    """For every receive the send that it meets: messages between two ranks arrive in the order they were sent."""
    sent: defaultdict[object, list[tuple[int, int]]] = defaultdict(list)
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for rank, graph in enumerate(graphs):
        for position, node in enumerate(graph.nodes):
            if type(node.op) is ops.Send:
                sent[rank, node.op.destination, node.op.tag].append((rank, position))
    for rank, graph in enumerate(graphs):
        waiting: defaultdict[object, int] = defaultdict(int)
        for position, node in enumerate(graph.nodes):
            if type(node.op) is ops.Recv:
                channel = node.op.source, rank, node.op.tag
                if waiting[channel] < len(sent[channel]):
                    found[rank, position] = sent[channel][waiting[channel]]
                waiting[channel] += 1
    return found
