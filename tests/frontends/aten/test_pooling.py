"""Pooling lowers to reductions over windows."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import rewright as rw
from rewright import ops
from rewright.interp.program import run
from tests.versions import since


@pytest.mark.parametrize(("width", "stride", "padding"), [(5, 1, 2), (3, 2, 0), (2, 2, 1)])
def test_windows_count_their_padding(width: int, stride: int, padding: int) -> None:
    x = torch.arange(24.0).reshape(1, 2, 12).sin()
    graph = rw.capture(lambda x: F.avg_pool1d(x, width, stride, padding), (x,))

    (found,) = run(graph, {"x": x.numpy()}).values()

    torch.testing.assert_close(torch.as_tensor(found).float(), F.avg_pool1d(x, width, stride, padding))


LATER = since("2.13", "has no decomposition")
POOLS = {
    "places": lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True),
    "dilated": lambda x: F.max_pool2d(x, 3, 1, 1, dilation=2),
    "up": lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True),
    "one axis": lambda x: F.max_pool1d(x[0], 3, 2, 1),
    "not counted": lambda x: F.avg_pool2d(x, (3, 2), 2, (1, 0), count_include_pad=False),
    "up to the padding": lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
    "up, not counted": lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
    "divided": lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False, divisor_override=2),
}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=LATER) if n in ("places", "dilated", "up") else n for n in POOLS]
)
def test_pools_are_those_of_torch(name: str) -> None:
    x = torch.arange(144.0).reshape(1, 2, 9, 8).sin()
    wanted = POOLS[name](x)

    found = run(rw.capture(POOLS[name], (x,)), {"x": x.numpy()}).values()

    for mine, expected in zip(found, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        torch.testing.assert_close(torch.as_tensor(mine).to(expected.dtype), expected)


def test_maxima_over_windows_are_one_operator_where_their_places_are_not_read() -> None:
    for pool in (lambda x: F.max_pool2d(x[None], 3, 2, 1), lambda x: F.max_pool1d(x, 3, 2, 1)):
        graph = rw.capture(pool, (torch.zeros(2, 9, 8),))

        assert sum(isinstance(node.op, ops.ReduceWindow) for node in graph.nodes) == 1
        assert not any(isinstance(node.op, ops.Gather) for node in graph.nodes)
