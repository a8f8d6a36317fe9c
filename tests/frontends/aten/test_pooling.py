"""Average pooling lowers to a sum over windows."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import rewright as rw
from rewright.interp.program import run
from rewright.ir.errors import UnsupportedOperator


@pytest.mark.parametrize(("width", "stride", "padding"), [(5, 1, 2), (3, 2, 0), (2, 2, 1)])
def test_windows_count_their_padding(width: int, stride: int, padding: int) -> None:
    x = torch.arange(24.0).reshape(1, 2, 12).sin()
    graph = rw.capture(lambda x: F.avg_pool1d(x, width, stride, padding), (x,))

    (found,) = run(graph, {"x": x.numpy()}).values()

    torch.testing.assert_close(torch.as_tensor(found).float(), F.avg_pool1d(x, width, stride, padding))


def test_what_has_no_lowering_says_so() -> None:
    with pytest.raises(UnsupportedOperator, match="ceil_mode"):
        rw.capture(lambda x: F.avg_pool1d(x, 3, ceil_mode=True), (torch.ones(1, 2, 12),))
