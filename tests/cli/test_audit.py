"""`rewright audit` from files to the exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rewright.cli.main import run
from rewright.cli.store import LemmaStore
from rewright.frontends.files import save
from tests.programs import mlp
from tests.proof.programs import deep


@pytest.fixture
def files(tmp_path: Path) -> Path:
    sequential, program = deep()
    save(sequential, tmp_path / "sequential.json")
    save(program, tmp_path / "ranks.json")
    refine(tmp_path)
    return tmp_path


def refine(folder: Path, *more: str) -> int:
    programs = [str(folder / "sequential.json"), str(folder / "ranks.json")]
    return run(["refine", *programs, "--certificate", str(folder / "proof.json.gz"), *more])


def audit(folder: Path, *more: str, proof: str = "proof.json.gz", ranks: str = "ranks.json") -> int:
    sequential = str(folder / "sequential.json")
    return run(["audit", str(folder / proof), "--sequential", sequential, "--distributed", str(folder / ranks), *more])


def test_it_says_what_was_proved(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert audit(files) == 0
    printed = capsys.readouterr().out
    for line in (
        "HOLDS 2 ranks (tp=2)",
        "Replicate(): x",
        "Shard(1): *.up (4)",
        "Replicate(): output",
        "floats are exact real numbers",
    ):
        assert line in printed


def test_the_report_as_json(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert audit(files, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["holds"] is True
    assert {"name": "output", "placement": "Replicate()"} in report["outputs"]
    assert report["stats"]["new_lemmas"] > 0


def test_refine_tells_where_it_wrote(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert refine(files, "--json") == 0
    assert json.loads(capsys.readouterr().out)["certificate"] == str(files / "proof.json.gz")


def test_a_refuted_program_has_no_certificate(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from bench.mutants import generate

    (files / "proof.json.gz").unlink()
    save(next(m for m in generate(deep()[1]) if m.kind == "dropped_collective").program, files / "ranks.json")
    capsys.readouterr()
    assert refine(files, "--json") == 1
    assert json.loads(capsys.readouterr().out)["certificate"] is None
    assert not (files / "proof.json.gz").exists()


def test_the_name_is_checked_before_the_work(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert refine(files, "--certificate", str(files / "proof.txt")) == 3
    assert refine(files, "--certificate", str(files / "nowhere" / "proof.json")) == 3
    assert "no folder" in capsys.readouterr().err


def test_other_programs_and_broken_files_are_bad_input(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(mlp(2)[1], files / "other.json")
    assert audit(files, ranks="other.json") == 3
    assert "not about the program of rank 0" in capsys.readouterr().err
    (files / "cut.json.gz").write_bytes((files / "proof.json.gz").read_bytes()[:300])
    assert audit(files, proof="cut.json.gz") == 3
    assert audit(files, proof="sequential.json") == 3
    assert audit(files, proof="nothing.json") == 3
    assert "Traceback" not in capsys.readouterr().err


def test_a_claim_that_does_not_follow_is_refused(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from rewright.proof.certificate import Certificate

    certificate = Certificate.load(files / "proof.json.gz")
    certificate.save(files / "proof.json")
    text = (files / "proof.json").read_text()
    (files / "proof.json").write_text(text.replace('"tanh"', '"sine"'))
    assert audit(files, proof="proof.json") == 1
    assert "REFUSED" in capsys.readouterr().out
    assert audit(files, "--json", proof="proof.json") == 1
    report = json.loads(capsys.readouterr().out)
    assert report["holds"] is False
    assert "equation" in report["reason"]
    (files / "proof.json").write_text(text.replace('"version":1', '"version": 1'))
    assert audit(files, proof="proof.json") == 3


def test_the_store_remembers_and_a_damaged_line_is_no_matter(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = files / "lemmas"
    new: list[int] = []
    for damage in ("", "", "not a digest\n", "cut"):
        path = store / "lemmas.txt"
        if damage:
            path.write_text(path.read_text()[:-7] + damage)
        capsys.readouterr()
        assert audit(files, "--json", "--store", str(store)) == 0
        new.append(json.loads(capsys.readouterr().out)["stats"]["new_lemmas"])
    assert new[0] > 1
    assert new[1:] == [0, 1, 1]


def test_another_checker_trusts_nothing_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LemmaStore.open(tmp_path)
    store.add("lemma")
    store.save()
    assert "lemma" in LemmaStore.open(tmp_path)
    monkeypatch.setattr("rewright.cli.store.checker_digest", lambda: "another")
    assert "lemma" not in LemmaStore.open(tmp_path)


def test_an_audited_proof_says_that_it_is_proved(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for option, evidence in (("--no-audit", "tested"), ("--audit", "proved")):
        assert refine(files, "--json", option) == 0
        assert json.loads(capsys.readouterr().out)["evidence"] == evidence


def test_small_programs_are_audited_unless_somebody_says_no(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for most, evidence in ((40_000, "proved"), (3, "tested")):
        monkeypatch.setattr("rewright.refine.engine.AUDITED", most)
        assert refine(files, "--json") == 0
        assert json.loads(capsys.readouterr().out)["evidence"] == evidence
