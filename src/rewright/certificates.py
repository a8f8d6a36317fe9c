"""Certificates of every kind of claim in files: one way to read them, and one audit."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.proof.container import open_file
from rewright.proof.kinds import Kind, Programs, Proved, alone

if TYPE_CHECKING:
    from rewright.proof.ledger import Store

KINDS = {
    "rewright.certificate": "rewright.proof.kind",
    "rewright.equivalence": "rewright.equiv.kind",
    "rewright.pieces": "rewright.equiv.pieces",
    "rewright.kernel": "rewright.kernel.certificate",
    "rewright.env.certificate": "rewright.env.certificate",
    "rewright.deployment": "rewright.env.deploy",
}
"""By the format that a file names, the module whose ``KIND`` reads and checks it; an audit imports no other."""


def load(path: str | os.PathLike[str]) -> tuple[Kind[Any], Any]:
    """The kind of a certificate in a file, and the certificate.

    Raises RewrightError, naming the place, for a file that cannot be read and contents that are no certificate.
    """

    def read(text: str, value: Any) -> tuple[Kind[Any], Any]:
        name = cast("dict[str, Any]", value).get("format") if isinstance(value, dict) else None
        if not isinstance(name, str) or name not in KINDS:
            raise RewrightError("this is no certificate; name a file that rewright refine --certificate wrote")
        kind: Kind[Any] = import_module(KINDS[name]).KIND
        return kind, kind.read(text, value)

    return open_file(path, read)


def audit(
    path: str | os.PathLike[str],
    left: Graph | None = None,
    right: Graph | RankProgram | None = None,
    store: Store | None = None,
) -> Proved:
    """Verify a certificate in a file again, by its checker alone, and say what it proves.

    Args:
        path: the file.
        left: the left or sequential program that it is to be about; a certificate may hold its programs itself.
        right: the right one, or those of all ranks.
        store: lemmas that this checker proved before.

    Raises:
        Refused: naming the step, for a certificate from which its claim does not follow.
        RewrightError: for what is no certificate.
    """
    kind, certificate = load(path)
    if left is None or right is None:
        return kind.check(certificate, None, store)
    return kind.check(certificate, Programs(left, alone(right) if isinstance(right, Graph) else right), store)
