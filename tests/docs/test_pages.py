"""Every code block of the documentation runs and prints what the page says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import PAGES, ROOT, blocks, matches, prose, run_page

HEAVY = ("check-a-model", "choose-rewrites", "compare-implementations", "many-claims")
LONG = {f"docs/how-to/{name}.md" for name in HEAVY}
"""Pages with models of their full size, or with many processes."""


def listed(page: Path) -> Any:
    name = str(page.relative_to(ROOT))
    return pytest.param(page, id=name, marks=[pytest.mark.long] if name in LONG else [])


@pytest.mark.parametrize("page", [listed(page) for page in PAGES])
def test_code_blocks(page: Path, tmp_path: Path) -> None:
    run_page(page, tmp_path)


def test_the_tutorial_keeps_its_promise() -> None:
    page = ROOT / "docs/tutorials/refinement-checker.md"
    lines = [line for block in blocks(page) if block.language == "python" for line in block.text.splitlines()]
    assert len([line for line in lines if line.strip()]) <= 300


def test_times_are_not_compared_and_dots_stand_for_lines() -> None:
    assert matches("time 1.25 s", "time 0.50 s\n")
    assert matches("a\n...\nz", "a\nb\nc\nz")
    assert matches("a ...\nz", "a b\nz")
    assert not matches("a ...\nz", "a b\nc\nz")
    assert not matches("a\nz", "a\nb\nz")
    assert not matches("2 tensors", "3 tensors")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_lines_of_prose_are_short(page: Path) -> None:
    assert [number for number, line in prose(page) if len(line) > 120] == []
