"""A small file check: expectations are comments beside the program, as in the tests of LLVM.

``// CHECK: text``       a later line contains the text
``// CHECK-NEXT: text``  the very next line contains it
``// CHECK-NOT: text``   no line up to the next match contains it
"""

from __future__ import annotations

import re
from pathlib import Path

_CHECK = re.compile(r"//\s*(CHECK(?:-NEXT|-NOT)?|ERROR):\s*(.*?)\s*$")


def directives(path: Path) -> list[tuple[str, str]]:
    """The expectations of a file in order, as (directive, text)."""
    found = [match for line in path.read_text().splitlines() if (match := _CHECK.search(line))]
    return [(match[1], match[2]) for match in found]


def file_check(path: Path, output: str) -> None:
    """Compare an output with the expectations in a file; raises AssertionError naming the first that fails."""
    checks = [(kind, text) for kind, text in directives(path) if kind != "ERROR"]
    assert checks, f"{path.name} expects nothing; write CHECK: lines"
    lines = output.splitlines()
    at = 0
    forbidden: list[str] = []
    for kind, text in checks:
        if kind == "CHECK-NOT":
            forbidden.append(text)
            continue
        last = at + 1 if kind == "CHECK-NEXT" else len(lines)
        match = next((i for i in range(at, min(last, len(lines))) if text in lines[i]), None)
        assert match is not None, f"{path.name}: {kind}: {text}\nis not in\n" + "\n".join(lines[at:last])
        _refuse(path, forbidden, lines[at:match])
        forbidden, at = [], match + 1
    _refuse(path, forbidden, lines[at:])


def _refuse(path: Path, forbidden: list[str], lines: list[str]) -> None:
    for text in forbidden:
        assert not any(text in line for line in lines), f"{path.name}: CHECK-NOT: {text}"
