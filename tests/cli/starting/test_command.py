"""``rewright init`` in repositories as people have them: what it writes runs as it is."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

import pytest

from rewright.cli.main import run
from tests.cli.starting.repositories import REPOSITORIES
from tests.versions import of_transformers_5


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in; what is imported from it is forgotten."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def begun(folder: Path, name: str, *options: str) -> int:
    """Write the files of a repository, and call the command there."""
    for path, text in REPOSITORIES[name].items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return run(["init", *options])


@pytest.mark.parametrize(
    ("name", "status", "says"),
    [
        ("own", 4, "nothing is distributed over 2 ranks"),
        ("plan", 0, "PROVED"),
        ("by hand", 1, "add the second term of layer.py:"),
        pytest.param("trainer", 0, "PROVED", marks=of_transformers_5("splits only models that it loads")),
        ("jax", 0, "PROVED"),
    ],
)
def test_what_is_written_has_a_verdict_as_it_is(
    name: str, status: int, says: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert begun(folder, name) == 0
    command = capsys.readouterr().out.splitlines()[-1].removeprefix("next: rewright ")

    assert run(command.split()) == status
    assert says in capsys.readouterr().out
    ast.parse((folder / "test_rewright_claims.py").read_text())


@pytest.mark.long
def test_a_gpt_of_megatron_is_proved_by_the_test_that_is_written(folder: Path) -> None:
    pytest.importorskip("megatron.core")
    assert begun(folder, "megatron") == 0
    scope: dict[str, Any] = {}
    exec((folder / "test_rewright_claims.py").read_text(), scope)
    scope["test_the_ranks_compute_the_model"]()


def test_the_files_for_torchtitan_are_python(folder: Path) -> None:
    """``python -m bench.titan`` runs them, where torchtitan is installed."""
    assert begun(folder, "torchtitan") == 0
    for name in ("rewright_claims.py", "test_rewright_claims.py"):
        ast.parse((folder / name).read_text())


def test_nothing_is_overwritten_unless_that_is_asked_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert begun(folder, "by hand") == 0
    (folder / "rewright_claims.py").write_text("# mine\n")

    assert run(["init"]) == 3
    assert "is there already; --force overwrites it" in capsys.readouterr().err
    assert (folder / "rewright_claims.py").read_text() == "# mine\n"
    assert run(["init", "--force"]) == 0
    assert "FeedForward" in (folder / "rewright_claims.py").read_text()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--kind", "paddle"), "--kind paddle is none; use one of torch, transformers, jax, megatron, torchtitan"),
        (("nowhere",), "there is no folder nowhere"),
        (("--model", "Backward"), "there is no Backward among FeedForward; name one of these"),
        (("--kind", "transformers"), "no model of Transformers is named in the files"),
        (("--kind", "megatron", "--model", "GPT"), "leave --model out"),
    ],
)
def test_a_wrong_call_is_one_line(
    options: tuple[str, ...], says: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert begun(folder, "by hand", *options) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line


def test_a_folder_without_programs_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "broken.py").write_text("def (:\n")
    (folder / "names.py").write_bytes(b"\xff\xfe\x00")

    assert run(["init"]) == 3
    assert "has no file that imports torch or jax" in capsys.readouterr().err
