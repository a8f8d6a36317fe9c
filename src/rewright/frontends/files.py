"""Programs in files: one graph, or the graphs of all ranks with their placements, read by the front end of the file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import partial

from rewright.frontends.frontend import File, Files, Function
from rewright.frontends.ranks import ranks
from rewright.frontends.registry import files
from rewright.ir.errors import RewrightError
from rewright.ir.files import prefix_errors
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram

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
    file = File(os.fspath(path))
    reader = _reader(file)
    return prefix_errors(path, lambda: reader.read(file, devices, validate))


def load_ranks(paths: Sequence[Path], mesh: Mapping[str, int] | None = None, *, validate: bool = True) -> RankProgram:
    """The program whose ranks are one graph file each; a ``graph-json/1`` file knows its own rank.

    A module of HLO is what the device at its place among the files runs; ``validate`` is as for :func:`load`.

    Raises RewrightError where a file is no graph, holds the programs of all ranks, or does not fit the others.
    """
    opened = [File(os.fspath(path)) for path in paths]
    readers = [_reader(file) for file in opened]
    alike = len(paths) > 1 and all(reader is readers[0] for reader in readers)
    together = readers[0].read_ranks if alike else None
    if together is not None:
        graphs: Sequence[Graph] = together(opened, validate)
    else:
        graphs = [_alone(file, reader, validate) for file, reader in zip(opened, readers, strict=True)]
    return ranks(graphs, mesh or {"rank": len(graphs)})


def _alone(file: File, reader: Files, validate: bool) -> Graph:
    program: Graph | RankProgram = prefix_errors(file.path, lambda: reader.read(file, None, validate))
    if isinstance(program, RankProgram):
        raise RewrightError(f"{file.path} holds the programs of all ranks; give it alone, or one graph file per rank")
    return program


def save(program: Graph | RankProgram, path: Path) -> None:
    """Write a program; the form follows from the extension, and a file is written as a whole or not at all.

    Programs of ranks have a JSON form only. Raises RewrightError for an unknown extension and where the file cannot be
    written.
    """
    writers = [own for own in files() if own.write is not None]
    for own in writers:
        if own.write is not None and _ends(path, own):
            return own.write(program, path)
    raise _unknown(path, writers)


def _reader(file: File) -> Files:
    """The front end of a file, by its ending and, where several have it, by what is in the file."""
    if os.path.isdir(file.path):
        return _FOLDER
    for own in files():
        if _ends(file.path, own) and (own.knows is None or prefix_errors(file.path, partial(own.knows, file))):
            return own
    raise _unknown(file.path, files())


def _ends(path: Path, own: Files) -> bool:
    return os.fspath(path).endswith(own.extensions)


def _unknown(path: Path, known: Sequence[Files]) -> RewrightError:
    written_first = sorted(known, key=lambda own: own.write is None)
    endings = dict.fromkeys(ending for own in written_first for ending in own.extensions)
    return RewrightError(f"{os.fspath(path)} has no known extension; name a file that ends in {', '.join(endings)}")


def _files_in(folder: Path) -> list[str]:
    """The files of one front end that a folder holds, in order of their names; each is the program of a rank."""
    try:
        found = sorted((entry.path for entry in os.scandir(folder)), key=_by_numbers)
    except OSError as error:
        raise RewrightError(f"cannot read {os.fspath(folder)}: {error.strerror}; check the path") from None
    for own in files():
        chosen = [path for path in found if own.read_ranks is not None and _ends(path, own)]
        if chosen:
            return chosen
    raise RewrightError(
        f"{os.fspath(folder)} holds no .json, no .json.gz file and no module; name a folder with one a rank"
    )


def _by_numbers(path: str) -> list[tuple[int, str]]:
    """A name in parts, numbers by their value: ``r10`` comes after ``r2``."""
    parts = re.split(r"([0-9]+)", os.path.basename(path))
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


def read_folder(folder: File, devices: int | None, validate: bool) -> Graph | RankProgram:
    """One graph, or the program of all ranks; programs of several graphs in one folder are not told apart."""
    paths = _files_in(folder.path)
    return load(paths[0], validate=validate) if len(paths) == 1 else load_ranks(paths, validate=validate)


_FOLDER = Files((), Function("rewright.frontends.files:read_folder"))
"""What reads a folder."""
