"""Values that depend on rows and lanes by their distance alone are computed once for each distance of a tile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import rewright as rw
from tests.optimize.programs import normal

Bias = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""What is added to a score, made of queries, keys and a table."""


def buckets(i: torch.Tensor, j: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """The bias of T5: exact for near keys, by the logarithm of the distance for others."""
    apart = (i - j).clamp(min=0)
    far = 8 + (torch.log(apart.clamp(min=1).float() / 8) / 2 * 8).long()
    return table[torch.where(apart < 8, apart, far.clamp(max=15))]


def decay(i: torch.Tensor, j: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    return torch.exp(-(i - j).abs() * table[3].abs())


def ahead(i: torch.Tensor, j: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    return torch.tanh((j - i + 5) * 0.1) * table[2]


def sums(i: torch.Tensor, j: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    return torch.sin((i + j) * 0.3)


def both(i: torch.Tensor, j: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    return torch.sin((i + j) * 0.3) * torch.cos((i - j) * 0.2)


def twice(i: torch.Tensor, j: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    return torch.sin((i - 2 * j) * 0.1)


def halves(i: torch.Tensor, j: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    return torch.sin((i // 2 - j) * 0.1)


def data(i: torch.Tensor, j: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """By distance, and by a key."""
    return torch.tanh((i - j) * table[j % 16])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("bias", "hoisted"),
    [
        (buckets, True),
        (decay, True),
        (ahead, True),
        (sums, True),
        (both, True),
        (twice, False),
        (halves, False),
        (data, False),
    ],
)
def test_a_value_by_distance_is_computed_once(bias: Bias, hoisted: bool, dtype: torch.dtype, tmp_path: Path) -> None:
    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        i, j = torch.arange(q.shape[-2])[:, None], torch.arange(k.shape[-2])[None]
        return torch.softmax(q @ k.transpose(-1, -2) / 8 + bias(i, j, table), -1).to(v.dtype) @ v

    q, k, v = normal(2, 150, 64, dtype=dtype), normal(2, 333, 64, seed=1, dtype=dtype), normal(2, 333, 64, dtype=dtype)
    table = normal(16, seed=2)
    fast = rw.optimize(attend, (q, k, v, table), target="cpu", floor=False, remember=False)
    assert fast.status == "proved", fast.reason
    fast.emit(tmp_path)

    assert ("apart" in (tmp_path / "kernels.cpp").read_text()) == hoisted
    exact = attend(q.double(), k.double(), v.double(), table.double())
    bound = 2e-5 if dtype is torch.float32 else 2e-2
    torch.testing.assert_close(fast(q, k, v, table).double(), exact, rtol=bound, atol=bound)
