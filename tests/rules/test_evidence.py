"""Evidence records: what they hold, and that no rule is used without one."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from rewright.ir.errors import RewrightError
from rewright.rules import AtMost, floats, natural, rule, size
from rewright.rules.bounded import check
from rewright.rules.evidence import collect
from rewright.rules.library import Registry
from rewright.rules.mutation import examine
from rewright.rules.pattern import concat, maximum, rsqrt, sqrt
from rewright.rules.record import Record, load, rule_digest, save
from rewright.rules.verdict import judge

n, p, q = size("n"), size("p"), size("q")
s, e = natural("s"), natural("e")
A, X, Y = floats("A", n), floats("X", p), floats("Y", q)
INSIDE = rule("inside", "a slice inside X", concat(0, X, Y).slice(s, e), X.slice(s, e), where=[AtMost(e, p)])


@pytest.fixture(scope="module")
def record() -> Record:
    return collect(INSIDE)


def test_a_record_is_complete(record: Record) -> None:
    assert record.complete
    assert (record.tier, record.grade) == ("proved", "move")
    assert record.tests["instances"] >= 20
    assert record.tests["empty"] >= 1
    assert record.tests["boundary"] >= 1
    assert len(record.bounded["identical"]) >= 3
    assert all(record.substance.values())


def test_dropping_the_condition_is_refuted(record: Record) -> None:
    fates = {mutant["change"]: mutant["fate"] for mutant in record.mutants}
    assert fates["without condition AtMost"] == "refuted"
    assert all(fate != "undecided" for fate in fates.values())


def test_records_survive_a_file(record: Record, tmp_path: Path) -> None:
    save([record], tmp_path / "evidence.json")
    assert load(tmp_path / "evidence.json")["inside"].digest == rule_digest(INSIDE)


def test_a_rule_without_a_record_is_not_registered(record: Record) -> None:
    with pytest.raises(RewrightError, match="no evidence record"):
        Registry({}).register(INSIDE)


def test_a_record_is_for_exactly_one_rule(record: Record) -> None:
    changed = dataclasses.replace(INSIDE, conditions=())
    with pytest.raises(RewrightError, match="is for another rule"):
        Registry({"inside": record}).register(changed)


def test_a_rule_that_is_only_tested_is_quarantined(record: Record) -> None:
    tested = dataclasses.replace(record, tier="tested")
    with pytest.raises(RewrightError, match="allow it by name"):
        Registry({"inside": tested}).register(INSIDE)
    assert Registry({"inside": tested}).register(INSIDE, frozenset({"inside"})) is tested


def test_a_file_that_is_cut_off_is_one_line(record: Record, tmp_path: Path) -> None:
    path = tmp_path / "evidence.json"
    save([record], path)
    path.write_text(path.read_text()[:200])
    with pytest.raises(RewrightError, match=r"evidence\.json holds no evidence records"):
        load(path)


@pytest.mark.parametrize(
    ("entry", "grade"),
    [
        (rule("", "", A.reverse().reverse(), A), "move"),
        (rule("", "", maximum(A, 0.0), maximum(A, 0.0 * 1.0).reverse().reverse()), "move"),
        (rule("", "", concat(0, X, Y).sum(0), X.sum(0) + Y.sum(0)), "assoc"),
        (rule("", "", A * 2.0, A + A), "real"),
        (rule("", "", A * rsqrt(A), A / sqrt(A)), "real"),
    ],
    ids=["reverse", "relu", "sum", "double", "rsqrt"],
)
def test_the_grade_says_what_a_proof_needed(entry: object, grade: str) -> None:
    assert judge(entry).grade == grade  # type: ignore[arg-type]


def test_the_second_checker_refuses_what_is_wrong() -> None:
    wrong = rule("wrong", "", concat(0, X, Y).sum(0), X.sum(0) - Y.sum(0))
    assert check(wrong).difference is not None
    assert check(INSIDE).difference is None


def test_mutants_of_a_constant_are_refuted() -> None:
    entry = rule("zeros", "cat(0, X) = pad(X)", concat(0, floats("z", s) * 0.0, X), X.pad(0.0, s, 0))
    fates = [mutant.fate for mutant in examine(entry)]
    assert fates.count("refuted") >= 3
    assert "also true" not in fates
