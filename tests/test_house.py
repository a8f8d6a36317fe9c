"""Rules of the house that no linter knows: sizes of files and functions, and that versions are pinned."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_no_file_is_long(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 600


def test_nearly_all_functions_fit_a_screen() -> None:
    lengths = [
        (node.end_lineno or node.lineno) - node.lineno + 1
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    assert sum(length < 35 for length in lengths) >= 0.95 * len(lengths)


def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(item for name, group in extras.items() if name != "gpu" for item in group)]
    pinned = {
        line.partition("==")[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if line and not line.startswith("#")
    }
    names = [re.split(r"[<>=;\[ ]", requirement)[0].lower() for requirement in wanted]
    assert [name for name in names if name not in pinned] == []


def test_continuous_integration_runs_what_a_user_runs() -> None:
    script = (ROOT / ".ci" / "run").read_text().splitlines()
    commands = [line for line in script if line and not line.startswith(("#", "set ", "cd "))]
    assert commands == ["make test"]
