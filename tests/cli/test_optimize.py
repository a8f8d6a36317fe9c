"""``rewright optimize``."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import numpy as np
import pytest

import rewright as rw
from rewright.cli.main import run
from rewright.interp.program import run as execute
from rewright.ir.graph import Graph

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


def test_what_is_printed_in_triton_is_proved_where_it_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("triton", reason="Triton is the extra [gpu]")
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.replace("torch.softmax(x, -1)", "x.exp() / (1 + x * x)"))
    given = ["optimize", f"{path}:softmax", "--target", "torch", "--no-floor", "--forget", "--prove-kernels", "--json"]
    assert run(given) == 0
    assert json.loads(capsys.readouterr().out)["printed"] == "proved"


def test_sizes_stay_symbols(program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["optimize", program, "--symbolic", "x=rows,_", "--no-floor", "--explain", "--emit", str(tmp_path)]
    assert run(given) == 0

    text = capsys.readouterr().out
    assert "status: proved" in text and "kernel0: grid 1, rows rows" in text and "where rows = 1; rows = 2" in text
    assert "const long size_rows = sizes[0];" in (tmp_path / "kernels.cpp").read_text()
    certificate, programs = tmp_path / "certificate.json.gz", [tmp_path / "program.json", tmp_path / "plan.json"]
    assert run(["audit", str(certificate), "--left", str(programs[0]), "--right", str(programs[1])]) == 0


def test_kernels_that_take_sizes_are_not_packaged(
    program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["optimize", program, "--symbolic", "x=rows,_", "--no-floor", "--package", str(tmp_path / "out")]) == 3
    assert "kernels take its sizes; leave these fixed to package it" in capsys.readouterr().err


def test_a_wrong_target_is_an_input_error(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["optimize", program, "--target", "abacus"]) == 3
    assert "is none of cpu, cuda, torch" in capsys.readouterr().err


OPAQUE = """
import torch

def spectrum():
    return (lambda x, y: torch.softmax(torch.special.bessel_j1(x) @ y, -1) @ x), (torch.randn(6, 6), torch.randn(6, 6))
"""


def test_operators_without_a_lowering_are_left_to_a_library_as_by_the_function(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "program.py"
    path.write_text(OPAQUE)
    name = f"{path}:spectrum"

    assert run(["optimize", name, "--target", "torch", "--emit", str(tmp_path / "out")]) == 0

    assert "program.py:5 is left to the library" in capsys.readouterr().out
    files = [str(tmp_path / "out" / f) for f in ("certificate.json.gz", "program.json", "plan.json")]
    assert run(["audit", files[0], "--left", files[1], "--right", files[2]]) == 0


MASKED = """
import torch

def attention():
    keep = torch.ones(4, 6, dtype=torch.bool)
    keep[2] = False
    q, k, v = (torch.randn(1, 2, n, 8) for n in (4, 6, 6))
    return torch.nn.functional.scaled_dot_product_attention, (q, k, v, keep)
"""


def test_a_query_without_keys_is_zero_as_in_pytorch(tmp_path: Path) -> None:
    """The program that is optimised is the one that runs, whichever door it comes through."""
    path = tmp_path / "masked.py"
    path.write_text(MASKED)
    assert run(["optimize", f"{path}:attention", "--target", "torch", "--emit", str(tmp_path / "out")]) == 0

    function, args = runpy.run_path(str(path))["attention"]()
    program = rw.load(tmp_path / "out" / "program.json")
    assert isinstance(program, Graph)
    given = {f"args.{number}": value.numpy() for number, value in enumerate(args)}

    found = execute(program, given)["output"]

    assert (found[:, :, 2] == 0).all()
    np.testing.assert_allclose(found, function(*args).numpy(), atol=1e-6)
