"""Proofs that hold where numbers are in range say so, about the programs as they were captured."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import rewright as rw
from rewright import ops
from rewright.equiv.audit import audit as audit_equivalence
from rewright.equiv.certificate import EquivalenceCertificate
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.placement import Mesh, RankProgram
from rewright.ir.types import DType, TensorType
from rewright.ops.facts import Facts
from rewright.ops.reference import building as rb
from rewright.proof.certificate import Block, Certificate
from rewright.proof.checker import Refused, audit
from rewright.proof.facts import RANKS_IN_RANGE
from rewright.proof.files import REFINEMENT
from rewright.proof.rewriting.evidence import PROVED, Checked
from rewright.proof.rewriting.lemma import Lemma
from rewright.proof.rewriting.replay import narrow_programs, replay
from rewright.proof.rewriting.splices import NOWHERE, Rewriting, Splice, Stage, Within
from rewright.proof.rewriting.within import fitting, sentences, why_not

IN_RANGE = "the indices in input 'i' are in range: from 0 to 6, neither negative nor beyond"
MESH = Mesh((("tp", 2),))


def look_up(counts: bool) -> Graph:
    """Rows of a table of seven; ``counts`` negative indices from the end."""
    b = GraphBuilder()
    x = b.input("x", ops.Input("x", TensorType((7, 3), DType.F32)))
    i = b.input("i", ops.Input("i", TensorType((4,), DType.I64)))
    k = b.input("k", ops.Input("k", TensorType((4,), DType.I64)))
    place = i
    if counts:
        below = rb.compare(b, "LT", i, rb.splat_like(b, 0, i))
        place = rb.select(b, below, rb.shift_by(b, i, 7), i)
    b.output("y", b.add(ops.Gather((1,), (0,), (), (), (0,), 1, (1, 3)), x, place))
    b.output("k", b.add(ops.Add(), k, k))
    return b.build()


def cast(chooses: bool, back: bool = False, dtype: DType = DType.I32, by_mask: bool = False) -> Graph:
    """Whole floats as integers, after a choice of what does not fit, and back again."""
    b = GraphBuilder()
    x = b.input("x", ops.Input("x", TensorType((4,), DType.F32)))
    mask = b.input("m", ops.Input("m", TensorType((4,), DType.BOOL)))
    floor = b.add(ops.Floor(), x)
    source = floor
    if by_mask:
        source = rb.select(b, mask, source, rb.splat_like(b, 0.0, source))
    elif chooses:
        limits = {DType.I32: (-2147483648.0, 2147483648.0), DType.I8: (-128.0, 128.0)}[dtype]
        low, high = (rb.splat_like(b, limit, source) for limit in limits)
        zero = rb.splat_like(b, 0.0, source)
        fits = rb.select(b, rb.compare(b, "GE", floor, low), floor, low)
        source = rb.select(b, rb.compare(b, "GE", floor, high), zero, fits)
    made = b.add(ops.Convert(dtype), source)
    b.output("y", b.add(ops.Convert(DType.F32), made) if back else made)
    return b.build()


def ranks(graph: Graph) -> RankProgram:
    return RankProgram((graph, graph), MESH, {}, {})


def proof(left: Graph, right: Graph) -> Certificate:
    verdict = rw.refine(left, ranks(right), {"*": "Replicate()"}, audit=True)
    assert (verdict.status, str(verdict.evidence)) == ("proved", "proved"), verdict.reason
    found = verdict.certificate
    assert found is not None
    assert set(found.assumptions) - {RANKS_IN_RANGE} <= set(verdict.assumptions)
    return found


@pytest.fixture(scope="module")
def looked_up() -> Certificate:
    return proof(look_up(True), look_up(False))


def test_a_refinement_is_audited_as_it_was_captured(looked_up: Certificate, tmp_path: Path) -> None:
    assert IN_RANGE in looked_up.assumptions
    looked_up.save(tmp_path / "proof.json")
    found = Certificate.load(tmp_path / "proof.json")
    assert REFINEMENT.table(found) == REFINEMENT.table(looked_up)
    assert replace(found, rewritings=()) == replace(looked_up, rewritings=())
    audit(found, look_up(True), ranks(look_up(False)))


def test_nothing_is_written_where_nothing_is_rewritten() -> None:
    found = proof(look_up(False), look_up(False))
    assert IN_RANGE not in found.assumptions
    assert "rewriting" not in REFINEMENT.table(found)


def test_an_equivalence_is_audited_as_it_was_captured(tmp_path: Path) -> None:
    found = rw.equiv(look_up(True), look_up(False)).certificate
    assert isinstance(found, EquivalenceCertificate)
    found.save(tmp_path / "proof.json")
    read = EquivalenceCertificate.load(tmp_path / "proof.json")
    assert isinstance(read, EquivalenceCertificate)
    right = RankProgram((look_up(False),), Mesh((("rank", 1),)), {}, {})
    audit_equivalence(read, look_up(True), right)
    assert IN_RANGE in (*read.taken, *read.assumptions)
    silent = replace(read, assumptions=tuple(text for text in read.assumptions if text != IN_RANGE))
    plain = replace(read, rewritings=tuple(replace(own, narrowing=()) for own in read.rewritings))
    for forged in (silent, plain):
        with pytest.raises(Refused):
            audit_equivalence(forged, look_up(True), right)


@pytest.mark.parametrize("dtype", [DType.I32, DType.I8])
def test_a_cast_of_what_fits(dtype: DType) -> None:
    left, right = cast(True, dtype=dtype), cast(False, dtype=dtype)
    found = proof(left, right)
    assert any(f"is a number that {dtype.value} holds" in text for text in found.assumptions)
    audit(found, left, ranks(right))


@pytest.mark.parametrize("dtype", [DType.I32, DType.I8])
def test_a_cast_there_and_back_is_none_where_numbers_fit(dtype: DType) -> None:
    b = GraphBuilder()
    x = b.input("x", ops.Input("x", TensorType((4,), DType.F32)))
    b.input("m", ops.Input("m", TensorType((4,), DType.BOOL)))
    b.output("y", b.add(ops.Floor(), x))
    left, right = cast(True, back=True, dtype=dtype), b.build()
    found = proof(left, right)
    assert any(f"is a number that {dtype.value} holds" in text for text in found.assumptions)
    audit(found, left, ranks(right))


def with_stage(certificate: Certificate, change: Callable[[Stage], Stage]) -> Certificate:
    first, *rest = certificate.rewritings
    stage, *more = first.narrowing
    return replace(certificate, rewritings=(replace(first, narrowing=(change(stage), *more)), *rest))


def stating(certificate: Certificate, text: str) -> Certificate:
    """The certificate with another range stated."""
    stated = tuple(text if known == IN_RANGE else known for known in certificate.assumptions)
    return replace(certificate, assumptions=stated)


def refused(forged: Certificate, why: str) -> None:
    with pytest.raises(Refused, match=why):
        audit(forged, look_up(True), ranks(look_up(False)))


def test_what_is_assumed_is_stated(looked_up: Certificate) -> None:
    silent = tuple(text for text in looked_up.assumptions if text != IN_RANGE)
    refused(replace(looked_up, assumptions=silent), "does not state: the indices in input 'i'")
    refused(with_stage(looked_up, lambda s: replace(s, within=NOWHERE)), "is not known to be what the lemma is given")


@pytest.mark.parametrize(
    ("inputs", "why"),
    [
        ((("k", 0, 6),), "is not known to be what the lemma is given"),
        ((("x", 0, 6),), "holds no indices"),
        ((("j", 0, 6),), "no input 'j'"),
        ((("i", -7, 6),), "holds no indices"),
        ((("i", 3, 2),), "holds no indices"),
        ((("i", 0, 1 << 63),), "holds no indices"),
        ((("i", 0, 7),), "does not state"),
        ((("i", 0, 3),), "does not state"),
        ((("i", 0, 6), ("i", 0, 6)), "two ranges"),
    ],
)
def test_another_range(looked_up: Certificate, inputs: tuple[tuple[str, int, int], ...], why: str) -> None:
    refused(with_stage(looked_up, lambda stage: replace(stage, within=Within(inputs))), why)


def test_nothing_is_assumed_that_no_step_needs(looked_up: Certificate) -> None:
    more = Within((("i", 0, 6), ("k", 0, 6)))
    forged = with_stage(looked_up, lambda stage: replace(stage, within=more))
    refused(forged, "what no step needs: the indices in input 'k'")


def test_another_range_that_is_stated(looked_up: Certificate) -> None:
    """A proof from another range that decides as much is one, of what it then says."""
    for high in (3, 1 << 62):
        inside = Within((("i", 0, high),))
        forged = with_stage(looked_up, lambda stage, own=inside: replace(stage, within=own))
        refused(forged, "does not state")
        audit(stating(forged, sentences(look_up(True), inside)[0]), look_up(True), ranks(look_up(False)))


def decided(truth: bool, given: bool) -> Lemma:
    """That a choice of integers is one arm of it, given its condition."""
    b = GraphBuilder()
    kind = TensorType((4,), DType.I64)
    names = ("c", "a", "b")
    c, x, y = (b.input(n, ops.Input(n, replace(kind, dtype=DType.BOOL) if n == "c" else kind)) for n in names)
    b.output("result", b.add(ops.Select(), c, x, y))
    left = GraphBuilder()
    name = "a" if truth else "b"
    left.output("result", left.input(name, ops.Input(name, kind)))
    value = int(given)
    known = Facts(value, value, not given, True, nan=False, plus_infinity=False, minus_infinity=False)
    return Lemma("", left.build(), b.build(), PROVED, (), (("c", known),))


@pytest.mark.parametrize(
    ("truth", "given", "why"),
    [(True, True, "is not known to be what the lemma is given"), (True, False, "is not proved"), (False, False, "")],
)
def test_a_choice_decided_the_other_way(looked_up: Certificate, truth: bool, given: bool, why: str) -> None:
    graph = look_up(True)
    (position,) = (p for p, node in enumerate(graph.nodes) if isinstance(node.op, ops.Select))
    held = dict(zip(("c", "a", "b"), ((p,) for p in graph.nodes[position].operands), strict=True))
    lemma = decided(truth, given)
    splice = Splice(position, lemma.key, tuple(held.items()))
    forged = with_stage(looked_up, lambda stage: Stage((splice,), (lemma,), stage.within))
    if why:
        refused(forged, why)
    else:
        audit(forged, graph, ranks(look_up(False)))


def test_ranks_with_addends_of_indices_have_no_range(looked_up: Certificate) -> None:
    graph = look_up(True)
    stage = looked_up.rewritings[0].narrowing[0]
    own = Rewriting(narrowing=(stage,))
    assert narrow_programs([graph, graph], [own, own], ["i"], Checked(), counts=False).taken == (IN_RANGE,)
    with pytest.raises(Refused, match="program 1 assumes makes no sense: there is no input 'i'"):
        narrow_programs([graph, graph], [own, own], ["k"], Checked(), counts=False)


def test_what_ranks_hold_of_another_input_has_no_range(looked_up: Certificate) -> None:
    block = Block("k", ((0, 4),), (0,), 0, "i", ((0, 4),))
    forged = replace(looked_up, rewritings=looked_up.rewritings[:1] * 3)
    programs = look_up(True), ranks(look_up(True))
    audit(forged, *programs)
    with pytest.raises(Refused, match="program 1 assumes makes no sense: there is no input 'i'"):
        audit(replace(forged, blocks=(block,)), *programs)


def test_nothing_is_assumed_before_programs_are_compared(looked_up: Certificate) -> None:
    stage = looked_up.rewritings[0].narrowing[0]
    with pytest.raises(Refused, match="in range before"):
        replay(look_up(True), Rewriting(before=(stage,)), {}, Checked())
    moved = tuple(Rewriting(before=own.narrowing) for own in looked_up.rewritings)
    refused(replace(looked_up, rewritings=moved), "only one of two implementations has")


def test_only_what_is_chosen_by_itself_may_be_taken_to_fit() -> None:
    """What a mask leaves out is not said to be a number that fits."""
    made = {True: cast(True), False: cast(False, by_mask=True)}
    for fits, graph in made.items():
        (position,) = (p for p, node in enumerate(graph.nodes) if isinstance(node.op, ops.Convert))
        assert (fitting(graph, position) is not None) is fits
        assert (why_not(graph, Within(casts=(position,)), ()) is None) is fits
    assert "no choice" in (why_not(made[True], Within(casts=(0,)), ()) or "")
    assert "no choice" in (why_not(made[True], Within(casts=(99,)), ()) or "")


def test_no_number_is_in_range() -> None:
    b = GraphBuilder()
    x = b.input("x", ops.Input("x", TensorType((4,), DType.F32)))
    far = b.add(ops.Add(), b.add(ops.Exponential(), x), rb.splat_like(b, 1e12, x))
    high = rb.splat_like(b, 2147483648.0, far)
    chosen = rb.select(b, rb.compare(b, "GE", far, high), rb.splat_like(b, 0.0, far), far)
    position = b.add(ops.Convert(DType.I32), chosen)
    b.output("y", position)
    assert "no number" in (why_not(b.build(), Within(casts=(position,)), ()) or "")


def test_the_audit_imports_no_engine() -> None:
    code = "import sys, rewright.equiv.audit; print('\\n'.join(m for m in sys.modules if m.startswith('rewright.')))"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    packages = {name.split(".")[1] for name in found}
    assert packages == {"analysis", "claims", "equiv", "ir", "ops", "proof", "terms"}
    own = {name.partition("rewright.equiv.")[2] for name in found if name.startswith("rewright.equiv.")}
    relate = {
        "inputs",
        "inputs.drawn",
        "inputs.dtypes",
        "inputs.expressions",
        "inputs.given",
        "inputs.tables",
        "inputs.weights",
    }
    assert own == {"audit", "certificate", "rewrites", "rewrites.ranges", "statement"} | relate
