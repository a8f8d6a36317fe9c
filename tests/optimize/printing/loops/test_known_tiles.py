"""Tiles in which a condition on the lane has one value: what is read there is read as it lies."""

from __future__ import annotations

import pytest
import torch

import rewright as rw
from tests.optimize.programs import normal


def attend(q: torch.Tensor, old: torch.Tensor, new: torch.Tensor, more: torch.Tensor) -> torch.Tensor:
    """Attention over two caches and a third one, one behind the other, whose ends are in no tile's middle or end."""
    keys = torch.cat([old, new, more], -2)
    return torch.softmax(q @ keys.transpose(-1, -2) / 8, -1) @ keys


@pytest.mark.parametrize("sizes", [(256, 30, 0), (130, 64, 0), (64, 64, 0), (200, 3, 0), (1, 300, 0), (100, 90, 80)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_caches_side_by_side_are_read_as_they_lie(sizes: tuple[int, int, int], dtype: torch.dtype) -> None:
    """Each element of both caches weighs something: one that is read of the wrong place shows."""
    args = (
        normal(2, 40, 64, dtype=dtype),
        *(normal(2, size, 64, seed=seed, dtype=dtype) for seed, size in enumerate(sizes, 1)),
    )
    fast = rw.optimize(attend, args, target="cpu", floor=False, remember=False)
    assert fast.status == "proved", fast.reason

    expected = attend(*(a.double() for a in args))

    error = 2e-6 if dtype is torch.float32 else 3e-2
    torch.testing.assert_close(fast(*args).double(), expected, rtol=0, atol=error)


def test_a_long_cache_is_turned_as_it_lies() -> None:
    args = normal(1, 40, 64), normal(1, 256, 64, seed=1), normal(1, 30, 64, seed=2), normal(1, 0, 64)
    fast = rw.optimize(attend, args, target="cpu", floor=False, remember=False)
    assert fast.printed is not None
    text = fast.printed.files["kernels.cpp"]

    first = text[text.index("if (known0 == 1)") : text.index("if (known0 == 0)")]

    assert "turn_rows" in first and "std::max<long>(v" not in first


def test_no_number_of_one_cache_reaches_a_tile_of_the_other() -> None:
    """Neighbours in memory of what is read are no numbers, and weigh nothing."""
    q, old, new, more = normal(1, 40, 64), normal(3, 200, 64, seed=1), normal(3, 9, 64, seed=2), normal(1, 0, 64)
    fast = rw.optimize(attend, (q, old[1:2], new[1:2], more), target="cpu", floor=False, remember=False)
    old[0], old[2], new[0], new[2] = (torch.nan, torch.inf, -torch.inf, torch.nan)

    found = fast(q, old[1:2], new[1:2], more)

    torch.testing.assert_close(found, attend(q, old[1:2], new[1:2], more), rtol=1e-5, atol=1e-5)
