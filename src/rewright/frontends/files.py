"""Programs in files: one graph, or the graphs of all ranks with their placements."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from rewright.frontends import graph_json
from rewright.frontends.graph_json.document import is_document
from rewright.frontends.hlo import reading as hlo
from rewright.frontends.hlo.stablehlo import to_proto
from rewright.frontends.ranks import ranks
from rewright.ir.dims import Dim
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.json_form import decode, encode, from_json, to_json
from rewright.ir.placement import Mesh, Placement, RankProgram
from rewright.ir.text import print_graph
from rewright.ops import REGISTRY
from rewright.ops.files import (
    decode_json,
    decode_text,
    explained,
    extension_of,
    load_graph,
    read_bytes,
    read_text,
    save_graph,
    write_text,
)

FORMAT = "rewright.ranks"
VERSION = 1
STABLEHLO_EXTENSIONS = (".mlir", ".stablehlo")
HLO_EXTENSIONS = (".pb", ".hlo", ".txt", *STABLEHLO_EXTENSIONS)
"""Of files that are read and never written."""

Path = str | os.PathLike[str]


def load(path: Path, devices: int | None = None, *, validate: bool = True) -> Graph | RankProgram:
    """Read a program: what :func:`save` wrote, or what others captured.

    ``.rwt`` is text, ``.json`` and ``.json.gz`` are our JSON or ``graph-json/1``; a folder holds one ``graph-json/1``
    file or one HLO module a rank. ``.pb`` is an HloModuleProto, ``.hlo`` and ``.txt`` are HLO text, ``.mlir`` and
    ``.stablehlo`` are StableHLO as text or bytecode, which needs jaxlib; ``devices`` says for how many devices a module
    is that does not. With ``validate`` the ATen calls of a ``graph-json/1`` file are checked as those of a capture are,
    if PyTorch is installed.
    Raises RewrightError for an unknown extension, a file that cannot be read, and contents that are no program,
    UnsupportedOperator for an operator that has no lowering.
    """
    if os.path.isdir(path):
        return _from_files(_files_in(path), validate)
    if _is_hlo(path):
        return _hlo(path, devices)
    if extension_of(path) == ".rwt":
        return load_graph(path)
    data = _json(path)
    if is_document(data):
        return explained(path, lambda: graph_json.read_alone(data, validate=validate))
    return explained(path, lambda: _from_json(data))


def load_ranks(paths: Sequence[Path], mesh: Mapping[str, int] | None = None, *, validate: bool = True) -> RankProgram:
    """The program whose ranks are one graph file each; a ``graph-json/1`` file knows its own rank.

    A module of HLO is what the device at its place among the files runs; ``validate`` is as for :func:`load`.

    Raises RewrightError where a file is no graph, holds the programs of all ranks, or does not fit the others.
    """
    if all(_is_json(path) for path in paths):
        data = [_json(path) for path in paths]
        if all(map(is_document, data)):
            program = graph_json.read_ranks(data, validate=validate)
            return program if mesh is None else ranks(program.graphs, mesh)
    if len(paths) > 1 and all(_is_hlo(path) for path in paths):
        modules = [_hlo_device(path, len(paths), device) for device, path in enumerate(paths)]
        return ranks(modules, mesh or {"rank": len(modules)})
    graphs: list[Graph] = []
    for path in paths:
        program = load(path)
        if isinstance(program, RankProgram):
            raise RewrightError(
                f"{os.fspath(path)} holds the programs of all ranks; give it alone, or one graph file per rank"
            )
        graphs.append(program)
    return ranks(graphs, mesh or {"rank": len(graphs)})


def _is_hlo(path: Path) -> bool:
    return os.fspath(path).endswith(HLO_EXTENSIONS)


def _hlo(path: Path, devices: int | None) -> Graph | RankProgram:
    contents = _module(path)
    if isinstance(contents, str):
        return explained(path, lambda: hlo.read_text(contents, devices))
    return explained(path, lambda: hlo.read_proto(contents, devices))


def _hlo_device(path: Path, devices: int, device: int) -> Graph:
    contents = _module(path)
    return explained(path, lambda: hlo.read_device(contents, devices, device))


def _module(path: Path) -> str | bytes:
    """The contents of a file as HLO text, or as a serialised HloModuleProto."""
    contents = read_bytes(path)
    if os.fspath(path).endswith(".pb"):
        return contents
    if os.fspath(path).endswith(STABLEHLO_EXTENSIONS):
        return explained(path, lambda: to_proto(contents))
    return explained(path, lambda: decode_text(contents))


def _json(path: Path) -> object:
    text = read_text(path)
    return explained(path, lambda: decode_json(text))


def _is_json(path: Path) -> bool:
    return not os.path.isdir(path) and not _is_hlo(path) and extension_of(path) != ".rwt"


def _files_in(folder: Path) -> list[str]:
    """The JSON files of a folder, of one without them its modules, in order of their names."""
    try:
        found = sorted((entry.path for entry in os.scandir(folder)), key=_by_numbers)
    except OSError as error:
        raise RewrightError(f"cannot read {os.fspath(folder)}: {error.strerror}; check the path") from None
    chosen = [path for path in found if path.endswith((".json", ".json.gz"))] or [p for p in found if _is_hlo(p)]
    if not chosen:
        raise RewrightError(
            f"{os.fspath(folder)} holds no .json, no .json.gz file and no module; name a folder with one a rank"
        )
    return chosen


def _by_numbers(path: str) -> list[tuple[int, str]]:
    """A name in parts, numbers by their value: ``r10`` comes after ``r2``."""
    parts = re.split(r"([0-9]+)", os.path.basename(path))
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


def _from_files(paths: Sequence[str], validate: bool) -> Graph | RankProgram:
    """One graph, or the program of all ranks; programs of several graphs in one folder are not told apart."""
    if len(paths) == 1:
        return load(paths[0], validate=validate)
    return explained(os.path.dirname(paths[0]), lambda: load_ranks(paths, validate=validate))


def save(program: Graph | RankProgram, path: Path) -> None:
    """Write a program; the form follows from the extension, and a file is written as a whole or not at all.

    Programs of ranks have a JSON form only. Raises RewrightError for an unknown extension and where the file cannot be
    written.
    """
    check_form(path, ranks=isinstance(program, RankProgram))
    if isinstance(program, Graph):
        save_graph(program, path)
    else:
        write_text(path, json.dumps(_ranks_to_json(program), allow_nan=False, separators=(",", ":")))


def check_form(path: Path, *, ranks: bool) -> None:
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
