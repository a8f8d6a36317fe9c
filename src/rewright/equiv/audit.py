"""The audit of two implementations: the compared programs are made again, and every step in between is checked.

Nothing is searched for. The map is put in front of both programs, every lemma is proved again, every splice is compared
with its lemma, and the checker of ``rewright.proof`` verifies the rest.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rewright.equiv.certificate import EquivalenceCertificate
from rewright.equiv.lemmas import PROVED, Lemma, Prover
from rewright.equiv.masks import COMPUTED, is_computed
from rewright.equiv.preparing import Asked, Prepared, Values, asked, prepared
from rewright.equiv.ranges import held, outside
from rewright.equiv.splices import Stage, spliced, why_not
from rewright.equiv.weights import WeightMap
from rewright.ir.digest import digest
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import Placement, RankProgram
from rewright.ops.base import Array
from rewright.proof.certificate import Certificate
from rewright.proof.checker import SECONDS, Audit, OtherPrograms, Refused, Store
from rewright.proof.checker import audit as check_core
from rewright.proof.unwritten import with_own_memory


@dataclass(frozen=True)
class Confirmed:
    """What was checked: the core, and the lemmas and splices in front of it."""

    core: Audit
    lemmas: int
    splices: int
    left: Graph
    """The left program as it was compared."""


def audit(
    certificate: EquivalenceCertificate,
    left: Graph,
    right: RankProgram,
    tables: Values | None = None,
    store: Store | None = None,
    seconds: float = SECONDS,
    prover: Prover | None = None,
) -> Confirmed:
    """Verify a certificate for these programs.

    Args:
        certificate: what is claimed, and how it is proved.
        left: the left program as it was captured.
        right: the right one, or the programs of all ranks.
        tables: values of inputs that are known; those of the certificate must be these.
        store: lemmas of the core that were proved before.
        seconds: how long one lemma may take.
        prover: knows lemmas that it proved before; one of its own by default.

    Raises:
        Refused: naming the step, for anything that does not follow.
    """
    started = time.perf_counter()
    left, right = with_own_memory(left, right)
    stated = (certificate.left, *certificate.right)
    if len(stated) != 1 + len(right.graphs):
        raise OtherPrograms(f"the certificate is about {len(stated) - 1} right programs, not {len(right.graphs)}")
    for name, expected, graph in zip(_names(right), stated, (left, *right.graphs), strict=True):
        if digest(graph) != expected:
            raise OtherPrograms(f"the certificate is not about the {name} that was given")
    _check_tables(certificate, tables)
    pair = _prepared(certificate, left, right)
    known = held(left, right, WeightMap(certificate.definitions), tables)
    for name in outside(certificate.ranges, known):
        raise OtherPrograms(f"the certificate is about other values of {name!r} than those that were given")
    program = with_stages(pair.right, certificate.stages, prover or Prover(seconds=seconds))
    found = _asked(certificate, pair, program)
    mine, theirs = found.left, found.right
    if len(theirs.graphs) == 1:
        is_identity(certificate, mine)
    elapsed = time.perf_counter() - started
    core = check_core(certificate.core(), mine, theirs, store, seconds, counts=False)
    core.seconds["lemmas and splices"] = elapsed
    stages = certificate.stages
    return Confirmed(core, sum(len(s.lemmas) for s in stages), sum(len(s.splices) for s in stages), mine)


def with_stages(program: RankProgram, stages: Sequence[Stage], prover: Prover) -> RankProgram:
    """The right program with all splices; raises Refused for a lemma or a splice that does not follow."""
    if stages and len(program.graphs) != 1:
        raise Refused("there are splices of programs of several ranks, which is not provided for")
    graphs = program.graphs
    for number, stage in enumerate(stages):
        for position, lemma in enumerate(stage.lemmas):
            why = _unproved(lemma, prover)
            if why is not None:
                raise Refused(f"lemma {position} of stage {number} is not proved: {why}")
        why = why_not(graphs[0], stage)
        if why is not None:
            raise Refused(f"stage {number}: {why}")
        try:
            graphs = (spliced(graphs[0], stage),)
        except RewrightError as error:
            raise Refused(f"stage {number} makes no program: {error}") from None
    return replace(program, graphs=graphs)


def _unproved(lemma: Lemma, prover: Prover) -> str | None:
    if len(lemma.left.outputs) != 1 or len(lemma.right.outputs) != 1:
        return "it is not about one tensor"
    if lemma.evidence == COMPUTED:
        return None if is_computed(lemma) else "its sides are other numbers, or are computed with rounding"
    if lemma.evidence != PROVED:
        return f"there is no evidence of the kind {lemma.evidence!r:.40}"
    return None if prover.proves(lemma.left, lemma.right) else prover.why_not(lemma.left, lemma.right)


def _names(right: RankProgram) -> list[str]:
    several = len(right.graphs) > 1
    return ["left program", *(f"right program{f' of rank {k}' if several else ''}" for k in range(len(right.graphs)))]


def _check_tables(certificate: EquivalenceCertificate, given: Values | None) -> None:
    """Tables that are known are those of the certificate."""
    for side, stated, known in zip(("left", "right"), certificate.tables, given or ({}, {}), strict=True):
        for name, value in stated.items():
            if name in known and not _same(np.asarray(known[name], np.float64), value):
                raise OtherPrograms(f"the certificate has other values of {name!r} of the {side} program")


def _same(a: Array, b: Array) -> bool:
    return a.shape == b.shape and np.array_equal(a, b, equal_nan=True)


def _prepared(certificate: EquivalenceCertificate, left: Graph, right: RankProgram) -> Prepared:
    try:
        weights = WeightMap(certificate.definitions)
        pair = prepared(left, right, weights, certificate.tables, held=certificate.ranges, counts=True)
    except RewrightError as error:
        raise Refused(f"the weight map does not fit the programs: {error}") from None
    if pair.violated:
        raise Refused(f"the proof rests on a condition that cannot hold: {pair.violated}")
    for side, stated, used in zip(("left", "right"), certificate.tables, pair.tables, strict=True):
        if stated.keys() != used.keys():
            name = sorted(stated.keys() ^ used.keys())[0]
            raise Refused(f"the certificate has values of {name!r} of the {side} program, which are not to be had")
    if dict(pair.ranges) != dict(certificate.ranges):
        name = sorted(certificate.ranges.keys() ^ pair.ranges.keys())[0]
        raise Refused(f"the certificate has bounds of {name!r}, which its programs do not need")
    return pair


def _asked(certificate: EquivalenceCertificate, pair: Prepared, program: RankProgram) -> Asked:
    """The programs that the core is about; what they assume must be stated."""
    found = asked(pair, program, certificate)
    if found is None:
        raise Refused("what the map and the splices make of the programs is not what was proved equal")
    if certificate.taken != found.taken:
        raise Refused("the certificate states other assumptions than those that its programs need")
    return found


def is_identity(certificate: Certificate, left: Graph) -> None:
    """Both programs read the same tensors and have the same outputs, none of them permuted or in part; or Refused."""
    if certificate.blocks:
        raise Refused(f"relation of {certificate.blocks[0].name!r}: the weight map alone says what inputs are")
    outputs = {name: output.placement for name, output in certificate.outputs.items()}
    if outputs.keys() != left.outputs.keys():
        raise Refused("the certificate is not about all outputs")
    for what, placements, positions in (
        ("input", certificate.relations, left.inputs),
        ("output", outputs, left.outputs),
    ):
        for name, placement in placements.items():
            if name not in positions or not _is_whole(placement, left.nodes[positions[name]].type.shape):
                raise Refused(f"{what} {name!r} is not the same tensor on both sides")


def _is_whole(placement: Placement, shape: Sequence[object]) -> bool:
    runs = placement.runs
    return not placement.partial and len(runs) == 1 and list(runs[0]) == [((0, n),) if n != 0 else () for n in shape]


__all__ = ["Confirmed", "audit", "with_stages"]
