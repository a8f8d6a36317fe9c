"""``python -m bench.kernel.released [NAME ...]``: mutants of the kernels of released packages, and what comes of them.

Each kernel that a row of ``bench.kernel.packages`` launches is changed at one place. What is proved all the same is run
beside the reference on more inputs: it has to be equal.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import rewright as rw
from bench.kernel.mutants import mutants
from bench.kernel.packages import PACKAGES
from bench.kernel.rows import Row, normal
from rewright.frontends.torch.names import bind_arguments
from rewright.frontends.triton import launches
from rewright.frontends.triton.meaning.operations.transfers import LEFT_OPEN
from rewright.kernel.running import draws, run_beside

_OUTCOMES = ("no kernel", "refuted", "equal", "unknown", "error", "wrongly proved")


def kernels_of(row: Row) -> list[Any]:
    """The ``@triton.jit`` functions that a row launches."""
    found: dict[int, Any] = {}
    before = launches.ttir_of

    def noted(function: Any, arguments: Any) -> str:
        found[id(function)] = function
        return before(function, arguments)

    launches.ttir_of = noted
    try:
        _verdict(row)
    finally:
        launches.ttir_of = before
    return list(found.values())


def _verdict(row: Row) -> Any:
    dynamic = {name: {0: symbol} for name, symbol in row.symbols.items()}
    return rw.kernel(row.reference, row.launcher, row.args, dynamic=dynamic or None, budget=20, explain=False)


@contextmanager
def changed(kernel: Any, text: str, path: Path) -> Generator[None]:
    """A kernel with another source inside of the block."""
    path.write_text(text)
    names = dict(kernel.fn.__globals__)
    exec(compile(text, str(path), "exec"), names)
    before = kernel.fn, kernel.src
    kernel.fn = names[kernel.fn.__name__]
    kernel._unsafe_update_src(text)
    try:
        yield
    finally:
        kernel.fn = before[0]
        kernel._unsafe_update_src(before[1])


def source_of(kernel: Any) -> str:
    """The source of a kernel without its decorators."""
    (function,) = ast.parse(kernel.src).body
    assert isinstance(function, ast.FunctionDef)
    function.decorator_list = []
    return ast.unparse(function)


def outcome(row: Row) -> tuple[str, str]:
    """What a verdict says of a row with a changed kernel, against runs on more inputs."""
    try:
        found = _verdict(row)
    except Exception as error:
        return "error", f"{type(error).__name__}: {error}"
    if "does not compile" in found.reason:
        return "no kernel", ""
    if found.status != "proved":
        return found.status, found.reason
    names = list(bind_arguments(row.reference, row.args, {}))
    dynamic = {name: {0: symbol} for name, symbol in row.symbols.items()}
    inputs = draws(row.args, {}, names, dynamic, steps=(1, -1, 7, 2, 13, -3))
    zeros = any(text.endswith(LEFT_OPEN) for text in found.assumptions)  # then the verdict says so
    run = run_beside(row.reference, row.launcher, inputs, 60, zeros=zeros)
    return ("equal" if run.outcome == "agrees" else "wrongly proved"), f"{found.reason} {run.text}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of the names of rows")
    parser.add_argument("--most", type=int, default=20, help="of each row")
    parser.add_argument("--seconds", type=float, default=3.0, help="of processor time of rows that are tried")
    parser.add_argument("--log", type=Path)
    options = parser.parse_args()
    counts: dict[str, Counter[str]] = {}
    rw.kernel(lambda x: x, lambda x: x, (normal(1),))
    with tempfile.TemporaryDirectory() as folder:
        for package, rows in PACKAGES.items():
            for row in rows():
                name = f"{package} {row.name}"
                if options.names and not any(part in name for part in options.names):
                    continue
                started = time.process_time()
                if outcome(row)[0] != "equal" or time.process_time() - started > options.seconds:
                    continue
                made = [(k, *m) for k in kernels_of(row) for m in mutants(source_of(k))]
                random.Random(0).shuffle(made)
                counts[name] = Counter()
                for number, (kernel, what, text) in enumerate(made[: options.most]):
                    with changed(kernel, text, Path(folder) / f"mutant_{len(counts)}_{number}.py"):
                        found, reason = outcome(row)
                    counts[name][found] += 1
                    if options.log is not None:
                        with options.log.open("a") as log:
                            log.write(json.dumps([name, what, found, reason]) + "\n")
                print(f"| {name} | " + " | ".join(str(counts[name][o]) for o in _OUTCOMES) + " |", flush=True)
    total = sum(counts.values(), Counter[str]())
    print(f"| all {sum(total.values())} | " + " | ".join(str(total[o]) for o in _OUTCOMES) + " |")
    return int(total["wrongly proved"] > 0)


if __name__ == "__main__":
    sys.exit(main())
