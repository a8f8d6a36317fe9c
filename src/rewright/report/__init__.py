"""Verdicts for people and for programs: a terminal, a page, JSON, and what CI systems read. Read ``claim`` first."""

from rewright.report.claim import Claim, read_verdict
from rewright.report.document import document
from rewright.report.drawing import draw_finding, draw_graph, draw_pair
from rewright.report.junit import junit
from rewright.report.page import page
from rewright.report.sarif import sarif
from rewright.report.summary import summary
from rewright.report.terminal import print_verdict

__all__ = [
    "Claim",
    "document",
    "draw_finding",
    "draw_graph",
    "draw_pair",
    "junit",
    "page",
    "print_verdict",
    "read_verdict",
    "sarif",
    "summary",
]
