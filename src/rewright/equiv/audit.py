"""The audit of two implementations: nothing is searched for, and no rewrite is made again.

The map is put in front of both programs, every step of their rewritings is checked against its lemma, every lemma is
proved again, and the checker of ``rewright.proof`` verifies the rest.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rewright.equiv.certificate import EquivalenceCertificate
from rewright.equiv.inputs.drawn import fault_of_draws
from rewright.equiv.inputs.weights import WeightMap
from rewright.equiv.rewrites.ranges import describe, inputs_out_of_range, known_ranges
from rewright.equiv.statement import Stated, Values, unify_inputs
from rewright.ir.digest import digest
from rewright.ir.errors import OtherPrograms, Refused, RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import Placement, RankProgram
from rewright.ops.base import Array
from rewright.proof.calls import check_calls
from rewright.proof.certificate import Certificate
from rewright.proof.checker import SECONDS, Audit
from rewright.proof.checker import audit as check_core
from rewright.proof.ledger import Store
from rewright.proof.rewriting.evidence import Checked
from rewright.proof.rewriting.replay import Replayed, lost_needs, passing, premises, replay, sentences
from rewright.proof.unwritten import with_own_memory
from rewright.proof.wrapping import wrapping_inputs


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
    checked: Checked | None = None,
) -> Confirmed:
    """Verify a certificate for these programs.

    Args:
        certificate: what is claimed, and how it is proved.
        left: the left program as it was captured.
        right: the right one, or the programs of all ranks.
        tables: values of inputs that are known; those of the certificate must be these.
        store: lemmas of the core that were proved before.
        seconds: how long one lemma may take.
        checked: knows lemmas that it checked before; one of its own by default.

    Raises:
        Refused: naming the step, for anything that does not follow.
    """
    started = time.perf_counter()
    left, right = with_own_memory(left, right)
    expected = (certificate.left, *certificate.right)
    if len(expected) != 1 + len(right.graphs):
        raise OtherPrograms(f"the certificate is about {len(expected) - 1} right programs, not {len(right.graphs)}")
    for name, known, graph in zip(_names(right), expected, (left, *right.graphs), strict=True):
        if digest(graph) != known:
            raise OtherPrograms(f"the certificate is not about the {name} that was given")
    check_calls(certificate.calls, (left, *right.graphs))
    _check_tables(certificate, tables)
    within = known_ranges(left, right, WeightMap(certificate.definitions), tables)
    for name in inputs_out_of_range(certificate.ranges, within):
        raise OtherPrograms(f"the certificate is about other values of {name!r} than those that were given")
    fault = fault_of_draws(left, right, WeightMap(certificate.definitions))
    if fault:
        raise Refused(fault)
    base = _statement(certificate, left, right)
    own = checked or Checked(seconds=seconds)
    mine, *theirs = _rewrite(certificate, base, own)
    elapsed = time.perf_counter() - started
    program = replace(base.right, graphs=tuple(theirs))
    core = check_core(certificate.core(), mine, program, store, seconds, counts=False, checked=own)
    core.seconds["lemmas and splices"] = elapsed
    compared = mine if core.sequential is None else core.sequential
    if len(theirs) == 1:
        is_identity(certificate, compared)
    stages = [stage for rewriting in certificate.rewritings for stage in rewriting.stages]
    lemmas = {(lemma.evidence, lemma.key) for stage in stages for lemma in stage.lemmas}
    return Confirmed(core, len(lemmas), sum(len(stage.splices) for stage in stages), compared)


def _names(right: RankProgram) -> list[str]:
    several = len(right.graphs) > 1
    return ["left program", *(f"right program{f' of rank {k}' if several else ''}" for k in range(len(right.graphs)))]


def _check_tables(certificate: EquivalenceCertificate, given: Values | None) -> None:
    """Tables that are known are those of the certificate."""
    for side, own, known in zip(("left", "right"), certificate.tables, given or ({}, {}), strict=True):
        for name, value in own.items():
            if name in known and not _same(np.asarray(known[name], np.float64), value):
                raise OtherPrograms(f"the certificate has other values of {name!r} of the {side} program")


def _same(a: Array, b: Array) -> bool:
    return a.shape == b.shape and np.array_equal(a, b, equal_nan=True)


def _statement(certificate: EquivalenceCertificate, left: Graph, right: RankProgram) -> Stated:
    try:
        base = unify_inputs(left, right, WeightMap(certificate.definitions), certificate.tables)
    except RewrightError as error:
        raise Refused(f"the weight map does not fit the programs: {error}") from None
    for side, known, used in zip(("left", "right"), certificate.tables, base.tables, strict=True):
        if known.keys() != used.keys():
            name = sorted(known.keys() ^ used.keys())[0]
            raise Refused(f"the certificate has values of {name!r} of the {side} program, which are not to be had")
    return base


def _replay(certificate: EquivalenceCertificate, base: Stated, checked: Checked) -> list[Replayed]:
    """Both programs as they were rewritten, the left one first."""
    rewritings = certificate.rewritings
    if len(rewritings) != len(base.graphs):
        raise Refused(f"the certificate says of {len(rewritings)} programs how they were rewritten")
    pairs = zip(base.graphs, rewritings, strict=True)
    found = [replay(graph, rewriting, certificate.ranges, checked) for graph, rewriting in pairs]
    other = certificate.ranges.keys() - set(wrapping_inputs([one.written for one in found]))
    if other:
        raise Refused(f"the certificate has bounds of {sorted(other)[0]!r}, which its programs do not need")
    return found


def _rewrite(certificate: EquivalenceCertificate, base: Stated, checked: Checked) -> list[Graph]:
    """The programs that the core begins with; what they take for granted must be stated."""
    programs = _replay(certificate, base, checked)
    graphs = [one.graph for one in programs]
    gone, between = lost_needs(base.graphs, graphs), passing(programs)
    for one in gone:
        if one.is_violated:
            raise Refused(f"the proof rests on a condition that cannot hold: {sentences([one])[0]}")
    before = [replace(rewriting, narrowing=()) for rewriting in certificate.rewritings]
    conditions = *sentences(gone), *sentences(between)
    wanted = tuple(dict.fromkeys((*describe(certificate.ranges), *premises(before, checked), *conditions)))
    if certificate.taken != wanted:
        raise Refused("the certificate states other assumptions than those that its programs need")
    return graphs


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


__all__ = ["Confirmed", "audit", "is_identity"]
