"""Proofs without lifting: values say which tensor is which, and the checker alone judges; an experiment.

A rank of a tensor-parallel MLP computes ``h = relu(x @ w1[:, 4:8])`` and ``p = h @ w2[4:8]``, and the ranks add up
their ``p``. Both programs are run in float64 on random inputs. The numbers of the rank's first product are found in
columns 4 to 8 of the sequential one, so that is what is claimed of it; likewise ``h``. Those of ``p`` are nowhere to
be found, so ``p`` is claimed to be what its own operator makes of its operands. The sum is found again: it is the
sequential output. A claim that values propose is kept where the checker's prover of lemmas follows it, with the
definitions on both sides unfolded as far as the operands' terms. The certificate is then audited like any other.

``python -m bench.fingerprint [NAME ..]`` prints, for programs whose group or name has a word in it, whether laws
and whether fingerprints prove them, where the latter stop first, and CPU seconds.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from bench.distributed import Claim, claim, claims, of_megatron, of_model
from bench.fingerprint_claims import Index, NotWritten, Terms, read, same, window
from bench.tables import print_table
from rewright import ops
from rewright.analysis.meetings import Meeting as Met
from rewright.claims.language import Addend, Input, Tensor, View, terms_of
from rewright.interp.trial import Trial
from rewright.ir.digest import digest
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Node
from rewright.ir.operator import Operator, Unsupported
from rewright.ir.placement import Placement
from rewright.proof.certificate import SEQUENTIAL, Certificate, Meeting, NodeEquation, Output, RangeFact
from rewright.proof.checker import audit
from rewright.proof.facts import as_fact, assumptions, why_not
from rewright.proof.lemma import Statement, prove
from rewright.proof.programs import Applied, Collective, Subject, Window
from rewright.proof.theory import Theory, integer_inputs
from rewright.proof.unknowns import questions, unknown_assumptions
from rewright.proof.unwritten import with_own_memory
from rewright.refine.certificate.writer import _places
from rewright.refine.engine import answer
from rewright.refine.relations.known import complete_relations, input_relations, output_expectations
from rewright.refine.twin.twin import Twin, TwinResult, make_twin

SECONDS, SECONDS_TO_FIND = 5.0, 2.0
"""For one lemma of an audit, and for one that may be true."""
BUDGET = 12.0
"""CPU seconds for one program, after which it is given up."""
_DEEPEST, _MOST_REFUSED = 60, 12
"""Terms that a step may unfold, and matches without a proof after which a program is given up."""


@dataclass
class Found:
    """What became of a program: proved or why not, matches that the prover accepted and refused, CPU seconds."""

    proved: bool = False
    why: str = ""
    matched: int = 0
    own: int = 0
    refused: list[str] = field(default_factory=list[str])
    """By match that no proof was found for, in order: the node, and why."""
    seconds: float = 0.0
    certificate: Certificate | None = None


class _Proved:
    """Lemmas that were proved while claims were chosen, so that the audit need not prove them again."""

    def __init__(self) -> None:
        self.known: set[str] = set()

    def __contains__(self, digest: str) -> bool:
        return digest in self.known

    def add(self, digest: str) -> None:
        """Remember one."""
        self.known.add(digest)


def prove_by_values(pair: Claim, budget: float = BUDGET) -> Found:
    """Write a certificate with claims that values propose, and have it audited."""
    started, found = time.process_time(), Found()
    try:
        writer = _Writer(pair, found, started + budget)
        found.certificate = writer.write()
        audit(found.certificate, pair.sequential, writer.captured, writer.store, SECONDS, counts=False)
        found.proved = True
    except (RewrightError, NotWritten) as error:
        found.why = str(error)
    found.seconds = time.process_time() - started
    return found


class _Writer:
    def __init__(self, pair: Claim, found: Found, deadline: float) -> None:
        question = next(iter(questions(*with_own_memory(pair.sequential, pair.program))))
        sequential, program = question.sequential, question.program
        known = input_relations(sequential, program, None)
        expected = output_expectations(sequential, program, None)
        known = complete_relations(sequential, program, known, expected)
        if known.equations or any(held.partial for held in known.placements.values()):
            raise NotWritten("inputs that are no windows of sequential ones")
        self.placements, self.taken = known.placements, question.assumptions
        self.captured = replace(pair.program, inputs={**pair.program.inputs, **known.placements})
        program = replace(program, inputs=known.placements)
        twin = make_twin(sequential, program)
        if isinstance(twin, Unsupported) or twin.shrunk:
            raise NotWritten(f"no run: {twin.why if isinstance(twin, Unsupported) else 'too large'}")
        trial, again = twin.run_all(), twin.run_all(1)
        if isinstance(trial, TwinResult) or isinstance(again, TwinResult):
            raise NotWritten("no run: a program fails")
        self.sequential, self.program, self.twin, self.trial, self.again = sequential, program, twin, trial, again
        self.expected, self.found, self.deadline = self._expected(twin, trial, expected), found, deadline
        self.terms, self.store = Terms(), _Proved()
        self.claims: list[list[Tensor | None]] = [[None] * len(g.nodes) for g in (sequential, *program.graphs)]
        self.equations: list[NodeEquation | Meeting] = []
        self.values: dict[Tensor, int] = {}
        self.facts: list[RangeFact] = []
        self.horizon = 0
        self._theory: Theory | None = None
        self._tried: dict[Statement, str | None] = {}

    def _expected(self, twin: Twin, trial: Trial, given: dict[str, Placement]) -> dict[str, Placement]:
        judged = twin.judge(trial, given)
        if judged.agrees is not True:
            raise NotWritten(f"values differ: {judged.reason}")
        return {name: held for name, held in judged.placements.items() if held is not None}

    def write(self) -> Certificate:
        """Claims of the sequential program, then of the ranks in the order in which they run."""
        graph, given = self.sequential, list[tuple[int, str, int]]()
        for name, position in graph.inputs.items():
            self.claims[0][position] = view = self.terms.input(name, graph.nodes[position].type)
            given.append((SEQUENTIAL, name, self._number(view)))
        for position, node in enumerate(graph.nodes):
            if not isinstance(node.op, ops.Input):
                self._define(SEQUENTIAL, position, node)
        self.horizon = len(self.terms.definitions)
        self.index, self.others = Index(self._tensors(self.trial)), self._tensors(self.again)
        self._find_facts()
        for rank, own in enumerate(self.program.graphs):
            for name, position in own.inputs.items():
                whole = cast(View, self.claims[0][graph.inputs[name]])
                self.claims[rank + 1][position] = part = window(whole, self.placements[name].runs[rank])
                given.append((rank, name, self._number(part)))
        for step in self.twin.schedule:
            if isinstance(step, Met):
                self._meet(step)
            else:
                node = self.program.graphs[step.rank].nodes[step.position]
                if not isinstance(node.op, ops.Input):
                    self._rank_step(step.rank, step.position, node)
        return self._certificate(given)

    def _certificate(self, given: list[tuple[int, str, int]]) -> Certificate:
        graphs = self.sequential, *self.program.graphs
        stated = assumptions(graphs, self.facts, self.terms.definitions, lambda p, k: self.claims[p][k], ())
        unknown = unknown_assumptions(self.sequential, self.placements)
        outputs = {name: Output(held, self._of_output(name, held)) for name, held in self.expected.items()}
        return Certificate(
            digest(self.sequential),
            tuple(map(digest, self.program.graphs)),
            self.program.mesh.axes,
            dict(self.placements),
            outputs,
            tuple(dict.fromkeys((*stated, *self.taken, *unknown))),
            tuple(self.facts),
            tuple(self.terms.definitions),
            tuple(self.values),
            tuple(given),
            tuple(self.equations),
        )

    def _of_output(self, name: str, placement: Placement) -> tuple[int, ...]:
        """What relating an output looks into."""
        position = self.sequential.outputs[name]
        value, whole = self._claim(0, position), self.sequential.nodes[position].type
        graphs = enumerate(self.program.graphs)
        held = {rank: self._claim(rank + 1, own.outputs[name]) for rank, own in graphs if name in own.outputs}
        several = list(self._unfoldings(list(held.values()), value))
        for unfold in several if not placement.partial else ():
            subjects = ((Window(whole, placement.runs[rank]), mine) for rank, mine in held.items())
            if all(self._lemma(subject, [value], mine, unfold) is None for subject, mine in subjects):
                return unfold
        return several[0] if several else ()

    def _number(self, tensor: Tensor) -> int:
        return self.values.setdefault(tensor, len(self.values))

    def _claim(self, program: int, position: int) -> Tensor:
        found = self.claims[program][position]
        assert found is not None, (program, position)
        return found

    def _tensors(self, trial: Trial) -> dict[int, Any]:
        """The values of all terms that are a sequential tensor as a whole."""
        found: dict[int, Any] = {}
        for position, claimed in enumerate(self.claims[0]):
            if isinstance(claimed, View) and len(claimed.addends) == 1:
                term, shape = claimed.addends[0].term, self.sequential.nodes[position].type.shape
                if claimed == self.terms.whole(term, shape):
                    found.setdefault(term, trial.sequential.values[position])
        return found

    def _find_facts(self) -> None:
        """Between which numbers inputs lie with which the sequential program looks up."""
        definitions, graph = self.terms.definitions, self.sequential
        for term in range(self.horizon):
            content = definitions[term].content
            node = graph.nodes[graph.inputs[content.name]] if isinstance(content, Input) else None
            if node is None or node.type.dtype.is_float:
                continue
            whole = tuple((0, n) for n in node.type.shape)
            fact = next(self._facts_of(term, whole, node), None)
            if fact is not None:
                self.facts.append(fact)

    def _facts_of(self, term: int, whole: tuple[tuple[Any, Any], ...], node: Node) -> Iterator[RangeFact]:
        graph = self.sequential
        for position, other in enumerate(graph.nodes):
            if isinstance(other.op, ops.Gather) and len(other.op.start_index_map) == 1:
                size = graph.nodes[other.operands[0]].type.shape[other.op.start_index_map[0]]
                for ranges in (((0, size),), ((-100, -99), (0, size))):
                    allowed = tuple((((low, high),), Addend(1, 0, ()).coefficient) for low, high in ranges)
                    for place in dict.fromkeys(_places(whole, [node.type.shape], other.type.shape)):
                        fact = RangeFact(term, allowed, position, whole, place)
                        if why_not(graph, fact, self.terms.definitions, 2.0, self.facts) is None:
                            yield fact

    # --- claims

    def _define(self, program: int, position: int, node: Node) -> Tensor:
        """Claim that a node is what its operator makes of its operands, which needs no more than its definition."""
        graph = self.sequential if program == SEQUENTIAL else self.program.graphs[program]
        operands = [self._claim(program + 1, p) for p in node.operands]
        kinds = [graph.nodes[p].type for p in node.operands]
        made = self.terms.apply(node.op, operands, kinds, node.type)
        # Of operands in pieces the concatenation is a term of its own, which the step is about as well.
        unfold = self._made(made, operands)
        self._enter(program, position, made, unfold)
        return made

    def _made(self, made: View, operands: Sequence[Tensor]) -> tuple[int, ...]:
        known = frozenset(t for operand in operands for t in terms_of(operand))
        first, *_ = (*terms_of(made), 0)
        direct = {first, *self.terms.definitions[first].operands} if made.addends else set()
        return tuple(sorted(direct - known))

    def _enter(self, program: int, position: int, tensor: Tensor, unfold: tuple[int, ...]) -> None:
        self.claims[program + 1][position] = tensor
        self.equations.append(NodeEquation(program, position, self._number(tensor), unfold))

    def _rank_step(self, rank: int, position: int, node: Node) -> None:
        operands = [self._claim(rank + 1, p) for p in node.operands]
        if isinstance(node.op, ops.Send):
            self._enter(rank, position, operands[0], ())
            return
        kinds = [self.program.graphs[rank].nodes[p].type for p in node.operands]
        made = self.terms.apply(node.op, operands, kinds, node.type)
        where = f"{node.op.name} at {node.span}"
        if any(term >= self.horizon for term in terms_of(made)):
            chosen = self._match(Applied(node.op, tuple(kinds)), operands, (rank, position), where)
            if chosen is not None:
                self._enter(rank, position, *chosen)
                return
            self.found.own += 1
        self._enter(rank, position, made, self._made(made, operands))

    def _match(
        self, subject: Subject, operands: Sequence[Tensor], at: tuple[int, int], where: str
    ) -> tuple[Tensor, tuple[int, ...]] | None:
        """A sequential tensor with the values of a node for which the step is proved, and what that unfolds.

        What is equal in one run by chance, as a largest element and one that happens to be it, is not in another.
        """
        why: str | None = None
        value, other = (run.ranks[at[0]].values[at[1]] for run in (self.trial, self.again))
        for tensor in self.index.find(value):
            if not same(read(tensor, self.others), other):
                continue
            for unfold in self._unfoldings(operands, tensor):
                if time.process_time() > self.deadline:
                    raise NotWritten("the budget of CPU seconds is used up")
                failed = self._lemma(subject, operands, tensor, unfold)
                if failed is None:
                    self.found.matched += 1
                    return tensor, unfold
                why = failed
        if why is not None:
            self.found.refused.append(f"{where}: {why}")
        if len(self.found.refused) > _MOST_REFUSED:
            raise NotWritten("too many matches that the prover does not follow")
        return None

    def _unfoldings(self, operands: Sequence[Tensor], result: Tensor) -> Iterator[tuple[int, ...]]:
        """Which definitions a step looks into: those of what is claimed, none, and more and more of both sides."""
        named = [term for operand in operands for term in terms_of(operand)]
        own = self.terms.below(named, first=self.horizon)
        leaves = frozenset(t for term in own for t in self.terms.definitions[term].operands) | frozenset(named)
        leaves = frozenset(t for t in leaves if t < self.horizon)
        claimed = list(terms_of(result))
        one_more = frozenset(t for leaf in leaves for t in self.terms.definitions[leaf].operands) | (leaves - own)
        several = (
            own | frozenset(claimed),
            frozenset[int](),
            own | self.terms.below(claimed, leaves),
            own | self.terms.below([*claimed, *leaves], one_more - leaves - frozenset(claimed)),
        )
        for unfold in dict.fromkeys(several):
            if len(unfold) <= _DEEPEST:
                yield tuple(sorted(unfold))

    def _lemma(
        self, subject: Subject, operands: Sequence[Tensor], result: Tensor, unfold: tuple[int, ...]
    ) -> str | None:
        statement = self._known(len(self.terms.definitions)).statement(subject, operands, result, unfold)[0]
        if statement not in self._tried:
            why = self._tried[statement] = prove(statement, SECONDS_TO_FIND)
            if why is None:
                self.store.add(statement.digest)
        return self._tried[statement]

    def _known(self, count: int) -> Theory:
        if self._theory is None or len(self._theory.holes) < count:
            definitions = list(self.terms.definitions)
            self._theory = Theory(definitions, integer_inputs(self.sequential))
            for fact in self.facts:
                known = self._theory.facts.get(fact.term, ())
                self._theory.facts[fact.term] = (*known, as_fact(self.sequential, fact, definitions))
        return self._theory

    # --- collectives

    def _meet(self, step: Met) -> None:
        graphs = self.program.graphs
        nodes = [graphs[rank].nodes[position] for rank, position in step.nodes]
        if isinstance(nodes[-1].op, ops.Recv):
            (sender, sent), (receiver, received) = step.nodes
            self._enter(receiver, received, self._claim(sender + 1, sent), ())
            return
        ranks = [rank for rank, _ in step.nodes]
        pairs = list(zip(ranks, nodes, strict=True))
        operands = [self._claim(rank + 1, node.operands[0]) for rank, node in pairs]
        kinds = tuple(graphs[rank].nodes[node.operands[0]].type for rank, node in pairs)
        unfold: set[int] = set()
        members: list[tuple[int, int, int]] = []
        for member, (rank, position) in enumerate(step.nodes):
            tensor, looked = self._met(nodes, ranks, member, operands, kinds, (rank, position))
            self.claims[rank + 1][position] = tensor
            members.append((rank, position, self._number(tensor)))
            unfold |= set(looked)
        self.equations.append(Meeting(tuple(members), tuple(sorted(unfold))))

    def _met(
        self,
        nodes: Sequence[Node],
        ranks: Sequence[int],
        member: int,
        operands: Sequence[Tensor],
        kinds: Any,
        at: tuple[int, int],
    ) -> tuple[Tensor, tuple[int, ...]]:
        op = nodes[0].op
        if isinstance(op, ops.CollectiveBroadcast):
            return operands[ranks.index(op.source)], ()
        if isinstance(op, ops.CollectivePermute):
            sources = {target: origin for origin, target in op.pairs}
            if ranks[member] in sources:
                return operands[ranks.index(sources[ranks[member]])], ()
            return View(tuple((n,) for n in nodes[member].type.shape), ()), ()
        alike = isinstance(op, ops.AllReduce | ops.AllGather)
        subject = Collective(tuple(_without_groups(node.op) for node in nodes), kinds, 0 if alike else member)
        chosen = self._match(subject, operands, at, f"{op.name} at {nodes[member].span}")
        if chosen is not None:
            return chosen
        self.found.own += 1
        made = self._own_meeting(subject, operands)
        return made, tuple(sorted(self.terms.below(list(terms_of(made)), first=self.horizon)))

    def _own_meeting(self, subject: Collective, operands: Sequence[Tensor]) -> Tensor:
        """What a collective makes, operator by operator of the graph that stands for it."""
        graph = subject.graph()
        given, made = iter(operands), list[Tensor]()
        for node in graph.nodes:
            kinds = [graph.nodes[p].type for p in node.operands]
            is_input = isinstance(node.op, ops.Input)
            parts = [made[p] for p in node.operands]
            made.append(next(given) if is_input else self.terms.apply(node.op, parts, kinds, node.type))
        return made[graph.outputs["result"]]


def _without_groups(op: Operator) -> Operator:
    if not isinstance(op, ops.GroupCollective):
        return op
    return replace(cast(Any, op), groups=(), communicator=0, posted=False)


# --- the table

_REASONS = (
    ("no words for it", r"no windows of|without elements|holds nothing|of nothing"),
    ("cannot be run", r"no run"),
    ("values differ", r"values differ"),
    ("out of CPU seconds", r"budget of CPU"),
    ("a step takes too long", r"time for one step|recursion|too hard"),
    ("the normal form has no rule", r"no rules for"),
    ("both sides reduce to different forms", r"is claimed to be"),
    ("a rank's look-up may be out of range", r"range"),
)


def group_of(why: str) -> str:
    """The kind of reason that a text gives."""
    return next((name for name, pattern in _REASONS if re.search(pattern, why)), "other: " + why[:60])


def by_laws(pair: Claim) -> tuple[bool, float]:
    """Whether lifting proves a program and the checker confirms it, without any runs, and CPU seconds."""
    started = time.process_time()
    try:
        verdict = answer(pair.sequential, pair.program, audit=True, runs="failed", suggest=False, locate=False)
        proved = verdict.status == "proved"
    except RewrightError:
        proved = False
    return proved, time.process_time() - started


def programs() -> Iterator[tuple[str, str, Callable[[], Claim]]]:
    """Group, name, and how to capture it."""
    from bench.breadth import entries
    from bench.programs import PAIRS
    from bench.schedules import programs as schedules

    for name, plan in PAIRS:
        for backward in (False, True):
            what = "forward + backward" if backward else "forward"
            yield "zoo", f"{name} {plan}, {what}", lambda n=name, p=plan, b=backward: of_model(n, p, b)
    for name, plan, what, made in schedules():
        yield "schedules", f"{name}, {plan}, {what}", lambda made=made: claim(*made(2))
    for sequence in (False, True):
        for backward in (False, True):
            name = f"megatron-core llama, sp={sequence}, backward={backward}"
            yield "megatron", name, lambda s=sequence, b=backward: of_megatron(s, b)
    for name, made in claims():
        yield "jax" if name.startswith("jax") else "distributed", name, made
    for entry in entries():
        if entry.framework == "JAX" or "ring" in entry.program:
            yield "breadth", f"{entry.program}, {entry.what}", entry.captured


def in_turn() -> Iterator[tuple[str, str, Callable[[], Claim]]]:
    """The programs of all groups, one of each group after the other."""
    groups: dict[str, list[tuple[str, str, Callable[[], Claim]]]] = {}
    for one in programs():
        groups.setdefault(one[0], []).append(one)
    for row in itertools.zip_longest(*groups.values()):
        yield from (one for one in row if one is not None)


def main(words: Sequence[str], seconds: float) -> None:
    """Print the tables for what is reached in a time."""
    totals: dict[str, Counter[str]] = {}
    reasons: Counter[str] = Counter()
    rows: list[list[object]] = []
    ends = time.monotonic() + seconds
    for group, name, made in in_turn():
        if (words and not any(word in f"{group} {name}" for word in words)) or time.monotonic() > ends:
            continue
        try:
            pair = made()
        except Exception as error:
            print(f"{name} is not captured: {error}", file=sys.stderr)
            continue
        laws, law_seconds = by_laws(pair)
        found = prove_by_values(pair)
        first = "" if found.proved else (found.refused or [found.why])[0]
        rows.append(
            [group, name, laws, found.proved, found.matched, found.own, law_seconds, found.seconds, first[:150]]
        )
        print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
        total = totals.setdefault(group, Counter())
        total.update(programs=1, laws=laws, values=found.proved, more=found.proved and not laws)
        total["law s"] += law_seconds
        total["value s"] += found.seconds
        if not found.proved:
            reasons[group_of(first)] += 1
    print_table(["group", "program", "laws", "values", "matched", "own", "laws s", "values s", "first stop"], rows)
    columns = ["programs", "laws", "values", "more", "law s", "value s"]
    print_table(["group", *columns], [[group, *(total[c] for c in columns)] for group, total in totals.items()])
    print_table(["why fingerprints stop first", "programs"], reasons.most_common())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seconds", type=float, default=1e9, help="look at no more programs after this time")
    options = parser.parse_args()
    main(options.names, options.seconds)


__all__ = ["Found", "Index", "by_laws", "main", "programs", "prove_by_values"]
