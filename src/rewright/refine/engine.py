"""``rewright.refine``: the verdict on a distributed program, from proof, numeric twin and explanation."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from rewright.blame.factors import describe_factor
from rewright.blame.wording import describe_output
from rewright.frontends.validation.record import text_of, validation_note
from rewright.ir.errors import ContradictoryRelations, RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import Placement, RankProgram
from rewright.ir.programs import check_graph, program_of_ranks
from rewright.ir.unknowns import unknowns
from rewright.lifting.layers.induction import Layered
from rewright.ops.agreement import CollectiveMismatch
from rewright.proof.checker import Store
from rewright.proof.checker import audit as check_certificate
from rewright.proof.conditions import Open, Violated
from rewright.proof.drawn import judge_draws
from rewright.proof.unknowns import Question, questions, unknown_assumptions
from rewright.proof.unwritten import with_own_memory
from rewright.proof.wrapping import insert_wrapping, wrapping
from rewright.refine.aim import Aim, Programs, Runs, Values, is_proof, with_written_constants
from rewright.refine.case import Case, Ran
from rewright.refine.certificate.claims import conditions_of, obligations_of
from rewright.refine.certificate.stated import Stated
from rewright.refine.certificate.writer import certificate
from rewright.refine.check import attempt
from rewright.refine.drawn import (
    Misdrawn,
    differs_for_all,
    draw_again,
    draws_numbers,
    findings_of_draws,
    is_misdrawn,
    judge_faults,
    unrelated_draw,
)
from rewright.refine.findings.messages import with_unread
from rewright.refine.findings.rounds import findings, findings_by_values
from rewright.refine.objections import Run, challenge_verdict
from rewright.refine.proof import Proof
from rewright.refine.relations.buffers import with_buffers
from rewright.refine.relations.counting import notes_of_counts
from rewright.refine.relations.equations import tensors_of
from rewright.refine.relations.given import Given, Relations
from rewright.refine.relations.known import complete_relations, input_relations, output_expectations
from rewright.refine.relations.narrow import Restated, narrow_question
from rewright.refine.relations.numbered import align_names
from rewright.refine.relations.numbered import unpaired_notes as told_of
from rewright.refine.relations.of_one_run import fixed_on_one_side
from rewright.refine.relations.padding import state_padding
from rewright.refine.relations.solving import reads
from rewright.refine.relations.unsorted import without_sorts
from rewright.refine.relations.unwritten import made_of_memory
from rewright.refine.relations.vacuity import judge_content
from rewright.refine.rewriting.drafts import Draft
from rewright.refine.rewriting.steps import LemmaSearch, NotShown
from rewright.refine.running import conclude_from_values
from rewright.refine.verdict import Evidence, Finding, OutputRelation, Pairing, Stats, Status, Verdict

_EXPLAINING = 60.0
"""Without a budget repairs are looked for for so many seconds."""
_UNMATCHED = (
    "values differ where random numbers are drawn, and agree where all of them are one number: other draws of the "
    "ranks may be those of the sequential program; draw them at the same lines, or in modules of equal names"
)
AUDITED = 40_000
"""Programs of so many nodes are audited unless somebody says no: whether they are does not depend on the machine."""


def refine(
    sequential: Graph,
    distributed: Graph | RankProgram | Sequence[Graph],
    relations: Given | None = None,
    expect: Given | None = None,
    budget: float | None = None,
    *,
    audit: bool | None = None,
    explain: bool = True,
    allow_vacuous: bool = False,
    require_collectives: bool = False,
    tell: Callable[[Finding], None] | None = None,
) -> Verdict:
    """Whether the ranks together compute what the sequential program computes, and how their outputs relate.

    Args:
        sequential: the program of one device.
        distributed: the programs of all ranks; a plain sequence of graphs is a mesh of one axis.
        relations: by input name pattern a placement in DTensor notation (a list for several mesh axes), or
            equations over rank tensors; inputs that it does not name keep the placement read at capture.
        expect: the same for outputs.
        budget: wall-clock seconds after which the answer is ``unknown``.
        audit: have the independent checker verify the certificate of a proof; its evidence is ``proved`` then. Its
            time is not part of the budget, and a proof without a certificate becomes ``unknown``. Programs of at most
            ``AUDITED`` nodes together are audited where it is not said.
        explain: where values differ, look for the first place and for a repair, which takes most of the time of a
            refutation. It makes no difference to the status.
        allow_vacuous: take a proof that says nothing of a plan, of ranks that each do all the work for example, as
            ``proved``.
        require_collectives: take a proof about ranks of which none calls a collective for one that says nothing.
        tell: is called with the first finding of a refutation before repairs are looked for, which may take long.

    Returns:
        The verdict: ``proved``, ``vacuous`` for a proof that says nothing, ``refuted`` with a counterexample, or
        ``unknown`` with the reason.

    Raises:
        RewrightError: for inputs that do not fit together, and for a program that is no graph.
    """
    check_graph(sequential)
    program = program_of_ranks(distributed)
    graphs = program.graphs
    check_inputs(graphs)
    audits = is_audited(sequential, program, audit)
    asked = partial(answer, suggest=explain, locate=explain, tell=tell)
    verdict = asked(sequential, program, relations, expect, budget, audit=audits)
    why = fixed_on_one_side(sequential, program) if verdict.status == "refuted" else None
    if why is not None:
        verdict = replace(verdict, status="unknown", reason=why, findings=())
    captures = sequential, *graphs
    verdict = verdict.about_captures(validation_note(captures), text_of(captures))
    if verdict.status != "proved":
        return verdict
    verdict = replace(verdict, notes=(*verdict.notes, *notes_of_counts(sequential, graphs)))
    verdict = with_buffers(verdict, sequential, program, relations)
    if allow_vacuous:
        return verdict
    return judge_content(verdict, sequential, program, relations, collectives=require_collectives)


def is_audited(sequential: Graph, program: RankProgram, asked: bool | None) -> bool:
    """Whether a proof is to be audited: as it was asked, else where that takes a few seconds at most."""
    return len(sequential) + sum(map(len, program.graphs)) <= AUDITED if asked is None else asked


def answer(
    sequential: Graph,
    distributed: RankProgram | Sequence[Graph],
    relations: Given | None = None,
    expect: Given | None = None,
    budget: float | None = None,
    *,
    suggest: bool = True,
    locate: bool = True,
    audit: bool = False,
    counts: bool = True,
    rounds: bool = True,
    runs: Runs = "always",
    tell: Callable[[Finding], None] | None = None,
) -> Verdict:
    """As :func:`refine`, with options to explain a refutation less, which takes most of its time.

    With ``suggest=False`` no repairs are tried; with ``locate=False`` nothing looks for the first different value; with
    ``counts=False`` short integers are unbounded; with ``rounds=False`` rounded constants are taken as they are; with
    ``runs="failed"`` proved programs are not run, and with ``runs="never"`` none are: without a proof the answer is
    ``unknown`` then, but for ranks that do not meet.
    """
    deadline = None if budget is None else time.monotonic() + budget
    program = program_of_ranks(distributed)
    _check(sequential, program)
    captured = with_own_memory(sequential, program)
    sequential, program, relations, stated = state_padding(*captured, relations)
    how = suggest, locate, audit, counts, rounds, runs, tell
    asked = _Asked(captured, relations, expect, budget, deadline, *how)
    verdict: Verdict | None = None
    failed: RewrightError | None = None
    for one in questions(sequential, program):
        question = replace(one, assumptions=(*one.assumptions, *stated))
        # For later questions only a proof counts: what is wrong is reported for the first one.
        try:
            found = _answer(question, asked if verdict is None else replace(asked, explain=False))
        except RewrightError as error:
            failed = failed or error
            continue
        if verdict is None or found.status == "proved" or (verdict.status == "unknown" and is_misdrawn(found)):
            verdict = found
        if found.status == "proved":
            break
    if verdict is None:
        assert failed is not None
        raise failed
    return verdict


@dataclass(frozen=True)
class _Asked:
    """A question about two programs, and how detailed the answer has to be."""

    captured: Programs
    relations: Given | None
    expect: Given | None
    budget: float | None
    deadline: float | None
    suggest: bool
    locate: bool
    audit: bool
    counts: bool
    rounds: bool
    runs: Runs
    tell: Callable[[Finding], None] | None
    explain: bool = True


@dataclass(frozen=True)
class _Told:
    """The parts of a verdict that do not depend on its status."""

    assumptions: tuple[str, ...]
    notes: tuple[str, ...]
    stats: Stats

    def unknown(self, reason: str, relations: dict[str, OutputRelation] | None = None) -> Verdict:
        """The verdict ``unknown``, with the outputs that are related."""
        related = relations or {}
        return Verdict("unknown", Evidence.ASSUMED, self.assumptions, related, (), self.notes, self.stats, reason)


def _answer(question: Question, asked: _Asked, drafts: Sequence[Draft] = ()) -> Verdict:
    """The verdict on a question; ``drafts`` are its programs with how they were rewritten, if they were."""
    case = _case(question, asked)
    values = Values(case, asked.runs)
    loose = unrelated_draw(case)
    if loose:
        return _Told(case.relations.assumptions, case.program.notes, Stats()).unknown(loose)
    aim = Aim(case, asked.deadline, values)
    first = None if drafts else aim.first()
    if first is not None and first.failed:
        unsorted = without_sorts(question)
        other = None if unsorted is None else _rewritten(unsorted, asked, values)
        if other is not None and other.status == "proved":
            return other
        first = None
    proof, is_written_out = (first, False) if first is not None else aim.reached(rounds=asked.rounds)
    if proof.failed and proof.pairing is not None:
        case = _by_name(case, proof.pairing)
        values = Values(case, asked.runs)
        given = case.relations, case.expected, asked.deadline
        proof = attempt(case.sequential, case.program, *given, wrong=values.wrong)
    told = _reported(case, proof)
    mismatch = proof.mismatch
    if case.program.deadlock:  # it names the lines of groups too
        mismatch = CollectiveMismatch(case.program.deadlock, mismatch.span if mismatch is not None else None)
    if mismatch:
        return _mismatched(case, mismatch, told)
    if proof.out_of_time and values.are_known and values.ran().is_different:
        return _of_values(case, values, proof, told)
    if proof.out_of_time:
        operators = told.stats.steps.get("lifted", 0)
        return told.unknown(f"the budget of {asked.budget:g} s ran out after {operators} operators")
    if not proof.failed:
        return _of_proof(Stated(question, case, tuple(drafts)), proof, is_written_out, asked, told)
    parted = {name for equation in case.relations.equations for name in tensors_of(equation)}
    known = case.relations.placements.items()
    held = [name for name, placement in known if not placement.partial and name not in parted]
    narrow = None if drafts else narrow_question(question, held)
    less = None if narrow is None else _answer(narrow.question, replace(asked, tell=None), narrow.drafts)
    if less is not None and less.status == "proved":
        return less
    if not asked.explain or not values.are_known:
        return told.unknown(_said_of(proof.failed, proof, "not related"), proof.relations)
    found = _after_failure(case, values, proof, asked, told)
    # All numbers show that programs differ; where they differ is clearer without those out of range.
    return less if less is not None and less.status == found.status == "refuted" else found


def _rewritten(narrow: Restated, asked: _Asked, values: Values) -> Verdict | None:
    """The answer to a question in another form, without an explanation; None where values differ anyway."""
    if values.are_known and values.ran().is_different:
        return None
    found = _answer(narrow.question, replace(asked, tell=None, explain=False), narrow.drafts)
    try:
        for draft in narrow.drafts if found.status == "proved" else ():
            LemmaSearch().stages(draft, counts=not asked.counts)
    except NotShown:
        return None
    return found


def _case(question: Question, asked: _Asked) -> Case:
    """The question with what is known of the inputs and expected of the outputs."""
    sequential, program = question.sequential, question.program
    known = input_relations(sequential, program, asked.relations)
    expected = _expected_outputs(sequential, program, known, asked)
    known = complete_relations(sequential, program, known, expected)
    expected = _expected_outputs(sequential, program, known, asked)
    more = (*question.assumptions, *unknown_assumptions(sequential, known.placements))
    known = replace(known, assumptions=(*known.assumptions, *more))
    return Case(sequential, replace(program, inputs=known.placements), known, expected)


def _expected_outputs(
    sequential: Graph, program: RankProgram, known: Relations, asked: _Asked
) -> Mapping[str, Placement]:
    """How outputs are expected to be held, given how inputs are."""
    held = replace(program, inputs=known.placements)
    return output_expectations(sequential, held, asked.expect, known.equations)


def _by_name(case: Case, pairing: Pairing) -> Case:
    """The case with outputs renamed, so that those that belong together have one name."""
    sequential, program = align_names(case.sequential, case.program, pairing)
    return replace(case, sequential=sequential, program=program)


def _reported(case: Case, proof: Proof) -> _Told:
    graphs = case.program.graphs
    laws = dict(proof.lifter.algebra.laws)
    sizes = len(case.sequential), sum(map(len, graphs)), len(graphs)
    stats = Stats(*sizes, dict(proof.lifter.steps), dict(proof.seconds), laws)
    notes = (*case.program.notes, *(() if proof.pairing is None else told_of(proof.pairing)))
    return _Told(tuple(proof.assumptions), notes, stats)


def _mismatched(case: Case, mismatch: CollectiveMismatch, told: _Told) -> Verdict:
    """Refuted: the ranks do not even call the same collectives."""
    why = str(mismatch)
    finding = Finding("collective_mismatch", why, None, mismatch.span, "", "", None, None)
    about = (finding,), told.notes, told.stats, why
    programs = case.sequential, case.program
    return Verdict("refuted", Evidence.PROVED, told.assumptions, {}, *about, programs=programs)


def _of_proof(stated: Stated, proof: Proof, is_written_out: bool, asked: _Asked, told: _Told) -> Verdict:
    """The verdict ``proved``, unless short integers may wrap around or the audit refuses the certificate."""
    case, captured = stated.case, (asked.captured[0], replace(asked.captured[1], inputs=stated.case.program.inputs))
    if proof.pairing is not None:
        case, captured = _by_name(case, proof.pairing), align_names(*captured, proof.pairing)
    programs = case.sequential, case.program
    meant = with_written_constants(*programs) if is_written_out else programs
    doubt = wrapping([meant[0], *meant[1].graphs]) if asked.counts else ""
    if doubt and not is_proof(attempt(*_count(*meant), case.relations, case.expected, asked.deadline)):
        return told.unknown(doubt)
    drawn = judge_draws(case.sequential, case.program, case.relations.placements)
    if drawn.faults:
        return _misdrawn(case, judge_faults(case, drawn.faults), proof, told)
    try:
        open_ones = obligations_of(proof, case.relations)
        more = conditions_of(proof, open_ones)
    except Violated as error:
        return told.unknown(f"the programs are equal only under a condition: {error}", proof.relations)
    told = replace(told, assumptions=(*told.assumptions, *more, *drawn.conditions))
    verdict = _proved(*captured, meant, replace(stated, case=case), proof, told, open_ones, asked.counts)
    verdict = audit_verdict(verdict, *captured, counts=asked.counts) if asked.audit else verdict
    return _run(case, verdict, proof) if asked.runs == "always" else verdict


def _misdrawn(case: Case, found: Misdrawn, proof: Proof, told: _Told) -> Verdict:
    """The verdict on programs that are equal if random numbers are, where those of the ranks cannot be."""
    if not found.findings:
        return told.unknown(found.unknown, proof.relations)
    about = found.findings, told.notes, told.stats, found.findings[0].message
    programs = case.sequential, case.program
    return Verdict("refuted", Evidence.TESTED, told.assumptions, {}, *about, programs=programs)


def _run(case: Case, verdict: Verdict, proof: Proof | None = None) -> Verdict:
    """The verdict after its programs were run on inputs that try to tell them apart."""
    started = time.perf_counter()
    solved = reads(case.relations.equations, case.sequential, case.program)
    placements = case.expected if proof is None else proof.placements
    layers = () if proof is None else _layers(case, proof)
    found = challenge_verdict(verdict, Run(case.sequential, case.program, placements, solved, layered=layers))
    verdict.stats.seconds["runs"] = time.perf_counter() - started
    return found


def _layers(case: Case, proof: Proof) -> tuple[Layered, ...]:
    """The programs as streams of equal layers, if the proof treated them so."""
    found = tuple(proof.lifter.layered)
    graphs = [graph for part in found for graph in part.graphs]
    own = [case.sequential, *case.program.graphs]
    return found if len(graphs) == len(own) and all(map(operator.is_, graphs, own)) else ()


def _count(sequential: Graph, program: RankProgram) -> Programs:
    """The programs in which short integers wrap around."""
    return insert_wrapping(sequential), replace(program, graphs=tuple(map(insert_wrapping, program.graphs)))


def _proved(
    sequential: Graph,
    program: RankProgram,
    meant: Programs,
    stated: Stated,
    proof: Proof,
    told: _Told,
    open_ones: Open,
    counts: bool,
) -> Verdict:
    """The verdict of a proof; its certificate is about the programs as they are ``meant``, and as short integers
    count, if that was asked for. It says how these come from the programs that were captured."""
    count = len(proof.relations)
    reason = f"the ranks hold {f'all {count} outputs' if count > 1 else 'the output'} of the sequential program"
    whole, ranks = _count(*meant) if counts else meant
    case = stated.case
    core = partial(certificate, whole, ranks, case.relations, case.expected, proof.forms, open_ones, proof.lifter.walks)
    write = partial(stated.certificate, core, counts)
    about = told.assumptions, proof.relations, (), told.notes, told.stats, reason
    return Verdict("proved", Evidence.TESTED, *about, write, (sequential, program))


def audit_verdict(
    verdict: Verdict, sequential: Graph, program: RankProgram, store: Store | None = None, *, counts: bool = True
) -> Verdict:
    """A verdict that is proved, with its certificate verified; ``unknown`` where the checker refuses it.

    With ``counts=False`` short integers are unbounded.
    """
    started = time.perf_counter()
    try:
        found = verdict.certificate
        if found is not None:
            check_certificate(found, sequential, program, store, counts=counts)
    except RewrightError as error:
        return replace(verdict, status="unknown", reason=f"the proof is not confirmed: {error}", certify=None)
    verdict.stats.seconds["audit"] = time.perf_counter() - started
    return replace(verdict, evidence=Evidence.PROVED)


def _of_values(case: Case, values: Values, proof: Proof, told: _Told) -> Verdict:
    """Refuted by values alone: they differ, and the proof was not finished."""
    asked = {name: str(case.expected[name]) if name in case.expected else None for name in case.sequential.outputs}
    proof.failed = list(asked)
    proof.relations = {name: OutputRelation(name, "", f"{name} is not related", asked[name], False) for name in asked}
    ran = conclude_from_values(case, values.ran(), proof)
    found = findings_by_values(case, proof, ran)
    notes = (*told.notes, "values differ, and the proof was not finished: findings are by values alone")
    about = told.assumptions, proof.relations, found, notes, told.stats, _reason_of(case, proof, ran)
    return Verdict("refuted", Evidence.TESTED, *about, programs=(case.sequential, case.program))


def _after_failure(case: Case, values: Values, proof: Proof, asked: _Asked, told: _Told) -> Verdict:
    """The verdict after a failed proof: refuted where the numeric twin finds different values, else unknown."""
    memory = made_of_memory(case.sequential, proof.failed)
    if memory:
        return told.unknown(memory, proof.relations)
    compared = values.ran()
    told.stats.seconds["numeric twin"] = values.seconds
    ran = conclude_from_values(case, compared, proof)
    twin = ran.result
    is_drawn = twin.agrees is False and draws_numbers(case) and not differs_for_all(case)
    if is_drawn and not draw_again(case):
        return told.unknown(_UNMATCHED, proof.relations)
    started = time.perf_counter()
    until = time.monotonic() + _EXPLAINING if asked.deadline is None else asked.deadline
    alone = findings_of_draws(case) if is_drawn else ()
    found, more = (alone, ()) if alone else findings(case, proof, ran, until, asked.suggest, asked.locate, asked.tell)
    if asked.deadline is None and time.monotonic() > until:
        more = (*more, f"no repair was looked for after {_EXPLAINING:.0f} s")
    told.stats.seconds["explain"] = time.perf_counter() - started
    status: Status = "refuted" if twin.agrees is False else "unknown"
    if status == "refuted":
        reason, found = _reason_of(case, proof, ran), with_unread(case, found)
    else:
        reason = f"{_said_of(proof.failed, proof, 'not related')}; {twin.reason}"
    about = told.assumptions, _relate(proof, ran), found, (*told.notes, *more), told.stats, reason
    verdict = Verdict(status, Evidence.TESTED, *about, programs=(case.sequential, case.program))
    return _run(case, verdict) if asked.runs == "always" and twin.agrees is True else verdict


def _reason_of(case: Case, proof: Proof, ran: Ran) -> str:
    """What is wrong, in one sentence: how many outputs and by what, and which the ranks do not return."""
    wrong = ran.wrong_of(proof.failed)
    absent = [name for name in wrong if all(name not in graph.outputs for graph in case.program.graphs)]
    told = f"the ranks do not return {', '.join(absent[:3])}{' and others' if absent[3:] else ''}" if absent else ""
    held = [name for name in wrong if name not in absent]
    if not held:
        return told
    factor = _common_factor(ran.result.factors, held)
    what = "wrong" if factor is None else describe_factor(factor, case.program.mesh)
    why = f": {_of_it(held[0], ran.result.reason)}" if factor is None and not absent else ""
    return f"{_said_of(held, proof, what)}{why}{'; ' if told else ''}{told}"


def _of_it(name: str, reason: str) -> str:
    """A reason that begins with the name of an output, after a sentence that has the name already."""
    start = next((s for s in (f"output {name!r} ", f"{name} ") if reason.startswith(s)), "")
    return f"it {reason.removeprefix(start)}" if start else reason


def _common_factor(factors: Mapping[str, float], wrong: Sequence[str]) -> float | None:
    """The number by which all of some outputs are wrong, where it is one."""
    found = {factors.get(name) for name in wrong}
    return next(iter(found)) if len(found) == 1 else None


def _relate(proof: Proof, ran: Ran) -> dict[str, OutputRelation]:
    """The relations of a failed proof; of outputs without one, whether their values are right all the same."""
    right = set(proof.failed) - set(ran.wrong_of(proof.failed))
    return {
        name: replace(known, equation=f"{name} has the right values; nothing is proved of it")
        if name in right and not known.placement
        else known
        for name, known in proof.relations.items()
    }


def _said_of(names: Sequence[str], proof: Proof, what: str) -> str:
    if len(names) == 1:
        return f"{describe_output(names[0])} is {what}"
    many = len(proof.relations)
    count = f"all {many}" if len(names) == many else f"{len(names)} of {many}"
    return f"{count} outputs are {what}, {names[0]} first"


def _check(sequential: Graph, program: RankProgram) -> None:
    if not program.graphs:
        raise RewrightError("no program of any rank was given; give one graph for each rank")
    if len(program.graphs) != program.mesh.size:
        raise RewrightError(
            f"the mesh has {program.mesh.size} ranks and {len(program.graphs)} programs were given; give one each"
        )
    missing = [name for name in sequential.outputs if all(name not in g.outputs for g in program.graphs)]
    if len(missing) == len(sequential.outputs):
        names = ", ".join(list(program.graphs[0].outputs)[:3])
        raise RewrightError(
            f"no output of the sequential program ({', '.join(missing[:3])}) is one of the ranks ({names}); "
            "give the outputs equal names"
        )


def check_inputs(graphs: Sequence[Graph]) -> None:
    """Raise RewrightError where ranks, as they were captured, are not given the same inputs.

    Programs that were rewritten may have lost those that a rank does not read.
    """
    if not graphs:
        return
    reference = set(graphs[0].inputs) - set(unknowns(graphs[0]))
    for rank, graph in enumerate(graphs):
        own = set(graph.inputs) - set(unknowns(graph))
        if own != reference:
            odd = sorted(own ^ reference)[0]
            raise RewrightError(
                f"input {odd!r} exists only on some ranks, rank 0 and rank {rank} differ; give it to all"
            )


__all__ = ["ContradictoryRelations", "refine"]
