"""``rewright optimize``: fused kernels for a program, why they are what they are, and their code."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.console import Console

from rewright.cli.commands import STATUS as VERDICTS
from rewright.cli.programs import Source
from rewright.cli.progress import Progress
from rewright.cli.symbols import Symbolic, parse_symbols
from rewright.cli.userfile import find_function
from rewright.ir.errors import RewrightError

if TYPE_CHECKING:
    from rewright.optimize.api import Optimized

STATUS = {"proved": 0, "tested": 0, "fallback": 2}
"""Of a plan, and below of the kernels that are printed for it."""


def optimize(
    program: Annotated[str, typer.Argument(help="A graph file, or module.py:function.")],
    target: Annotated[str, typer.Option(metavar="TARGET", help="cpu, cuda or torch.")] = "cpu",
    allow: Annotated[str, typer.Option(metavar="EVIDENCE", help="proved, or tested.")] = "proved",
    explain: Annotated[
        bool, typer.Option("--explain", help="Print properties, decisions, kernels and proofs.")
    ] = False,
    emit: Annotated[Path | None, typer.Option(metavar="DIR", help="Write the generated code there.")] = None,
    budget: Annotated[
        float, typer.Option(metavar="SECONDS", help="Time for the proof; for each piece of a long program.")
    ] = 5.0,
    floor: Annotated[
        bool,
        typer.Option("--floor/--no-floor", help="Time kernels against eager PyTorch and Inductor, keep the faster."),
    ] = True,
    remember: Annotated[
        bool, typer.Option("--remember/--forget", help="Keep the result, and take it from where it was kept.")
    ] = True,
    symbolic: Symbolic = None,
    prove_kernels: Annotated[
        bool, typer.Option("--prove-kernels", help="Prove the Triton kernels too, as they are printed.")
    ] = False,
    package: Annotated[
        Path | None, typer.Option("--package", metavar="DIR", help="Write kernels there that PyTorch alone runs.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON on stdout.")] = False,
) -> int:
    """Find fused kernels for a program, and prove them right.

    Exit status: 0 kernels were found and proved (or tested, where that is allowed), 2 none were, 3 usage or input
    error. With --prove-kernels also 1 where what is printed is refuted, and 2 where it is unknown.
    """
    from rewright.optimize.api import optimize as run

    if not budget > 0:
        raise RewrightError(f"--budget {budget:g} is no time; give a number of seconds above zero")
    progress = Progress()
    source = Source(progress, symbols=parse_symbols(symbolic or []) or None, guards_queries=True, opaque=True)
    source.check_options([program])
    graph = source.sequential(program)  # as the Python function captures
    with progress.phase("optimize", f"planning {len(graph):,} nodes"):
        found = run(
            graph, target=cast("Any", target), allow=cast("Any", allow), budget=budget, floor=floor, remember=remember
        )
    if prove_kernels:
        with progress.phase("kernels", "reading what is printed in Triton, running and proving it"):
            _prove_kernels(found, program)
    files = found.emit(emit) if emit is not None else []
    files += found.package(package) if package is not None else []
    if as_json:
        sys.stdout.write(json.dumps(_document(found, files), indent=2, allow_nan=False) + "\n")
        return _status(found)
    console = Console()
    for line in (found.explain() if explain else summary(found)).splitlines():
        console.print(line, soft_wrap=True, highlight=False, markup=False)
    for path in files:
        console.print(f"wrote {path}", soft_wrap=True, highlight=False, markup=False)
    return _status(found)


def _status(found: Optimized) -> int:
    printed = found.trust.kernels
    return STATUS[found.status] if printed is None or STATUS[found.status] else VERDICTS[printed.status]


def _prove_kernels(found: Optimized, program: str) -> None:
    """Prove what is printed for a function of a file; raises RewrightError for graph files."""
    if ":" not in program:
        raise RewrightError(f"--prove-kernels needs module.py:function, and {program} is a graph")
    if found.plan is None:
        why = found.reason if found.entry is None else "this one was remembered; add --forget"
        raise RewrightError(f"--prove-kernels needs a plan: {why}")
    from rewright.optimize.running.printed import prove_printed

    function, args, kwargs = find_function(program)()
    found.trust.kernels = prove_printed(function, args, kwargs, plan=found.plan)


def summary(found: Optimized) -> str:
    """A few lines: what came out, and how it is known to be right."""
    if found.runner is None:
        return f"fallback: {found.reason}{found.left_out}"
    kernels, others = found.counts
    lines = [f"{found.status}: {kernels} kernels, {others} operators left to a library; {found.reason}{found.left_out}"]
    if found.checked is not None:
        lines.append(f"kernels: {found.checked.reason}")
    if found.trust.kernels is not None:
        lines.append(f"in Triton: {found.trust.kernels}")
    if found.work is not None:
        lines.append(f"work: {found.work.ratio:.2f} times the operations of the program")
    return "\n".join([*lines, *found.timings])


def _document(found: Optimized, files: list[Path]) -> dict[str, object]:
    plan = found.plan
    checked = found.checked
    return {
        "schema": 1,
        "status": found.status,
        "reason": found.reason,
        "kernels": found.counts[0],
        "library": found.counts[1],
        "remembered": found.entry is not None,
        "decisions": [] if plan is None else list(plan.decisions),
        "evidence": found.trust.evidence,
        "printed": None if found.trust.kernels is None else found.trust.kernels.status,
        "identities": list(found.trust.updates),
        "checked": None if checked is None else {"passed": checked.passed, "reason": checked.reason},
        "seconds": {k: round(v, 4) for k, v in found.seconds.items()},
        "work": None if found.work is None else round(found.work.ratio, 3),
        "runs": found.runs,
        "timings": [
            {"what": t.what, "kept": t.kept, "seconds": dict(t.seconds)}
            for t in (() if found.floor is None else (found.floor.whole, *found.floor.parts))
        ],
        "files": [str(path) for path in files],
    }
