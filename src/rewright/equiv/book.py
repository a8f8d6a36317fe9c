"""A file of lemmas: what was proved about parts of programs, kept for later runs.

A lemma is read as its two programs and proved again, whatever the file says of it: who can write a file cannot make
a wrong lemma count. Reading a file executes nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import rewright
from rewright import ops
from rewright.equiv.lemmas import Lemma, Prover, key_of
from rewright.ir.errors import RewrightError
from rewright.ir.json_form import from_json, to_json

FORMAT = "rewright.lemmas"
VERSION = 1


def write_book(path: Path, lemmas: Iterable[Lemma]) -> None:
    """Write lemmas, with those that the file has already; raises RewrightError where it cannot be written."""
    entries = {entry["key"]: entry for entry in (_entries(path) if path.is_file() else [])}
    for lemma in lemmas:
        entries.setdefault(lemma.key, _entry(lemma))
    document = {"format": FORMAT, "version": VERSION, "lemmas": list(entries.values())}
    try:
        temporary = path.with_name(f"{path.name}.part")
        temporary.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise RewrightError(f"cannot write {path}: {error.strerror}; check the folder") from None


def read_book(path: Path) -> Prover:
    """A prover that has proved the lemmas of a file; raises RewrightError for a file that is none, or was changed."""
    prover = Prover()
    for entry in _entries(path):
        left, right = (from_json(entry[side], ops.REGISTRY) for side in ("left", "right"))
        key = key_of(left, right)
        if key != entry["key"] or entry["digest"] != _digest(entry):
            raise RewrightError(f"{path}: the lemma {entry.get('name')!r} was changed after it was written; delete it")
        prover.proves(left, right)
    prover.attempts = 0
    return prover


def _entry(lemma: Lemma) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": lemma.name,
        "key": lemma.key,
        "evidence": lemma.evidence,
        "prover": rewright.__version__,
        "places": [list(place) for place in lemma.places[:8]],
        "left": to_json(lemma.left),
        "right": to_json(lemma.right),
    }
    return {**entry, "digest": _digest(entry)}


def _digest(entry: dict[str, Any]) -> str:
    said = {name: entry[name] for name in ("key", "evidence", "prover")}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _entries(path: Path) -> list[dict[str, Any]]:
    try:
        document: object = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RewrightError(f"cannot read {path}: {error.strerror}; check the path") from None
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise RewrightError(f"{path} is no file of lemmas: it is no JSON; name another file") from None
    known = cast("dict[str, Any]", document) if isinstance(document, dict) else {}
    if known.get("format") != FORMAT or known.get("version") != VERSION:
        raise RewrightError(f"{path} is no file of lemmas of this version; name another file")
    entries = cast("list[dict[str, Any]]", known.get("lemmas", []))
    wanted = {"name", "key", "evidence", "prover", "left", "right", "digest"}
    if not all(wanted <= entry.keys() for entry in entries):
        raise RewrightError(f"{path} has a lemma that says too little; delete the file")
    return entries
