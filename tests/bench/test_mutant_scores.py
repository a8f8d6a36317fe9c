"""The score of injected bugs: what was judged is kept, and a later run goes on from there."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.distributed import Claim
from bench.mutants.score import Judged, Record, counted, judged, settled
from tests.programs import mlp


def test_what_was_judged_is_kept_and_not_judged_again(tmp_path: Path) -> None:
    made = settled("mlp", Claim(*mlp(2)))
    record = Record(tmp_path / "mutants.jsonl")
    for entry in judged("mlp", made, 1, 0, set()):
        record.add(entry)
    record.finish("mlp")
    again = Record(tmp_path / "mutants.jsonl")
    assert again.entries == record.entries
    assert again.finished == {"mlp"}
    assert not list(judged("mlp", made, 1, 0, again.known("mlp")))
    score = counted(again.entries, by_kind=False)["mlp"]
    assert score["mutants"] == score["refuted"] + score["equivalent"] >= 8
    assert not score["wrongly proved"] + score["wrongly refuted"] + score["unknown"]


def test_outputs_are_expected_as_the_right_program_has_them() -> None:
    sequential, program = mlp(2)
    assert settled("mlp", Claim(sequential, program)).program.outputs["output"].printed == ("Replicate()",)


def test_a_mutant_that_is_refuted_far_away_is_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    Record(None).add(Judged("mlp", 0, "wrong_scale", "constant at a.py:1", "refuted", ("refuted",), "far away"))
    assert "miss: mlp 0: wrong_scale" in capsys.readouterr().err
