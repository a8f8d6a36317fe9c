"""Verdicts as JUnit XML, which CI systems read: one test case for every claim."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from rewright.refine.verdict import Finding
from rewright.report.claim import Claim
from rewright.report.source import place
from rewright.report.terminal import headline

_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold, escaped or not."""


def junit(claims: Sequence[Claim], suite: str = "rewright") -> str:
    """The XML of one test suite: *refuted* is a failure, *unknown* and what could not be compared an error."""
    counts = {
        "tests": str(len(claims)),
        "failures": str(sum(claim.status == "refuted" for claim in claims)),
        "errors": str(sum(claim.status in ("unknown", "vacuous", "error") for claim in claims)),
        "time": f"{sum(claim.seconds for claim in claims):.3f}",
    }
    root = ElementTree.Element("testsuites", {"name": suite, **counts})
    own = ElementTree.SubElement(root, "testsuite", {"name": suite, **counts, "skipped": "0"})
    for claim in claims:
        own.append(_case(claim, suite))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _case(claim: Claim, suite: str) -> ElementTree.Element:
    case = ElementTree.Element(
        "testcase", {"classname": suite, "name": _text(claim.name), "time": f"{claim.seconds:.3f}"}
    )
    if claim.status == "proved":
        return case
    what = claim.error or headline(claim.verdict)
    kind = "failure" if claim.status == "refuted" else "error"
    told = ElementTree.SubElement(case, kind, {"type": claim.status, "message": _text(what)})
    told.text = _text("\n\n".join(_lines(finding) for finding in claim.verdict.findings))
    return case


def _lines(finding: Finding) -> str:
    rows = [f"{finding.kind.replace('_', ' ')}: {finding.message}"]
    for label, span in (("sequential", finding.sequential), ("distributed", finding.distributed)):
        if span is not None:
            rows.append(f"{label}: {place(span)}")
    for label, text in (("expected", finding.expected), ("found", finding.found), ("repair", finding.suggestion)):
        if text:
            rows.append(f"{label}: {text}")
    return "\n".join(rows)


def _text(text: str) -> str:
    return _UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", text)
