"""Certificates of two programs made from stages that nobody has checked, as a forger would make them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from rewright.equiv.audit import audit
from rewright.equiv.certificate import EquivalenceCertificate
from rewright.equiv.inputs.weights import WeightMap
from rewright.equiv.rewrites.ranges import Ranges, describe
from rewright.equiv.statement import Stated, Values, unify_inputs
from rewright.ir.digest import digest
from rewright.ir.errors import Refused, RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, RankProgram, place
from rewright.proof.certificate import Certificate
from rewright.proof.compared import is_about
from rewright.proof.rewriting.evidence import NUMBERS, Checked
from rewright.proof.rewriting.lemma import Lemma
from rewright.proof.rewriting.numbers.closed import Taken, compare_closed, taken_sentences
from rewright.proof.rewriting.replay import Replayed, lost_needs, passing, sentences
from rewright.proof.rewriting.splices import Rewriting, Splice, Stage
from rewright.proof.rewriting.stages import splice_stage
from rewright.proof.wrapping import insert_wrapping
from rewright.refine import refine

MESH = Mesh.of({"rank": 1})
NONE = Rewriting()


def alone(graph: Graph) -> RankProgram:
    """One program as that of the only rank."""
    return RankProgram((graph,), MESH, {}, {})


def stage(*steps: tuple[int, Lemma, dict[str, int]]) -> Stage:
    """A stage of splices: where each is, its lemma, and what holds the inputs of that."""
    splices = tuple(Splice(p, lemma.key, tuple((n, (held,)) for n, held in held.items())) for p, lemma, held in steps)
    return Stage(splices, tuple({lemma.key: lemma for _, lemma, _ in steps}.values()))


def unchecked(graph: Graph, rewriting: Rewriting, ranges: Ranges) -> list[Graph]:
    """A program before, between and after stages that nobody checks."""
    found = [graph]
    for one in rewriting.before:
        found.append(splice_stage(found[-1], one))
    found.append(insert_wrapping(found[-1], ranges))
    for one in rewriting.after:
        found.append(splice_stage(found[-1], one))
    return found


def core_of(left: Graph, right: RankProgram) -> Certificate | None:
    """The proof that two programs over the same inputs are equal, if there is one."""

    def whole(graph: Graph, names: dict[str, int]) -> dict[str, object]:
        return {
            n: place(graph.nodes[p].type.shape, right.mesh, ["Replicate()"] * len(right.mesh.axes))
            for n, p in names.items()
        }

    program = replace(right, inputs=whole(left, dict(left.inputs)), outputs=whole(left, dict(left.outputs)))
    return refine(left, program).certificate


def forged(
    left: Graph,
    right: Graph | RankProgram,
    rewritings: Sequence[Rewriting] = (NONE, NONE),
    tables: Values = ({}, {}),
    ranges: Ranges | None = None,
) -> EquivalenceCertificate | None:
    """A certificate with these stages that states all that its programs need; None where the core is not proved."""
    program = right if isinstance(right, RankProgram) else alone(right)
    bounds = ranges or {}
    try:
        base = unify_inputs(left, program, WeightMap(()), tables if any(tables) else None)
        after = [unchecked(g, r, bounds) for g, r in zip(base.graphs, rewritings, strict=True)]
        core = core_of(after[0][-1], replace(base.right, graphs=tuple(one[-1] for one in after[1:])))
        if core is None:
            return None
        return sealed_for(core, left, program, base, rewritings, bounds)
    except RewrightError:
        return None


def sealed_for(
    core: Certificate,
    left: Graph,
    right: RankProgram,
    base: Stated,
    rewritings: Sequence[Rewriting],
    ranges: Ranges,
) -> EquivalenceCertificate | None:
    """The certificate of a core and stages with the assumptions that a checker asks for."""
    ways = [unchecked(g, r, ranges) for g, r in zip(base.graphs, rewritings, strict=True)]
    after = [way[-1] for way in ways]
    try:
        between = passing([Replayed(way[0], tuple(way)) for way in ways])
    except Refused:
        between = []
    program = replace(base.right, graphs=tuple(after[1:]))
    if not is_about(core, after[0], program, Checked(), counts=False):
        return None
    gone = lost_needs(base.graphs, after)
    wanted = tuple(
        dict.fromkeys((*describe(ranges), *taken_sentences(numbers(rewritings)), *sentences(gone), *sentences(between)))
    )
    known: dict[str, Any] = {f.name: getattr(core, f.name) for f in fields(Certificate)}
    return EquivalenceCertificate(
        **{**known, "rewritings": tuple(rewritings)},
        left=digest(left),
        right=tuple(digest(graph) for graph in right.graphs),
        tables=base.tables,
        taken=wanted,
        ranges=ranges,
    )


def numbers(rewritings: Sequence[Rewriting]) -> list[Taken]:
    """What lemmas of numbers take for granted, as the forger knows it."""
    lemmas = [lemma for one in rewritings for lemma in one.lemmas if lemma.evidence == NUMBERS]
    return [one for lemma in lemmas for one in compare_closed(lemma) or ()]


def why_refused(certificate: EquivalenceCertificate, left: Graph, right: Graph | RankProgram) -> str | None:
    """Why a certificate is refused; None where it is accepted."""
    program = right if isinstance(right, RankProgram) else alone(right)
    try:
        audit(certificate, left, program, seconds=4.0)
    except RewrightError as error:
        return str(error)
    return None
