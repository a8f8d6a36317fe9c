"""``rewright show``: text, and pictures around places and failures."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from rewright.cli.main import run
from rewright.frontends.files import save
from tests.refine.stacks import stack

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    sequential, program = stack(3, dropped=[1])
    save(sequential, tmp_path / "sequential.json")
    save(program, tmp_path / "ranks.json")
    save(stack(3)[1], tmp_path / "right.json")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def focus(text: str) -> list[str]:
    """The titles of the boxes that are marked."""
    root = ElementTree.fromstring(text)
    found = [node for node in root.iter(f"{SVG}g") if "focus" in str(node.get("class"))]
    return [str(title.text).splitlines()[2] for node in found if (title := node.find(f"{SVG}title")) is not None]


def test_both_programs_around_the_failure(folder: Path) -> None:
    assert run(["show", "sequential.json", "ranks.json", "--svg", "failure.svg"]) == 0
    assert focus((folder / "failure.svg").read_text()) == ["sequential.py:103", "parallel.py:103"]


@pytest.mark.parametrize(
    ("place", "lines"),
    [
        ("output", ["sequential.py:124", "parallel.py:124"]),
        ("layers.1.up", ["sequential.py:4", "parallel.py:4"]),
        ("sequential.py:103", ["sequential.py:103", "parallel.py:103"]),
    ],
)
def test_both_programs_around_a_place(
    place: str, lines: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["show", "sequential.json", "right.json", "--around", place, "--svg", "-"]) == 0
    assert focus(capsys.readouterr().out) == lines


def test_one_program_around_a_position(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", "sequential.json", "--around", "%8", "--svg", "-", "--steps", "1"]) == 0
    assert len(focus(capsys.readouterr().out)) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sequential.json", "right.json", "--svg", "-"], "the verdict is proved and has no findings"),
        (["sequential.json", "ranks.json", "--svg", "-", "--finding", "9"], "--finding 9: there are 1"),
        (["sequential.json", "--around", "outputs", "--svg", "-"], "did you mean 'output'"),
        (["sequential.json", "--around", "%999", "--svg", "-"], "name one of them"),
        (["sequential.json", "--around", "x.py:1", "--svg", "-"], "no operator comes from that line"),
        (["sequential.json", "ranks.json"], "say where with --svg FILE"),
        (["sequential.json", "--svg", "gone/a.svg"], "there is no folder gone"),
    ],
)
def test_usage_errors_are_one_line(
    arguments: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["show", *arguments]) == 3
    err = capsys.readouterr().err
    assert message in err
    assert len(err.splitlines()) == 1
