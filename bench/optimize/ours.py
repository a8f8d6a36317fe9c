"""What this benchmark asks of ``rewright.optimize``, and what it reads of the answer: the one place that knows.

A floor (never slower than the program itself) may not be there yet; without it there is no such peer, and its columns
stay empty.
"""

from __future__ import annotations

import inspect
import time
from typing import Any

from bench.optimize.program import Built
from rewright.optimize.api import Optimized, optimize
from rewright.optimize.planning.work import work_of

HAS_FLOOR = "floor" in inspect.signature(optimize).parameters
PHASES = ("capture", "plan", "prove", "build", "check")


def kernels_alone(built: Built, **options: Any) -> Optimized:
    """Kernels wherever there are some, however slow they are."""
    return optimize(built.function, built.args, **options, **({"floor": False} if HAS_FLOOR else {}))


def with_floor(built: Built, **options: Any) -> Optimized | None:
    """As a user has it: what is slower than the program itself is left to that."""
    return optimize(built.function, built.args, **options, floor=True) if HAS_FLOOR else None


def facts(found: Optimized, started: float) -> dict[str, Any]:
    """What a row says of an optimised program; ``started`` is the processor's time when it was begun."""
    plan, graph = found.plan, found.graph
    work = work_of(plan, graph) if plan is not None and graph is not None else None
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
