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
from typing import TYPE_CHECKING

import torch

import rewright
from rewright.ir.digest import digest
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.optimize.remembered.entry import Entry, read_entry, write_entry
from rewright.optimize.running.building import cache_folder, toolchain

if TYPE_CHECKING:
    from rewright.optimize.api import Optimized

MOST_BYTES = 1 << 30
"""The size of all entries together; the oldest ones go first."""


def programs_folder() -> Path:
    """Where entries are."""
    return cache_folder().parent / "programs"


def key_of(graph: Graph, target: str, options: Sequence[object]) -> str:
    """What finds an entry: the program, the options, the package, PyTorch, the compiler, the processor, the threads."""
    known = [digest(graph, spans=True), target, repr(tuple(options)), _package(), torch.__version__]
    known += [*toolchain(), str(torch.get_num_threads()), json.dumps(list(graph.inputs))]
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


def _make_room(newest: Path) -> None:
    every = [path for path in newest.parent.iterdir() if path.is_dir() and not path.name.startswith(".")]
    sizes = {path: sum(f.stat().st_size for f in path.iterdir()) for path in every}
    total = sum(sizes.values())
    for path in sorted(every, key=lambda p: p.stat().st_mtime):
        if total <= MOST_BYTES or path == newest:
            break
        shutil.rmtree(path, ignore_errors=True)
        total -= sizes[path]
