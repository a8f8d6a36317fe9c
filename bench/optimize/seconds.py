"""Seconds of the search for kernels, phase by phase: ``python -m bench.optimize.seconds``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from bench.optimize import ours
from bench.optimize.program import Built
from bench.optimize.programs import PROGRAMS as WIDE
from bench.optimize.programs import eviction
from bench.tables import print_table
from tests.optimize.programs import PROGRAMS

HEADER = (
    "program",
    "operators",
    "kernels",
    "capture",
    "search",
    "proof",
    "search and proof",
    "code",
    "tests",
    "known by",
)
MODELS = ("llama", "gemma", "mixtral", "starcoder2", "qwen3_moe")
Example = tuple[Callable[..., Any], tuple[Any, ...]]


def main() -> None:
    """Print one row for each module, for each program of the tests, and for whole models of one layer."""
    options = _options()
    print("seconds of the processor; code is generated and compiled, and tests run, by the clock\n")
    longest = 0.0

    def rows() -> Iterator[Sequence[object]]:
        nonlocal longest
        for name, (program, args) in _examples(options):
            found = ours.kernels_alone(Built(program, args), target=options.target)
            phases = [found.seconds.get(phase, 0.0) for phase in ("capture", "plan", "prove", "build", "check")]
            longest = max(longest, phases[1] + phases[2])
            operators = len(found.graph.nodes) if found.graph is not None else 0
            kernels = len(found.plan.kernels) if found.plan is not None else 0
            known = "certificate" if found.certificate is not None else f"{found.trust.evidence} {found.reason}"
            yield name, operators, kernels, *phases[:3], phases[1] + phases[2], *phases[3:], known

    with torch.no_grad():
        print_table(HEADER, rows())
    print(f"\nsearch and proof: at most {longest:.2f} s")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modules", nargs="+", default=list(eviction.MODULES), choices=list(eviction.MODULES))
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--heads", type=int, default=32)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--target", default="cpu", help="cpu or torch")
    return parser.parse_args()


def _examples(options: argparse.Namespace) -> Iterator[tuple[str, Example]]:
    for name in options.modules:
        shape = options.length, options.heads, options.width
        yield name, (eviction.MODULES[name], eviction.inputs(name, *shape, torch.float32, "cpu", 1.0))
    for name, program in PROGRAMS.items():
        yield name, program()
    for name in MODELS:
        built = WIDE[name].build(size="tiny")
        yield name, (built.function, built.args)


if __name__ == "__main__":
    main()
