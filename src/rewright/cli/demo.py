"""The demonstration: three questions about Llama over eight ranks, and their answers."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from rich.console import Console
from rich.text import Text

from rewright.cli.progress import Progress
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.packages import missing
from rewright.proof.checker import audit
from rewright.refine.verdict import Evidence, Status, Verdict
from rewright.report import document, print_verdict

RANKS = 8
REFUSED = "certificate refused"


@dataclass(frozen=True)
class Act:
    """One question: a sequential program and one for all ranks, and the status that should come out."""

    title: str
    sequential: Callable[[], tuple[Any, Any, Any]]
    distributed: Callable[[Any], Any]
    expected: Status
    backward: bool = False


def acts() -> list[Act]:
    """The questions; raises RewrightError where the extra ``models`` is not installed."""
    try:
        from rewright.cli.demo_model import broken_llama, llama, parallel_llama
    except ModuleNotFoundError as error:
        raise RewrightError(missing((error.name or "transformers").partition(".")[0], "the demonstration")) from None
    return [
        Act(
            "Llama, 2 layers, forward and backward",
            lambda: llama(RANKS, backward=True),
            partial(parallel_llama, backward=True),
            "proved",
            backward=True,
        ),
        Act(
            "Llama 3.1 8B at full size, forward",
            lambda: llama(RANKS, "8b"),
            partial(parallel_llama, size="8b"),
            "proved",
        ),
        Act(
            "Llama, 2 layers, the last one parallelised by hand",
            lambda: llama(RANKS),
            broken_llama,
            "refuted",
        ),
    ]


def run_demo(as_json: bool) -> int:
    """Answer all questions and print the reports; 0 where each has the answer that it should have, else 1."""
    console = Console()
    verdicts: list[tuple[Act, Verdict]] = []
    holds = True
    for act in acts():
        verdict, line = _answer(act)
        verdicts.append((act, verdict))
        holds = holds and (line is None or not line.startswith(REFUSED))
        if not as_json:
            heading = Text(f"{act.title}: PyTorch, {RANKS} ranks against one device", "bold underline")
            console.print(heading, soft_wrap=True)
            print_verdict(verdict, console)
            if line is not None:
                console.print(line, soft_wrap=True, highlight=False, markup=False)
            console.print()
    if as_json:
        reports = [{"title": act.title, **document(verdict)} for act, verdict in verdicts]
        sys.stdout.write(json.dumps(reports, indent=2, allow_nan=False) + "\n")
    return 0 if holds and all(verdict.status == act.expected for act, verdict in verdicts) else 1


def _answer(act: Act) -> tuple[Verdict, str | None]:
    """Capture both sides, with progress on stderr, and compare them; what is proved is audited, told in one line."""
    from rewright.frontends.torch.capture import capture
    from rewright.frontends.torch.ranks import capture_ranks
    from rewright.refine import refine

    progress = Progress()
    with progress.phase("capture", f"{act.title}: tracing the model"):
        module, args, kwargs = act.sequential()
        left = capture(module, args, kwargs, backward=act.backward)
    with progress.phase("capture", f"{act.title}: tracing {RANKS} ranks"):
        right = capture_ranks(act.distributed, mesh={"tp": RANKS}, backward=act.backward, jobs=2)
    with progress.phase("refine", f"{act.title}: relating {len(left):,} nodes to {RANKS} ranks"):
        started = time.perf_counter()
        verdict = refine(left, right, audit=False)
        proving = time.perf_counter() - started
    with progress.phase("audit", f"{act.title}: checking the certificate"):
        line = _audit(verdict, left, right, proving)
        if line is not None and not line.startswith(REFUSED):
            verdict = replace(verdict, evidence=Evidence.PROVED)
    seconds = {"capture": progress.seconds["capture"], **verdict.stats.seconds}
    return replace(verdict, stats=replace(verdict.stats, seconds=seconds)), line


def _audit(verdict: Verdict, left: Graph, right: RankProgram, proving: float) -> str | None:
    """What the checker says of the proof; None for a verdict without one."""
    started = time.perf_counter()
    try:
        certificate = verdict.certificate
        if certificate is None:
            return None
        written = time.perf_counter()
        found = audit(certificate, left, right)
        seconds = time.perf_counter() - written
        against = f"{seconds / proving:.1f} times as long as the proof"
        against += f" and {seconds / (proving + written - started):.1f} times as long as the proof with its certificate"
        return f"certificate holds: {found} in {seconds:.2f} s, {against}"
    except RewrightError as error:
        return f"{REFUSED}: {error}"
