"""Alternatives as claims: what the engine proves, what it does not, and what only holds over the reals."""

from __future__ import annotations

import numpy as np
import pytest

from rewright.env.claims import prove_alternative
from rewright.env.dryrun import dry_change, dry_run
from rewright.env.evidence import evidence_for
from rewright.env.numeric import compare
from rewright.env.session import Change, Session
from tests.env.modules import RATES


def test_what_algsimp_did_is_proved_or_tested(xla: Session) -> None:
    run = dry_run(xla, xla.parse(RATES), ["algsimp"])
    found = {
        run.graph.alternatives[n].value.split(".")[0]: evidence_for(run.graph, n, run.tests[n], seconds=10)
        for n in range(len(run))
    }
    # The reciprocal of 3 is no float.
    assert {name: own.status for name, own in found.items()} == {
        "less": "proved",
        "square": "proved",
        "third": "tested",
    }


def _pair(xla: Session, before: str, after: str):
    change = Change(xla.parse(before), xla.parse(after), "pass", "", 0)
    return dry_change(xla, change)


def test_data_movement_is_proved_for_dtypes_that_the_ir_does_not_have(xla: Session) -> None:
    head = "HloModule m\nENTRY main { x = u32[4,6] parameter(0) "
    run = _pair(
        xla,
        head
        + "a = u32[6,4] transpose(x), dimensions={1,0} b = u32[4,6] transpose(a), dimensions={1,0} "
        + "ROOT r = u32[4,6] not(b) }",
        head + "c = u32[4,6] copy(x) ROOT r = u32[4,6] not(c) }",
    )
    proof = prove_alternative(run.graph, 0)
    assert (proof.proved, proof.grade) == (True, "move")


def test_true_over_the_reals_and_not_over_floats(xla: Session) -> None:
    head = """HloModule m
    ENTRY main { x = f32[4] parameter(0) c = f32[] constant(1e30) b = f32[4] broadcast(c), dimensions={} """
    run = _pair(
        xla,
        head + "s = f32[4] add(x, b) d = f32[4] subtract(s, b) ROOT r = f32[4] cosine(d) }",
        head + "y = f32[4] copy(x) ROOT r = f32[4] cosine(y) }",
    )
    # In float32 the sum forgets x; the float64 reference forgets it too, so that x itself is the outlier.
    own = evidence_for(run.graph, 0, run.tests[0])
    assert own.status == "refuted"
    assert "over the reals" in own.text


def test_what_is_wrong_is_not_proved(xla: Session) -> None:
    head = "HloModule m\nENTRY main { x = f32[4] parameter(0) "
    run = _pair(
        xla,
        head + "a = f32[4] abs(x) ROOT r = f32[4] tanh(a) }",
        head + "b = f32[4] negate(x) ROOT r = f32[4] tanh(b) }",
    )
    assert evidence_for(run.graph, 0, run.tests[0]).status == "refuted"


@pytest.mark.parametrize(
    ("after", "equal"), [(1.0, True), (1.0 + 1e-6, True), (1.01, False), (np.inf, False), (np.nan, False)]
)
def test_tolerances_scale_with_the_reference(after: float, equal: bool) -> None:
    before = np.array([1.0, 2.0], np.float32)
    assert compare(before, np.array([after, 2.0], np.float32), np.array([1.0, 2.0])).equal is equal


def test_the_error_of_the_original_is_allowed_to_the_rewrite() -> None:
    before, reference = np.array([1.001], np.float32), np.array([1.0])
    assert compare(before, np.array([0.999], np.float32), reference).equal
    assert not compare(np.array([1.0], np.float32), np.array([0.999], np.float32), reference).equal


def test_integers_are_equal_or_not() -> None:
    assert not compare(np.array([1, 2]), np.array([1, 3])).equal
