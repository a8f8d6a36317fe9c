"""Verdicts in the words of two programs: ``refine`` speaks of a sequential program and of ranks."""

from __future__ import annotations

from dataclasses import replace

from rewright.refine.verdict import Verdict

_WORDS = (
    ("the ranks hold all", "the right program computes all"),
    ("the ranks hold the output of the sequential program", "both programs compute the same output"),
    ("outputs of the sequential program", "outputs of the left program"),
    ("of rank 0 at", "of the right program at"),
    ("on rank 0 ", ""),
    ("rank 0 computes", "the right program computes"),
    ("the sequential program runs, and the distributed one fails", "the left program runs, and the right one fails"),
    ("the sequential program", "the left program"),
    ("the distributed program", "the right program"),
    ("fits no placement", "differs"),
    ("look-ups of the ranks", "look-ups of the right program"),
)


def reword_verdict(verdict: Verdict, lemma: str = "") -> Verdict:
    """The verdict, and for one that is ``unknown`` why the first part whose values agree was not proved."""
    findings = tuple(replace(f, message=_in_words(f.message), found=_in_words(f.found)) for f in verdict.findings)
    relation = {
        name: replace(r, placement="", equation=f"{name} (left) = {name} (right)" if r.holds else f"{name} differs")
        for name, r in verdict.relation.items()
    }
    kept = tuple(_in_words(a) for a in verdict.assumptions if not a.startswith("relations of "))
    reason = _in_words(verdict.reason)
    if lemma:
        reason += f"; the first part whose values agree is not proved: {lemma}"
    return replace(verdict, reason=reason, findings=findings, assumptions=kept, relation=relation)


def _in_words(text: str) -> str:
    for before, after in _WORDS:
        text = text.replace(before, after)
    return text
