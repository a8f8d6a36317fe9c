"""``rewright.equiv``: the verdict on two implementations of one model."""

from __future__ import annotations

import dataclasses
import itertools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from rewright import ops
from rewright.equiv.certificate import EquivalenceCertificate
from rewright.equiv.findings import precision
from rewright.equiv.findings.pair import explain_difference
from rewright.equiv.findings.scales import told_apart
from rewright.equiv.findings.wording import reword_verdict
from rewright.equiv.inputs.alignment import numbers_of, telling_draws
from rewright.equiv.inputs.drawn import GUESSED, fault_of_draws, relate_draws
from rewright.equiv.inputs.guessing import guess_definitions, related_names
from rewright.equiv.inputs.weights import Definition, WeightMap, read_map, rename_output
from rewright.equiv.lemmas.equations import Prover
from rewright.equiv.lemmas.sweep import Sweep, Swept
from rewright.equiv.lemmas.synthesised import SynthesisedRule, synthesise_rules
from rewright.equiv.preparing import Prepared, prepare_pair
from rewright.equiv.rewrites.computed_tables import LOOSE
from rewright.equiv.rewrites.equal_masks import shared_masks
from rewright.equiv.rewrites.infinite_masks import lowest_doubt, value_doubt
from rewright.equiv.rewrites.ranges import known_ranges
from rewright.equiv.rewrites.rounding import ROUNDED, TOO_LARGE, UNNAMED, explains, may_be_rounding, nudge
from rewright.equiv.statement import Values, as_captured
from rewright.frontends.validation.record import text_of, validation_note
from rewright.ir.digest import digest
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.operator import Unsupported
from rewright.ir.placement import RankProgram
from rewright.ir.programs import check_graph, program_of_ranks
from rewright.ops.base import Array
from rewright.proof.certificate import Certificate
from rewright.proof.compared import is_about
from rewright.proof.rewriting.evidence import Checked
from rewright.proof.rewriting.lemma import Lemma
from rewright.proof.rewriting.numbers.taken import MASKS, MOVED, filling_assumption
from rewright.proof.rewriting.replay import Replayed, passing, replay, sentences
from rewright.proof.rewriting.splices import Rewriting, Stage
from rewright.proof.rewriting.stages import splice_stage
from rewright.proof.unwritten import with_own_memory
from rewright.refine.certificate.writer import NotCertified
from rewright.refine.check import attempt
from rewright.refine.engine import answer, check_inputs
from rewright.refine.objections import Run, challenge_verdict, replicated_outputs
from rewright.refine.proof import Proof
from rewright.refine.relations import buffers
from rewright.refine.relations.given import Relations
from rewright.refine.relations.known import input_relations
from rewright.refine.rewriting.steps import LemmaSearch
from rewright.refine.twin.twin import Twin, make_twin
from rewright.refine.verdict import Finding, Verdict

_ROUNDED_TABLES = 0.05
"""Of the usual size of outputs, what tables that were rounded to short types explain."""
_SINGLE = 4
"""Bytes of a float that numpy has; shorter ones are read as these."""
_APART = (
    "the programs are one function of {0}, a buffer that held other values on either side when they were captured; "
    "give the values of both, or relate them under [relations]"
)
Given = Mapping[str, str | Sequence[str]]
Inputs = Mapping[str, Any] | tuple[Mapping[str, Any], Mapping[str, Any] | Sequence[Mapping[str, Any]]]


@dataclass(frozen=True)
class Equivalence(Verdict):
    """A verdict on two implementations, with what it rests on besides the certificate."""

    equations: tuple[str, ...] = ()
    """The weight map, one equation for each tensor that is not shared under its own name."""
    lemmas: tuple[Lemma, ...] = ()
    """What was proved about parts of the two programs."""
    rules: tuple[SynthesisedRule, ...] = ()
    """What the lemmas say for all sizes, where that was proved."""
    left: Graph | None = field(default=None, repr=False, compare=False)
    right: RankProgram | None = field(default=None, repr=False, compare=False)
    """The programs that were compared: over the same inputs, over the reals, the right one with parts of the left."""


def equiv(
    left: Graph,
    right: Graph | RankProgram | Sequence[Graph],
    inputs: Inputs | None = None,
    relations: Given | None = None,
    budget: float | None = None,
    *,
    audit: bool = True,
    explain: bool = True,
    prover: Prover | None = None,
) -> Equivalence:
    """Whether two implementations of one model compute the same function.

    Args:
        left: one program.
        right: the other program, or the programs of all ranks that compute it together.
        inputs: values of a checkpoint by input name, for both programs or as a pair (left, right): the weight map is
            found by them where names say nothing. Of ranks the values of each may be given, as (left, [rank 0, ..]).
        relations: by input name (or pattern) an expression over inputs of the other program, such as
            ``"concat([q.weight, k.weight, v.weight], axis=0)"``; or for ranks a placement in DTensor notation.
            Inputs of equal names are the same tensor where nothing else is said.
        budget: wall-clock seconds after which the answer is ``unknown``.
        audit: have the independent checker verify the certificate of a proof; its evidence is ``proved`` then.
        explain: find the first operators where refuted programs differ, and an edit that makes them equal.
        prover: proves parts of programs; its results are reused from one pair to the next.

    Returns:
        ``proved``, ``refuted`` with the first operators on both sides that differ, or ``unknown``.

    Raises:
        RewrightError: for programs that have nothing in common; for a weight map that is partial or contradictory.
    """
    captures = check_graph(left), *_program(right).graphs
    found = _judge(left, right, inputs, relations, budget, _How(audit, explain), prover or Prover())
    return found.about_captures(validation_note(captures), text_of(captures))


@dataclass(frozen=True)
class _How:
    """Options: what is done besides a proof."""

    audit: bool
    explain: bool
    counts: bool = False
    """Whether remainders are written out, with which short integers count from the other end where they do not fit."""


def _judge(
    left: Graph,
    right: Graph | RankProgram | Sequence[Graph],
    inputs: Inputs | None,
    relations: Given | None,
    budget: float | None,
    how: _How,
    prover: Prover,
) -> Equivalence:
    """As :func:`equiv`."""
    started = time.perf_counter()
    deadline = None if budget is None else time.monotonic() + budget
    known = [*prover.schemes, *prover.claimed]
    check_inputs(_program(right).graphs)
    left, captured = with_own_memory(left, _program(right))
    named = rename_output(left, captured)
    values, shards = _values(inputs, len(captured.graphs))
    weights = relate_draws(read_map(relations, left, named), left, named)
    weights = guess_definitions(weights, left, named, values, shards)
    given = related_names(weights) | {name for name in left.inputs if _is_given(name, values)}
    apart = [name for graph in named.graphs for name in buffers.differing_buffers(left, graph, given)]
    unseen = dict.fromkeys(name for graph in named.graphs for name in buffers.not_seen(left, graph, given))
    steps = LemmaSearch(Checked(prover.seconds, prover.why_open))
    bounds = known_ranges(left, captured, weights, values)
    prepare = partial(prepare_pair, left, captured, weights, values, held=bounds, counts=how.counts, steps=steps)
    pair = _Pair(left, captured, weights, deadline, budget)
    tried = _best_attempt(prepare, partial(_attempted, pair, prover, audit=how.audit), started)
    ready, pair, stages, swept, verdict = tried.ready, tried.pair, tried.stages, tried.swept, tried.verdict
    if ready.wraps:  # what integers without an end say is no more than a reason
        again = _judge(left, right, inputs, relations, pair.left_over(), replace(how, counts=True), prover)
        if verdict.status != "proved" or again.status == "proved":
            return again
        verdict = replace(verdict, status="unknown", reason=ready.wraps, certify=None)
    fault = fault_of_draws(left, named, weights)
    if fault and verdict.status == "proved":
        verdict = replace(verdict, status="unknown", reason=fault, certify=None)
    verdict = _certified(verdict, _Captured(left, captured, weights, ready, stages, steps), how.audit)
    verdict, twin = _told_apart(verdict, pair)
    verdict = _with_findings(verdict, pair, twin, ready, swept, prover if how.explain else None)
    doubt = _doubt(verdict, pair, _Captured(left, captured, weights, ready, (), steps), values)
    doubt = doubt or _show(verdict, ready, pair)
    if doubt:
        verdict = replace(verdict, status="unknown", reason=doubt, findings=(), certify=None)
    if apart and verdict.status == "proved":
        verdict = replace(verdict, status="unknown", reason=_APART.format(apart[0]), certify=None)
    if verdict.status == "proved" and ready.violated:
        reason = f"the programs are equal only under a condition that no input meets: {ready.violated}"
        verdict = replace(verdict, status="unknown", reason=reason, certify=None)
    if verdict.status == "proved" or (verdict.status == "unknown" and not (doubt or apart or fault)):
        verdict = _run(verdict, pair, _Captured(left, captured, weights, ready, (), steps), values)
    if GUESSED in weights.guessed and verdict.status == "refuted":
        reason = f"values differ where {GUESSED}: it is not known which are which"
        verdict = replace(verdict, status="unknown", reason=reason, findings=())
    lemmas = tuple(lemma for stage in stages for lemma in stage.lemmas)
    before = time.perf_counter()
    rules = synthesise_rules(lemmas, prover, known, deadline) if verdict.status == "proved" else ()
    verdict.stats.seconds["rules"] = time.perf_counter() - before
    fields = {name: getattr(verdict, name) for name in verdict.__dataclass_fields__}
    unread = buffers.assumptions(list(unseen))
    fields["assumptions"] = (*verdict.assumptions, *ready.assumptions, *unread, *weights.guessed)
    fields["notes"] = (
        *verdict.notes,
        *(pair.precision() if verdict.status == "proved" else ()),
        *map(str, rules),
    )
    equations = weights.equations()
    return Equivalence(**fields, equations=equations, lemmas=lemmas, rules=rules, left=pair.left, right=pair.right)


@dataclass(frozen=True)
class _Attempt:
    """The verdict on a pair in some form."""

    ready: Prepared
    pair: _Pair
    stages: tuple[Stage, ...]
    swept: Swept | None
    verdict: Verdict


def _best_attempt(prepare: Callable[..., Prepared], attempt_at: Callable[..., _Attempt], started: float) -> _Attempt:
    """The attempt at a pair; where values agree and that fails, one at the forms that are proposed, if it succeeds."""
    first, again = attempt_at(prepare(), started), time.perf_counter()
    if first.verdict.status != "unknown" or first.ready.wraps:
        return first
    ready = prepare(proposed=True)
    is_same = all(one.graph == other.graph for one, other in zip(ready.drafts, first.ready.drafts, strict=True))
    second = first if is_same else attempt_at(ready, again)
    if second.verdict.status != "proved":
        return first
    second.verdict.stats.seconds["first form"] = again - started
    return second


def _attempted(pair: _Pair, prover: Prover, ready: Prepared, started: float, *, audit: bool) -> _Attempt:
    """The verdict on a pair that was prepared, after its unrecognised parts were proved piece by piece."""
    pair, stages = pair.of(ready), list[Stage]()
    if pair.is_single:
        stages.append(shared_masks(pair.left, pair.right.graphs[0]))
        pair = pair.with_stage(stages[0])
    preparing = time.perf_counter() - started
    swept = pair.swept(prover)
    sweeping = time.perf_counter() - started - preparing
    if swept is not None:
        stages.append(swept.stage)
        pair = pair.with_stage(swept.stage)
    stages = [stage for stage in _number(stages) if stage.splices]
    ready = ready.replacing([pair.left, *pair.right.graphs]) if stages else ready
    verdict = pair.answered(audit=audit and not ready.wraps, locate=not pair.is_single)
    verdict.stats.seconds.update({"weights and constants": preparing, "lemmas": sweeping})
    return _Attempt(ready, pair, tuple(stages), swept, verdict)


def _run(verdict: Verdict, pair: _Pair, captured: _Captured, values: Values | None) -> Verdict:
    """The verdict after the programs, as they were captured, were run on inputs that try to tell them apart."""
    ready = captured.ready
    if ready.unread:
        return verdict  # a tensor that one side alone has may be any
    started = time.perf_counter()
    both = as_captured(captured.left, captured.right, captured.weights, values)
    of = replace(pair, left=both.left, right=both.right)
    program = replace(both.right, inputs=of.relations().placements)
    left, right = values or ({}, {})
    known = {n: left[n] if n in captured.left.inputs else right[n] for n in both.left.inputs if n in left or n in right}
    fixed = {name: value for name, value in known.items() if name in ready.ranges}
    outputs = replicated_outputs(both.left) if pair.is_single else {}
    unclaimed = pair.left if any("-infinity" in text for text in ready.assumptions) else None
    tolerance = _ROUNDED_TABLES if any(MOVED in text for text in ready.assumptions) else 0.0
    about = known, fixed, unclaimed, _infinity(ready), tolerance, not any(ready.tables)
    found = challenge_verdict(verdict, Run(both.left, program, outputs, None, *about, mutual=True))
    verdict.stats.seconds["runs"] = time.perf_counter() - started
    return found


def _infinity(ready: Prepared) -> float:
    """The least number that stands for infinity, to which no number of an input comes near."""
    numbers = {
        node.op.values[0] for graph in ready.written for node in graph.nodes if isinstance(node.op, ops.Constant)
    }
    return min((abs(v) for v in numbers if v < 0 and filling_assumption(v) in ready.assumptions), default=math.inf)


def _is_given(name: str, values: Values | None) -> bool:
    return values is not None and name in values[0] and name in values[1]


def _doubt(verdict: Verdict, pair: _Pair, captured: _Captured, values: Values | None) -> str:
    """Why programs may be equal although their values differ; empty where they are not."""
    if verdict.status != "refuted":
        return ""
    ready = captured.ready
    known = values or (dict[str, Array](), dict[str, Array]())
    sides = {"left": known[0], "right": known[1]}
    unnamed = [name for _, name in ready.unread if name.startswith("const:")]
    large = [name for side, name in ready.unread if name in sides[side]]
    if unnamed or large:
        return UNNAMED.format(unnamed[0]) if unnamed else TOO_LARGE.format(large[0])
    if values is None or not any(ready.tables) or not pair.is_single:
        return ""
    bounds = known_ranges(captured.left, captured.right, captured.weights, values)
    again = partial(prepare_pair, captured.left, captured.right, captured.weights, held=bounds)
    loose = again(values, LOOSE)
    if (loose.left, loose.right.graphs) != (ready.left, ready.right.graphs) and pair.of(loose).agrees():
        return ROUNDED
    if may_be_rounding(verdict):
        before, after = pair.twin(), pair.of(again((nudge(ready.tables[0]), nudge(ready.tables[1])))).twin()
        if before is not None and after is not None and explains(before, after):
            return ROUNDED
    return ""


def _show(verdict: Verdict, ready: Prepared, pair: _Pair) -> str:
    """Why the number that stands for minus infinity matters in programs that are proved equal; empty otherwise."""
    if verdict.status != "proved" or MASKS not in ready.assumptions:
        return ""
    program = replace(ready.right, graphs=ready.written[1:])
    return lowest_doubt(ready.written) or value_doubt(replace(pair, left=ready.written[0], right=program).executable())


def _number(stages: Sequence[Stage]) -> list[Stage]:
    """Stages with their lemmas numbered consecutively."""
    numbers = itertools.count(1)
    return [
        replace(stage, lemmas=tuple(replace(lemma, name=f"lemma {next(numbers)}") for lemma in stage.lemmas))
        for stage in stages
    ]


@dataclass(frozen=True)
class _Captured:
    """The captured programs, where a certificate starts."""

    left: Graph
    right: RankProgram
    weights: WeightMap
    ready: Prepared
    stages: tuple[Stage, ...]
    steps: LemmaSearch

    def rewritings(self) -> tuple[Rewriting, ...]:
        """How the programs were rewritten, each step with its lemma; raises NotShown for one that nothing shows."""
        first, *others = (self.steps.rewriting(draft) for draft in self.ready.drafts)
        if self.stages:  # of one right program alone
            others = [replace(others[0], after=(*others[0].after, *self.stages))]
        return (first, *others)

    def replayed(self, rewritings: Sequence[Rewriting]) -> list[Replayed]:
        """The programs after all steps, each of which is checked; raises Refused."""
        pairs = zip(self.ready.stated.graphs, rewritings, strict=True)
        checked = self.steps.checked
        return [replay(graph, rewriting, self.ready.ranges, checked) for graph, rewriting in pairs]

    def between(self, programs: Sequence[Replayed]) -> tuple[str, ...]:
        """The assumptions of the steps that neither program makes, in words; raises Refused for contradictions."""
        return tuple(text for text in sentences(passing(programs)) if text not in self.ready.assumptions)

    def certificate(self, certify: Callable[[], Certificate]) -> EquivalenceCertificate:
        """The proof about the prepared programs as one about the captured programs; raises RewrightError."""
        core = certify()
        rewritings = self.rewritings()
        programs = self.replayed(rewritings)
        first, *rest = (one.graph for one in programs)
        program = replace(self.ready.right, graphs=tuple(rest))
        if not is_about(core, first, program, self.steps.checked, counts=False):
            raise NotCertified("the programs were proved equal with their outputs under other names")
        if core.rewritings:
            pairs = zip(rewritings, core.rewritings, strict=True)
            rewritings = tuple(replace(own, narrowing=last.narrowing) for own, last in pairs)
        known: dict[str, Any] = {f.name: getattr(core, f.name) for f in dataclasses.fields(Certificate)}
        known["rewritings"] = rewritings
        return EquivalenceCertificate(
            **known,
            left=digest(self.left),
            right=tuple(digest(graph) for graph in self.right.graphs),
            definitions=self.weights.definitions,
            tables=self.ready.tables,
            taken=(*self.ready.assumptions, *self.between(programs)),
            ranges=self.ready.ranges,
        )


def _certified(verdict: Verdict, captured: _Captured, audit: bool) -> Verdict:
    """The verdict with a certificate about the captured programs; ``unknown`` where a splice is not confirmed."""
    if verdict.status != "proved" or verdict.certify is None:
        return verdict
    core = verdict.__dict__.get("certificate")
    certify = verdict.certify if core is None else (lambda: core)
    if audit:
        started = time.perf_counter()
        try:
            between = captured.between(captured.replayed(captured.rewritings()))
        except RewrightError as error:
            return replace(verdict, status="unknown", reason=f"the proof is not confirmed: {error}", certify=None)
        verdict.stats.seconds["audit"] += time.perf_counter() - started
        verdict = replace(verdict, assumptions=(*verdict.assumptions, *between)) if between else verdict
    return replace(verdict, certify=partial(captured.certificate, certify))


def _told_apart(verdict: Verdict, pair: _Pair) -> tuple[Verdict, Twin | None]:
    """The verdict, refuted where only much smaller or larger inputs tell, and the programs at sizes to be executed."""
    refutes = verdict.status == "refuted"
    twin = pair.twin() if pair.is_single and (refutes or verdict.findings) else None
    found = None if twin is None or refutes else told_apart(twin)
    if found is None:
        return verdict, twin
    finding = Finding("not_related", found.reason, None, None, "", "", None, found.example)
    return replace(verdict, status="refuted", reason=found.reason, findings=(finding,)), found.twin


def _with_findings(
    verdict: Verdict, pair: _Pair, twin: Twin | None, ready: Prepared, swept: Swept | None, prover: Prover | None
) -> Verdict:
    """The verdict in the words of two programs, with the place where they part where there is a prover for edits."""
    if prover is not None and pair.is_single and verdict.status == "refuted" and verdict.findings:
        started = time.perf_counter()
        numbers, found = None if twin is None else numbers_of(twin, telling_draws(twin)), None
        if numbers is not None:
            example = next((f.counterexample for f in verdict.findings if f.counterexample is not None), None)
            unread = [name for side, name in ready.unread if side == "left"]
            proves = partial(pair.proves, prover=prover)
            found = explain_difference(pair.left, pair.right.graphs[0], numbers, example, unread, proves, pair.deadline)
        is_usual = twin is None or twin.draws.scale == 1
        known = pair.answered().findings if found is None and is_usual else verdict.findings
        verdict = replace(verdict, findings=known if found is None else (found,))
        verdict.stats.seconds["divergence"] = time.perf_counter() - started
    open_pairs = swept.open if swept is not None and verdict.status == "unknown" and verdict.reason != ROUNDED else []
    return reword_verdict(verdict, open_pairs[0][2] if open_pairs else "") if pair.is_single else verdict


@dataclass(frozen=True)
class _Pair:
    """Both programs over the same inputs and over the reals."""

    left: Graph
    right: RankProgram
    weights: WeightMap
    deadline: float | None
    budget: float | None = None
    """Seconds that there were at the start."""

    @property
    def is_single(self) -> bool:
        """Whether the right program runs on one rank."""
        return len(self.right.graphs) == 1

    def with_stage(self, stage: Stage) -> _Pair:
        """The pair with parts put into the right program."""
        if not stage.splices:
            return self
        return replace(self, right=replace(self.right, graphs=(splice_stage(self.right.graphs[0], stage),)))

    def of(self, ready: Prepared) -> _Pair:
        """The same pair, prepared in another way."""
        return replace(self, left=ready.left, right=ready.right)

    def agrees(self) -> bool:
        """Whether both programs compute the same numbers on random inputs."""
        twin = self.twin()
        return twin is not None and twin.compare().agrees is True

    def answered(self, *, audit: bool = False, locate: bool = True) -> Verdict:
        """The engine's verdict; with ``locate`` also the first place with different values, if it is found."""
        given, suggest = self.weights.placements or None, not self.is_single
        is_over = self.deadline is not None and time.monotonic() >= self.deadline
        verdict = answer(
            self.left,
            self.right,
            given,
            budget=self.left_over(),
            suggest=suggest,
            locate=locate,
            audit=audit,
            counts=False,
            rounds=False,
            runs="failed",
        )
        if is_over and verdict.status == "unknown":
            return replace(verdict, reason=f"the budget of {self.budget:g} s was used up by parts of the programs")
        return verdict

    def left_over(self) -> float | None:
        """The rest of the budget, in seconds."""
        return None if self.deadline is None else max(self.deadline - time.monotonic(), 0.001)

    def relations(self) -> Relations:
        """The relations for one rank: every input is replicated."""
        known = input_relations(self.left, self.right, self.weights.placements or None)
        return replace(known, placements={**known.inferred.first, **known.placements})

    def proof(self, right: Graph | None = None, *, repeat: bool = True) -> Proof:
        """Try to prove the pair, or the left program and another right one, as they are written.

        With ``repeat`` every layer is lifted by itself where the proof fails otherwise. Lemmas come before other normal
        forms: they say which parts are equal, and the checker follows them.
        """
        program = self.right if right is None else replace(self.right, graphs=(right,))
        return attempt(self.left, program, self.relations(), {}, self.deadline, laws=False, repeat=repeat)

    def proves(self, right: Graph, prover: Prover) -> bool:
        """Whether another right program is proved to compute what the left one does, in less time than the first."""
        try:
            proof = self.proof(right)
        except RewrightError:
            return False
        if not proof.failed:
            return not (proof.mismatch or proof.out_of_time)
        other = replace(self, right=replace(self.right, graphs=(right,)))
        swept = other.swept(prover.hurry())
        return swept is not None and not other.with_stage(swept.stage).proof().failed

    def twin(self) -> Twin | None:
        """The pair at sizes that can be executed."""
        made = self.executable()
        return None if isinstance(made, Unsupported) else made

    def executable(self) -> Twin | Unsupported:
        """The pair at sizes that can be executed, or the reason why there are none."""
        return make_twin(self.left, replace(self.right, inputs=self.relations().placements))

    def swept(self, prover: Prover) -> Swept | None:
        """The right program after its unrecognised parts were proved piece by piece; None where none could be."""
        if not self.is_single:
            return None
        proof = self.proof(repeat=False)
        if not proof.failed or proof.mismatch or proof.out_of_time:
            return None
        twin = self.twin()
        if twin is None or twin.compare(trials=1).agrees is False:
            return None  # no lemma makes programs equal that compute other numbers
        numbers = numbers_of(twin)
        if numbers is None:
            return None
        return Sweep(self.left, self.right, self.relations(), numbers).run(prover, self.deadline)

    def precision(self) -> list[str]:
        """Where the two programs round differently."""
        if not self.is_single or not _has_casts(self.left, self.right.graphs[0]):
            return []
        relations = self.relations()
        from rewright.lifting.programs import Lifter
        from rewright.refine.relations.inputs import input_values

        lifter = Lifter()
        values = input_values(lifter, self.left, self.right, relations.placements, relations.equations)
        mine = lifter.sequential(self.left, values.sequential)
        return precision.notes(mine, lifter.ranks(self.right.graphs, values.ranks)[0], self.twin())


def _has_casts(*graphs: Graph) -> bool:
    return len({node.type.dtype for graph in graphs for node in graph.nodes if node.type.dtype.is_float}) > 1


def _program(right: Graph | RankProgram | Sequence[Graph]) -> RankProgram:
    found = program_of_ranks(right)
    if not found.graphs:
        raise RewrightError("no right program was given; give a graph")
    return found


def _values(
    inputs: Inputs | None, ranks: int
) -> tuple[tuple[Mapping[str, Array], Mapping[str, Array]] | None, Sequence[Mapping[str, Array]]]:
    """The values of the left program with those that all ranks agree on, and those of each rank."""
    if inputs is None:
        return None, []
    left, right = inputs if isinstance(inputs, tuple) else (inputs, inputs)
    shards = [_arrays(v) for v in ([right] * ranks if isinstance(right, Mapping) else right)]
    if len(shards) != ranks:
        raise RewrightError(f"values of {len(shards)} ranks were given for {ranks}; give those of each")
    first, *others = shards
    same = {n: v for n, v in first.items() if all(n in o and np.array_equal(o[n], v) for o in others)}
    return (_arrays(left), same), shards


def _arrays(values: Mapping[str, Any]) -> dict[str, Array]:
    found: dict[str, Array] = {}
    for name, value in values.items():
        if hasattr(value, "detach"):
            exact = value.detach().cpu().resolve_conj()
            value = (exact.float() if exact.is_floating_point() and exact.itemsize < _SINGLE else exact).numpy()
        array = np.asarray(value)
        found[name] = np.stack([np.real(array), np.imag(array)], -1) if array.dtype.kind == "c" else array
    return found


__all__ = ["Definition", "Equivalence", "equiv"]
