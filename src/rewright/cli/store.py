"""Lemmas that the checker proved before, by digest, in one file of a folder."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib.metadata import version
from pathlib import Path

import rewright
from rewright.ir.errors import RewrightError

_LINE = re.compile(r"[0-9a-f]{64}")
_SOURCES = ("ir", "ops", "terms", "proof")
"""What the checker is made of."""


class LemmaStore:
    """Digests of lemmas that this very version of the checker proved.

    A line holds the digest of a lemma together with that of the checker's own source and of its solver, so that what
    another version proved is never trusted, and a line that is damaged is only one that nobody asks for.
    """

    def __init__(self, path: Path, known: set[str]) -> None:
        self._path = path
        self._known = known
        self._new: list[str] = []

    @staticmethod
    def open(folder: Path) -> LemmaStore:
        """The store in a folder, which is made where there is none; raises RewrightError where it cannot be."""
        path = folder / "lemmas.txt"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lines = path.read_text(encoding="ascii", errors="replace").splitlines() if path.exists() else []
        except OSError as error:
            raise RewrightError(f"cannot keep lemmas in {folder}: {error.strerror}; name another folder") from None
        return LemmaStore(path, {line for line in lines if _LINE.fullmatch(line)})

    def __contains__(self, digest: str) -> bool:
        return _key_of(digest) in self._known

    def add(self, digest: str) -> None:
        """Remember a lemma that was proved."""
        line = _key_of(digest)
        if line not in self._known:
            self._known.add(line)
            self._new.append(line)

    def save(self) -> None:
        """Append what is new; raises RewrightError."""
        if not self._new:
            return
        try:
            with self._path.open("a", encoding="ascii") as file:
                # A line that was cut off before must not swallow the first of these.
                file.write("".join(f"\n{line}" for line in self._new) + "\n")
        except OSError as error:
            raise RewrightError(f"cannot write {self._path}: {error.strerror}; name another folder") from None
        self._new.clear()


def _key_of(digest: str) -> str:
    return hashlib.sha256(f"{checker_digest()} {digest}".encode()).hexdigest()


@cache
def checker_digest() -> str:
    """A SHA-256 over the source of all that a lemma's proof rests on, and the version of the solver."""
    root = Path(rewright.__file__).parent
    found = hashlib.sha256(version("z3-solver").encode())
    for package in _SOURCES:
        for path in sorted((root / package).rglob("*.py")):
            found.update(str(path.relative_to(root)).encode())
            found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()
