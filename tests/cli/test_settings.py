"""``[tool.rewright]`` of a pyproject.toml: what it gives, what counts more, and what is an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewright.cli.commands import audit, refine
from rewright.cli.main import run
from rewright.cli.optimize import optimize
from rewright.cli.settings import settings
from rewright.ir.errors import RewrightError

FILE = """
import torch
from torch import nn


def whole():
    return nn.Linear(4, 4), (torch.zeros(2, 4),)


def parallel(mesh):
    return whole()
"""


def project(folder: Path, text: str) -> Path:
    (folder / "pyproject.toml").write_text(text)
    return folder


def test_options_by_their_names(tmp_path: Path) -> None:
    text = (
        '[tool.rewright.refine]\nmesh = "tp=8"\nno-explain = true\nno-audit = true\nbudget = 60\nallow-vacuous = true\n'
    )
    found = settings(refine, "refine", [], project(tmp_path, text))
    expected = {"mesh": "tp=8", "explain": False, "confirm": False, "budget": 60, "allow_vacuous": True}
    assert found == {"refine": expected}
    assert settings(audit, "audit", [], tmp_path) == {}


def test_paths_are_relative_to_the_file_which_may_be_above(tmp_path: Path) -> None:
    project(tmp_path, '[tool.rewright.refine]\nrelations = "r.toml"\nhtml = "/elsewhere/report.html"\n')
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    found = settings(refine, "refine", [], below)["refine"]
    assert found == {"relations": str(tmp_path / "r.toml"), "html": "/elsewhere/report.html"}


def test_a_matrix_says_itself_what_is_of_each_claim(tmp_path: Path) -> None:
    project(tmp_path, '[tool.rewright.refine]\nmesh = "tp=8"\nbackward = true\nbudget = 60\n')
    assert settings(refine, "refine", ["--matrix", "m.toml"], tmp_path) == {"refine": {"budget": 60}}


def test_other_commands_have_their_own_table(tmp_path: Path) -> None:
    project(tmp_path, "[tool.rewright.optimize]\nno-floor = true\n")
    assert settings(optimize, "optimize", [], tmp_path) == {"optimize": {"floor": False}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[tool.rewright.refine]\nmehs = 'tp=8'\n",
            "'mehs' in .tool.rewright.refine. is no option .* did you mean 'mesh'",
        ),
        ("[tool.rewright.refine]\nwatch = true\n", "'watch' in .tool.rewright.refine. is no option of rewright refine"),
        ("[tool.rewright]\nrefine = 3\n", r"refine is 3; write \[tool.rewright.refine\]"),
        ("[tool]\nrewright = 3\n", "tool.rewright is 3; write a table for each command"),
        ("[tool.rewright.refine\n", "is no TOML: .*; correct that line"),
    ],
)
def test_what_is_wrong_is_told_in_a_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(RewrightError, match=message):
        settings(refine, "refine", [], project(tmp_path, text))


@pytest.mark.parametrize("text", ["", "[tool.ruff]\n", "tool = 3\n"])
def test_files_that_say_nothing_of_rewright(tmp_path: Path, text: str) -> None:
    assert settings(refine, "refine", [], project(tmp_path, text)) == {}


def test_what_is_typed_counts_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project(tmp_path, '[tool.rewright.refine]\nmesh = "tp=2"\nallow-vacuous = true\n'))
    (tmp_path / "m.py").write_text(FILE)
    assert run(["refine", "m.py:whole", "m.py:parallel"]) == 0
    assert "on 2 ranks" in capsys.readouterr().out
    assert run(["refine", "m.py:whole", "m.py:parallel", "--mesh", "tp=3"]) == 0
    assert "on 3 ranks" in capsys.readouterr().out


def test_a_value_of_a_wrong_type_is_a_usage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project(tmp_path, '[tool.rewright.refine]\nbudget = "soon"\n'))
    assert run(["refine", "a", "b"]) == 3
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_help_asks_for_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project(tmp_path, "[tool.rewright.refine\n"))
    assert run(["refine", "--help"]) == 0
    assert run(["--version"]) == 0
