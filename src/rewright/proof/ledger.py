"""What has been verified so far: the claims about nodes, and the lemmas that they are instances of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rewright.claims.language import Tensor, rename, terms_of
from rewright.ir.errors import Refused
from rewright.ir.graph import Graph
from rewright.ir.operator import Operator
from rewright.ir.placement import RankProgram
from rewright.ir.types import TensorType
from rewright.proof.certificate import SEQUENTIAL, Certificate, NodeEquation
from rewright.proof.forms import Malformed
from rewright.proof.lemma import prove
from rewright.proof.programs import Applied, Subject
from rewright.proof.statement import Statement
from rewright.proof.theory import Theory, integer_inputs


class Store(Protocol):
    """Lemmas that this checker proved before, by digest."""

    def __contains__(self, digest: str, /) -> bool: ...

    def add(self, digest: str, /) -> None:
        """Remember a lemma that was proved."""
        ...


@dataclass
class Audit:
    """What was checked: equations, the lemmas they are instances of, how many of these were new, and seconds."""

    equations: int = 0
    lemmas: int = 0
    proved: int = 0
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    sequential: Graph | None = field(default=None, repr=False, compare=False)
    """The sequential program as it was compared."""

    def __str__(self) -> str:
        return f"{self.equations:,} equations, {self.lemmas:,} lemmas, {self.proved:,} of them new"


@dataclass(frozen=True, slots=True)
class Used:
    """The terms that an equation is about, and those whose definitions it rests on."""

    named: tuple[int, ...]
    unfolded: tuple[int, ...]

    @classmethod
    def all(cls, found: Sequence[Used]) -> Used:
        """What several equations are about together."""
        named = dict.fromkeys(term for used in found for term in used.named)
        return cls(tuple(named), tuple(dict.fromkeys(term for used in found for term in used.unfolded)))


class Images:
    """Terms that stand for other terms; the values made of them are found when they are asked for."""

    def __init__(self, terms: Mapping[int, int]) -> None:
        self.terms = terms
        self.values: dict[int, int] = {}


class Ledger:
    """Claims by program and node; a claim is entered only once it is verified."""

    def __init__(
        self, certificate: Certificate, sequential: Graph, program: RankProgram, store: Store | None, seconds: float
    ) -> None:
        self.certificate = certificate
        self.program = program
        self.graphs = (sequential, *program.graphs)
        self.kinds, self.places = numbered(self.graphs)
        """By program, the sequential one first, and node: what ``numbered`` gives."""
        self.values: list[Tensor] = list(certificate.values)
        try:
            self.theory = Theory(certificate.terms, integer_inputs(sequential))
        except Malformed as error:
            raise Refused(str(error)) from None
        self.audit = Audit()
        self.seconds = seconds
        self._claims: list[list[int | tuple[Images, int] | None]] = [[None] * len(graph.nodes) for graph in self.graphs]
        self._numbers = {value: number for number, value in enumerate(self.values)}
        self._store = store
        self._done: dict[object, Used] = {}
        self._proved: set[Statement] = set()

    def value(self, number: int, where: str) -> Tensor:
        """A value of the certificate; raises Refused where there is none of that number."""
        if not 0 <= number < len(self.values):
            raise Refused(f"{where} is claimed to be value {number}, which the certificate does not have")
        return self.values[number]

    def number(self, value: Tensor) -> int:
        """The number of a value, a new one if need be."""
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = len(self.values)
            self.values.append(value)
        return found

    def claim(self, program: int, position: int, where: str) -> int:
        """The number of the value that a node was verified to have; raises Refused where it has none yet."""
        found = self._claims[program + 1][position]
        if isinstance(found, tuple):
            found = self._claims[program + 1][position] = self.image(*found)
        if found is None:
            raise Refused(f"{where} reads %{position} of the {name_of(program)}, which no earlier equation is about")
        return found

    def claim_of(self, program: int, position: int) -> Tensor:
        """What a node was verified to hold; the sequential program is number 0."""
        return self.values[self.claim(program - 1, position, "a condition")]

    def image(self, images: Images, value: int) -> int:
        """The number of a value with its terms replaced."""
        found = images.values.get(value)
        if found is None:
            tensor = self.values[value]
            names = {term: images.terms.get(term, term) for term in terms_of(tensor)}
            found = images.values[value] = self.number(rename(tensor, names))
        return found

    def enter(self, program: int, position: int, value: int | tuple[Images, int], where: str) -> None:
        """Enter a verified claim, a value or the image of one; raises Refused where the node has a claim."""
        if self._claims[program + 1][position] is not None:
            raise Refused(f"{where} is about %{position} of the {name_of(program)}, which has a value already")
        self._claims[program + 1][position] = value

    def missing(self) -> tuple[int, int] | None:
        """The first node without a claim."""
        for program, claims in enumerate(self._claims, start=SEQUENTIAL):
            for position, claim in enumerate(claims):
                if claim is None:
                    return program, position
        return None

    def step(self, step: NodeEquation, operands: Sequence[int], where: str) -> Used:
        """Verify that the operator of a step makes its value of operands; raises Refused where it is not proved."""
        graph, kinds = self.graphs[step.program + 1], self.kinds[step.program + 1]
        node = graph.nodes[step.position]
        # Equal operators of operands of equal types are one subject, which need not be made to be looked up.
        subject = kinds[step.position][0], tuple([kinds[p][1] for p in node.operands])
        key = subject, tuple(operands), step.value, step.unfold
        found = self._done.get(key)
        if found is None:
            applied = Applied(node.op, tuple([graph.nodes[p].type for p in node.operands]))
            found = self._done[key] = self._lemma(applied, operands, step.value, step.unfold, where)
        return found

    def prove(
        self, subject: Subject, operands: Sequence[int], result: int | None, unfold: tuple[int, ...], where: str
    ) -> Used:
        """Verify that a subject makes a value of operands, by a lemma; raises Refused where it is not proved."""
        key = subject, tuple(operands), result, unfold
        found = self._done.get(key)
        if found is None:
            found = self._done[key] = self._lemma(subject, operands, result, unfold, where)
        return found

    def _lemma(
        self, subject: Subject, operands: Sequence[int], result: int | None, unfold: tuple[int, ...], where: str
    ) -> Used:
        claimed = None if result is None else self.values[result]
        statement, named, unfolded = self.theory.statement(subject, [self.values[o] for o in operands], claimed, unfold)
        self.audit.lemmas += 1
        if statement not in self._proved:
            why = None if self._store is not None and statement.digest in self._store else self._new(statement)
            if why is not None:
                raise Refused(f"{where} does not follow: {why}")
            self._proved.add(statement)
        return Used(named, unfolded)

    def _new(self, statement: Statement) -> str | None:
        self.audit.proved += 1
        why = prove(statement, self.seconds)
        if why is None and self._store is not None:
            self._store.add(statement.digest)
        return why


def numbered(graphs: Sequence[Graph]) -> tuple[list[list[tuple[int, int]]], list[list[int]]]:
    """For every node of every graph numbers that are equal only where what they stand for is.

    The first two are of its operator and of its type, the third of both with the distances to its operands.
    """
    operators: dict[Operator, int] = {}
    types: dict[TensorType, int] = {}
    pairs: dict[tuple[int, int], tuple[int, int]] = {}
    distances: dict[object, int] = {}
    kinds: list[list[tuple[int, int]]] = []
    places: list[list[int]] = []
    for graph in graphs:
        own: list[tuple[int, int]] = []
        reading: list[int] = []
        for position, node in enumerate(graph.nodes):
            pair = operators.setdefault(node.op, len(operators)), types.setdefault(node.type, len(types))
            own.append(pairs.setdefault(pair, pair))
            place = (*pair, *[position - operand for operand in node.operands])
            reading.append(distances.setdefault(place, len(distances)))
        kinds.append(own)
        places.append(reading)
    return kinds, places


def name_of(program: int) -> str:
    """A program in words."""
    return "sequential program" if program == SEQUENTIAL else f"program of rank {program}"
