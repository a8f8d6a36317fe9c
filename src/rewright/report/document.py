"""The JSON form of a verdict. Keys are only ever added; ``schema`` counts the changes that break readers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from rewright.ir.types import SourceSpan
from rewright.refine.verdict import Counterexample, Finding, OutputRelation, Verdict
from rewright.report.source import line_text

SCHEMA = 1


def document(verdict: Verdict, certificate: Path | None = None) -> dict[str, Any]:
    """The verdict as plain dictionaries, lists, strings and numbers that ``json.dumps`` writes as strict JSON.

    ``certificate`` is where the proof was written, if it was.
    """
    stats = verdict.stats
    return {
        "schema": SCHEMA,
        "status": verdict.status,
        "evidence": verdict.evidence.value,
        "reason": verdict.reason,
        "assumptions": list(verdict.assumptions),
        "outputs": [_relation(relation) for relation in verdict.relation.values()],
        "findings": [_finding(finding) for finding in verdict.findings],
        "notes": list(verdict.notes),
        "validation": verdict.validation,
        "stats": {
            "sequential_nodes": stats.sequential_nodes,
            "rank_nodes": stats.rank_nodes,
            "ranks": stats.ranks,
            "steps": dict(stats.steps),
            "laws": dict(stats.laws),
            "seconds": {phase: round(seconds, 3) for phase, seconds in stats.seconds.items()},
        },
        "certificate": None if certificate is None else str(certificate),
    }


def _relation(relation: OutputRelation) -> dict[str, Any]:
    return {
        "name": relation.name,
        "placement": relation.placement,
        "equation": relation.equation,
        "expected": relation.expected,
        "holds": relation.holds,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "kind": finding.kind,
        "message": finding.message,
        "sequential": _span(finding.sequential),
        "distributed": _span(finding.distributed),
        "expected": finding.expected,
        "found": finding.found,
        "suggestion": finding.suggestion,
        "counterexample": _counterexample(finding.counterexample),
        "why_not": finding.why_not,
        "also": list(finding.also),
        "where": {
            "sequential": finding.where.sequential,
            "rank": finding.where.rank,
            "distributed": finding.where.distributed,
        },
    }


def _span(span: SourceSpan | None) -> dict[str, Any] | None:
    if span is None:
        return None
    return {
        "file": span.file,
        "line": span.line,
        "text": line_text(span),
        "function": span.function,
        "module_path": span.module_path,
        "scope": span.scope,
        "backward": span.backward,
    }


def _counterexample(example: Counterexample | None) -> dict[str, Any] | None:
    if example is None:
        return None
    return {
        "sizes": {name: list(shape) for name, shape in example.sizes.items()},
        "output": example.output,
        "index": list(example.index),
        "sequential_value": _number(example.sequential_value),
        "distributed_value": _number(example.distributed_value),
        "seed": example.seed,
    }


def _number(value: float) -> float | str:
    """JSON has no NaN and no infinities: they become ``"nan"``, ``"inf"`` and ``"-inf"``."""
    return float(value) if math.isfinite(value) else str(float(value))
