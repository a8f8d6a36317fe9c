"""``rewright refine --matrix`` from the file of claims to the exit status."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from rewright.cli.main import run
from rewright.frontends.files import save
from tests.refine.stacks import stack


def programs(folder: Path) -> Path:
    """Two versions of one model, one of them wrong, and the file that names them."""
    for version, dropped in (("right", ()), ("wrong", (1,))):
        own = folder / version
        own.mkdir()
        sequential, program = stack(2, dropped=dropped)
        save(sequential, own / "sequential.json")
        save(program, own / "ranks.json")
    matrix = folder / "matrix.toml"
    matrix.write_text(
        '[models.stack]\nsequential = "sequential.json"\ndistributed = "ranks.json"\n'
        '[versions]\nright = "right"\nwrong = "wrong"\n'
    )
    return matrix


def refine(matrix: Path, *options: str) -> int:
    return run(["refine", "--matrix", str(matrix), *options])


def test_the_worst_claim_decides_and_all_reports_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    matrix = programs(tmp_path)
    files = {form: tmp_path / f"report.{form}" for form in ("html", "junit", "sarif", "summary")}
    options = [text for form, path in files.items() for text in (f"--{form}", str(path))]
    assert refine(matrix, "--jobs", "2", *options) == 1
    out, err = capsys.readouterr()
    assert "2 claims: 1 proved, 1 refuted; 0 as before" in out
    assert "insert all_reduce over tp after" in out
    assert "proved   stack / right" in err
    assert "stack / wrong" in files["html"].read_text()
    assert "<svg" in files["html"].read_text()
    assert ElementTree.parse(files["junit"]).getroot().get("failures") == "1"
    assert len(json.loads(files["sarif"].read_text())["runs"][0]["results"]) == 1
    assert files["summary"].read_text().startswith("### Rewright: 1 proved, 1 refuted")


def test_a_second_run_proves_only_what_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    matrix, cache = programs(tmp_path), str(tmp_path / "cache")
    assert refine(matrix, "--cache", cache, "--audit", "--json") == 1
    first = json.loads(capsys.readouterr().out)["claims"]
    assert [claim["cached"] for claim in first] == [False, False]
    sequential, program = stack(2)
    save(sequential, tmp_path / "wrong" / "sequential.json")
    save(program, tmp_path / "wrong" / "ranks.json")
    assert refine(matrix, "--cache", cache, "--audit", "--json") == 0
    second = json.loads(capsys.readouterr().out)["claims"]
    assert [claim["cached"] for claim in second] == [True, True]  # it is now the same program as the other version
    assert [claim["report"]["evidence"] for claim in second] == ["proved", "proved"]


def test_what_cannot_be_compared_is_an_error_and_the_rest_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    matrix = programs(tmp_path)
    (tmp_path / "wrong" / "ranks.json").write_text("{")
    assert refine(matrix, "--json") == 3
    claims = json.loads(capsys.readouterr().out)["claims"]
    assert [claim["status"] for claim in claims] == ["proved", "error"]
    assert "ranks.json" in claims[1]["error"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["refine", "--matrix", "m.toml", "--mesh", "tp=2"], "--mesh and --matrix do not go together"),
        (["refine", "--matrix", "m.toml"], "cannot read m.toml"),
        (["refine", "--cache", "c", "a.json", "b.json"], "give them with --matrix"),
        (["refine"], "give a sequential and a distributed program, or --matrix"),
    ],
)
def test_usage_errors_are_one_line(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(arguments) == 3
    err = capsys.readouterr().err
    assert message in err
    assert len(err.splitlines()) == 1
    matrix = programs(tmp_path)
    assert run(["refine", "--matrix", str(matrix), "--executor", "cloud"]) == 3
