"""Rules of the house that no linter knows: sizes of files and functions, and that versions are pinned."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

from rewright import ops

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


def operators_listed(path: Path) -> int:
    """Tuples and unions of three or more operators in a file; families of operators are no list."""
    operators = {operator.__name__ for operator in ops.REGISTRY.values()}
    tree, nested, found = ast.parse(path.read_text()), set[int](), 0

    def parts(node: ast.expr) -> list[ast.expr]:
        is_union = isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)
        return [*parts(node.left), *parts(node.right)] if is_union else [node]

    def is_operator(node: ast.expr) -> bool:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ops":
            return node.attr in operators
        return isinstance(node, ast.Name) and node.id in operators

    for node in ast.walk(tree):
        if id(node) in nested:
            continue
        listed = node.elts if isinstance(node, (ast.Tuple, ast.Set, ast.List)) else []
        if isinstance(node, ast.BinOp):
            listed = parts(node)
            nested |= {id(inner) for inner in ast.walk(node)}
        found += sum(map(is_operator, listed)) >= 3
    return found


LISTED = {"lifting": 3, "optimize": 8}
"""The lists that are left, by package: what a rewrite, a repair or a diagnosis looks through. None may be added."""
LISTING = ("ops", "frontends")
"""The packages that say what operators are, and which operators those of other programs are."""
PACKAGES = sorted({path.relative_to(ROOT / "src" / "rewright").parts[0] for path in SOURCES} - {*LISTING})


@pytest.mark.parametrize("package", PACKAGES)
def test_no_package_lists_operators_anew(package: str) -> None:
    """What values may be, and what moves elements, the operators' classes know; lists of operators grow stale."""
    top = ROOT / "src" / "rewright" / package
    paths = [path for path in SOURCES if path == top or top in path.parents]
    assert sum(map(operators_listed, paths)) <= LISTED.get(package, 0)
