"""``rewright audit``: a certificate is verified again, by the checker alone."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from rewright.cli.audit_below import captures_of, print_below
from rewright.cli.audit_equiv import run_equivalence
from rewright.cli.audit_pieces import run_pieces
from rewright.cli.programs import Source
from rewright.cli.store import LemmaStore
from rewright.equiv.certificate import EquivalenceCertificate
from rewright.equiv.pieces import PiecewiseCertificate, load
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, Placement, RankProgram
from rewright.ir.types import TensorType
from rewright.proof.certificate import Certificate
from rewright.proof.checker import Audit, Damaged, OtherPrograms, Refused, audit
from rewright.proof.relations import is_spelled

HOLDS, REFUSED = 0, 1
_SHOWN = 12


def run_audit(path: Path, source: Source, left: str, right: list[str], store: Path | None, as_json: bool) -> int:
    """Verify a certificate for programs and print what it proves: 0 where it holds, 1 where it is refused.

    Raises RewrightError for what is no certificate, was changed after it was written, or is about other programs.
    """
    with source.progress.phase("load", f"reading {path}"):
        certificate = load(path)
    known = LemmaStore.open(store) if store is not None else None
    if isinstance(certificate, PiecewiseCertificate):
        return run_pieces(path, certificate, source, left, right, known, as_json)
    if isinstance(certificate, EquivalenceCertificate):
        return run_equivalence(path, certificate, source, left, right, known, as_json)
    sequential, distributed = source.sequential(left), source.distributed(right)
    started = time.perf_counter()
    try:
        with source.progress.phase("audit", f"checking {len(certificate.equations):,} equations"):
            found, why = audit(certificate, sequential, distributed, known), ""
    except (OtherPrograms, Damaged) as error:
        raise RewrightError(f"{path}: {error}") from None
    except Refused as error:
        found, why = None, str(error)
    finally:
        if known is not None:
            known.save()
    seconds = time.perf_counter() - started
    calls = list(certificate.calls) if found is not None else []
    captures = captures_of([sequential, *distributed.graphs], certificate.captured) if found is not None else []
    if as_json:
        report = _document(path, certificate, sequential, found, why, seconds) | {"calls": calls, "captures": captures}
        sys.stdout.write(json.dumps(report, indent=2) + "\n")
    else:
        _print(path, certificate, sequential, distributed, found, why, seconds)
        print_below("for calls where", calls)
        print_below("captures", captures)
    return HOLDS if found is not None else REFUSED


def audit_line(found: Audit, seconds: float, proof: tuple[float, float] | None = None) -> str:
    """What was checked, in one line; beside the seconds that the proof took, and those that writing it down did."""
    against = ""
    if proof is not None:
        proving, writing = proof
        against = f", {seconds / proving:.1f} times as long as the proof"
        against += f" and {seconds / (proving + writing):.1f} times as long as the proof with its certificate"
    counts = f"{found.equations:,} equations, {found.lemmas:,} lemmas, {found.proved:,} of them new"
    return f"certificate holds: {counts} in {seconds:.2f} s{against}"


def _document(
    path: Path, certificate: Certificate, sequential: Graph, found: Audit | None, why: str, seconds: float
) -> dict[str, Any]:
    """The report as JSON values; the claim is included only where it was proved."""
    report: dict[str, Any] = {"schema": 1, "certificate": str(path), "holds": found is not None, "reason": why}
    if found is not None:
        inputs, outputs = _relations(certificate, sequential)
        report |= {
            "inputs": [{"name": name, "placement": text} for name, text in inputs.items()],
            "outputs": [{"name": name, "placement": text} for name, text in outputs.items()],
            "assumptions": list(certificate.assumptions),
            "stats": {
                "ranks": len(certificate.ranks),
                "equations": found.equations,
                "lemmas": found.lemmas,
                "new_lemmas": found.proved,
                "seconds": {phase: round(value, 3) for phase, value in found.seconds.items()},
            },
        }
    return {**report, "seconds": round(seconds, 3)}


def _print(
    path: Path,
    certificate: Certificate,
    sequential: Graph,
    distributed: RankProgram,
    found: Audit | None,
    why: str,
    seconds: float,
) -> None:
    console = Console()
    if found is None:
        console.print(Text("REFUSED ", "bold red").append(f"{path}: {why}", "not bold default"), soft_wrap=True)
        return
    inputs, outputs = _relations(certificate, sequential)
    axes = ", ".join(f"{name}={size}" for name, size in distributed.mesh.axes)
    head = f"{len(distributed.graphs)} ranks ({axes}) compute what the sequential program computes"
    console.print(Text("HOLDS ", "bold green").append(head, "not bold default"), soft_wrap=True)
    for title, table in (("given the inputs", inputs), ("the outputs are", outputs)):
        console.print(f"  {title}", soft_wrap=True, highlight=False)
        for line in _grouped(table):
            console.print(f"    {line}", soft_wrap=True, highlight=False, markup=False)
    console.print("  assuming that", soft_wrap=True, highlight=False)
    for text in certificate.assumptions:
        console.print(f"    {text}", soft_wrap=True, highlight=False, markup=False)
    console.print(f"  {audit_line(found, seconds)}", soft_wrap=True, highlight=False, markup=False)


def _relations(certificate: Certificate, sequential: Graph) -> tuple[dict[str, str], dict[str, str]]:
    """How the ranks hold inputs and outputs, in the words of what was verified and not of the certificate."""
    claimed = {name: output.placement for name, output in certificate.outputs.items()}

    def told(placements: Mapping[str, Placement], positions: Mapping[str, int]) -> dict[str, str]:
        return {
            name: _told(placement, sequential.nodes[positions[name]].type, certificate)
            for name, placement in placements.items()
        }

    return told(certificate.relations, sequential.inputs), told(claimed, sequential.outputs)


def _told(placement: Placement, whole: TensorType, certificate: Certificate) -> str:
    if is_spelled(placement, whole, Mesh(certificate.mesh)):
        return str(placement)
    ranks = [
        f"@{rank}[{', '.join('+'.join(f'{start}:{start + length}' for start, length in axis) for axis in runs)}]"
        for rank, runs in enumerate(placement.runs)
    ]
    partial = f", partial({placement.reduction}) over {', '.join(placement.partial)}" if placement.partial else ""
    return " ".join(ranks) + partial


def _grouped(table: Mapping[str, str]) -> list[str]:
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
