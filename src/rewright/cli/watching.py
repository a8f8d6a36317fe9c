"""``--watch``: a command again, whenever a file that it may read has changed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

WATCH = "--watch"
_READ = (".py", ".toml", ".mlir", ".hlo", ".txt", ".json", ".gz", ".pt2")
_PAUSE = 0.5
"""Seconds between two looks at the files."""
_SKIPPED = ("__pycache__", "node_modules", "site-packages")
_MOST = 20_000
"""So many files are watched; a folder with more is no project."""

Times = dict[str, int]
"""When each file was written, in nanoseconds."""


def watch(arguments: Sequence[str]) -> int:
    """Run a command in a process of its own, and again after each change, until somebody interrupts it."""
    command = [sys.executable, "-m", "rewright", *(text for text in arguments if text != WATCH)]
    while True:
        before = written(Path.cwd())
        subprocess.run(command, check=False)
        print(f"rewright: watching {len(before):,} files of {Path.cwd()}; Ctrl-C ends", file=sys.stderr, flush=True)
        changed = _changed(before)
        print(f"rewright: {changed} has changed", file=sys.stderr, flush=True)


def _changed(before: Times) -> str:
    """Wait for a change, and then until nothing changes any more; the first file that did."""
    while (now := written(Path.cwd())) == before:
        time.sleep(_PAUSE)
    first = next(iter(sorted(name for name in {*before, *now} if before.get(name) != now.get(name))))
    while (later := written(Path.cwd())) != now:
        now = later
        time.sleep(_PAUSE)
    return os.path.relpath(first)


def written(folder: Path) -> Times:
    """The files under a folder that programs and settings are read from, and when they were written."""
    found: Times = {}
    for entry in _files(str(folder)):
        if len(found) >= _MOST:
            break
        try:
            found[entry.path] = entry.stat().st_mtime_ns
        except OSError:  # it has gone
            continue
    return found


def _files(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith(".") or entry.name in _SKIPPED:
            continue
        if entry.is_dir(follow_symlinks=False):
            if not os.path.exists(os.path.join(entry.path, "pyvenv.cfg")):
                yield from _files(entry.path)
        elif entry.name.endswith(_READ):
            yield entry
