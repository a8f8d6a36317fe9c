"""Findings as SARIF 2.1.0, which code hosts show at the lines that they are about."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rewright.ir.types import SourceSpan
from rewright.refine.verdict import Finding
from rewright.report.claim import Claim

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
KINDS = {
    "missing_reduction": "Addends on the ranks that nothing adds up",
    "wrong_collective": "A collective that gives something else",
    "wrong_exchange": "Data that does not arrive on other ranks",
    "missing_operator": "An operator that the ranks never apply",
    "missing_term": "A term that a sum lacks",
    "extra_operator": "An operator that spoils what is right",
    "wrong_value": "An operator with another value",
    "wrong_constant": "A constant with another value",
    "wrong_shard": "A rank holds another part of an input",
    "off_by_one": "A bound that is off by one",
    "wrong_placement": "An output that is placed otherwise",
    "not_related": "An output that is not related",
    "missing_wait": "A collective's result that is read before anybody waits for it",
    "early_write": "A tensor that is written to while a collective still uses it",
    "unwritten_memory": "Memory that is read before anything was written to it",
    "collective_mismatch": "Ranks that do not meet in a collective",
    "wrong_sum": "A sum over ranks with other terms than one device has",
    "wrong_scale": "Gradients that are all wrong by one number",
    "ignored_label": "A label that only one program leaves out",
    "random_numbers": "Ranks that draw other random numbers than they should",
    "not_proved": "Where the proof stops",
}
"""What each kind of finding says, in a few words."""


def sarif(claims: Sequence[Claim], version: str, root: Path | None = None) -> dict[str, Any]:
    """A SARIF log with one run.

    Args:
        claims: whose findings become results.
        version: of rewright.
        root: files below it are named relative to it; by default the working folder.
    """
    root = (root or Path.cwd()).resolve()
    found = [(claim, finding) for claim in claims for finding in claim.verdict.findings]
    kinds = list(dict.fromkeys(finding.kind for _, finding in found))
    driver = {
        "name": "rewright",
        "semanticVersion": version,
        "rules": [_rule(kind) for kind in kinds],
    }
    errors = [claim for claim in claims if claim.error]
    notes = [
        {"level": "error", "message": {"text": f"{claim.name}: {claim.error}"}, "descriptor": {"id": "no-verdict"}}
        for claim in errors
    ]
    invocation: dict[str, Any] = {"executionSuccessful": not errors}
    if notes:
        invocation["toolExecutionNotifications"] = notes
        driver["notifications"] = [{"id": "no-verdict", "shortDescription": {"text": "There is no verdict"}}]
    run = {
        "tool": {"driver": driver},
        "columnKind": "utf16CodeUnits",
        "originalUriBaseIds": {"SRCROOT": {"description": {"text": "the folder that rewright ran in"}}},
        "invocations": [invocation],
        "results": [_result(claim, finding, kinds.index(finding.kind), root) for claim, finding in found],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(kind: str) -> dict[str, Any]:
    return {
        "id": kind,
        "shortDescription": {"text": KINDS.get(kind, kind.replace("_", " "))},
        "defaultConfiguration": {"level": "warning" if kind == "not_proved" else "error"},
    }


def _result(claim: Claim, finding: Finding, rule: int, root: Path) -> dict[str, Any]:
    first = finding.distributed or finding.sequential
    found: dict[str, Any] = {
        "ruleId": finding.kind,
        "ruleIndex": rule,
        "level": "warning" if finding.kind == "not_proved" else "error",
        "message": {"text": _message(claim, finding)},
    }
    location = _location(first, root)
    if location is not None:
        found["locations"] = [location]
    other = _location(finding.sequential, root) if first is not finding.sequential else None
    if other is not None:
        found["relatedLocations"] = [{"id": 1, **other, "message": {"text": "the sequential program"}}]
    key = "|".join((claim.name, finding.kind, str(finding.sequential), finding.message))
    found["partialFingerprints"] = {"rewright/v1": hashlib.sha256(key.encode()).hexdigest()}
    found["properties"] = {"claim": claim.name, "expected": finding.expected, "found": finding.found}
    return found


def _message(claim: Claim, finding: Finding) -> str:
    parts = [f"{claim.name}: {finding.message}."]
    if finding.expected:
        parts.append(f"Expected {finding.expected}.")
    if finding.found:
        parts.append(f"Found {finding.found}.")
    if finding.suggestion:
        parts.append(f"Repair, which was applied and checked again: {finding.suggestion}.")
    return " ".join(parts)


def _location(span: SourceSpan | None, root: Path) -> dict[str, Any] | None:
    """A place in a file with a relative path; one outside of the root has its name and no base."""
    if span is None or not span.file:
        return None
    path = Path(span.file)
    path = path if path.is_absolute() else root / path
    parts = path.parts
    if path.is_relative_to(root) and "site-packages" not in parts:
        artifact = {"uri": quote(path.relative_to(root).as_posix()), "uriBaseId": "SRCROOT"}
    elif "site-packages" in parts:
        artifact = {"uri": quote("/".join(parts[parts.index("site-packages") + 1 :]))}
    else:
        artifact = {"uri": quote(path.name)}
    physical: dict[str, Any] = {"artifactLocation": artifact}
    if span.line > 0:
        physical["region"] = {"startLine": span.line}
    found: dict[str, Any] = {"physicalLocation": physical}
    name = span.module_path or span.function
    if name:
        found["logicalLocations"] = [{"fullyQualifiedName": name}]
    return found
