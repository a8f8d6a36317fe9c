"""The Markdown that GitHub shows of a step."""

from __future__ import annotations

from dataclasses import replace

from rewright.report import Claim, summary
from tests.report.verdicts import proved, refuted, unknown


def test_all_claims_are_in_the_table_and_findings_below_it() -> None:
    text = summary([Claim("llama / tp2", proved(), 1.0), Claim("llama / tp4", refuted(), 0.5)])
    lines = text.splitlines()
    assert lines[0] == "### Rewright: 1 proved, 1 refuted"
    rows = [line for line in lines if line.startswith("| ") and "llama" in line]
    assert len(rows) == 2
    assert all(row.count(" | ") == 4 for row in rows)
    assert text.count("<details>") == text.count("</details>") == 1
    assert "insert all_reduce over tp after model.py:88" in text


def test_text_of_programs_is_no_markup() -> None:
    verdict = replace(unknown(), reason="a | b <script>x</script> `c` [d](e)")
    text = summary([Claim("x|y", verdict)])
    assert "<script>" not in text
    assert "a \\| b &lt;script&gt;" in text
    assert "x\\|y" in text
    assert "\\[d\\](e)" in text


def test_nothing_is_told_as_nothing() -> None:
    assert summary([]).startswith("### Rewright: nothing was compared")
