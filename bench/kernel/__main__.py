"""``python -m bench.kernel``: mutants of kernels, and how many are refuted, equal, unknown, or wrongly proved."""

from __future__ import annotations

import argparse
import ast
import importlib.util
import inspect
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.kernel.mutants import mutants
from rewright.frontends.triton.meaning.operations.transfers import LEFT_OPEN
from rewright.kernel.engine import kernel
from rewright.kernel.running import draws, run_beside
from tests.kernel import programs
from tests.kernel.references import REFERENCES, Reference


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", nargs="*", default=list(REFERENCES))
    parser.add_argument("--most", type=int, default=10_000, help="of each kernel")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", type=Path)
    options = parser.parse_args()
    counts: dict[str, dict[str, int]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in options.kernels:
            made = list(mutants(_source(name)))
            random.Random(options.seed).shuffle(made)
            counts[name] = {}
            for number, (what, text) in enumerate(made[: options.most]):
                started = time.process_time()
                outcome, reason = _judged(name, text, Path(folder) / f"{name}_{number}.py")
                counts[name][outcome] = counts[name].get(outcome, 0) + 1
                if options.log is not None:
                    seconds = round(time.process_time() - started, 2)
                    with options.log.open("a") as log:
                        log.write(json.dumps([name, what, outcome, reason, seconds]) + "\n")
    _print(counts)
    return int(any("wrongly proved" in found for found in counts.values()))


def _source(name: str) -> str:
    """The kernel that a launcher launches."""
    tree = ast.parse(inspect.getsource(programs))
    functions = {node.name: ast.unparse(node) for node in tree.body if isinstance(node, ast.FunctionDef)}
    return functions[f"{name}_kernel"]


def _judged(name: str, text: str, path: Path) -> tuple[str, str]:
    """The outcome for one mutant: what the verdict says, against runs at many sizes."""
    reference, launcher = REFERENCES[name], getattr(programs, name)
    path.write_text(f"import triton\nimport triton.language as tl\n\n\n{text}\n")
    before = getattr(programs, f"{name}_kernel")
    try:
        mutant = getattr(_imported(path), f"{name}_kernel")
        vars(programs)[f"{name}_kernel"] = mutant
        if name in ("add", "matmul"):  # whose launchers hold the kernel
            launcher = _with(launcher, before, mutant)
        found = kernel(
            reference.function, launcher, reference.args, dynamic=reference.dynamic, budget=20, explain=False
        )
        if found.status == "proved":
            zeros = any(text.endswith(LEFT_OPEN) for text in found.assumptions)  # then the verdict says so
            is_equal = _is_equal(reference, launcher, zeros=zeros)
            return ("equal" if is_equal else "wrongly proved"), found.reason
        if "does not compile" in found.reason:
            return "no kernel", found.reason
        return found.status, found.reason
    except Exception as error:
        return "error", f"{type(error).__name__}: {error}"
    finally:
        vars(programs)[f"{name}_kernel"] = before


def _with(launcher: Any, before: Any, mutant: Any) -> Any:
    for cell in launcher.__closure__ or ():
        if type(cell.cell_contents) is type(before):
            cell.cell_contents = mutant
    return launcher


def _is_equal(reference: Reference, launcher: Any, *, zeros: bool) -> bool:
    """Whether a mutant does what its reference does at many sizes, which may differ from those of the verdict."""
    parameters = list(inspect.signature(reference.function).parameters)
    inputs = draws(reference.args, {}, parameters, reference.dynamic or {}, steps=(1, -1, 7, 2, 13, 30, -17, 64, -40))
    return run_beside(reference.function, launcher, inputs, 60, zeros=zeros).outcome == "agrees"


def _imported(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _print(counts: dict[str, dict[str, int]]) -> None:
    outcomes = ("no kernel", "refuted", "equal", "unknown", "error", "wrongly proved")
    print("| kernel | mutants | " + " | ".join(outcomes) + " |")
    print("|---|---|" + "---|" * len(outcomes))
    for name, found in counts.items():
        print(f"| {name} | {sum(found.values())} | " + " | ".join(str(found.get(o, 0)) for o in outcomes) + " |")


if __name__ == "__main__":
    sys.exit(main())
