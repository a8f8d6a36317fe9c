"""``rewright.refine``: the verdict on a distributed program, from proof, numeric twin and explanation."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from rewright.ir.errors import ContradictoryRelations, RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, Placement, RankProgram
from rewright.ir.unknowns import unknowns
from rewright.proof.checker import Store
from rewright.proof.checker import audit as check_certificate
from rewright.proof.constants import differ, written_out
from rewright.proof.wrapping import counted, wrapping
from rewright.refine.case import Case, Ran
from rewright.refine.certify import certificate
from rewright.refine.check import Hopeless, Proof, attempt
from rewright.refine.numbered import aligned, told
from rewright.refine.relations import Given, Relations, input_relations, output_expectations, settled
from rewright.refine.rounds import findings
from rewright.refine.running import compare, concluded, is_hopeless
from rewright.refine.unknowns import Question, questions, said
from rewright.refine.verdict import Evidence, Finding, Stats, Status, Verdict

_Programs = tuple[Graph, RankProgram]


def refine(
    sequential: Graph,
    distributed: RankProgram | Sequence[Graph],
    relations: Given | None = None,
    expect: Given | None = None,
    budget: float | None = None,
    *,
    audit: bool = False,
) -> Verdict:
    """Whether the ranks together compute what the sequential program computes, and how their outputs relate.

    Args:
        sequential: the program of one device.
        distributed: the programs of all ranks; a plain sequence of graphs is a mesh of one axis.
        relations: by input name pattern a placement in DTensor notation (a list for several mesh axes), or
            equations over rank tensors; inputs that it does not name keep the placement read at capture.
        expect: the same for outputs.
        budget: wall-clock seconds after which the answer is ``unknown``.
        audit: have the independent checker verify the certificate of a proof; its evidence is ``proved`` then. The
            budget does not count for that, and a proof without a certificate becomes ``unknown``.

    Returns:
        The verdict: ``proved``, ``refuted`` with a counterexample, or ``unknown`` with the reason.

    Raises:
        RewrightError: for inputs that do not fit together, in one sentence.
    """
    return answer(sequential, distributed, relations, expect, budget, audit=audit)


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
) -> Verdict:
    """As :func:`refine`, with less said of a refutation, which takes most of its time.

    With ``suggest=False`` no repairs are tried; with ``locate=False`` the place where values part is not looked for;
    with ``counts=False`` short integers have no end; with ``rounds=False`` rounded constants are what they are.
    """
    deadline = None if budget is None else time.monotonic() + budget
    program = distributed if isinstance(distributed, RankProgram) else _plain(distributed)
    _check(sequential, program)
    verdict: Verdict | None = None
    for question in questions(sequential, program):
        # Of later questions no more than a proof counts: what is wrong is told of the first.
        explained = verdict is None
        found = _answer(
            question, relations, expect, deadline, budget, suggest, locate, audit, counts, rounds, explained
        )
        if verdict is None or found.status == "proved":
            verdict = found
        if found.status == "proved":
            break
    assert verdict is not None
    return verdict


def _answer(
    question: Question,
    relations: Given | None,
    expect: Given | None,
    deadline: float | None,
    budget: float | None,
    suggest: bool,
    locate: bool,
    audit: bool,
    counts: bool,
    rounds: bool,
    explained: bool,
) -> Verdict:
    sequential, program = question.sequential, question.program
    known = input_relations(sequential, program, relations)
    expected = output_expectations(sequential, replace(program, inputs=known.placements), expect, known.equations)
    known = settled(sequential, program, known, expected)
    expected = output_expectations(sequential, replace(program, inputs=known.placements), expect, known.equations)
    unknown = said(sequential, known.placements)
    known = replace(known, assumptions=(*known.assumptions, *question.assumptions, *unknown))
    case = Case(sequential, replace(program, inputs=known.placements), known, expected)
    seconds: list[float] = []
    ran = cache(partial(_timed, seconds, case))
    hopeless: Hopeless = lambda failed: is_hopeless(ran(), failed)  # noqa: E731
    aim = _Aim(known, expected, deadline, hopeless, lambda: ran().result.agrees is False)
    proof, is_written_out = aim.reached(sequential, program, rounds=rounds)
    if proof.failed and proof.pairing is not None:
        sequential, program = aligned(sequential, program, proof.pairing)
        case = Case(sequential, replace(program, inputs=known.placements), known, expected)
        by_name = cache(partial(_timed, seconds, case))
        ran = by_name
        differ_there: Hopeless = lambda failed: is_hopeless(by_name(), failed)  # noqa: E731
        proof = attempt(sequential, program, known, expected, deadline, hopeless=differ_there)
    stats = Stats(
        len(sequential),
        sum(len(graph) for graph in program.graphs),
        len(program.graphs),
        dict(proof.lifter.steps),
        dict(proof.seconds),
        dict(proof.lifter.algebra.laws),
    )
    notes = (*program.notes, *(() if proof.pairing is None else told(proof.pairing)))
    assumptions = tuple(proof.assumptions)
    if proof.mismatch:
        why = str(proof.mismatch)
        finding = Finding("collective_mismatch", why, None, proof.mismatch.span, "", "", None, None)
        programs = sequential, program
        return Verdict("refuted", Evidence.PROVED, assumptions, {}, (finding,), notes, stats, why, programs=programs)
    if proof.out_of_time:
        reason = f"the budget of {budget:g} s ran out after {stats.steps.get('lifted', 0)} operators"
        return Verdict("unknown", Evidence.ASSUMED, assumptions, {}, (), notes, stats, reason)
    if not proof.failed:
        if proof.pairing is not None:  # written down under names that say which outputs belong together
            sequential, program = aligned(sequential, program, proof.pairing)
        meant = _written_out(sequential, program) if is_written_out else (sequential, program)
        doubt = wrapping([meant[0], *meant[1].graphs]) if counts else ""
        if doubt and not _is_proof(attempt(*_counted(*meant), known, expected, deadline)):
            return Verdict("unknown", Evidence.ASSUMED, assumptions, {}, (), notes, stats, doubt)
        verdict = _proved(sequential, program, meant, known, expected, proof, stats, notes, counts)
        return audited(verdict, sequential, program, counts=counts) if audit else verdict
    if not explained:
        reason = _said_of(proof.failed, proof, "not related")
        return Verdict("unknown", Evidence.ASSUMED, assumptions, proof.relations, (), notes, stats, reason)
    ran()
    stats.seconds["numeric twin"] = sum(seconds)
    return _failed(case, ran, proof, stats, notes, assumptions, deadline, suggest, locate)


@dataclass(frozen=True)
class _Aim:
    """What is to be proved of programs, until when, and what values say of it."""

    known: Relations
    expected: Mapping[str, Placement]
    deadline: float | None
    hopeless: Hopeless
    contradicted: Callable[[], bool]
    """Whether some output is wrong as constants are."""

    def reached(self, sequential: Graph, program: RankProgram, *, rounds: bool) -> tuple[Proof, bool]:
        """The proof, and whether it is one of the programs with rounded constants written out.

        That is tried where the programs have other constants, before what takes long, and never where values differ:
        what is nought for the numbers that are meant may be multiplied until it is not.
        """
        if not rounds or not differ(sequential, program.graphs):
            return self._tried(sequential, program), False
        proof = self._tried(sequential, program, laws=False, repeat=False)
        if _is_proof(proof) or proof.out_of_time or proof.mismatch:
            return proof, False
        if not self.contradicted():
            proof = self._tried(*_written_out(sequential, program), repeat=False)
            if _is_proof(proof):
                return proof, True
        return self._tried(sequential, program), False

    def _tried(self, sequential: Graph, program: RankProgram, *, laws: bool = True, repeat: bool = True) -> Proof:
        aim = self.known, self.expected, self.deadline
        return attempt(sequential, program, *aim, laws=laws, repeat=repeat, hopeless=self.hopeless)


def _is_proof(proof: Proof) -> bool:
    return not (proof.failed or proof.mismatch or proof.out_of_time)


def _written_out(sequential: Graph, program: RankProgram) -> _Programs:
    """The programs with rounded constants as what they were rounded from."""
    first, graphs = written_out(sequential, program.graphs)
    return first, replace(program, graphs=graphs)


def _counted(sequential: Graph, program: RankProgram) -> _Programs:
    """The programs in which short integers count from the other end where they do not fit."""
    return counted(sequential), replace(program, graphs=tuple(map(counted, program.graphs)))


def _proved(
    sequential: Graph,
    program: RankProgram,
    meant: _Programs,
    known: Relations,
    expected: Mapping[str, Placement],
    proof: Proof,
    stats: Stats,
    notes: tuple[str, ...],
    counts: bool,
) -> Verdict:
    """The verdict of a proof; its certificate is about the programs as they are ``meant``, and as short integers
    count, if that was asked for."""
    count = len(proof.relations)
    reason = f"the ranks hold {f'all {count} outputs' if count > 1 else 'the output'} of the sequential program"
    whole, ranks = _counted(*meant) if counts else meant
    write = partial(certificate, whole, replace(ranks, inputs=known.placements), known, expected, proof.law)
    assumptions, programs = tuple(proof.assumptions), (sequential, program)
    return Verdict("proved", Evidence.TESTED, assumptions, proof.relations, (), notes, stats, reason, write, programs)


def audited(
    verdict: Verdict, sequential: Graph, program: RankProgram, store: Store | None = None, *, counts: bool = True
) -> Verdict:
    """A verdict that is proved, with its certificate verified; ``unknown`` where the checker refuses it.

    With ``counts=False`` short integers have no end.
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


def _failed(
    case: Case,
    compared: Callable[[], Ran],
    proof: Proof,
    stats: Stats,
    notes: tuple[str, ...],
    assumptions: tuple[str, ...],
    deadline: float | None,
    suggest: bool,
    locate: bool,
) -> Verdict:
    """Refuted where the numeric twin finds values that differ, else unknown."""
    ran = concluded(case, compared(), proof)
    twin = ran.result
    started = time.perf_counter()
    found, more = findings(case, proof, ran, deadline, suggest, locate)
    stats.seconds["explain"] = time.perf_counter() - started
    status: Status = "refuted" if twin.agrees is False else "unknown"
    if status == "refuted":
        wrong = [name for name in proof.failed if name in twin.wrong_outputs] or proof.failed
        reason = f"{_said_of(wrong, proof, 'wrong')}: {twin.reason}"
    else:
        reason = f"{_said_of(proof.failed, proof, 'not related')}; {twin.reason}"
    programs = case.sequential, case.program
    notes = (*notes, *more)
    return Verdict(
        status, Evidence.TESTED, assumptions, proof.relations, found, notes, stats, reason, programs=programs
    )


def _timed(seconds: list[float], case: Case) -> Ran:
    """What values say, and how long that took."""
    started = time.perf_counter()
    try:
        return compare(case)
    finally:
        seconds.append(time.perf_counter() - started)


def _said_of(names: Sequence[str], proof: Proof, what: str) -> str:
    if len(names) == 1:
        return f"the output {names[0]} is {what}"
    return f"{len(names)} of {len(proof.relations)} outputs are {what}, {names[0]} first"


def _plain(graphs: Sequence[Graph]) -> RankProgram:
    return RankProgram(tuple(graphs), Mesh.of({"rank": len(graphs)}), {}, {})


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
    reference = set(program.graphs[0].inputs) - set(unknowns(program.graphs[0]))
    for rank, graph in enumerate(program.graphs):
        own = set(graph.inputs) - set(unknowns(graph))
        if own != reference:
            odd = sorted(own ^ reference)[0]
            raise RewrightError(
                f"input {odd!r} exists only on some ranks, rank 0 and rank {rank} differ; give it to all"
            )


__all__ = ["ContradictoryRelations", "refine"]
