"""The commands: what each takes, and what it does with it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from rewright.cli.meshes import parse_mesh
from rewright.cli.outputs import Outputs
from rewright.cli.programs import Source, check_target
from rewright.cli.progress import Progress
from rewright.cli.relations import Relations, check_relations, read_relations
from rewright.cli.symbols import Symbolic, parse_symbols
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.ir.types import TensorType
from rewright.ir.unknowns import unread
from rewright.proof.container import check_name
from rewright.refine.verdict import Verdict
from rewright.report import Claim, document, draw_finding, print_verdict

STATUS = {"proved": 0, "refuted": 1, "unknown": 2, "vacuous": 4}

Mesh = Annotated[str | None, typer.Option(metavar="AXES", help="Mesh of ranks: tp=8, or dp=2,tp=4.")]
Backward = Annotated[bool, typer.Option("--backward", help="Capture the gradients of the loss too.")]
Jobs = Annotated[int, typer.Option(metavar="N", min=1, help="Capture ranks in this many processes.")]
Ranks = Annotated[
    str, typer.Option("--ranks", metavar="HOW", help="traced, or run together on real tensors: threads, processes.")
]
AllRanks = Annotated[bool, typer.Option("--all-ranks", help="Capture every rank of a mesh, however large.")]
Watch = Annotated[bool, typer.Option("--watch", help="Run again whenever a file of the working folder changes.")]
Json = Annotated[bool, typer.Option("--json", help="Print the report as JSON on stdout.")]


def refine(
    sequential: Annotated[str | None, typer.Argument(help="A graph file, or module.py:function.")] = None,
    distributed: Annotated[
        list[str] | None, typer.Argument(help="A file of all ranks, one per rank, or module.py:build.")
    ] = None,
    mesh: Mesh = None,
    relations: Annotated[Path | None, typer.Option(metavar="TOML", help="Relations of inputs and outputs.")] = None,
    backward: Backward = False,
    symbolic: Symbolic = None,
    jobs: Jobs = 1,
    ranks: Ranks = "traced",
    all_ranks: AllRanks = False,
    budget: Annotated[float | None, typer.Option(metavar="SECONDS", help="Give up after this long.")] = None,
    certificate: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the proof to this .json.gz.")] = None,
    confirm: Annotated[
        bool | None,
        typer.Option(
            "--audit/--no-audit", help="Have the independent checker confirm a proof; it does for small ones."
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain/--no-explain", help="Look for the line and a repair where values differ, or not.")
    ] = True,
    allow_vacuous: Annotated[
        bool, typer.Option("--allow-vacuous", help="Take a proof that says nothing of a plan as proved.")
    ] = False,
    require_collectives: Annotated[
        bool, typer.Option("--require-collectives", help="A proof about ranks that call no collective says nothing.")
    ] = False,
    watch: Watch = False,
    as_json: Json = False,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as one HTML file.")] = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as JUnit XML.")] = None,
    sarif: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the findings as SARIF.")] = None,
    summary: Annotated[Path | None, typer.Option(metavar="FILE", help="Add the report to it as Markdown.")] = None,
    matrix: Annotated[Path | None, typer.Option(metavar="TOML", help="Many claims: models, meshes, versions.")] = None,
    executor: Annotated[str, typer.Option(metavar="NAME", help="Where a matrix runs: local, or ray.")] = "local",
    cache: Annotated[Path | None, typer.Option(metavar="DIR", help="Prove only what changed of a matrix.")] = None,
) -> int:
    """Prove or refute that ranks compute what one program does.

    Exit status: 0 proved, 1 refuted, 2 unknown, 3 input error, 4 vacuous.
    """
    assert not watch, "the command line runs itself again and again"
    if allow_vacuous and require_collectives:
        raise RewrightError("--allow-vacuous and --require-collectives contradict each other; give one of them")
    if budget is not None and not budget > 0:
        raise RewrightError(f"--budget {budget:g} is no time; give a number of seconds above zero")
    outputs = Outputs(html, junit, sarif, summary)
    outputs.check()
    if matrix is not None:
        given_too = {"SEQUENTIAL": sequential, "--mesh": mesh, "--relations": relations, "--symbolic": symbolic}
        given_too |= {"--certificate": certificate, "--backward": backward or None, "--no-explain": not explain or None}
        check_matrix([name for name, value in given_too.items() if value is not None])
        from rewright.cli.matrix.command import Options, run_matrix

        return run_matrix(
            matrix,
            Options(executor, jobs, cache, budget, confirm, as_json, allow_vacuous, require_collectives),
            outputs,
        )
    if executor != "local" or cache is not None:
        raise RewrightError("--executor and --cache are for many claims; give them with --matrix")
    if sequential is None or not distributed:
        raise RewrightError("give a sequential and a distributed program, or --matrix; see rewright refine --help")
    if certificate is not None:
        check_name(certificate)
        check_target(certificate)
    given = read_relations(relations) if relations is not None else Relations()
    progress = Progress()
    source = options(progress, mesh, backward, symbolic, jobs, ranks, all_ranks=all_ranks)
    source.check_options([sequential, *distributed])
    left = source.sequential(sequential)
    right = source.distributed(distributed)
    if relations is not None:
        needed = {name: what for name, what in given.relations.items() if name not in unread(left)}
        check_relations(relations, needed, tensors(left, left.inputs), right.mesh, "input")
        check_relations(relations, given.expect, tensors(left, left.outputs), right.mesh, "output")
    content = {"allow_vacuous": allow_vacuous, "require_collectives": require_collectives}
    verdict = prove(left, right, given, budget, progress, confirm, explain=explain, **content)
    written = save(verdict, certificate, progress) if certificate is not None else None
    name = f"{Path(sequential).name} and {Path(distributed[0]).name}"
    drawings = tuple(draw_finding(verdict, f, alone=False) or "" for f in verdict.findings) if outputs.draws else ()
    claim = Claim(name, verdict, sum(verdict.stats.seconds.values()), drawings)
    outputs.write([claim], name)
    report(verdict, as_json, written)
    return STATUS[verdict.status]


def check_matrix(given: list[str]) -> None:
    """Raise RewrightError for options that a matrix says for every model."""
    if given:
        raise RewrightError(f"{', '.join(given)} and --matrix do not go together; say it in the file of the matrix")


def audit(
    certificate: Annotated[Path, typer.Argument(help="A certificate, or a deployment, that rewright wrote.")],
    sequential: Annotated[
        str | None,
        typer.Option("--sequential", "--left", metavar="PROGRAM", help="A graph file, or module.py:function."),
    ] = None,
    distributed: Annotated[
        list[str] | None,
        typer.Option(
            "--distributed",
            "--right",
            metavar="PROGRAM",
            help="A file of all ranks, one per rank, or module.py:build; of rewright equiv the right program.",
        ),
    ] = None,
    mesh: Mesh = None,
    backward: Backward = False,
    symbolic: Symbolic = None,
    jobs: Jobs = 1,
    ranks: Ranks = "traced",
    all_ranks: AllRanks = False,
    store: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep what the checker proved there.")] = None,
    as_json: Json = False,
) -> int:
    """Verify a certificate again, by the checker alone.

    Exit status: 0 it holds, 1 it does not prove what it claims, 2 it says itself that some of it is not proved, 3 it is
    no certificate of these programs.
    """
    from rewright.cli.audit import run_audit

    source = options(Progress(), mesh, backward, symbolic, jobs, ranks, all_ranks=all_ranks)
    right = distributed or []
    if programs := [text for text in (sequential, *right) if text is not None]:
        source.check_options(programs)
    return run_audit(certificate, source, sequential, right, store, as_json)


def capture(
    function: Annotated[str, typer.Argument(help="module.py:function, which returns (module, args).")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="A .json file, or .rwt for text.")],
    mesh: Mesh = None,
    backward: Backward = False,
    symbolic: Symbolic = None,
    jobs: Jobs = 1,
    ranks: Ranks = "traced",
    all_ranks: AllRanks = False,
) -> int:
    """Save a program, or with a mesh those of all ranks."""
    from rewright.frontends.files import save as save_program
    from rewright.frontends.rwt.files import check_form

    check_form(output, ranks=mesh is not None)
    check_target(output)
    progress = Progress()
    program = options(progress, mesh, backward, symbolic, jobs, ranks, all_ranks=all_ranks).capture(function)
    save_program(program, output)
    Console(stderr=True).print(f"{output}: {describe(program)}", soft_wrap=True, highlight=False, markup=False)
    return 0


def show(
    file: Annotated[str, typer.Argument(help="A saved program; with a picture also module.py:function.")],
    distributed: Annotated[list[str] | None, typer.Argument(help="The programs of all ranks, as for refine.")] = None,
    svg: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw an SVG picture; - is stdout.")] = None,
    around: Annotated[str | None, typer.Option(metavar="PLACE", help="An input, output, %12 or model.py:88.")] = None,
    finding: Annotated[int, typer.Option(metavar="N", min=1, help="Draw around this finding.")] = 1,
    steps: Annotated[int, typer.Option(metavar="N", min=1, max=12, help="How many operators to go back.")] = 4,
    relations: Annotated[Path | None, typer.Option(metavar="TOML", help="Relations of inputs and outputs.")] = None,
    mesh: Mesh = None,
    backward: Backward = False,
    symbolic: Symbolic = None,
    jobs: Jobs = 1,
) -> int:
    """Print a saved program, or draw programs around a failure."""
    from rewright.cli.show import show_both, show_one, show_text

    source = options(Progress(), mesh, backward, symbolic, jobs)
    if svg is None:
        if distributed or around is not None:
            raise RewrightError("two programs, and --around, are for pictures; say where with --svg FILE")
        show_text(source, file)
        return 0
    source.check_options([file, *(distributed or [])])
    target = None if str(svg) == "-" else svg
    if target is not None:
        check_target(target)
    if not distributed:
        show_one(source, file, around, steps, target)
        return 0
    given = read_relations(relations) if relations is not None else Relations()
    show_both(source, file, distributed, given, around, finding, steps, target)
    return 0


def demo(as_json: Json = False) -> int:
    """Prove a Llama over eight ranks, then refute a broken one.

    Exit status: 0 where both come out as they should.
    """
    from rewright.cli.demo import run_demo

    return run_demo(as_json)


def options(
    progress: Progress,
    mesh: str | None,
    backward: bool,
    symbolic: list[str] | None,
    jobs: int,
    ranks: str = "traced",
    *,
    all_ranks: bool = False,
) -> Source:
    """How to get at programs, from the options of the command line; raises RewrightError."""
    axes = parse_mesh(mesh) if mesh is not None else None
    return Source(progress, axes, backward, parse_symbols(symbolic or []) or None, jobs, ranks, all_ranks)


def prove(
    left: Graph,
    right: RankProgram,
    given: Relations,
    budget: float | None,
    progress: Progress,
    confirm: bool | None,
    **how: bool,
) -> Verdict:
    """The verdict, with the seconds of what was done before among its phases; ``how`` is what ``refine`` takes."""
    from rewright.refine import refine as run_refine

    before = dict(progress.seconds)
    with progress.phase("refine", f"relating {len(left):,} nodes to {len(right.graphs)} ranks"):
        verdict = run_refine(
            left,
            right,
            relations=given.relations or None,
            expect=given.expect or None,
            budget=budget,
            audit=confirm,
            tell=progress.tell,
            **how,
        )
    seconds = {**before, **verdict.stats.seconds}
    return replace(verdict, stats=replace(verdict.stats, seconds=seconds))


def save(verdict: Verdict, path: Path, progress: Progress) -> Path | None:
    """Write the certificate of a verdict that is proved; where it was written. Raises RewrightError."""
    if verdict.status not in ("proved", "vacuous"):
        return None
    with progress.phase("certificate", f"writing {path}"):
        certificate = verdict.certificate
        if certificate is None:
            return None
        certificate.save(path)
    return path


def report(verdict: Verdict, as_json: bool, certificate: Path | None = None) -> None:
    """The verdict on stdout."""
    if as_json:
        sys.stdout.write(json.dumps(document(verdict, certificate), indent=2, allow_nan=False) + "\n")
        return
    print_verdict(verdict, Console())
    if certificate is not None:
        Console().print(f"certificate: {certificate}", soft_wrap=True, highlight=False, markup=False)


def tensors(graph: Graph, positions: Mapping[str, int]) -> dict[str, TensorType]:
    """The types of inputs or outputs by name."""
    return {name: graph.nodes[position].type for name, position in positions.items()}


def describe(program: Graph | RankProgram) -> str:
    """One line about a program: its size."""
    if isinstance(program, Graph):
        return f"{len(program):,} nodes, {len(program.inputs)} inputs, {len(program.outputs)} outputs"
    axes = ", ".join(f"{name}={size}" for name, size in program.mesh.axes)
    return f"{len(program.graphs)} ranks ({axes}), {sum(len(graph) for graph in program.graphs):,} nodes"
