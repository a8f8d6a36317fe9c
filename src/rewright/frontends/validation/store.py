"""Calls that were checked before, by digest, in a file of the user's cache."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

_SOURCES = ("ir", "ops", "interp", "frontends")
"""What a lowering and its check are made of."""
_LARGEST = 8 << 20
"""A file of more bytes is begun anew."""


@dataclass(frozen=True)
class Outcome:
    """What came of running a call beside its lowering."""

    difference: float | None
    """The largest difference; None where it could not be run."""
    why: str = ""
    """Why it could not be run, or what of it is open."""


class Store:
    """What calls gave when they were checked.

    A line belongs to this very version of the lowerings and of the framework; a damaged line is one that nobody asks
    for. A folder that cannot be read or written costs time and nothing else.
    """

    def __init__(self, path: Path, framework: str) -> None:
        self._path, self._framework = path, framework
        self._known: dict[str, Outcome] | None = None
        self._new: dict[str, Outcome] = {}

    def get(self, signature: str) -> Outcome | None:
        """What is known of a call; None where it was not met before."""
        if self._known is None:
            self._known = _read(self._path)
        return self._known.get(self._key(signature))

    def put(self, signature: str, found: Outcome) -> None:
        """Remember a call."""
        key = self._key(signature)
        assert self._known is not None
        self._known[key] = self._new[key] = found

    def save(self) -> None:
        """Append what is new to the file, if that can be done."""
        if not self._new:
            return
        lines = "".join(f"\n{json.dumps([key, found.difference, found.why])}" for key, found in self._new.items())
        self._new = {}
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            large = self._path.exists() and self._path.stat().st_size > _LARGEST
            with self._path.open("w" if large else "a", encoding="ascii") as file:
                file.write(lines + "\n")
        except OSError:
            return

    def _key(self, signature: str) -> str:
        return hashlib.sha256(f"{lowerings_digest()} {self._framework} {signature}".encode()).hexdigest()[:32]


def _read(path: Path) -> dict[str, Outcome]:
    try:
        lines = path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return {}
    found: dict[str, Outcome] = {}
    for line in filter(None, lines):
        try:
            entry: Any = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, list) and len(cast("Sequence[Any]", entry)) == 3:
            key, difference, why = cast("Sequence[Any]", entry)
            if isinstance(key, str) and isinstance(why, str) and isinstance(difference, float | None):
                found[key] = Outcome(difference, why)
    return found


@cache
def open_store(framework: str) -> Store:
    """The store of this user for a version of a framework, one in a process."""
    return Store(_folder() / "validated.txt", framework)


def _folder() -> Path:
    """Where this system keeps what programs can make again."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "rewright"
    given = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    return Path(given or Path.home() / ".cache") / "rewright"


@cache
def lowerings_digest() -> str:
    """A SHA-256 over the sources of all that a lowering is made of and checked by."""
    root = Path(__file__).parents[2]
    found = hashlib.sha256()
    for package in _SOURCES:
        for path in sorted((root / package).rglob("*.py")):
            found.update(str(path.relative_to(root)).encode())
            found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()
