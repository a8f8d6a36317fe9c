"""Verdicts for people and for programs: text for a terminal, JSON for everything else."""

from rewright.report.document import document
from rewright.report.terminal import print_verdict

__all__ = ["document", "print_verdict"]
