"""Pooling: windows along several axes are windows along one after the other, and planned and proved as such."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

import rewright as rw
from tests.optimize.programs import normal

POOLS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "maximum": lambda x: F.max_pool2d(x, 3, 2, 1),
    "maximum of an activation": lambda x: F.max_pool2d(F.relu(2 * x + 1), 2),
    "maximum along one axis": lambda x: F.max_pool1d(x[0], 3, 2, 1),
    "average of what is there": lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
}


@pytest.mark.parametrize("name", POOLS)
def test_windows_are_fused_and_proved(name: str) -> None:
    x = normal(1, 2, 9, 8)
    x[0, 1, 3, 3] = float("nan")

    found = rw.optimize(POOLS[name], (x,), target="torch")

    assert found.status == "proved", found.reason
    assert found.plan is not None and len(found.plan.kernels) == len(found.plan.steps)
    torch.testing.assert_close(found(x), POOLS[name](x), equal_nan=True)
