"""Lines of the package by subpackage: code, docstrings, comments and blank lines apart, by ``make lines``.

``python -m bench.lines CHECKOUT`` counts those of another checkout, such as an older one.
"""

from __future__ import annotations

import ast
import io
import statistics
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from bench.tables import print_table

KINDS = ("code", "docstrings", "comments", "blank")
_SPACE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def counted(path: Path) -> Counter[str]:
    """How many lines of a file are of each kind; a line with code and a comment is code."""
    text = path.read_text()
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    docstrings = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    written = {line for token in tokens if token.type not in _SPACE for line in range(token.start[0], token.end[0] + 1)}
    comments = {token.start[0] for token in tokens if token.type == tokenize.COMMENT}
    code = written - docstrings
    found = Counter(code=len(code), docstrings=len(docstrings), comments=len(comments - code - docstrings))
    found["blank"] = len(text.splitlines()) - found.total()
    return found


def rows(checkout: Path) -> Iterator[list[object]]:
    """A row for each subpackage of a checkout, the largest first; modules beside them; and their sum."""
    by_package: dict[str, list[Counter[str]]] = {}
    root = checkout / "src" / "rewright"
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).parts[0] if path.parent != root else "(modules)"
        by_package.setdefault(name, []).append(counted(path))
    for name, files in sorted(by_package.items(), key=lambda item: -_total(item[1])):
        yield _row(name, files)
    yield _row("all", [own for files in by_package.values() for own in files])


def _total(files: list[Counter[str]]) -> int:
    return sum(own.total() for own in files)


def _row(name: str, files: list[Counter[str]]) -> list[object]:
    lines = sum(files, Counter[str]())
    median = round(statistics.median(own.total() for own in files))
    return [name, len(files), median, *(f"{lines[kind]:,}" for kind in KINDS), f"{lines.total():,}"]


if __name__ == "__main__":
    own = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1]
    print_table(["package", "files", "median", *KINDS, "all"], rows(own))
