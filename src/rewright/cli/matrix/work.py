"""One claim in a process of its own: capture, look up, prove, draw, keep."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from rewright.cli.matrix.cache import Cache
from rewright.cli.matrix.keys import claim_key
from rewright.cli.matrix.table import Task
from rewright.cli.programs import Source
from rewright.cli.progress import Progress
from rewright.cli.relations import Relations, read_relations
from rewright.cli.store import LemmaStore
from rewright.cli.symbols import parse_symbols
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.proof.certificate import Certificate
from rewright.refine.engine import audit_verdict, is_audited, refine
from rewright.refine.verdict import Verdict
from rewright.report import document, draw_finding


@dataclass(frozen=True)
class Outcome:
    """What became of a claim: plain values, which travel from any process."""

    name: str
    document: dict[str, Any] = field(default_factory=dict[str, Any])
    """The JSON form of the verdict; empty where there is an error."""
    drawings: tuple[str, ...] = ()
    seconds: float = 0.0
    cached: bool = False
    error: str = ""


def run_task(task: Task) -> Outcome:
    """The outcome of a claim; input that cannot be used becomes an error."""
    started = time.perf_counter()
    before = os.getcwd(), list(sys.path)
    try:
        os.chdir(task.folder)
        sys.path.insert(0, task.folder)
        return _prove(task, started)
    except (RewrightError, OSError) as error:
        return Outcome(task.name, seconds=time.perf_counter() - started, error=" ".join(str(error).split()))
    finally:
        os.chdir(before[0])
        sys.path[:] = before[1]


def _prove(task: Task, started: float) -> Outcome:
    source = Source(Progress(), dict(task.axes) or None, task.backward, parse_symbols(list(task.symbolic)) or None)
    given = read_relations(Path(task.relations)) if task.relations else Relations()
    sequential, program = source.sequential(task.sequential), source.distributed(list(task.distributed))
    cache = Cache.open(Path(task.cache)) if task.cache else None
    audits = is_audited(sequential, program, task.audit)
    lemmas = LemmaStore.open(Path(task.cache)) if task.cache and audits else None
    key = claim_key(task, sequential, program, given) if cache is not None else ""
    found = cache.read(key, sequential, program, audits, lemmas) if cache is not None else None
    if found is not None:
        seconds = time.perf_counter() - started
        return Outcome(task.name, found["document"], tuple(found["drawings"]), seconds, cached=True)
    verdict = _verdict(task, sequential, program, given, lemmas, audits=audits)
    drawings = tuple(draw_finding(verdict, finding, alone=False) or "" for finding in verdict.findings)
    result = Outcome(task.name, document(verdict), drawings, time.perf_counter() - started)
    if cache is not None and (verdict.status != "unknown" or task.budget is None):
        # A certificate costs about as much as the proof: it is what makes an entry more than a word in a file.
        certificate = _certificate(verdict)
        cache.write(key, {"document": result.document, "drawings": list(drawings)}, certificate)
    if lemmas is not None:
        lemmas.save()
    return result


def _verdict(
    task: Task,
    sequential: Graph,
    program: RankProgram,
    given: Relations,
    lemmas: LemmaStore | None,
    *,
    audits: bool,
) -> Verdict:
    relations, expect = given.relations or None, given.expect or None
    asked = partial(refine, allow_vacuous=task.allow_vacuous, require_collectives=task.require_collectives)
    verdict = asked(sequential, program, relations, expect, task.budget, audit=False)
    if audits and verdict.status == "proved" and verdict.programs is not None:
        return audit_verdict(verdict, *verdict.programs, lemmas)
    return verdict


def _certificate(verdict: Verdict) -> Certificate | None:
    try:
        return verdict.certificate if verdict.status == "proved" else None
    except RewrightError:
        return None
