"""Tiles of a kernel whose mask a loop inside of them decides."""

from __future__ import annotations

import torch
import torch.nn.functional as F

import rewright as rw
from tests.optimize.programs import normal


def attend(x: torch.Tensor, w: torch.Tensor, scores: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Causal attention over values of a linear layer, for which features are rows and queries the inner loop."""
    i = torch.arange(scores.shape[-1])
    v = F.linear(F.layer_norm(x, (x.shape[-1],)), w).unflatten(-1, (2, -1)).transpose(1, 2)
    p = torch.softmax(scores.masked_fill(i[None] > i[:, None], torch.finfo(scores.dtype).min), -1)
    return p, p @ v


def test_a_mask_of_an_inner_loop_skips_no_tile() -> None:
    args = normal(2, 200, 128), normal(128, 128, seed=1) / 11, normal(2, 2, 200, 200, seed=2)
    fast = rw.optimize(attend, args, target="cpu", floor=False, remember=False)
    assert fast.status == "proved" and fast.plan is not None, fast.reason
    last = fast.plan.kernels[-1]
    assert last.rows is not None and last.features is not None
    assert (last.rows.size, last.features.size) == (64, 200), "else the plan is another one, and tests nothing"
    torch.testing.assert_close(fast(*args), attend(*args), rtol=1e-4, atol=1e-4)
