"""Inputs at random, and how values are compared: in blocks, so that a large array takes little more than itself."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from rewright.env import inputs, numeric
from rewright.env.inputs import draw_inputs
from rewright.env.numeric import compare
from rewright.env.session import Session


def test_an_array_of_several_blocks_is_drawn_to_its_end(xla: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    module = xla.parse("HloModule m\nENTRY main { x = f32[50,7] parameter(0) ROOT y = f32[50,7] negate(x) }")
    monkeypatch.setattr(inputs, "_BLOCK", 64)
    (drawn,) = draw_inputs(module)
    assert drawn.shape == (50, 7)
    assert len(np.unique(drawn)) == drawn.size


def test_a_large_array_takes_little_more_than_itself(xla: Session) -> None:
    module = xla.parse("HloModule m\nENTRY main { x = f32[8000000] parameter(0) ROOT y = f32[8000000] negate(x) }")
    tracemalloc.start()
    (drawn,) = draw_inputs(module, draw="edge")
    assert compare(drawn, drawn.copy(), drawn).equal
    assert tracemalloc.get_traced_memory()[1] < 5 * drawn.nbytes
    tracemalloc.stop()


@pytest.mark.parametrize("place", [0, 63, 64, 199])
def test_a_difference_is_found_in_any_block(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numeric, "_BLOCK", 64)
    before = np.linspace(1, 2, 200, dtype=np.float32)
    after = before.copy()
    assert compare(before, after, before.astype(np.float64)).equal
    after[place] += 0.5
    found = compare(before, after, before.astype(np.float64))
    assert not found.equal
    assert found.difference == pytest.approx(0.5)
    after[place] = np.nan
    assert not compare(before, after).equal


def test_no_elements_are_equal() -> None:
    nothing = np.zeros((0, 3), np.float32)
    assert compare(nothing, nothing).equal
