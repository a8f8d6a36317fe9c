"""``rewright audit`` of what ``rewright equiv`` proved."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from rewright.cli.audit_below import captures_of, print_below
from rewright.cli.programs import Source
from rewright.cli.store import LemmaStore
from rewright.cli.userfile import find_function, is_function_name
from rewright.equiv.audit import Confirmed, audit
from rewright.equiv.certificate import EquivalenceCertificate
from rewright.ir.errors import RewrightError
from rewright.ir.placement import Mesh, RankProgram
from rewright.proof.checker import Damaged, OtherPrograms, Refused

HOLDS, REFUSED = 0, 1


def run_equivalence(
    path: Path,
    certificate: EquivalenceCertificate,
    source: Source,
    left: str,
    right: list[str],
    store: LemmaStore | None,
    as_json: bool,
) -> int:
    """Verify a certificate of two implementations and print what it proves: 0 where it holds, 1 where it is refused.

    Raises RewrightError for one that was changed after it was written, or is about other programs.
    """
    first, second = source.sequential(left), _right(certificate, source, right)
    known = tables(left), tables(right[0]) if len(certificate.right) == 1 else {}
    started = time.perf_counter()
    try:
        with source.progress.phase("audit", f"checking {len(certificate.equations):,} equations"):
            found, why = audit(certificate, first, second, known, store), ""
    except (OtherPrograms, Damaged) as error:
        raise RewrightError(f"{path}: {error}") from None
    except Refused as error:
        found, why = None, str(error)
    finally:
        if store is not None:
            store.save()
    seconds = time.perf_counter() - started
    calls = list(certificate.calls) if found is not None else []
    captures = captures_of([first, *second.graphs], certificate.captured) if found is not None else []
    if as_json:
        report = _document(path, certificate, found, why, seconds) | {"calls": calls, "captures": captures}
        sys.stdout.write(json.dumps(report, indent=2) + "\n")
    else:
        _print(path, certificate, found, why, seconds)
        print_below("for calls where", calls)
        print_below("captures", captures)
    return HOLDS if found is not None else REFUSED


def tables(text: str) -> dict[str, Any]:
    """The buffers of a module that have values: tables that it computed when it was made."""
    if not is_function_name(text):
        return {}
    module, _, _ = find_function(text)()
    if not hasattr(module, "named_buffers"):
        return {}
    return {name: buffer for name, buffer in module.named_buffers() if not buffer.is_meta}


def _right(certificate: EquivalenceCertificate, source: Source, texts: list[str]) -> RankProgram:
    if len(certificate.right) > 1 or len(texts) > 1:
        return source.distributed(texts)
    return RankProgram((source.sequential(texts[0]),), Mesh(certificate.mesh), {}, {})


def _said(certificate: EquivalenceCertificate) -> dict[str, list[str]]:
    """What a certificate claims, by title."""
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
    taken = [*certificate.taken, *certificate.assumptions]
    return {"given the weight map": maps, "the outputs are": outputs, "assuming that": taken}


def _box(runs: tuple[tuple[int, int], ...]) -> str:
    return f"[{', '.join(f'{start}:{start + length}' for start, length in runs)}]"


def _print(path: Path, certificate: EquivalenceCertificate, found: Confirmed | None, why: str, seconds: float) -> None:
    console = Console()
    if found is None:
        console.print(Text("REFUSED ", "bold red").append(f"{path}: {why}", "not bold default"), soft_wrap=True)
        return
    console.print(Text("HOLDS ", "bold green").append(_claim(certificate), "not bold default"), soft_wrap=True)
    for title, lines in _said(certificate).items():
        if lines:
            console.print(f"  {title}", soft_wrap=True, highlight=False)
        for line in lines:
            console.print(f"    {line}", soft_wrap=True, highlight=False, markup=False)
    counts = f"{found.core.equations:,} equations, {found.lemmas:,} lemmas between the programs, {found.splices:,} uses"
    console.print(f"  certificate holds: {counts} in {seconds:.2f} s", soft_wrap=True, highlight=False, markup=False)


def _claim(certificate: EquivalenceCertificate) -> str:
    ranks = len(certificate.right)
    outputs = "output" if len(certificate.outputs) == 1 else f"{len(certificate.outputs)} outputs"
    if ranks == 1:
        return f"both programs compute the same {outputs}"
    return f"{ranks} ranks of the right program compute the {outputs} of the left one"


def _document(
    path: Path, certificate: EquivalenceCertificate, found: Confirmed | None, why: str, seconds: float
) -> dict[str, Any]:
    """The report as JSON values; the claim is included only where it was proved."""
    report: dict[str, Any] = {"schema": 1, "certificate": str(path), "holds": found is not None, "reason": why}
    if found is not None:
        said = _said(certificate)
        report |= {
            "weight_map": said["given the weight map"],
            "outputs": said["the outputs are"],
            "assumptions": said["assuming that"],
            "stats": {
                "ranks": len(certificate.right),
                "equations": found.core.equations,
                "lemmas": found.lemmas,
                "splices": found.splices,
            },
        }
    return {**report, "seconds": round(seconds, 3)}
