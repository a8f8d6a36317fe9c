"""Bugs that people have had: the right program is proved, the wrong one refuted at the place of the bug."""

from __future__ import annotations

import linecache
import re

import pytest

import rewright as rw
from rewright.refine.verdict import Finding, Verdict
from zoo.patterns import PATTERNS, pattern
from zoo.patterns import combined as in_combined
from zoo.patterns import gradients as in_gradients
from zoo.patterns import layers as in_layers
from zoo.patterns import losses as in_losses
from zoo.patterns import timing as in_timing

FILES = {
    str(module.__file__).rpartition("/")[2]: str(module.__file__)
    for module in (in_gradients, in_layers, in_losses, in_combined, in_timing, pattern)
}


def verdict(name: str, *, wrong: bool) -> Verdict:
    found = PATTERNS[name]
    sequential = rw.capture(*found.sequential())
    program = rw.capture_ranks(lambda mesh: found.parallel(mesh, wrong), found.mesh)
    return rw.refine(sequential, program, relations=found.stated(wrong))


def named_lines(finding: Finding) -> list[str]:
    """The source lines that a finding names."""
    places = re.findall(r"(\w+\.py):(\d+)", finding.message)
    found = [linecache.getline(FILES[file], int(line)) for file, line in places if file in FILES]
    spans = [span for span in (finding.sequential, finding.distributed) if span is not None]
    return found + [linecache.getline(span.file, span.line) for span in spans]


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", PATTERNS)
def test_the_right_program_is_proved(name: str) -> None:
    found = verdict(name, wrong=False)
    assert found.status == "proved", found.reason


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", PATTERNS)
def test_the_bug_is_refuted_at_its_place(name: str) -> None:
    found = verdict(name, wrong=True)
    assert found.status == "refuted"
    assert any(PATTERNS[name].place in line for line in named_lines(found.findings[0]))


def test_many_bugs_are_in_backward_passes_and_leave_the_loss_right() -> None:
    names = [name for name, pattern in PATTERNS.items() if pattern.gradient]
    assert len(names) >= 8
    for name in names[:3]:
        assert verdict(name, wrong=True).relation["loss"].holds
