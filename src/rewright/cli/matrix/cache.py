"""Verdicts of earlier runs, by key, in a folder: entries that are damaged are dropped and never believed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from rewright.ir.errors import RewrightError
from rewright.ir.files import write_text
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.proof.certificate import Certificate
from rewright.proof.checker import Store, audit

_SCHEMA = 1


@dataclass(frozen=True)
class Cache:
    """Entries ``KEY.json``, and the certificate ``KEY.proof.json.gz`` of every one that is proved.

    An entry says which key it is for and holds a digest of its contents and of the certificate; one that is cut off,
    changed, renamed, or whose certificate is, counts as none and is removed. An entry that says *proved* is worth no
    more than whoever can write to the folder: with an audit its certificate is checked again, as on the first day.
    """

    folder: Path

    @staticmethod
    def open(folder: Path) -> Cache:
        """The cache in a folder, which is made where there is none; raises RewrightError where it cannot be."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RewrightError(f"cannot keep verdicts in {folder}: {error.strerror}; name another folder") from None
        return Cache(folder)

    def read(
        self, key: str, sequential: Graph, program: RankProgram, confirm: bool, store: Store | None = None
    ) -> dict[str, Any] | None:
        """The contents of an entry, None where there is none or it is not what was written.

        Args:
            sequential: the program that the key was made from, for the audit.
            program: the same.
            confirm: whether the certificate of a proof is to be checked again.
            store: lemmas that need not be proved again.
        """
        entry, proof = self._paths(key)
        if not entry.exists():
            return None
        contents = _intact(entry, key)
        proved = contents is not None and contents["document"].get("status") == "proved"
        if contents is None or (proved and not self._holds(contents, proof, sequential, program, confirm, store)):
            self.drop(key)
            return None
        return contents

    def write(self, key: str, contents: Mapping[str, Any], certificate: Certificate | None) -> None:
        """Keep a verdict; a proof without a certificate is not kept. Nothing is raised: a cache may fail."""
        entry, proof = self._paths(key)
        proved = contents["document"]["status"] == "proved"
        if proved and certificate is None:
            return
        try:
            digest = ""
            if proved and certificate is not None:
                certificate.save(proof)
                digest = _file_digest(proof)
            body = {"schema": _SCHEMA, "key": key, "certificate": digest, **contents}
            text = json.dumps({"digest": _digest(body), "body": body}, allow_nan=False)
            write_text(entry, text)
        except (OSError, RewrightError, ValueError):
            self.drop(key)

    def drop(self, key: str) -> None:
        """Remove an entry."""
        for path in self._paths(key):
            path.unlink(missing_ok=True)

    def _holds(
        self,
        contents: Mapping[str, Any],
        path: Path,
        sequential: Graph,
        program: RankProgram,
        confirm: bool,
        store: Store | None,
    ) -> bool:
        """Whether the certificate is the one that was written, and with an audit whether it proves the claim."""
        try:
            if _file_digest(path) != contents["certificate"]:
                return False
            if confirm:
                certificate = Certificate.load(path)
                audit(certificate, sequential, program, store)
                claimed = {output["name"]: output["placement"] for output in contents["document"]["outputs"]}
                return claimed == {name: str(output.placement) for name, output in certificate.outputs.items()}
        except (OSError, RewrightError):
            return False
        return True

    def _paths(self, key: str) -> tuple[Path, Path]:
        return self.folder / f"{key}.json", self.folder / f"{key}.proof.json.gz"


def _intact(path: Path, key: str) -> dict[str, Any] | None:
    """The body of an entry whose digest, key and schema are right."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    outer = cast("dict[str, Any]", found)
    body = outer.get("body")
    if not isinstance(body, dict):
        return None
    inner = cast("dict[str, Any]", body)
    right = outer.get("digest") == _digest(inner) and inner.get("key") == key and inner.get("schema") == _SCHEMA
    return inner if right and isinstance(inner.get("document"), dict) else None


def _digest(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
