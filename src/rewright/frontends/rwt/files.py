"""Graphs, and the programs of all ranks with their placements, in files of this project's own."""

from __future__ import annotations

import json
import os
from typing import Any, cast

from rewright.frontends.frontend import File
from rewright.ir.dims import Dim
from rewright.ir.errors import RewrightError
from rewright.ir.files import write_text
from rewright.ir.graph import Graph
from rewright.ir.json_form import decode, encode, from_json, to_json
from rewright.ir.placement import Mesh, Placement, RankProgram
from rewright.ir.text import print_graph
from rewright.ops import REGISTRY
from rewright.ops.files import extension_of, parse, save_graph

FORMAT = "rewright.ranks"
VERSION = 1


def read(file: File, devices: int | None, validate: bool) -> Graph | RankProgram:
    """The program in a file that :func:`write` wrote; raises RewrightError where it is none."""
    return parse(file.text) if file.path.endswith(".rwt") else _from_json(file.json)


def write(program: Graph | RankProgram, path: str | os.PathLike[str]) -> None:
    """Write a program, as a whole or not at all; raises RewrightError where the file cannot be written."""
    check_form(path, ranks=isinstance(program, RankProgram))
    if isinstance(program, Graph):
        save_graph(program, path)
    else:
        write_text(path, json.dumps(_ranks_to_json(program), allow_nan=False, separators=(",", ":")))


def check_form(path: str | os.PathLike[str], *, ranks: bool) -> None:
    """Raise RewrightError for an extension that is unknown, or that has no form for the programs of ranks."""
    if extension_of(path) == ".rwt" and ranks:
        raise RewrightError(f"{os.fspath(path)}: text holds one graph, not the programs of ranks; save them as .json")


def text_form(program: Graph | RankProgram) -> str:
    """The program as text to read: one operator per line, rank after rank."""
    if isinstance(program, Graph):
        return print_graph(program)
    lines = [f"// mesh {', '.join(f'{name}={size}' for name, size in program.mesh.axes)}\n"]
    lines += [f"// input {name}: {placement}\n" for name, placement in program.inputs.items()]
    lines += [f"// output {name}: {placement}\n" for name, placement in program.outputs.items()]
    lines += [f"// rank {rank}\n{print_graph(graph)}" for rank, graph in enumerate(program.graphs)]
    return "".join(lines)


def _ranks_to_json(program: RankProgram) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "mesh": [list(axis) for axis in program.mesh.axes],
        "graphs": [to_json(graph) for graph in program.graphs],
        "inputs": {name: _placement_to_json(placement) for name, placement in program.inputs.items()},
        "outputs": {name: _placement_to_json(placement) for name, placement in program.outputs.items()},
        "notes": list(program.notes),
    }


def _placement_to_json(placement: Placement) -> dict[str, Any]:
    return {
        "runs": encode(placement.runs),
        "printed": list(placement.printed),
        "partial": list(placement.partial),
        "reduction": placement.reduction,
    }


def _from_json(data: Any) -> Graph | RankProgram:
    table = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    if table.get("format") != FORMAT:
        return from_json(cast("object", data), REGISTRY)
    if table.get("version") != VERSION:
        raise RewrightError(f"version {table.get('version')!r:.20} of rank programs is not known; this is {VERSION}")
    try:
        return _ranks_from_json(table)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RewrightError(
            f"the programs of ranks are incomplete or malformed ({error!r:.80}); save them again"
        ) from None


def _ranks_from_json(table: dict[str, Any]) -> RankProgram:
    mesh = Mesh(tuple((str(name), int(size)) for name, size in table["mesh"]))
    graphs = tuple(from_json(graph, REGISTRY) for graph in table["graphs"])
    if len(graphs) != mesh.size:
        raise RewrightError(f"{len(graphs)} graphs for a mesh of {mesh.size} ranks; save the programs again")
    inputs, outputs = (
        {str(name): _placement(value, mesh) for name, value in table[key].items()} for key in ("inputs", "outputs")
    )
    return RankProgram(graphs, mesh, inputs, outputs, tuple(map(str, table["notes"])))


def _placement(value: dict[str, Any], mesh: Mesh) -> Placement:
    runs = tuple(tuple(tuple(_run(run) for run in axis) for axis in rank) for rank in value["runs"])
    if len(runs) != mesh.size or len(value["printed"]) != len(mesh.axes):
        raise RewrightError(f"a placement is of {len(runs)} ranks on a mesh of {mesh.size}; save the programs again")
    return Placement(
        runs, tuple(map(str, value["printed"])), tuple(map(str, value["partial"])), str(value["reduction"])
    )


def _run(value: list[Any]) -> tuple[Dim, Dim]:
    start, length = (cast("Dim", decode(item)) for item in value)
    return start, length
