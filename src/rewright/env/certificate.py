"""Certificates of trajectories: that the module at the end computes what the original computes, to be checked again.

A certificate holds every module of the trajectory and, for each round, the values that were replaced and by what. To
check one, nothing is searched and XLA is not asked: the choices are made again, every replacement is one term with the
value or is proved as far down as the certificate says, and what XLA's import made of a module is compared with it in
the same way. By induction over the operands of the module at the end every value in it is the one it stands for.

What was not proved is a list of claims that were only tested, and a certificate with such a list says so.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rewright.env.alternatives import Alternative, AlternativeGraph, Provenance, Use
from rewright.env.claims import Neighbourhood, Proof, prove_terms
from rewright.env.episode import Episode
from rewright.env.hlo.editing import import_computations, remove_dead_code
from rewright.env.inlining import Inlined
from rewright.env.strict import read_module
from rewright.env.values import Test
from rewright.frontends.hlo.module import Module
from rewright.frontends.hlo.proto import write
from rewright.ir.errors import Refused, RewrightError
from rewright.proof.container import Header, check_digest, open_file, read_document, save_document, seal_document
from rewright.proof.entries import FAULTS, as_bytes, as_count, as_list, as_table, as_text, encode_bytes
from rewright.proof.kinds import Kind, Proved, Said

_HEADER = Header("rewright.env.certificate", 1, ("original", "rounds", "final", "open", "digest"))
_SECONDS = 10.0
_STEP = ("computation", "value", "replacement", "uses", "by", "proof")
_GRADES = ("real", "move", "same")
"""How proofs hold, the weakest first."""


@dataclass(frozen=True)
class Certified:
    """A certificate as a document, and what of it was only tested, each with what the test showed."""

    document: dict[str, Any]
    open: tuple[str, ...]

    @property
    def proved(self) -> bool:
        """Whether all of the trajectory is proved."""
        return not self.open

    @property
    def grade(self) -> str:
        """How the whole is proved: the weakest grade of its steps."""
        return _weakest(self.document)


@dataclass(frozen=True)
class Audit:
    """What a certificate was found to prove."""

    steps: int
    lemmas: int
    grade: str
    original: bytes
    final: bytes
    open: tuple[str, ...]


@dataclass(frozen=True)
class Stage:
    """A program, alternatives for it, those that were chosen, and what testing each has shown (none: not tested)."""

    base: Module
    graph: AlternativeGraph
    chosen: tuple[int, ...]
    tests: tuple[Test, ...] = ()


def certify(episode: Episode, seconds: float = 5.0) -> Certified:
    """The certificate of what an episode has done so far; ``seconds`` for each step."""
    rounds = [Stage(own.run.module.program, own.run.graph, own.chosen, own.run.tests) for own in episode.rounds]
    return certify_stages(episode.original.program, rounds, seconds)


def certify_stages(original: Module, stages: Sequence[Stage], seconds: float = 5.0) -> Certified:
    """The certificate that the last of some stages, as chosen, computes what the original does."""
    open_claims: list[str] = []
    rounds: list[dict[str, Any]] = []
    before = original
    for number, stage in enumerate(stages):
        base, graph = stage.base, stage.graph
        link = _prove(seconds, _import_of(before, base))
        if not link.proved:
            open_claims.append(f"what XLA imports in round {number} is the module: {link.why}")
        steps: list[dict[str, Any]] = []
        for choice in stage.chosen:
            own = _prove(seconds, _claim(graph, choice))
            steps.append(_step(graph, choice, own))
            if not own.proved:
                test = stage.tests[choice].what if stage.tests else "not tested"
                open_claims.append(f"%{graph.alternatives[choice].value} in round {number}: {test}; {own.why}")
        extended = _extend(graph)
        rounds.append({"base": _text(base), "extended": _text(extended), "import": _found_proof(link), "steps": steps})
        # Layouts and aliases of the result are no values, and left as they were.
        before = replace(graph, settings=None).apply(stage.chosen) if stage.chosen else base
    body = {"original": _text(original), "rounds": rounds, "final": _text(before), "open": open_claims}
    return Certified(seal_document(_HEADER.document(body)), tuple(open_claims))


def audit(document: object, seconds: float = _SECONDS) -> Audit:
    """Check a certificate again; raises Refused, naming the step, for anything that does not follow.

    Claims that the certificate leaves open are not checked: the audit lists them.
    """
    try:
        return _audit(document, seconds)
    except Refused:
        raise
    except FAULTS as error:
        raise Refused(f"the certificate is incomplete or malformed ({error!s:.100}); make it again") from None


def load(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The document of a certificate; raises RewrightError where it is not written as :func:`save` writes it."""
    return open_file(path, _read)


def _read(text: str, value: Any) -> dict[str, Any]:
    _HEADER.entries(value)
    return read_document(text, value)


def _audit(document: object, seconds: float) -> Audit:
    entries = _HEADER.entries(document)
    check_digest(entries, _HEADER.name)
    table = entries.table
    before = original = _program(table["original"])
    steps, lemmas, unproved, grades = 0, 0, list[str](), ["same"]
    for number, entry in enumerate(as_list(table["rounds"])):
        own = as_table(entry, ("base", "extended", "import", "steps"))
        base, taken = _program(own["base"]), [as_table(step, _STEP) for step in as_list(own["steps"])]
        graph = graph_of(base, _program(own["extended"]), taken)
        claims = [(f"what XLA imports in round {number}", own["import"], _import_of(before, base))]
        claims += [
            (f"%{step['value']} in round {number}", step["proof"], _claim(graph, place))
            for place, step in enumerate(taken)
        ]
        for what, proof, make in claims:
            if proof is None:
                unproved.append(what)
                continue
            found = _proved_again(what, as_table(proof, ("grade", "depths")), make, seconds)
            grades.append(found.grade)
            lemmas += len(found.pairs)
        steps += len(taken)
        before = graph.apply(range(len(graph))) if len(graph) else base
    if write(remove_dead_code(before)) != write(remove_dead_code(_program(table["final"]))):
        raise Refused("the choices do not lead to the module at the end")
    left = tuple(map(as_text, as_list(table["open"])))
    if len(left) != len(unproved) or not all(map(str.startswith, left, unproved)):
        raise Refused(f"{len(unproved)} claims have no proof, and the {len(left)} that are listed as open are others")
    return Audit(steps, lemmas, _lowest(grades), write(original), write(before), left)


def _proved_again(what: str, proof: dict[str, Any], make: Callable[[], Neighbourhood], seconds: float) -> Proof:
    """The proof of a claim at the depths that are given; raises Refused where it does not follow, or not so well."""
    found = prove_terms(make(), seconds, [as_count(depth) for depth in as_list(proof["depths"])])
    if not found.proved:
        raise Refused(f"{what} does not follow: {found.why}")
    if proof["grade"] not in _GRADES or _GRADES.index(proof["grade"]) > _GRADES.index(found.grade):
        raise Refused(f"{what} is said to be {proof['grade']!r:.20} and is {found.grade}")
    return found


def save(certified: Certified, path: str) -> None:
    """Write a certificate, as a whole or not at all; raises RewrightError."""
    save_document(path, certified.document)


# --- what is compared


def _import_of(before: Module, base: Module) -> Callable[[], Neighbourhood]:
    return lambda: _same_program(before, base)


def _claim(graph: AlternativeGraph, number: int) -> Callable[[], Neighbourhood]:
    return lambda: Neighbourhood.of(graph, number)


def _same_program(left: Module, right: Module) -> Neighbourhood:
    """The results of two programs as values of one; raises RewrightError where their parameters differ."""
    kinds = [[str(p.shape) for p in program.main.parameters()] for program in (left, right)]
    if kinds[0] != kinds[1]:
        raise RewrightError("the parameters of two modules differ; a trajectory keeps them")
    whole, entry = import_computations(left, right, "other")
    inlined = Inlined(whole.computations)
    roots: list[int] = []
    for program, name in ((left, left.entry), (right, entry)):
        own = whole.computations[name]
        effects = [i.name for i in own.instructions.values() if i.has_effect]
        if effects:
            raise RewrightError(f"{effects[0]:.60} has effects, whose order is not compared")
        roots.append(inlined.values((program.entry, name), own.instructions, [own.root])[own.root])
    return Neighbourhood(left, whole.computations, inlined, roots[0], roots[1])


def _prove(seconds: float, make: Callable[[], Neighbourhood]) -> Proof:
    try:
        return prove_terms(make(), seconds)
    except RewrightError as error:
        return Proof(False, "", str(error))


# --- the document


def _step(graph: AlternativeGraph, number: int, proof: Proof) -> dict[str, Any]:
    a = graph.alternatives[number]
    return {
        "computation": a.computation,
        "value": a.value,
        "replacement": a.replacement,
        "uses": [[use.user, use.index] for use in a.uses],
        "by": str(a.provenance),
        "proof": _found_proof(proof),
    }


def _found_proof(proof: Proof) -> dict[str, Any] | None:
    return {"grade": proof.grade, "depths": list(proof.depths)} if proof.proved else None


def _extend(graph: AlternativeGraph) -> Module:
    """The program with all instructions that replacements need, which nothing reads yet."""
    everything = {**graph.program.computations, **graph.computations}
    for name, pool in graph.pool.items():
        own = everything[name]
        everything[name] = replace(own, instructions={**own.instructions, **pool})
    return replace(graph.program, computations=everything)


def graph_of(base: Module, extended: Module, steps: Sequence[dict[str, Any]]) -> AlternativeGraph:
    """The alternatives of a round of a document; raises Refused where it adds anything but values to the program."""
    for name, computation in base.computations.items():
        own = extended.computations[name]
        if (
            own.fields != computation.fields
            or own.root != computation.root
            or any(own.instructions.get(n) != i for n, i in computation.instructions.items())
        ):
            raise Refused(f"{name:.60} is not the same with what was added to it")
    pool = {
        name: {n: i for n, i in own.instructions.items() if n not in base.computations[name].instructions}
        for name, own in extended.computations.items()
        if name in base.computations
    }
    more = {name: own for name, own in extended.computations.items() if name not in base.computations}
    for name, instructions in pool.items():
        if effects := [i for i in instructions.values() if i.has_effect]:
            raise Refused(f"%{effects[0].name:.60} of {name:.60} does something besides giving a value, and is added")
    provenance = Provenance("certificate", "step")
    alternatives = tuple(
        Alternative(
            as_text(step["computation"]),
            as_text(step["value"]),
            as_text(step["replacement"]),
            tuple(Use(as_text(user), as_count(index)) for user, index in as_list(step["uses"])),
            provenance,
        )
        for step in steps
    )
    graph = AlternativeGraph(base, alternatives, pool, more)
    for alternative in alternatives:
        _check_uses(graph, alternative)
    return graph


def _check_uses(graph: AlternativeGraph, alternative: Alternative) -> None:
    """Raise Refused where a use is none of the value."""
    own = graph.program.computations[alternative.computation]
    instructions = {**own.instructions, **graph.pool.get(own.name, {})}
    for use in alternative.uses:
        read_there = instructions[use.user].operands[use.index] if use.user else own.root
        if read_there != alternative.value:
            raise Refused(f"%{use.user:.60} does not read %{alternative.value:.60}")


def _text(program: Module) -> str:
    return encode_bytes(write(program, unique=False))


def _program(text: Any) -> Module:
    data = as_bytes(text)
    if encode_bytes(data) != text:
        raise Refused("a module is not written as its printer writes it")
    return read_module(data)


def _weakest(document: dict[str, Any]) -> str:
    proofs = [p for r in document["rounds"] for p in (r["import"], *(s["proof"] for s in r["steps"]))]
    return _lowest([p["grade"] for p in proofs if p is not None])


def _lowest(grades: Sequence[str]) -> str:
    return next((grade for grade in _GRADES if grade in grades), "same")


def _check(document: dict[str, Any], _programs: object, _store: object) -> Proved:
    found = audit(document)
    names = [hashlib.sha256(proto).hexdigest()[:16] for proto in (found.original, found.final)]
    known = f"proved ({found.grade})" if not found.open else "proved in part"
    return Proved(
        f"module {names[1]} computes what {names[0]} computes: {known}",
        (Said("open", "only tested", found.open),),
        f"{found.steps} steps, {found.lemmas} lemmas",
        {"steps": found.steps, "lemmas": found.lemmas, "grade": found.grade},
        open=found.open,
    )


KIND = Kind(_read, _check)
