"""The rooms of the house as a table: ``make rooms`` writes it into docs/explanation/architecture.md.

Floors are those of the import contract in ``pyproject.toml``; what a package is, its docstring says in its first
sentence.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
SOURCE = ROOT / "src" / "rewright"
_TABLE = re.compile(r"\| floor \| package \|.*?\n(?=\n)", re.DOTALL)


def floors() -> list[list[str]]:
    """The packages of each floor, the lowest first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers: list[str] = next(one["layers"] for one in contracts if one["type"] == "layers")
    return [re.findall(r"\w+", layer) for layer in reversed(layers)]


def sentence(package: str) -> str:
    """The first sentence of what a package, or a module, says of itself."""
    folder = SOURCE / package
    path = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    text = " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").split())
    found = re.match(r".*?[.?](?= |$)", text)
    if found is None:
        raise ValueError(f"{path} says nothing of itself in its first sentence")
    return found.group(0).replace("``", "`")


def table() -> str:
    """The table, the top floor first."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "| floor | package | what it is |"
    yield "|---|---|---|"
    for number, packages in reversed(list(enumerate(floors()))):
        for package in packages:
            yield f"| {number} | `{package}` | {sentence(package)} |"


if __name__ == "__main__":
    PAGE.write_text(_TABLE.sub(lambda _: table(), PAGE.read_text()))
