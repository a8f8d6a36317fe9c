"""Programs that are optimised where tensors are made elsewhere by default: on no device that has numbers, here."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import rewright as rw
from rewright.optimize.backend import backend


def rows(x: torch.Tensor, index: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """A look-up that is guarded, a scan, and numbers that are written down."""
    return torch.softmax(x * 2 + x.mean(-1, keepdim=True), -1)[index], x.cumsum(0), torch.where(x > 0, x, 0.5)


@pytest.mark.parametrize("target", ["torch", "cpu"])
@pytest.mark.parametrize("dynamic", [None, {"x": {0: "rows"}}])
def test_kernels_are_made_and_run(target: Any, dynamic: Any) -> None:
    """Before, what the search drew for its tests was on the default device: ``can't convert meta device type``."""
    x, index = torch.randn(33, 17), torch.tensor([3, 32, 0])
    with torch.device("meta"):
        fast = rw.optimize(rows, (x, index), target=target, floor=False, remember=False, dynamic=dynamic)
        assert fast.status == "proved", fast.reason
        assert not fast.notes
        for mine, own in zip(fast(x, index), rows(x, index), strict=True):
            torch.testing.assert_close(mine, own)


def test_a_capture_of_a_graph_by_dynamo() -> None:
    """The same by the other door; nothing is left to Inductor, which would warn."""
    x, index = torch.randn(33, 17), torch.tensor([3, 32, 0])
    with torch.device("meta"), torch.no_grad():
        fast = torch.compile(rows, backend=backend, options={"floor": False, "remember": False})
        for mine, own in zip(fast(x, index), rows(x, index), strict=True):
            torch.testing.assert_close(mine, own)


def test_a_program_that_makes_its_tensors_there() -> None:
    """It mixes devices, which PyTorch refuses: so does the program itself, and there is a reason."""
    with torch.device("meta"):
        fast = rw.optimize(lambda x: x + torch.arange(4), (torch.ones(4, device="cpu"),), target="torch")
    assert fast.status == "fallback"
    assert "correct the program" in fast.reason
