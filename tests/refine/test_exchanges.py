"""Ranks that trade one axis for another: right exchanges are proved, all others are refuted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rewright.ir.errors import RewrightError
from rewright.ir.operator import Unsupported
from rewright.refine import refine
from rewright.refine.twin.twin import make_twin
from tests.lifting.agreement import rank_differences
from tests.programs import Pair
from tests.refine.exchanges import Exchange, mixer, ulysses

axes = st.builds(Exchange, st.integers(0, 2), st.integers(0, 2))


def are_described_exactly(pair: Pair) -> bool:
    """Whether the value lifted for every node of every rank is what execution gives, be the program right or wrong."""
    sequential, program = pair
    numbers = np.random.default_rng(0)
    shapes = {name: sequential.nodes[position].type.shape for name, position in sequential.inputs.items()}
    inputs = {name: numbers.standard_normal(tuple(int(str(n)) for n in shape)) for name, shape in shapes.items()}
    return rank_differences(sequential, program, inputs) == []


@pytest.mark.parametrize("world", [2, 4])
def test_heads_for_tokens_and_back(world: int) -> None:
    """With four ranks each has one token, and then one head."""
    pair = ulysses(world)
    verdict = refine(*pair)
    assert verdict.status == "proved", verdict.reason
    assert are_described_exactly(pair)


@pytest.mark.parametrize("sizes", [{"tokens": 6, "heads": 3}, {"tokens": 3, "heads": 6}, {"tokens": 3, "heads": 3}])
def test_heads_for_tokens_of_three_ranks(sizes: dict[str, int]) -> None:
    assert refine(*ulysses(3, width=2, **sizes)).status == "proved"


@pytest.mark.parametrize(
    ("there", "back"),
    [
        (Exchange(2, 0), Exchange(0, 2)),  # a part of every head: the scores are parts of sums
        (Exchange(1, 2), Exchange(2, 1)),  # wide heads of few tokens
        (Exchange(1, 0), Exchange(0, 2)),  # heads come back inside of each other
        (Exchange(1, 0), None),  # the second exchange is missing
        (None, None),  # every rank attends to its own tokens
    ],
)
def test_attention_after_another_exchange(there: Exchange | None, back: Exchange | None) -> None:
    pair = ulysses(2, there, back)
    assert refine(*pair).status == "refuted"
    assert are_described_exactly(pair)


@pytest.mark.parametrize("world", [2, 4])
def test_tokens_are_mixed_where_all_of_them_are(world: int) -> None:
    pair = mixer(world)
    verdict = refine(*pair)
    assert verdict.status == "proved", verdict.reason
    assert are_described_exactly(pair)


@pytest.mark.parametrize("back", [Exchange(0, 1), Exchange(1, 2), Exchange(2, 0), None])
def test_mixed_tokens_that_come_back_otherwise(back: Exchange | None) -> None:
    pair = mixer(2, back=back)
    assert refine(*pair).status == "refuted"
    assert are_described_exactly(pair)


@pytest.mark.long
@given(axes, axes, st.sampled_from([(2, 2, 2), (4, 2, 2), (2, 4, 2), (4, 4, 1)]))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_what_is_proved_is_right(there: Exchange, back: Exchange, sizes: tuple[int, int, int]) -> None:
    """Whatever axes are traded, where the shapes fit: a program is proved exactly where execution agrees."""
    tokens, heads, width = sizes
    try:
        sequential, program = ulysses(2, there, back, tokens=tokens, heads=heads, width=width)
    except RewrightError:
        assume(False)
        return
    twin = make_twin(sequential, program)
    assert not isinstance(twin, Unsupported)
    agrees = twin.compare(expect=program.outputs).agrees
    assert refine(sequential, program).status == ("proved" if agrees else "refuted")
