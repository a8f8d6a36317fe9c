"""Proofs that two implementations compute the same, as text and back."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any, cast

import numpy as np

from rewright.analysis.ends import Bound
from rewright.equiv.certificate import EquivalenceCertificate
from rewright.equiv.inputs.weights import Definition
from rewright.ir.json_form import decode, encode
from rewright.ops.base import Array
from rewright.proof.certificate import Certificate
from rewright.proof.container import Form, Header
from rewright.proof.entries import Entries, as_integer, as_list, as_text
from rewright.proof.files import REFINEMENT
from rewright.proof.rewriting.files import rewriting_table, rewritings_of

_HEADER = Header(
    "rewright.equivalence",
    2,
    ("left", "right", "map", "tables", "assumptions", "rewriting", "proof", "digest"),
    ("ranges",),
)


def _table(certificate: EquivalenceCertificate) -> dict[str, Any]:
    return {
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
        "proof": REFINEMENT.sealed(replace(certificate.core(), rewritings=())),
    }


def _build(entries: Entries) -> EquivalenceCertificate:
    core = entries.one("proof", _core)
    own: dict[str, Any] = {f.name: getattr(core, f.name) for f in fields(Certificate)}
    own["rewritings"] = entries.one("rewriting", rewritings_of)
    return EquivalenceCertificate(
        **own,
        left=entries.one("left", as_text),
        right=entries.each("right", as_text),
        definitions=entries.each("map", _definition),
        tables=entries.one("tables", _both_tables),
        taken=entries.each("assumptions", as_text),
        ranges=dict(entries.each("ranges", _range)),
    )


EQUIVALENCE = Form(_HEADER, _table, _build)
"""How proofs that two implementations compute the same are written."""


def _core(value: Any) -> Certificate:
    core = REFINEMENT.of_value(value)
    if core.rewritings:
        raise ValueError("it has rewritings of its own; write the certificate again")
    return core


def _definition(item: Any) -> Definition:
    side, name, text, rank = as_list(item, 4)
    if side != "left" and side != "right":
        raise ValueError(f"there is no side {side!r:.20}")
    return Definition(side, as_text(name), as_text(text), None if rank is None else as_integer(rank))


def _range(item: Any) -> tuple[str, Bound]:
    name, low, high = as_list(item, 3)
    ends = [float(end) for end in (low, high) if isinstance(end, int | float) and not isinstance(end, bool)]
    if len(ends) != 2 or not all(map(math.isfinite, ends)) or ends[0] > ends[1]:
        raise ValueError(f"{low!r:.40} and {high!r:.40} are no bounds")
    return as_text(name), (ends[0], ends[1])


def _both_tables(item: Any) -> tuple[dict[str, Array], dict[str, Array]]:
    left, right = as_list(item, 2)
    return _tables(left), _tables(right)


def _tables(item: Any) -> dict[str, Array]:
    found: dict[str, Array] = {}
    for name, shape, values in map(as_list, as_list(item)):
        flat = cast("tuple[float, ...]", decode(as_list(values)))
        found[as_text(name)] = np.array(flat, np.float64).reshape([as_integer(n) for n in as_list(shape)])
    return found
