"""The kind of claim that two implementations compute the same: how it is checked and told."""

from __future__ import annotations

from dataclasses import replace

from rewright.equiv.audit import audit
from rewright.equiv.certificate import EquivalenceCertificate
from rewright.equiv.files import EQUIVALENCE
from rewright.ir.placement import Mesh
from rewright.proof.kinds import Kind, Programs, Proved, Said, require
from rewright.proof.ledger import Store


def _check(certificate: EquivalenceCertificate, programs: Programs | None, store: Store | None) -> Proved:
    given = require(programs)
    ranks, right = len(certificate.right), given.right
    if ranks == len(right.graphs) == 1:
        right = replace(right, mesh=Mesh(certificate.mesh))
    found = audit(certificate, given.left, right, given.tables(), store)
    outputs = "output" if len(certificate.outputs) == 1 else f"{len(certificate.outputs)} outputs"
    alone = f"both programs compute the same {outputs}"
    return Proved(
        alone if ranks == 1 else f"{ranks} ranks of the right program compute the {outputs} of the left one",
        _claims(certificate),
        f"{found.core.equations:,} equations, {found.lemmas:,} lemmas between the programs, {found.splices:,} uses",
        {"ranks": ranks, "equations": found.core.equations, "lemmas": found.lemmas, "splices": found.splices},
        certificate.calls,
        (given.left, *right.graphs),
        certificate.captured,
    )


def _claims(certificate: EquivalenceCertificate) -> tuple[Said, ...]:
    """What a certificate claims."""
    maps = [str(d) for d in certificate.definitions]
    for side, values in zip(("left", "right"), certificate.tables, strict=True):
        maps += [f"{side} {name} has the values of the certificate" for name in values]
    if len(certificate.right) > 1:
        maps += [f"{name}: {', '.join(placement.printed)}" for name, placement in certificate.relations.items()]
    maps += [
        f"{b.held} of rank {b.rank} in {_box(b.box)}, axes {list(b.order)}, is {b.name} in {_box(b.window)}"
        for b in certificate.blocks
    ]
    outputs: list[str] = []
    if len(certificate.right) > 1:
        outputs = [f"{name}: {', '.join(o.placement.printed)}" for name, o in certificate.outputs.items()]
    return (
        Said("weight_map", "given the weight map", maps),
        Said("outputs", "the outputs are", outputs),
        Said("assumptions", "assuming that", [*certificate.taken, *certificate.assumptions]),
    )


def _box(runs: tuple[tuple[int, int], ...]) -> str:
    return f"[{', '.join(f'{start}:{start + length}' for start, length in runs)}]"


KIND = Kind(EQUIVALENCE.read, _check, lambda certificate: len(certificate.right) > 1)
