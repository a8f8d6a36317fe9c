"""Whether the tests of certificates need every check of the checker, by ``make mutants-checker``.

Each check (a condition under which it refuses) is taken out of a copy of the checker, two at a time in copies of their
own, and the tests must then fail, the quick ones first. ``python -m bench.checker WORDS ..`` takes only the checks
whose line has one of the words.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bench.tables import print_table

MODULES = (
    *("checker", "ledger", "repetition", "relations", "theory", "lemma", "facts", "meaning", "forms", "programs"),
    "local",
)
TESTS = ("forms", "meaning", "attacks", "ends", "blocks", "local", "audit", "tampering")
"""In the order of the time that they take: the first failure ends a run."""
JOBS = 2
_ERRORS = frozenset({"Refused", "OtherPrograms", "Damaged", "Malformed", "TooHard", "NoMeaning", "Conflict"})
_CALLS = frozenset({"_demand", "_check_integer", "_region", "_variables", "check_parts", "check_definition", "_only"})
_METHODS = frozenset({"_in_order", "_check_group", "_check_terms", "_check", "_node", "value", "prove", "enter"})


@dataclass(frozen=True)
class Check:
    """One check: the module, the place of its node in the tree, and its line."""

    module: str
    line: int
    column: int
    text: str


def checks(root: Path) -> Iterator[Check]:
    """Every check of the checker's own modules."""
    for module in MODULES:
        text = (root / f"{module}.py").read_text()
        lines = text.splitlines()
        for node in ast.walk(ast.parse(text)):
            if _is_check(node):
                assert isinstance(node, ast.stmt)
                yield Check(module, node.lineno, node.col_offset, lines[node.lineno - 1].strip())


def without(text: str, check: Check) -> str:
    """A module without one check."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if not _is_check(node) or (getattr(node, "lineno", 0), getattr(node, "col_offset", 0)) != (
            check.line,
            check.column,
        ):
            continue
        if isinstance(node, ast.If):
            node.test = ast.Constant(False)
        elif isinstance(node, ast.Expr):
            node.value = ast.Constant(None)
    return ast.unparse(tree)


def _is_check(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        last = node.body[-1]
        return isinstance(last, ast.Raise) and _raises(last)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        called = node.value.func
        if isinstance(called, ast.Name):
            return called.id in _CALLS
        return isinstance(called, ast.Attribute) and called.attr in _METHODS | _CALLS
    return False


def _raises(node: ast.Raise) -> bool:
    error = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    return isinstance(error, ast.Name) and error.id in _ERRORS


def killed(check: Check, tests: Sequence[str] = TESTS, seconds: float = 200) -> str:
    """The first test that fails without a check, or nothing where all pass."""
    source = Path("src").resolve()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "src"
        # With what is compiled, which holds for all but the changed module.
        shutil.copytree(source, copy)
        path = copy / "rewright" / "proof" / f"{check.module}.py"
        path.write_text(without(path.read_text(), check))
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow"]
        command += [f"tests/proof/test_{name}.py" for name in tests]
        environment = {**os.environ, "PYTHONPATH": f"{copy}{os.pathsep}{Path.cwd()}", "PYTHONDONTWRITEBYTECODE": "1"}
        # Half of the time of a run would be that of plugins that these tests do not use.
        environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        try:
            ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            return "out of time"
    if ran.returncode == 0:
        return ""
    failed = [line for line in ran.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0].split(" - ")[0].removeprefix("FAILED tests/proof/") if failed else "does not run"


def main(words: Sequence[str]) -> int:
    """Print the table; 0 where every check is needed by a test."""
    found = [c for c in checks(Path("src/rewright/proof")) if not words or any(word in _shown(c) for word in words)]
    with ThreadPoolExecutor(JOBS) as pool:
        rows = [_row(check, test) for check, test in zip(found, pool.map(killed, found), strict=True)]
    print_table(["check", "what is taken out", "the test that fails"], rows)
    survived = sum(row[2] == "SURVIVED" for row in rows)
    print(f"{len(rows) - survived} of {len(rows)} checks are needed by a test")
    return 1 if survived else 0


def _shown(check: Check) -> str:
    return f"{check.module}.py:{check.line} {check.text}"


def _row(check: Check, test: str) -> list[object]:
    """A row of the table, which is shown at once as well: a run takes minutes."""
    row: list[object] = [f"{check.module}.py:{check.line}", check.text[:80], test or "SURVIVED"]
    print(*row, file=sys.stderr, flush=True)
    return row


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
