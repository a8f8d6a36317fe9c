"""What this benchmark asks of ``rewright.optimize``, and what it reads of the answer: the one place that knows.

Nothing is taken from the user's cache, so that a row is about the code as it is.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from bench.optimize.program import Built
from rewright.optimize.api import Optimized, optimize

PHASES = ("capture", "plan", "prove", "build", "check")


def kernels_alone(built: Built, **options: Any) -> Optimized:
    """Kernels wherever there are some, however slow they are."""
    return optimize(built.function, built.args, **options, floor=False, remember=False)


def with_floor(built: Built) -> Optimized:
    """As a user has it: what is slower than eager PyTorch or Inductor is left to these."""
    return optimize(built.function, built.args, remember=False)


def facts(found: Optimized, started: float) -> dict[str, Any]:
    """What a row says of an optimised program; ``started`` is the processor's time when it was begun."""
    plan, graph, work = found.plan, found.graph, found.work
    return {
        "status": found.status,
        "reason": found.reason,
        "operators": None if graph is None else len(graph.nodes),
        "kernels": None if plan is None else len(plan.kernels),
        "library": None if plan is None else len(plan.steps) - len(plan.kernels),
        "decisions": [] if plan is None else list(plan.decisions),
        "work": None if work is None else {"program": work.program, "plan": work.plan, "ratio": work.ratio},
        "seconds": {phase: found.seconds[phase] for phase in PHASES if phase in found.seconds},
        "cpu": time.process_time() - started,
    }


def floor_facts(found: Optimized) -> dict[str, Any]:
    """What a row says of the floor: what runs, what was timed, and in how many seconds."""
    lines = found.notes if found.floor is None else found.floor.lines()
    return {"runs": found.runs, "lines": list(lines), "seconds": found.seconds.get("floor", 0.0)}


def called(function: Any, args: Sequence[Any]) -> tuple[Any, str]:
    """The result of a call, and why it is that of the program itself where an optimised one says so."""
    known = len(function.notes) if isinstance(function, Optimized) else 0
    result = function(*args)
    return result, "; ".join(function.notes[known:]) if isinstance(function, Optimized) else ""
