"""Slips that nothing in the sequential program can be compared with are found by undoing them."""

from collections.abc import Callable

import pytest

from bench.mutants import generate, is_equivalent
from rewright.refine import refine
from tests.programs import Pair, cross_entropy, exchanged, vocabulary_embedding


@pytest.mark.parametrize("build", [vocabulary_embedding, cross_entropy])
def test_a_bound_off_by_one_is_named_with_its_line_and_repair(build: Callable[[int], Pair]) -> None:
    sequential, program = build(2)
    found = 0
    for mutant in generate(program):
        if mutant.kind != "shifted_bound" or is_equivalent(sequential, mutant, seeds=(0,)) is not False:
            continue
        first = refine(sequential, mutant.program).findings[0]
        assert first.kind in ("off_by_one", "missing_reduction", "wrong_value"), mutant.description
        assert first.suggestion is not None, mutant.description
        found += first.kind == "off_by_one"
    assert found > 5


def test_an_exchange_is_right() -> None:
    assert refine(*exchanged(False)).status == "proved"


def test_pieces_joined_in_another_order_are_found_among_the_steps_of_an_exchange() -> None:
    verdict = refine(*exchanged(True))
    assert verdict.status == "refuted"
    (finding, *_) = verdict.findings
    assert finding.distributed is not None
    assert finding.distributed.line == 4
    assert finding.suggestion == "swap the operands of the concatenation at parallel.py:4"
