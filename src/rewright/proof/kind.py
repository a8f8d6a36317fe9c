"""The kind of claim that ranks compute what one program computes."""

from __future__ import annotations

from collections.abc import Mapping

from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, Placement
from rewright.ir.types import TensorType
from rewright.proof.certificate import Certificate
from rewright.proof.checker import audit
from rewright.proof.files import REFINEMENT
from rewright.proof.kinds import Kind, Programs, Proved, Said, require
from rewright.proof.ledger import Store
from rewright.proof.relations import is_spelled

_SHOWN = 12
"""The most names of one placement that are printed."""


def _check(certificate: Certificate, programs: Programs | None, store: Store | None) -> Proved:
    given = require(programs)
    found = audit(certificate, given.left, given.right, store)
    claimed = {name: output.placement for name, output in certificate.outputs.items()}
    axes = ", ".join(f"{name}={size}" for name, size in given.right.mesh.axes)
    return Proved(
        f"{len(given.right.graphs)} ranks ({axes}) compute what the sequential program computes",
        (
            _place("inputs", "given the inputs", certificate, certificate.relations, given.left, given.left.inputs),
            _place("outputs", "the outputs are", certificate, claimed, given.left, given.left.outputs),
            Said("assumptions", "assuming that", certificate.assumptions),
        ),
        str(found),
        {
            "ranks": len(certificate.ranks),
            "equations": found.equations,
            "lemmas": found.lemmas,
            "new_lemmas": found.proved,
            "seconds": {phase: round(value, 3) for phase, value in found.seconds.items()},
        },
        certificate.calls,
        (given.left, *given.right.graphs),
        certificate.captured,
    )


def _place(
    key: str,
    title: str,
    certificate: Certificate,
    placements: Mapping[str, Placement],
    graph: Graph,
    positions: Mapping[str, int],
) -> Said:
    """How the ranks hold tensors, in the words of what was verified and not of the certificate."""
    mesh = Mesh(certificate.mesh)
    texts = {name: _placement_text(held, graph.nodes[positions[name]].type, mesh) for name, held in placements.items()}
    return Said(key, title, _group(texts), [{"name": name, "placement": text} for name, text in texts.items()])


def _placement_text(placement: Placement, whole: TensorType, mesh: Mesh) -> str:
    if is_spelled(placement, whole, mesh):
        return str(placement)
    ranks = [
        f"@{rank}[{', '.join('+'.join(f'{start}:{start + length}' for start, length in axis) for axis in runs)}]"
        for rank, runs in enumerate(placement.runs)
    ]
    partial = f", partial({placement.reduction}) over {', '.join(placement.partial)}" if placement.partial else ""
    return " ".join(ranks) + partial


def _group(table: Mapping[str, str]) -> list[str]:
    """Names of the same placement on one line, numbers in them as stars."""
    groups: dict[str, dict[str, int]] = {}
    for name, text in table.items():
        pattern = ".".join("*" if part.isdigit() else part for part in name.split("."))
        own = groups.setdefault(text, {})
        own[pattern] = own.get(pattern, 0) + 1
    lines: list[str] = []
    for text, patterns in groups.items():
        shown = [f"{p} ({n})" if n > 1 else p for p, n in patterns.items()]
        more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
        lines.append(f"{text}: {', '.join(shown[:_SHOWN])}{more}")
    return lines


KIND = Kind(REFINEMENT.read, _check, lambda _: True)
