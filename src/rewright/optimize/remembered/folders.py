"""Folders that are written whole or not at all, and read only where every file is as it was written."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

DIGESTS = "digests.json"
"""The file that has the digests of all others."""


def write_folder(folder: Path, fill: Callable[[Path], bool], more: Mapping[str, str | bytes]) -> bool:
    """Write a folder; false where ``fill``, which writes to an empty one, says that there is nothing to write.

    ``more`` is what further files have. Raises OSError where the folder cannot be written.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".new-"))
    try:
        if not fill(made):
            return False
        for name, text in more.items():
            (made / name).write_bytes(text.encode() if isinstance(text, str) else text)
        digests = {path.name: _digest(path) for path in sorted(made.iterdir())}
        (made / DIGESTS).write_text(json.dumps(digests, indent=1))
        if folder.exists():
            shutil.rmtree(folder)
        os.replace(made, folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return True


def is_whole(folder: Path) -> bool:
    """Whether every file has its digest and none is missing.

    Raises OSError or ValueError for what is no such folder.
    """
    digests: dict[str, str] = json.loads((folder / DIGESTS).read_text())
    names = {path.name for path in folder.iterdir()} - {DIGESTS}
    return names == digests.keys() and all(_digest(folder / name) == found for name, found in digests.items())


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


__all__ = ["DIGESTS", "is_whole", "write_folder"]
