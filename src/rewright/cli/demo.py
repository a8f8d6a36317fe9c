"""The demonstration: three questions about Llama over eight ranks, and their answers."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console
from rich.text import Text

from rewright.cli.progress import Progress
from rewright.ir.errors import RewrightError
from rewright.refine.verdict import Status, Verdict
from rewright.report import document, print_verdict

RANKS = 8


@dataclass(frozen=True)
class Act:
    """One question: a sequential program and one for all ranks, and the status that should come out."""

    title: str
    sequential: Callable[[], tuple[Any, Any, Any]]
    distributed: Callable[[Any], Any]
    expected: Status
    backward: bool = False


def acts() -> list[Act]:
    """The questions; raises RewrightError where the extra ``zoo`` is not installed."""
    try:
        from rewright.cli.demo_model import broken_llama
        from rewright.zoo import parallel, sequential
    except ModuleNotFoundError as error:
        raise RewrightError(f"the demonstration needs the package {error.name}; install rewright[zoo]") from None
    return [
        Act(
            "Llama, 2 layers, forward and backward",
            lambda: sequential("llama", degree=RANKS, backward=True),
            parallel("llama", degree=RANKS, backward=True),
            "proved",
            backward=True,
        ),
        Act(
            "Llama 3.1 8B at full size, forward",
            lambda: sequential("llama", "8b", degree=RANKS),
            parallel("llama", size="8b", degree=RANKS),
            "proved",
        ),
        Act(
            "Llama, 2 layers, the last one parallelised by hand",
            lambda: sequential("llama", degree=RANKS),
            broken_llama,
            "refuted",
        ),
    ]


def run_demo(as_json: bool) -> int:
    """Answer all questions and print the reports; 0 where each has the answer that it should have, else 1."""
    console = Console()
    verdicts: list[tuple[Act, Verdict]] = []
    for act in acts():
        verdict = _answer(act)
        verdicts.append((act, verdict))
        if not as_json:
            heading = Text(f"{act.title}: PyTorch, {RANKS} ranks against one device", "bold underline")
            console.print(heading, soft_wrap=True)
            print_verdict(verdict, console)
            console.print()
    if as_json:
        reports = [{"title": act.title, **document(verdict)} for act, verdict in verdicts]
        sys.stdout.write(json.dumps(reports, indent=2, allow_nan=False) + "\n")
    return 0 if all(verdict.status == act.expected for act, verdict in verdicts) else 1


def _answer(act: Act) -> Verdict:
    """Capture both sides, with progress on stderr, and compare them."""
    import rewright.frontends.torch as frontend
    from rewright.refine import refine

    progress = Progress()
    with progress.phase("capture", f"{act.title}: tracing the model"):
        module, args, kwargs = act.sequential()
        left = frontend.capture(module, args, kwargs, backward=act.backward)
    with progress.phase("capture", f"{act.title}: tracing {RANKS} ranks"):
        right = frontend.capture_ranks(act.distributed, mesh={"tp": RANKS}, backward=act.backward, jobs=2)
    with progress.phase("refine", f"{act.title}: relating {len(left):,} nodes to {RANKS} ranks"):
        verdict = refine(left, right)
    seconds = {"capture": progress.seconds["capture"], **verdict.stats.seconds}
    return replace(verdict, stats=replace(verdict.stats, seconds=seconds))
