"""Large calls are checked at smaller sizes at which their attributes still fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import rewright as rw
from rewright.frontends.validation.record import validation_of


@pytest.mark.parametrize(
    ("program", "shape"),
    [
        (lambda x: x.view(8, 5, 640, 640), (40, 640, 640)),  # 40 is a product of sizes that stay
        (lambda x: x.view(64, 4, 32, 64), (64, 4, 8, 4, 64)),
        (lambda x: x.split([4096, 1024, 1024], -1)[1], (2, 6144)),  # six times 1,024
        (lambda x: x.reshape(-1, 128).sum(1), (32, 4096)),
        (lambda x: x[:, 3072:], (16, 6144)),
    ],
)
def test_a_call_is_checked_at_some_size(program: Callable[..., Any], shape: tuple[int, ...]) -> None:
    record = validation_of(rw.capture(program, (torch.empty(shape, device="meta"),)))
    assert record is not None
    assert record.calls
    assert record.skipped == ()
