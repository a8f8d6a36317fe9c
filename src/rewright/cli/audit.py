"""``rewright audit``: a certificate of any kind is verified again, by its checker alone, and told."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from rewright.certificates import load
from rewright.cli.programs import Source
from rewright.cli.store import LemmaStore
from rewright.frontends.validation.record import read, validation_note
from rewright.ir.errors import Damaged, OtherPrograms, Refused, RewrightError
from rewright.proof.kinds import Programs, Proved, alone

HOLDS, REFUSED, IN_PART = 0, 1, 2


def run_audit(path: Path, source: Source, left: str | None, right: list[str], store: Path | None, as_json: bool) -> int:
    """Verify a certificate and print what it proves: 0 where it holds, 1 where it is refused, 2 where it is in part.

    Raises RewrightError for what is no certificate, was changed after it was written, or is about other programs.
    """
    with source.progress.phase("load", f"reading {path}"):
        kind, certificate = load(path)
    known = LemmaStore.open(store) if store is not None else None
    programs = _programs(source, left, right, kind.has_ranks(certificate))
    started = time.perf_counter()
    try:
        with source.progress.phase("audit", f"checking {path}"):
            found, why = kind.check(certificate, programs, known), ""
    except Refused as error:
        if isinstance(error, OtherPrograms | Damaged):
            raise RewrightError(f"{path}: {error}") from None
        found, why = None, str(error)
    finally:
        if known is not None:
            known.save()
    seconds = time.perf_counter() - started
    if as_json:
        sys.stdout.write(json.dumps(_document(path, found, why, seconds), indent=2) + "\n")
    else:
        _print(path, found, why, seconds)
    return REFUSED if found is None else IN_PART if found.open else HOLDS


def _programs(source: Source, left: str | None, right: list[str], has_ranks: bool) -> Programs | None:
    """The programs that were named; None where none was."""
    if left is None and not right:
        return None
    if left is None or not right:
        raise RewrightError("one program is missing; give both, with --left and --right")
    first = source.sequential(left)
    if has_ranks or len(right) > 1:
        return Programs(first, source.distributed(right), lambda: (source.tables(left), {}))
    other = alone(source.sequential(right[0]))
    return Programs(first, other, lambda: (source.tables(left), source.tables(right[0])))


def _document(path: Path, found: Proved | None, why: str, seconds: float) -> dict[str, Any]:
    """The report as JSON values; the claim is included only where it was proved."""
    report: dict[str, Any] = {"schema": 1, "certificate": str(path), "holds": False, "reason": why}
    if found is not None:
        report["holds"] = not found.open
        report |= {said.key: list(said.lines if said.values is None else said.values) for said in found.said}
        report["stats"] = dict(found.stats)
    calls = [] if found is None else list(found.calls)
    return {**report, "seconds": round(seconds, 3), "calls": calls, "captures": _captures(found)}


def _captures(found: Proved | None) -> list[str]:
    """What was checked of the captures, and of those that the certificate was written for, where that is other."""
    if found is None or not found.captures:
        return []
    now, before = validation_note(found.captures), read(found.captured) if found.captured else None
    written = [] if before is None or str(before) == now else [f"when the certificate was written: {before}"]
    return [now, *written]


def _print(path: Path, found: Proved | None, why: str, seconds: float) -> None:
    console = Console()
    if found is None:
        console.print(Text("REFUSED ", "bold red").append(f"{path}: {why}", "not bold default"), soft_wrap=True)
        return
    head = Text("IN PART ", "bold yellow") if found.open else Text("HOLDS ", "bold green")
    console.print(head.append(found.claim, "not bold default"), soft_wrap=True)
    for said in found.said:
        _print_lines(console, said.title, said.lines)
    line = f"  {'checked' if found.open else 'certificate holds'}: {found.counts} in {seconds:.2f} s"
    console.print(line, soft_wrap=True, highlight=False, markup=False)
    _print_lines(console, "for calls where", found.calls)
    _print_lines(console, "captures", _captures(found))


def _print_lines(console: Console, title: str, lines: Sequence[str]) -> None:
    """Print lines under a title, which is left out where there are none."""
    for line in [f"  {title}", *(f"    {line}" for line in lines)] if lines else []:
        console.print(line, soft_wrap=True, highlight=False, markup=False)
