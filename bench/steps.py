"""Training steps and bug patterns of the zoo, as rows of tables that ``make zoo`` prints."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from torch.distributed.device_mesh import DeviceMesh

from rewright.frontends.torch.capture import capture
from rewright.frontends.torch.ranks import capture_ranks
from rewright.ir.errors import RewrightError
from rewright.refine import refine
from zoo.patterns import PATTERNS
from zoo.patterns.pattern import Pattern, Program
from zoo.steps import STEPS

STEP_COLUMNS = ["step", "ranks", "nodes", "nodes of all ranks", "status", "evidence", "outputs"]
STEP_COLUMNS += ["capture s", "prove and audit s", "reason"]
PATTERN_COLUMNS = ["bug", "in the backward pass", "right", "wrong", "first finding of the wrong program", "reported"]


def step_rows() -> Iterator[list[object]]:
    """Every training step: what is proved, how long it took, and why what is not proved is not."""
    for name, step in STEPS.items():
        head: list[object] = [name, math.prod(step.mesh.values())]
        yield [*head, *_measured(step.sequential, step.parallel, step.mesh, step.relations)]


def _measured(
    sequential: Callable[[], Any],
    parallel: Callable[[DeviceMesh], Any],
    mesh: Mapping[str, int],
    relations: Mapping[str, str | Sequence[str]],
) -> list[object]:
    start = time.perf_counter()
    try:
        whole, program = capture(*sequential()), capture_ranks(parallel, mesh)
        middle = time.perf_counter()
        verdict = refine(whole, program, relations, audit=True)
    except RewrightError as error:
        return ["", "", "error", "", "", "", "", str(error)]
    nodes = [len(whole), sum(len(graph) for graph in program.graphs)]
    found = [verdict.status, str(verdict.evidence), len(verdict.relation)]
    reason = "" if verdict.status == "proved" else verdict.reason
    return [*nodes, *found, middle - start, time.perf_counter() - middle, reason]


def pattern_rows() -> Iterator[list[object]]:
    """Every bug pattern: the verdict on the right program, on the wrong one, and where that is said to be wrong."""
    for name, pattern in PATTERNS.items():
        said: list[str] = []
        place = ""
        for wrong in (False, True):
            program = capture_ranks(partial(_parallel, pattern, wrong), pattern.mesh)
            verdict = refine(capture(*pattern.sequential()), program, pattern.stated(wrong), audit=True)
            said.append(f"{verdict.status} ({verdict.evidence})")
            place = verdict.findings[0].message if verdict.findings else ""
        yield [name, "yes" if pattern.gradient else "no", *said, place, ", ".join(pattern.references)]


def _parallel(pattern: Pattern, wrong: bool, mesh: DeviceMesh) -> Program:
    return pattern.parallel(mesh, wrong)
