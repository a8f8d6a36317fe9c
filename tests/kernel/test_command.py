"""``rewright kernel``: exit statuses, reports, and programs that an audit reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="Triton is the extra [gpu]")

from rewright.cli.main import run as command

FILE = """
from tests.kernel import programs
from tests.kernel.references import REFERENCES

add = REFERENCES["add"]


def reference():
    return add.function, add.args


def right():
    return programs.add, add.args


def wrong():
    return programs.unmasked, add.args
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "claims.py"
    path.write_text(FILE)
    return str(path)


def run(*words: str) -> int:
    return command(list(words))


def test_a_proof_can_be_audited_from_its_files(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certificate, folder = tmp_path / "proof.json.gz", tmp_path / "programs"
    options = ["--symbolic", "x=n", "--symbolic", "y=n", "--certificate", str(certificate), "--programs", str(folder)]

    assert run("kernel", f"{file}:reference", f"{file}:right", *options) == 0
    sides = [str(folder / name) for name in ("reference.json", "kernel.json")]
    assert run("audit", str(certificate), "--left", sides[0], "--right", sides[1]) == 0
    assert run("audit", str(certificate), "--left", sides[0], "--right", sides[0]) != 0


def test_a_refutation_names_the_line(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sarif = tmp_path / "found.sarif"

    assert run("kernel", f"{file}:reference", f"{file}:wrong", "--json", "--sarif", str(sarif)) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["status"] == "refuted" and report["runs"] >= 0
    (place,) = json.loads(sarif.read_text())["runs"][0]["results"][0]["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"].endswith("tests/kernel/programs.py")


def test_what_is_no_program_is_an_error_of_one_line(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("kernel", f"{file}:reference", f"{file}:nothing") == 3
    assert capsys.readouterr().err.count("\n") == 1
