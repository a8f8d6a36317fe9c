"""A proof written down as a certificate: everything that lifting did, in the language of ``rewright.proof``."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import permutations
from typing import cast

from rewright import ops
from rewright.claims.language import Access, Definition, Input, Opaque, Region, Tensor
from rewright.ir.digest import digest
from rewright.ir.dims import Dim, Shape, product
from rewright.ir.graph import Graph
from rewright.ir.memory import pause_garbage_collection
from rewright.ir.operator import Operator
from rewright.ir.placement import Placement, RankProgram
from rewright.lifting.journal import SEQUENTIAL, Again, Entry, Journal
from rewright.lifting.layers.stream import Walks
from rewright.lifting.terms.forms import USUAL, Forms
from rewright.lifting.terms.store import Named, Terms
from rewright.lifting.terms.template import terms_of
from rewright.lifting.terms.value import Value
from rewright.proof.certificate import Block, Certificate, Meeting, NodeEquation, Output, RangeFact, Repetition
from rewright.proof.conditions import Open
from rewright.proof.facts import assumptions, why_not
from rewright.refine.certificate.claims import NotCertified, as_tensor, claim_at
from rewright.refine.check import prove_with_journal
from rewright.refine.proof import Proof
from rewright.refine.relations.equations import Equation, Joined, Layout, layout_of
from rewright.refine.relations.given import Relations

_SECONDS = 5.0
"""For one fact about an input."""
_SECONDS_FOR_COMPUTED = 2.0
"""For all attempts in vain at facts about what is computed, most of which are needed by no step."""
_MOST_ARRANGED = 4
"""Windows of more axes are not tried in every order."""


def certificate(
    sequential: Graph,
    program: RankProgram,
    relations: Relations,
    expected: Mapping[str, Placement],
    forms: Forms = USUAL,
    asked: Open | None = None,
    walks: Walks | None = None,
) -> Certificate:
    """Prove once more, first in the forms that are known to reach it, and write it down. Raises NotCertified."""
    proof = prove_with_journal(sequential, program, relations, expected, forms, walks)
    if proof.failed or not proof.ranks:
        raise NotCertified("the proof failed when it was made again with a journal")
    return write_down(sequential, program, proof, relations, asked)


def write_down(
    sequential: Graph, program: RankProgram, proof: Proof, relations: Relations, asked: Open | None = None
) -> Certificate:
    """A proof with a journal as a certificate, whether it reaches its end or not."""
    if proof.lifter.journal is None:
        raise NotCertified("a proof without a journal says nothing of its steps")
    with pause_garbage_collection():
        return _Writer(sequential, program, proof, proof.lifter.journal).write(relations, asked)


class _Writer:
    def __init__(self, sequential: Graph, program: RankProgram, proof: Proof, journal: Journal) -> None:
        self._sequential = sequential
        self._program = program
        self._proof = proof
        self._journal = journal
        self._terms: Terms = proof.lifter.algebra.terms
        self._values: dict[int, int] = {}
        """Numbers of values in the certificate, by their number in the engine."""
        self._names: dict[int, int] = {}
        self._left = _SECONDS_FOR_COMPUTED
        self._read: dict[int, frozenset[int]] = {}

    def write(self, relations: Relations, asked: Open | None) -> Certificate:
        given = [*self._given(SEQUENTIAL, self._sequential)]
        for rank, graph in enumerate(self._program.graphs):
            given += self._given(rank, graph)
        for entry in self._journal.entries:
            if isinstance(entry, Entry):
                for value in (*entry.values, *([] if entry.whole is None else [entry.whole])):
                    self._values.setdefault(value, len(self._values))
        needed = self._needed()
        self._names = {term: number for number, term in enumerate(sorted(needed))}
        values = self._proof.lifter.values
        terms = tuple(self._definition(term) for term in self._names)
        facts = self._facts(terms)
        return Certificate(
            digest(self._sequential),
            tuple(digest(graph) for graph in self._program.graphs),
            self._program.mesh.axes,
            dict(relations.placements),
            {name: self._output(name, placement) for name, placement in self._proof.placements.items()},
            self._assumptions(facts, terms, relations, asked),
            facts,
            terms,
            tuple(self._tensor(values[value]) for value in self._values),
            tuple((program, name, self._values[value]) for program, name, value in given),
            tuple(self._equation(entry) for entry in self._journal.entries),
            tuple(_blocks(relations.equations, self._sequential, self._program)),
        )

    def _assumptions(
        self, facts: Sequence[RangeFact], terms: Sequence[Definition], relations: Relations, asked: Open | None
    ) -> tuple[str, ...]:
        summed = {name for name, held in relations.placements.items() if held.partial}
        graphs = self._sequential, *self._program.graphs
        return assumptions(graphs, facts, terms, partial(claim_at, self._proof), summed, asked)

    def _output(self, name: str, placement: Placement) -> Output:
        return Output(placement, tuple(self._names[term] for term in self._proof.looked_into[name]))

    def _given(self, program: int, graph: Graph) -> Iterable[tuple[int, str, int]]:
        lifted = self._proof.sequential if program == SEQUENTIAL else self._proof.ranks[program]
        for name, position in graph.inputs.items():
            value = lifted.values[position]
            self._values.setdefault(value, len(self._values))
            yield program, name, value

    def _needed(self) -> set[int]:
        """Every term that a value or an equation names, and all that these are made of."""
        values = self._proof.lifter.values
        stack = [term for value in self._values for term in terms_of(values[value])]
        for entry in self._journal.entries:
            stack.extend(entry.terms if isinstance(entry, Entry) else entry.images.values())
        stack.extend(self._proof.lifter.algebra.facts.known)
        stack.extend(term for terms in self._proof.looked_into.values() for term in terms)
        found: set[int] = set()
        while stack:
            term = stack.pop()
            if term not in found:
                found.add(term)
                stack.extend(self._terms.graph.node(term)[1])
        return found

    def _equation(self, entry: Entry | Again) -> NodeEquation | Meeting | Repetition:
        if isinstance(entry, Entry):
            unfold = tuple(self._names[term] for term in entry.terms)
            values = [self._values[value] for value in entry.values]
            if entry.meeting:
                members = zip(entry.places, values, strict=True)
                whole = None if entry.whole is None else self._values[entry.whole]
                return Meeting(tuple((rank, position, value) for (rank, position), value in members), unfold, whole)
            program, position = entry.places[0]
            return NodeEquation(program, position, values[0], unfold)
        return self._repetition(entry)

    def _repetition(self, again: Again) -> Repetition:
        programs = range(SEQUENTIAL, len(self._program.graphs))
        images = dict(again.images)
        # A sum that has no range yet is looked into by whoever reads it, whether lifting did so or not.
        stack = [(term, image) for term, image in images.items() if self._terms.open[term]]
        while stack:
            term, image = stack.pop()
            mine, other = self._terms.graph.node(term), self._terms.graph.node(image)
            for child, its in zip(mine[1], other[1], strict=True) if mine[0] is other[0] else ():
                if child not in images and child != its:
                    images[child] = its
                    if self._terms.open[child]:
                        stack.append((child, its))
        named = ((self._names[t], self._names[i]) for t, i in images.items() if t in self._names and i in self._names)
        return Repetition(again.first, again.last, tuple(again.shifts.get(p, 0) for p in programs), tuple(named))

    def _facts(self, terms: Sequence[Definition]) -> tuple[RangeFact, ...]:
        """What is known of terms, each with a look-up that needs it; of computed ones what is soon found."""
        found: list[RangeFact] = []
        facts = self._proof.lifter.algebra.facts
        # Inputs first: of what is computed, an audit mostly needs nothing.
        for term in sorted(facts.known, key=lambda t: not isinstance(terms[self._names[t]].content, Input)):
            for lengths in dict.fromkeys(facts.looked_up[term]):
                window = tuple((low, high - low) for low, high in lengths)
                fact = self._fact(terms, self._names[term], facts.known[term], window, found)
                if fact is not None:
                    found.append(fact)
        return tuple(found)

    def _fact(
        self,
        terms: Sequence[Definition],
        term: int,
        allowed: Region,
        window: tuple[tuple[Dim, Dim], ...],
        known: Sequence[RangeFact],
    ) -> RangeFact | None:
        """A fact with the first look-up that needs it, for what is known already."""
        graph = self._sequential
        content = terms[term].content
        position = graph.inputs.get(content.name) if isinstance(content, Input) else None
        shapes = [] if position is None else [graph.nodes[position].type.shape]
        for lookup, node in enumerate(graph.nodes):
            if not isinstance(node.op, ops.Gather | ops.DynamicSlice):
                continue
            if position is not None and position not in self._read_at(lookup):
                continue
            for place in dict.fromkeys(_places(window, shapes, node.type.shape)):
                fact = RangeFact(term, allowed, lookup, window, place)
                if self._follows(fact, terms, known, is_input=position is not None):
                    return fact
        return None

    def _read_at(self, lookup: int) -> frozenset[int]:
        """What the indices of a look-up are made of, but for what is made of floats on the way."""
        if lookup not in self._read:
            nodes, (_, *stack) = self._sequential.nodes, self._sequential.nodes[lookup].operands
            seen = set(stack)
            while stack:
                for operand in nodes[stack.pop()].operands:
                    if operand not in seen and not nodes[operand].type.dtype.is_float:
                        seen.add(operand)
                        stack.append(operand)
            self._read[lookup] = frozenset(seen)
        return self._read[lookup]

    def _follows(
        self, fact: RangeFact, terms: Sequence[Definition], known: Sequence[RangeFact], *, is_input: bool
    ) -> bool:
        if is_input:
            return why_not(self._sequential, fact, terms, _SECONDS, known) is None
        if self._left <= 0:
            return False
        started = time.monotonic()
        holds = why_not(self._sequential, fact, terms, self._left, known) is None
        self._left -= 0.0 if holds else time.monotonic() - started
        return holds

    def _definition(self, term: int) -> Definition:
        label = self._terms.node_label(term)
        operands = tuple(self._names[child] for child in self._terms.graph.node(term)[1])
        content = label.content
        if isinstance(content, Named):
            raise NotCertified("a name hides what a term is made of")
        if isinstance(content, Opaque) and not isinstance(content.op, Operator):
            raise NotCertified("a collective that is not known by what it computes")
        return Definition(content, operands, label.arity)

    def _tensor(self, value: Value) -> Tensor:
        return as_tensor(value, self._names.__getitem__)


def _places(window: Sequence[tuple[Dim, Dim]], shapes: Sequence[Shape], looked_up: Shape) -> Iterator[Access]:
    """Where a result may look up with an element of a window: axis by axis, or with the axes of the input merged."""
    starts = [start for start, _ in window]
    plain = [(-start, ((axis, 1),)) for axis, start in enumerate(starts)]
    if len(looked_up) >= len(window):
        yield (*plain, *((0, ()) for _ in looked_up[len(window) :]))
    for lengths in (*shapes, tuple(length for _, length in window)):
        constant: Dim = 0
        strides: list[tuple[int, Dim]] = []
        for axis, start in enumerate(starts):
            stride = product(lengths[axis + 1 :])
            constant = constant - start * stride
            strides.append((axis, stride))
        yield ((constant, tuple(strides)), *((0, ()) for _ in looked_up[1:]))
    if len(window) <= _MOST_ARRANGED:
        yield from _arrange(window, tuple(range(len(window))), looked_up)


def _arrange(window: Sequence[tuple[Dim, Dim]], axes: tuple[int, ...], looked_up: Shape) -> Iterator[Access]:
    """All ways in which a window's axes, in any order and neighbours merged, fill the axes of a result."""
    if not looked_up:
        if not axes:
            yield ()
        return
    for count in range(len(axes) + 1):
        for chosen in permutations(axes, count):
            if product([window[axis][1] for axis in chosen]) != looked_up[0]:
                continue
            strides = [product([window[axis][1] for axis in chosen[k + 1 :]]) for k in range(count)]
            start = sum((-window[axis][0] * n for axis, n in zip(chosen, strides, strict=True)), start=cast(Dim, 0))
            index = start, tuple(sorted(zip(chosen, strides, strict=True)))
            for rest in _arrange(window, tuple(axis for axis in axes if axis not in chosen), looked_up[1:]):
                yield (index, *rest)


def _blocks(equations: Sequence[Equation], sequential: Graph, program: RankProgram) -> Iterator[Block]:
    """Equations as what they say of every box of a rank tensor."""
    for equation in equations:
        shape = sequential.nodes[sequential.inputs[equation.name]].type.shape
        whole = tuple((0, int(str(size))) for size in shape)
        yield from _cut(equation.name, layout_of(equation, program), whole)


def _cut(name: str, layout: Layout, window: tuple[tuple[int, int], ...]) -> Iterator[Block]:
    if isinstance(layout, Joined):
        start = window[layout.axis][0]
        for part in layout.parts:
            length = part.shape[layout.axis]
            yield from _cut(name, part, (*window[: layout.axis], (start, length), *window[layout.axis + 1 :]))
            start += length
        return
    box = tuple((start, stop - start) for start, stop in layout.box)
    yield Block(name, window, layout.order, layout.rank, layout.name, box)
