"""Exit status 3 and one line on stderr for what cannot be run."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewright.cli.main import run


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["refin"], "No such command 'refin'. Did you mean 'refine'?"),
        (["refine"], "Missing argument"),
        (["refine", "a.json", "b.json", "--meesh", "tp=2"], "No such option: --meesh"),
        (["refine", "a.json", "b.json", "--mesh", "8"], "write name=size, for example --mesh tp=8"),
        (["refine", "a.json", "b.json", "--budget", "soon"], "Invalid value for '--budget'"),
        (["refine", "a.json", "b.json", "--budget", "-1"], "give a number of seconds above zero"),
        (["refine", "a.json", "b.json", "--relations", "missing.toml"], "cannot read missing.toml"),
        (["refine", "missing.json", "b.json"], "missing.json"),
        (["refine", "model.py", "b.json"], "write model.py:function"),
        (["capture", "missing.py:build", "-o", "out.json"], "there is no file missing.py"),
        (["capture", "missing.py:build", "-o", "nowhere/out.json"], "there is no folder nowhere; create it first"),
        (["capture", "missing.py:build", "-o", "out.txt"], "out.txt"),
        (["show", "missing.rwt"], "missing.rwt"),
    ],
)
def test_bad_usage_is_one_line_and_status_three(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(arguments) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err
    assert len(printed.err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [[], ["--help"], ["refine", "--help"], ["capture", "-h"]])
def test_help_is_printed_and_is_no_error(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 0
    assert "Usage: rewright" in capsys.readouterr().out
