"""The order of evidence, and how a verdict prints."""

from __future__ import annotations

from rewright.refine.verdict import Evidence, OutputRelation, Verdict


def test_evidence_is_ordered_and_a_verdict_takes_the_weakest() -> None:
    order = [Evidence.ASSUMED, Evidence.TESTED, Evidence.BOUNDED, Evidence.PROVED]
    assert sorted(Evidence) == order
    assert min(Evidence.PROVED, Evidence.TESTED) is Evidence.TESTED
    assert Evidence.PROVED > Evidence.BOUNDED >= Evidence.BOUNDED


def test_a_verdict_prints_on_one_line() -> None:
    assert str(Verdict("proved", Evidence.PROVED, reason="equal")) == "proved and audited: equal"
    assert str(Verdict("proved", Evidence.TESTED)) == (
        "proved by the engine (not audited; --audit checks it independently)"
    )
    assert str(Verdict("unknown", Evidence.TESTED, reason="out of time")) == "unknown: out of time"


def test_a_relation_prints_as_its_equation() -> None:
    assert str(OutputRelation("y", "Replicate()", "y = y@0", None, True)) == "y = y@0"
