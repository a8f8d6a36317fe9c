"""Transformers' own experts, which sort tokens: every rank alike, or each for the experts that it has."""

from __future__ import annotations

import pytest

from bench.families import Way, captured
from rewright.refine import refine
from rewright.refine.check import attempt
from rewright.refine.relations.known import complete_relations, input_relations


def test_ranks_that_sort_alike_need_no_other_form() -> None:
    sequential, program = captured("mixtral", Way("grouped", "tensor"), "sdpa")
    known = complete_relations(sequential, program, input_relations(sequential, program, None), {})
    assert not attempt(sequential, program, known, program.outputs, laws=False, repeat=False).failed


@pytest.mark.long
@pytest.mark.parametrize("name", ["mixtral", "qwen3_moe"])
def test_ranks_that_have_some_of_the_experts(name: str) -> None:
    sequential, program = captured(name, Way("grouped", "all_reduce"), "sdpa")
    verdict = refine(sequential, program, audit=True)
    assert verdict.status == "proved" and verdict.evidence.value == "proved", verdict.reason
