"""Full disks, folders that take nothing, names in other scripts, paths of other systems, and narrow terminals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import rewright as rw
from rewright import ops
from rewright.cli.main import run
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, TensorType

FULL = Path("/dev/full")
WEIGHT = "größe"
PROGRAM = """
import torch
from torch import nn


def schräg():
    return nn.Tanh(), (torch.zeros(2, 4),)
"""


def graph(factor: float) -> Graph:
    """A weight times a number."""
    build = GraphBuilder("graph")
    tensor = TensorType((4,), DType.F32)
    weight = build.input(WEIGHT, ops.Input(WEIGHT, tensor))
    build.output("output", build.add(ops.Multiply(), weight, build.add(ops.Constant(tensor, (factor,)))))
    return build.build()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "mödel s"
    found.mkdir()
    rw.save(graph(2), found / "größe.json")
    rw.save(graph(3), found / "另.json")
    (found / "ффmodèle.py").write_text(PROGRAM, encoding="utf-8")
    monkeypatch.chdir(found)
    return found


PAIR = "equiv", "größe.json", "größe.json"


def started(*arguments: str, stdout: int | None = subprocess.PIPE, **environment: str) -> tuple[int, str, str]:
    """The status of a command in a process of its own, and what it prints."""
    ran = subprocess.run(
        [sys.executable, "-m", "rewright", *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        check=False,
        env={**os.environ, **environment},
    )
    return ran.returncode, ran.stdout or "", ran.stderr


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [("--help",), PAIR, (*PAIR, "--json")])
@pytest.mark.usefixtures("folder")
def test_a_full_disk_behind_stdout_is_one_line(arguments: tuple[str, ...]) -> None:
    with FULL.open("w") as full:
        status, _, errors = started(*arguments, stdout=full.fileno())
    assert status == 3
    assert errors == "rewright: cannot write the report: No space left on device; make room, or write elsewhere\n"


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("option", ["--html", "--junit", "--sarif", "--summary"])
@pytest.mark.usefixtures("folder")
def test_a_full_disk_behind_a_report_is_one_line(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["refine", "größe.json", "größe.json", option, str(FULL)]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert "No space left on device" in line


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder in which nobody can make a file")
@pytest.mark.parametrize(
    "arguments",
    [
        [*PAIR, "--certificate", "/proc/proof.json.gz"],
        ["capture", "ффmodèle.py:schräg", "-o", "/proc/saved.json"],
        ["optimize", "ффmodèle.py:schräg", "--emit", "/proc/code"],
        ["optimize", "ффmodèle.py:schräg", "--package", "/proc/code"],
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_folder_that_takes_nothing_is_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 3
    said = capsys.readouterr().err.splitlines()
    (line,) = (text for text in said if "No CUDA runtime is found" not in text)  # of a PyTorch that was built for one
    assert "/proc/" in line


@pytest.mark.usefixtures("folder")
def test_kernels_are_made_where_no_cache_can_be() -> None:
    status, printed, errors = started("optimize", "ффmodèle.py:schräg", "--no-floor", XDG_CACHE_HOME="/proc/no")
    assert status == 0, errors
    assert printed.startswith("proved: 1 kernels")


def test_names_in_other_scripts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", "größe.json"]) == 0
    assert r"gr\u00f6\u00dfe" in capsys.readouterr().out  # text forms are ASCII
    assert run(["refine", "größe.json", "另.json", "--sarif", "ß.json", "--html", "ß.html"]) == 1
    assert json.loads((folder / "ß.json").read_text(encoding="utf-8"))["version"] == "2.1.0"
    assert "größe.json and 另.json" in (folder / "ß.html").read_text(encoding="utf-8")
    status, printed, _ = started("equiv", "größe.json", "另.json", LC_ALL="C", PYTHONUTF8="1")
    assert status == 1
    assert WEIGHT in printed


@pytest.mark.parametrize("path", [r"C:\models\m.py", r"\\server\share\m.py", "D:/models/m.py"])
def test_a_path_of_windows_keeps_its_drive(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["equiv", f"{path}:f", f"{path}:g"]) == 3
    assert capsys.readouterr().err == f"rewright: there is no file {path}; check the path\n"


@pytest.mark.usefixtures("folder")
def test_a_narrow_terminal_wraps_nothing_that_is_copied() -> None:
    narrow, wide = started(*PAIR, COLUMNS="1"), started(*PAIR, COLUMNS="200")
    assert narrow[0] == wide[0] == 0
    assert narrow[1].splitlines()[0] == wide[1].splitlines()[0]
