"""``rewright show``: a program as text, or around one place as a picture; two programs side by side."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from rewright.cli.hints import did_you_mean
from rewright.cli.programs import Source
from rewright.cli.relations import Relations
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.refine import refine
from rewright.refine.verdict import Verdict
from rewright.report import draw_finding, draw_graph, draw_pair

_LINE = re.compile(r"(.+):(\d+)")


def show_text(source: Source, program: str) -> None:
    """Print a saved program as text."""
    from rewright.frontends.rwt.files import text_form

    sys.stdout.write(text_form(source.file(program)))


def show_one(source: Source, text: str, place: str | None, steps: int, target: Path | None) -> None:
    """A picture of one program around a place; raises RewrightError."""
    graph = source.sequential(text)
    focus = position_of(graph, place) if place else max(graph.outputs.values())
    _write(draw_graph(graph, focus, f"{Path(text).name} around %{focus}", steps), target)


def show_both(
    source: Source,
    left: str,
    right: Sequence[str],
    given: Relations,
    place: str | None,
    number: int,
    steps: int,
    target: Path | None,
) -> None:
    """A picture of both programs around a finding, or around a place that is named; raises RewrightError."""
    sequential, program = source.sequential(left), source.distributed(list(right))
    if place is not None:
        focus = position_of(sequential, place)
        other = counterpart(sequential, program, focus, place)
        title = f"both programs around {place}"
        _write(draw_pair(sequential, program.graphs[0], focus, other, "rank 0", title, steps), target)
        return
    with source.progress.phase("refine", "looking for where the programs part"):
        verdict = refine(sequential, program, given.relations or None, given.expect or None)
    _write(_page_around(verdict, number, steps), target)


def _page_around(verdict: Verdict, number: int, steps: int) -> str:
    if not verdict.findings:
        raise RewrightError(f"the verdict is {verdict.status} and has no findings; name a place with --around")
    if not 1 <= number <= len(verdict.findings):
        raise RewrightError(f"--finding {number}: there are {len(verdict.findings)}; count from 1")
    drawing = draw_finding(verdict, verdict.findings[number - 1], steps)
    if drawing is None:
        raise RewrightError(f"finding {number} is about no operator; name a place with --around")
    return drawing


def position_of(graph: Graph, place: str) -> int:
    """The node that ``%12``, the name of an input or output, or ``file.py:88`` says; raises RewrightError."""
    if place.startswith("%") and place[1:].isdecimal():
        if int(place[1:]) >= len(graph.nodes):
            raise RewrightError(
                f"--around {place}: the program has nodes %0 to %{len(graph.nodes) - 1}; name one of them"
            )
        return int(place[1:])
    if place in graph.outputs or place in graph.inputs:
        return graph.outputs[place] if place in graph.outputs else graph.inputs[place]
    line = _LINE.fullmatch(place)
    if line is not None:
        name, number = line[1], int(line[2])
        for position, node in enumerate(graph.nodes):
            if node.span.line == number and (node.span.file == name or node.span.file.endswith(f"/{name}")):
                return position
        raise RewrightError(
            f"--around {place}: no operator comes from that line; see rewright show for those there are"
        )
    names = [*graph.inputs, *graph.outputs]
    raise RewrightError(
        f"--around {place} is no input, output, %position or file.py:line of the program; {did_you_mean(place, names)}"
    )


def counterpart(sequential: Graph, program: RankProgram, focus: int, place: str) -> int | None:
    """What most likely stands for a node in the program of rank 0: by name, else by module, operator and order."""
    graph = program.graphs[0]
    for left, right in ((sequential.inputs, graph.inputs), (sequential.outputs, graph.outputs)):
        name = next((name for name, position in left.items() if position == focus), None)
        if name is not None and name in right:
            return right[name]
    node = sequential.nodes[focus]

    def alike(one: Graph) -> list[int]:
        path, kind = node.span.module_path, node.op.name
        return [p for p, other in enumerate(one.nodes) if other.span.module_path == path and other.op.name == kind]

    number, found = alike(sequential).index(focus), alike(graph)
    return found[number] if number < len(found) else None


def _write(drawing: str, target: Path | None) -> None:
    if target is None:
        sys.stdout.write(drawing)
        return
    try:
        target.write_text(drawing, encoding="utf-8")
    except OSError as error:
        raise RewrightError(f"cannot write {target}: {error.strerror}; name another file") from None
