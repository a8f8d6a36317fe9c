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
    monkeypatch.setattr("sys.stdin", io.StringIO(f"n\n0\np\np 1\nl 1\nu\n1\nn\nw {tmp_path}/out.hlo\nwhat\nq\n"))
    assert run(["env", "play", str(file), "--names", "algsimp"]) == 0
    out = capsys.readouterr().out
    assert "choose something first" in out
    assert "  0 divide(x.1, 3) = multiply(x.1, 0.333333)  [algsimp" in out
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
    for command in (["audit"], ["env", "audit"]):
        assert run([*command, str(path)]) == 0
        printed = capsys.readouterr().out
        assert "HOLDS" in printed and "proved (move)" in printed and "1 steps" in printed
    path.write_text(path.read_text().replace("commutes", "associates"))
    assert run(["audit", str(path)]) == 1
    assert "REFUSED" in capsys.readouterr().out
    path.write_text("{")
    assert run(["env", "audit", str(path)]) == 3


def test_what_is_typed_by_mistake_is_one_line_and_play_goes_on(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ["²", "-1", "999", "9" * 5000, "w /nowhere/x", f"h {tmp_path}", "c /nowhere/x", "what", "", "0"]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join([*lines, "q\n"])))
    assert run(["env", "play", str(file), "--names", "algsimp"]) == 0
    out = capsys.readouterr().out
    assert out.count("no: ") == len(lines) - 1
    assert "cannot write /nowhere/x: No such file or directory; name another file" in out
    assert "\nx   0" in out


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("broken.hlo", "HloModule m\nENTRY e { x = f32[4] parameter(0) ROOT y = f32[4] add(x, z) }", "broken.hlo: XLA"),
        ("broken.pb", "no proto", "broken.pb: XLA refuses"),
        ("broken.mlir", "module {", "broken.mlir: XLA refuses"),
        ("empty.hlo", "", "no HLO module"),
    ],
)
def test_a_file_that_is_no_module_is_one_line_that_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, message: str
) -> None:
    (tmp_path / name).write_text(text)
    assert run(["env", "passes", str(tmp_path / name)]) == 3
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["play", "FILE", "--names", "algsimq"], "no pass 'algsimq'"),
        (["play", "FILE", "--names", ","], "no pass is named"),
        (["play", "FILE", "--names", "rule:none"], "no rule 'none'"),
        (["passes", "FILE", "--target", "abacus"], "no GPU 'abacus'"),
        (["bench", "FILE", "--agents", "nobody"], "no agent 'nobody'"),
        (["bench", "FILE", "--agents", "greedy", "--out", "/dev/null/x"], "cannot write to /dev/null/x"),
        (["audit", "DEEP"], "is no JSON"),
    ],
)
def test_wrong_arguments_are_one_line(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    deep = tmp_path / "deep.json"
    deep.write_text("[" * 100_000)
    assert run(["env", *({"FILE": str(file), "DEEP": str(deep)}.get(a, a) for a in arguments)]) == 3
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
