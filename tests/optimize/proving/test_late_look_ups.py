"""A plan whose look-ups take longer to prove than there is time for is proved without them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import rewright as rw
from rewright.optimize import making
from rewright.optimize.proving.trusted import Trust
from tests.optimize.programs import normal


def paged(q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """Attention of one query to keys and values in pages that a table finds."""
    k, v = (pages[table].flatten(1, 2).transpose(1, 2) for pages in (keys, values))
    return torch.softmax(q @ k.transpose(-1, -2), -1) @ v


def test_pages_are_gathered_by_a_library_and_attended_to_by_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first proof comes to no end, and so does not say which tensor has none."""
    q, keys, values = normal(2, 2, 1, 8), normal(10, 4, 2, 8, seed=1), normal(10, 4, 2, 8, seed=2)
    args = q, keys, values, torch.randperm(10, generator=torch.Generator().manual_seed(3))[:8].view(2, 4)
    asked: list[Any] = []
    trust = making.trust

    def late(*given: Any, **options: Any) -> Trust:
        asked.append(given)
        return Trust(reason="the budget is used up") if len(asked) == 1 else trust(*given, **options)

    monkeypatch.setattr(making, "trust", late)
    fast = rw.optimize(paged, args, target="torch", floor=False, remember=False, budget=30.0)

    assert fast.status == "proved" and fast.plan is not None, fast.reason
    assert len(asked) == 2
    assert any("gather" in line and "not proved" in line for line in fast.plan.decisions), fast.plan.decisions
    torch.testing.assert_close(fast(*args), paged(*args), rtol=1e-5, atol=1e-6)
