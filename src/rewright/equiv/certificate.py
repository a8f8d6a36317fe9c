"""A certificate of two implementations: how both are made comparable, and the proof about what is made of them.

The core is a certificate of ``rewright.proof``, about both programs as they were rewritten. What is added says how
these come from the programs that were captured: the weight map, tables that are constants, and every step of every
rewrite, with the lemma that says why it changes nothing, and what that takes for granted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from rewright.analysis.ends import Bound
from rewright.equiv.inputs.weights import Definition
from rewright.equiv.rewrites.ranges import Ranges
from rewright.ir.errors import RewrightError
from rewright.ir.json_form import decode, encode
from rewright.ops.base import Array
from rewright.ops.files import prefix_errors, read_text, write_text
from rewright.proof.certificate import Certificate
from rewright.proof.entries import as_integer, as_list, as_text
from rewright.proof.files import check_name, is_printed, of_text, seal_text, table
from rewright.proof.files import decode as decode_strictly
from rewright.proof.reading import read_certificate
from rewright.proof.rewriting.files import rewriting_table, rewritings_of
from rewright.proof.rewriting.splices import Rewriting

FORMAT = "rewright.equivalence"
VERSION = 2
_KEYS = ("format", "version", "left", "right", "map", "tables", "assumptions", "rewriting", "proof", "digest")
_OPTIONAL = ("ranges",)


@dataclass(frozen=True, kw_only=True)
class EquivalenceCertificate(Certificate):
    """A proof that two implementations compute the same, about the programs as they were captured."""

    left: str
    """The digest of the left program."""
    right: tuple[str, ...]
    """The digests of the right program, of all its ranks where it has several."""
    definitions: tuple[Definition, ...] = ()
    """The weight map."""
    tables: tuple[Mapping[str, Array], Mapping[str, Array]] = field(default=({}, {}), repr=False)
    """Inputs of either side that stand for these values."""
    taken: tuple[str, ...] = ()
    """What its rewritings take for granted until the core begins, whose ``assumptions`` say the rest."""
    ranges: Ranges = field(default_factory=dict[str, Bound])
    """Bounds of inputs without which short integers might not fit into their types."""

    def core(self) -> Certificate:
        """The proof about the prepared programs, which begins where numbers are in range."""
        known: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(Certificate)}
        last = tuple(Rewriting(narrowing=rewriting.narrowing) for rewriting in self.rewritings)
        known["rewritings"] = last if any(own.narrowing for own in last) else ()
        return Certificate(**known)

    def save(self, path: str | Path) -> None:
        """Write the certificate, as a whole or not at all; a path that ends in ``.gz`` is compressed.

        Raises RewrightError for an extension other than ``.json`` and ``.json.gz`` and where it cannot be written.
        """
        check_name(path)
        write_text(path, seal_text(equivalence_table(self)))

    @staticmethod
    def load(path: str | Path) -> Certificate:
        """Read a certificate of either kind from a file.

        Raises RewrightError, naming the place, for a file that cannot be read and contents that are no certificate.
        """
        return read(path)


def read(path: str | Path) -> Certificate:
    """Read a certificate: of two implementations, or of ranks. Raises RewrightError, naming the place."""
    check_name(path)
    text = read_text(path)

    def contents() -> Certificate:
        entries: Any = decode_strictly(text)
        known = cast("dict[str, Any]", entries) if isinstance(entries, dict) else dict[str, Any]()
        if known.get("format") != FORMAT:
            return of_text(text)
        found = equivalence_of(known)
        return replace(found, intact=is_printed(text, equivalence_table(found)))

    return prefix_errors(path, contents)


def equivalence_table(certificate: EquivalenceCertificate) -> dict[str, Any]:
    """The JSON object of a certificate but for the digest."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "left": certificate.left,
        "right": list(certificate.right),
        "map": [[d.side, d.name, d.text, d.rank] for d in certificate.definitions],
        "tables": [
            [[name, list(value.shape), encode(tuple(value.reshape(-1).tolist()))] for name, value in values.items()]
            for values in certificate.tables
        ],
        "assumptions": list(certificate.taken),
        "rewriting": rewriting_table(certificate.rewritings),
        **({"ranges": [[name, *bound] for name, bound in certificate.ranges.items()]} if certificate.ranges else {}),
        "proof": json.loads(seal_text(table(replace(certificate.core(), rewritings=())))),
    }


def equivalence_of(entries: dict[str, Any]) -> EquivalenceCertificate:
    """The certificate of a JSON object; raises RewrightError, naming the entry."""
    if entries.get("version") != VERSION:
        raise RewrightError(f"version {entries.get('version')!r:.20} of certificates is not known; this is {VERSION}")
    for key in (*_KEYS, *entries):
        if key not in entries or key not in (*_KEYS, *_OPTIONAL):
            raise RewrightError(f"the entry {key!r:.40} is missing or is none; write the certificate again")
    core = read_certificate(entries["proof"], intact=True)
    if core.rewritings:
        raise RewrightError("proof is malformed: it has rewritings of its own; write the certificate again")
    key = ""
    try:
        key = "left"
        left = as_text(entries[key])
        key = "right"
        right = tuple(as_text(item) for item in as_list(entries[key]))
        key = "map"
        definitions = tuple(_definition(*as_list(item)) for item in as_list(entries[key]))
        key = "tables"
        mine, other = (_tables(item) for item in as_list(entries[key]))
        key = "assumptions"
        taken = tuple(as_text(item) for item in as_list(entries[key]))
        key = "rewriting"
        rewritings = rewritings_of(entries[key])
        key = "ranges"
        ranges = dict(_range(*as_list(item)) for item in as_list(entries.get(key, [])))
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise RewrightError(f"{key} is malformed: {str(error) or type(error).__name__:.80}") from None
    own: dict[str, Any] = {f.name: getattr(core, f.name) for f in fields(Certificate)}
    own["rewritings"] = rewritings
    return EquivalenceCertificate(
        **own,
        left=left,
        right=right,
        definitions=definitions,
        tables=(mine, other),
        taken=taken,
        ranges=ranges,
    )


def _definition(side: Any, name: Any, text: Any, rank: Any) -> Definition:
    if side != "left" and side != "right":
        raise ValueError(f"there is no side {side!r:.20}")
    return Definition(side, as_text(name), as_text(text), None if rank is None else as_integer(rank))


def _range(name: Any, low: Any, high: Any) -> tuple[str, Bound]:
    ends = [float(end) for end in (low, high) if isinstance(end, int | float) and not isinstance(end, bool)]
    if len(ends) != 2 or not all(map(math.isfinite, ends)) or ends[0] > ends[1]:
        raise ValueError(f"{low!r:.40} and {high!r:.40} are no bounds")
    return as_text(name), (ends[0], ends[1])


def _tables(item: Any) -> dict[str, Array]:
    found: dict[str, Array] = {}
    for name, shape, values in map(as_list, as_list(item)):
        flat = cast("tuple[float, ...]", decode(as_list(values)))
        found[as_text(name)] = np.array(flat, np.float64).reshape([as_integer(n) for n in as_list(shape)])
    return found
