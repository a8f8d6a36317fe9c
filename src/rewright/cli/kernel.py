"""``rewright kernel``: a Triton kernel, proved to compute its PyTorch reference or shown not to."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from rewright.cli.commands import STATUS, Json, save
from rewright.cli.outputs import Outputs
from rewright.cli.programs import check_target
from rewright.cli.progress import Progress
from rewright.cli.symbols import Symbolic, parse_symbols
from rewright.cli.userfile import find_function
from rewright.frontends.files import save as save_graph
from rewright.ir.errors import RewrightError
from rewright.proof.container import check_name
from rewright.report import Claim, document, print_verdict


def kernel(
    reference: Annotated[str, typer.Argument(help="module.py:function that returns (function, args): PyTorch alone.")],
    launcher: Annotated[
        str | None, typer.Argument(help="module.py:function that returns (function, args): the kernels.")
    ] = None,
    inductor: Annotated[
        bool, typer.Option("--inductor", help="The kernels that torch.compile generates for the reference, for CUDA.")
    ] = False,
    printed: Annotated[
        bool, typer.Option("--printed", help="The kernels that rewright optimize prints for the reference, for GPUs.")
    ] = False,
    symbolic: Symbolic = None,
    given: Annotated[
        str | None,
        typer.Option(metavar="FUNCTION", help="module.py:function of the arguments: truth values that hold of them."),
    ] = None,
    budget: Annotated[float | None, typer.Option(metavar="SECONDS", help="Give up after this long.")] = None,
    certificate: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the proof to this .json.gz.")] = None,
    programs: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write reference.json and kernel.json, which audit reads.")
    ] = None,
    as_json: Json = False,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as one HTML file.")] = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as JUnit XML.")] = None,
    sarif: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the findings as SARIF.")] = None,
    summary: Annotated[Path | None, typer.Option(metavar="FILE", help="Add the report to it as Markdown.")] = None,
) -> int:
    """Prove or refute that Triton kernels compute their reference.

    Exit status: 0 proved, 1 refuted, 2 unknown, 3 usage or input error.
    """
    if budget is not None and not budget > 0:
        raise RewrightError(f"--budget {budget:g} is no time; give a number of seconds above zero")
    if certificate is not None:
        check_target(certificate)
        check_name(certificate)
    if [launcher is not None, inductor, printed].count(True) != 1:
        raise RewrightError("name what launches kernels, or leave it out and give --inductor or --printed")
    if printed and symbolic:
        raise RewrightError("--printed kernels are for the sizes of the arguments; leave out --symbolic")
    outputs = Outputs(html, junit, sarif, summary)
    outputs.check()
    progress = Progress()
    function, args, kwargs = find_function(reference)()
    mine: Any = "inductor" if launcher is None else find_function(launcher)()[0]
    if printed:
        from rewright.optimize.running.printed import printed as printed_for

        mine = printed_for(function, args, kwargs)
    dynamic: Mapping[str, Mapping[int, str]] = parse_symbols(symbolic or [])
    condition = None if given is None else find_function(given).function
    from rewright.kernel.engine import kernel as run

    started = time.monotonic()
    with progress.phase("kernel", "reading launches, running and proving them"):
        verdict = run(function, mine, args, kwargs, dynamic=dynamic, budget=budget, given=condition)
    name = f"{launcher or ('what is printed' if printed else 'Inductor')} is {reference}"
    outputs.write([Claim(name, verdict, time.monotonic() - started)], name)
    written = save(verdict, certificate, progress) if certificate is not None else None
    if programs is not None and verdict.graphs is not None:
        programs.mkdir(parents=True, exist_ok=True)
        for name, graph in zip(("reference", "kernel"), verdict.graphs, strict=True):
            save_graph(graph, programs / f"{name}.json")
    if as_json:
        found = document(verdict, written)
        found["runs"] = verdict.runs
        sys.stdout.write(json.dumps(found, indent=2, allow_nan=False) + "\n")
        return STATUS[verdict.status]
    console = Console()
    print_verdict(verdict, console, sides=("reference", "kernel"))
    if written is not None:
        console.print(f"certificate: {written}", soft_wrap=True, highlight=False, markup=False)
    return STATUS[verdict.status]
