"""``rewright env``: passes are listed, and choices are made line by line."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from rewright.cli.main import run
from tests.env.modules import RATES

pytest.importorskip("jax")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rates.hlo"
    path.write_text(RATES)
    return path


def test_passes(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["env", "passes", str(file)]) == 0
    assert "algsimp" in capsys.readouterr().out


def test_play(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"n\n0\np\nu\n1\nn\nw {tmp_path}/out.hlo\nwhat\nq\n"))
    assert run(["env", "play", str(file), "--names", "algsimp"]) == 0
    out = capsys.readouterr().out
    assert "choose something first" in out
    assert "proved" in out
    assert (tmp_path / "out.hlo").read_text().startswith("HloModule rates")


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["env", "play", "/nowhere.hlo"]) == 3
    assert capsys.readouterr().err.count("\n") == 1


def test_a_certificate_is_written_while_playing_and_checked_again(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "certificate.json"
    monkeypatch.setattr("sys.stdin", io.StringIO(f"0\nc {path}\nq\n"))
    assert run(["env", "play", str(file), "--names", "rule:multiply-commutes"]) == 0
    assert "proved (move)" in capsys.readouterr().out
    assert run(["env", "audit", str(path)]) == 0
    assert "1 steps" in capsys.readouterr().out
    path.write_text(path.read_text().replace("commutes", "associates"))
    assert run(["env", "audit", str(path)]) == 1
    assert "refused" in capsys.readouterr().out
    path.write_text("{")
    assert run(["env", "audit", str(path)]) == 3
