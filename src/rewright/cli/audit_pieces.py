"""``rewright audit`` of a certificate in pieces, which ``rewright optimize`` writes for programs of many layers."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

from rewright.cli.audit_below import print_below
from rewright.cli.programs import Source
from rewright.cli.store import LemmaStore
from rewright.equiv.pieces import Joined, PiecewiseCertificate, audit
from rewright.ir.errors import RewrightError
from rewright.proof.checker import Damaged, OtherPrograms, Refused

HOLDS, REFUSED = 0, 1


def run_pieces(
    path: Path,
    certificate: PiecewiseCertificate,
    source: Source,
    left: str,
    right: list[str],
    store: LemmaStore | None,
    as_json: bool,
) -> int:
    """Verify a certificate in pieces and print what it proves: 0 where it holds, 1 where it is refused.

    Raises RewrightError for one that was changed after it was written, or is about other programs.
    """
    if len(right) != 1:
        raise RewrightError(f"{path} is about one right program, and {len(right)} were given; give one")
    first, second = source.sequential(left), source.sequential(right[0])
    started = time.perf_counter()
    found: Joined | None = None
    why = ""
    try:
        with source.progress.phase("audit", f"checking {len(certificate.pieces):,} pieces"):
            found = audit(certificate, first, second, store)
    except (OtherPrograms, Damaged) as error:
        raise RewrightError(f"{path}: {error}") from None
    except Refused as error:
        why = str(error)
    finally:
        if store is not None:
            store.save()
    seconds = time.perf_counter() - started
    calls = list(certificate.calls) if found is not None else []
    if as_json:
        report = _document(path, found, why, seconds) | {"calls": calls}
        sys.stdout.write(json.dumps(report, indent=2) + "\n")
    else:
        _print(path, found, why, seconds)
        print_below("for calls where", calls)
    return HOLDS if found is not None else REFUSED


def _document(path: Path, found: Joined | None, why: str, seconds: float) -> dict[str, object]:
    """The report as JSON values; the claim is included only where it was proved."""
    report: dict[str, object] = {"schema": 1, "certificate": str(path), "holds": found is not None, "reason": why}
    if found is not None:
        stats = {"pieces": found.pieces, "uses": found.uses}
        report |= {"assumptions": list(found.assumptions), "stats": stats}
    return {**report, "seconds": round(seconds, 3)}


def _print(path: Path, found: Joined | None, why: str, seconds: float) -> None:
    console = Console()
    if found is None:
        console.print(Text("REFUSED ", "bold red").append(f"{path}: {why}", "not bold default"), soft_wrap=True)
        return
    head = "both programs compute the same outputs"
    console.print(Text("HOLDS ", "bold green").append(head, "not bold default"), soft_wrap=True)
    console.print("  assuming that", soft_wrap=True, highlight=False)
    for text in found.assumptions:
        console.print(f"    {text}", soft_wrap=True, highlight=False, markup=False)
    counts = f"{found.pieces:,} pieces, {found.uses:,} uses of them"
    console.print(f"  certificate holds: {counts} in {seconds:.2f} s", soft_wrap=True, highlight=False, markup=False)
