"""Seconds of the search for kernels, phase by phase: ``python -m bench.optimize --seconds``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

import rewright as rw
from bench import attention
from bench.optimize_blocks import BLOCKS
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
Example = tuple[Callable[..., Any], tuple[Any, ...]]


def main(options: argparse.Namespace) -> None:
    """Print one row for each module, for each program of the tests, and for whole blocks of models."""
    print("seconds of the processor; code is generated and compiled, and tests run, by the clock\n")
    longest = 0.0

    def rows() -> Iterator[Sequence[object]]:
        nonlocal longest
        for name, (program, args) in _examples(options):
            found = rw.optimize(program, args, target=options.target or "cpu", floor=False, remember=False)
            phases = [found.seconds.get(phase, 0.0) for phase in ("capture", "plan", "prove", "build", "check")]
            longest = max(longest, phases[1] + phases[2])
            operators = len(found.graph.nodes) if found.graph is not None else 0
            kernels = len(found.plan.kernels) if found.plan is not None else 0
            known = "certificate" if found.certificate is not None else f"{found.trust.evidence} {found.reason}"
            yield name, operators, kernels, *phases[:3], phases[1] + phases[2], *phases[3:], known

    with torch.no_grad():
        print_table(HEADER, rows())
    print(f"\nsearch and proof: at most {longest:.2f} s")


def _examples(options: argparse.Namespace) -> Iterator[tuple[str, Example]]:
    for name in options.modules:
        shape = (options.length or 1024, options.heads or 32, options.width)
        yield name, (attention.MODULES[name], attention.inputs(name, *shape, torch.float32, "cpu", 1.0))
    for name, program in PROGRAMS.items():
        yield name, program()
    for name, block in BLOCKS.items():
        yield name, block()
