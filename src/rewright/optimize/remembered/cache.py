"""The cache of optimised programs over processes: found by the program, and by all that the result depends on."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

import rewright
from rewright.ir.digest import digest
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.optimize.remembered.entry import Entry, read_entry, write_entry
from rewright.optimize.remembered.folders import is_whole, write_folder
from rewright.optimize.running.building import cache_folder, toolchain

if TYPE_CHECKING:
    from rewright.optimize.api import Optimized

NOTE = "note.json"
MOST_BYTES = 1 << 30
"""The size of all entries together; the oldest ones go first."""


def programs_folder() -> Path:
    """Where entries are."""
    return cache_folder().parent / "programs"


def key_of(graph: Graph, target: str, options: Sequence[object]) -> str:
    """What finds an entry: the program, the options, the package, PyTorch, the compiler, the processor, the threads."""
    return key_of_text(digest(graph, spans=True), target, repr(tuple(options)), json.dumps(list(graph.inputs)))


def key_of_text(*texts: str) -> str:
    """What finds an entry for some texts: the package, PyTorch, the compiler, the processor, the threads besides."""
    known = [*texts, _package(), torch.__version__, *toolchain(), str(torch.get_num_threads())]
    return hashlib.sha256("\0".join(known).encode()).hexdigest()[:40]


@cache
def _package() -> str:
    """The files of this package, as they are on disk."""
    root = Path(rewright.__file__).parent
    found = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        known = path.stat()
        found.update(f"{path.relative_to(root)} {known.st_size} {known.st_mtime_ns}\n".encode())
    return found.hexdigest()


def recall(key: str) -> Entry | None:
    """The entry of a key; a damaged one is removed, so that it is made anew."""
    folder = programs_folder() / key
    found = read_entry(folder)
    if found is None:
        shutil.rmtree(folder, ignore_errors=True)
        return None
    with suppress(OSError):  # which one is oldest is then less exact
        os.utime(folder)
    return found


def keep(key: str, found: Optimized) -> None:
    """Keep a program, where that is possible; the oldest entries make room for it."""
    folder = programs_folder() / key
    try:
        if write_entry(found, folder, {}):
            _make_room(folder)
    except (OSError, RewrightError) as error:  # a full disk, a folder that cannot be written
        found.notes.append(f"it is not remembered: {error}")


def recall_note(key: str) -> Any:
    """What :func:`keep_note` kept under a key, as JSON has it; None for nothing, and for what was damaged."""
    folder = programs_folder() / key
    try:
        return json.loads((folder / NOTE).read_text()) if is_whole(folder) else None
    except (OSError, ValueError, KeyError, AttributeError):
        return None


def keep_note(key: str, value: object) -> None:
    """Keep something that JSON has, where the cache can be written."""
    folder = programs_folder() / key
    with suppress(OSError):
        write_folder(folder, lambda _: True, {NOTE: json.dumps(value)})
        _make_room(folder)


def _make_room(newest: Path) -> None:
    every = [path for path in newest.parent.iterdir() if path.is_dir() and not path.name.startswith(".")]
    sizes = {path: sum(f.stat().st_size for f in path.iterdir()) for path in every}
    total = sum(sizes.values())
    for path in sorted(every, key=lambda p: p.stat().st_mtime):
        if total <= MOST_BYTES or path == newest:
            break
        shutil.rmtree(path, ignore_errors=True)
        total -= sizes[path]
