"""``rewright optimize``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rewright.cli.main import run

PROGRAM = """
import torch

def softmax():
    return (lambda x: torch.softmax(x, -1)), (torch.randn(3, 5),)
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return f"{path}:softmax"


def test_a_program_is_optimised_and_explained(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["optimize", program, "--target", "torch", "--explain"]) == 0

    text = capsys.readouterr().out
    assert "status: proved" in text and "follows the running maximum" in text


def test_code_is_written_and_the_report_is_json(
    program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["optimize", program, "--target", "torch", "--emit", str(tmp_path / "out"), "--json"]) == 0

    report = json.loads(capsys.readouterr().out)
    assert report["status"] == "proved" and report["kernels"] == 1
    assert "torch.exp" in (tmp_path / "out" / "kernels.py").read_text()


def test_a_wrong_target_is_an_input_error(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["optimize", program, "--target", "abacus"]) == 3
    assert "is none of cpu, cuda, torch" in capsys.readouterr().err
