"""A program is captured where its tensors are: what it asks of a device is answered as when it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode

import rewright as rw
from rewright.frontends.torch.fakes import device_of

aten: Any = torch.ops.aten
on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def by_device(x: torch.Tensor) -> torch.Tensor:
    return x * 2 if x.is_cuda else x * 3


def named(x: torch.Tensor) -> torch.Tensor:
    return x * torch.arange(x.shape[-1], device="cuda") + torch.ones(x.shape[-1]).cuda()


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")
def test_a_device_that_is_not_here_is_the_cpu() -> None:
    with FakeTensorMode():
        away = torch.empty(3, device="cuda")
    assert device_of(away) == torch.device("cpu")
    assert device_of(torch.empty(3, device="meta")) == torch.device("cpu")


@pytest.mark.parametrize(
    "own", [aten._scaled_dot_product_cudnn_attention, aten._scaled_dot_product_efficient_attention]
)
def test_attention_as_a_gpu_has_it(own: Callable[..., tuple[torch.Tensor, ...]]) -> None:
    q = torch.randn(1, 2, 8, 16)
    mine = rw.capture(lambda q, k, v: own(q, k, v, None, True, 0.0, True)[0], (q, q, q))
    usual = rw.capture(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), (q, q, q))
    assert rw.equiv(mine, usual).status == "proved"


def test_batch_norm_as_a_gpu_has_it() -> None:
    x, ones = torch.randn(4, 3, 5, 5), tuple(torch.ones(3) for _ in range(4))
    mine = rw.capture(lambda x, w, b, m, v: aten.cudnn_batch_norm(x, w, b, m, v, True, 0.1, 1e-5)[0], (x, *ones))
    usual = rw.capture(lambda x, w, b, m, v: F.batch_norm(x, m, v, w, b, True, 0.1, 1e-5), (x, *ones))
    assert rw.equiv(mine, usual).status == "proved"


def test_what_is_put_where_it_is_shares_its_memory() -> None:
    def written(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.ops.prims.device_put(x, torch.device("cpu"))
        y.add_(1)
        return x * 2, y * 3

    def plain(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x.add_(1)
        return x * 2, x * 3

    x = torch.randn(3)
    assert rw.equiv(rw.capture(written, (x,)), rw.capture(plain, (x,))).status == "proved"


@on_gpu
@pytest.mark.parametrize("program", [by_device, named])
def test_programs_that_ask_for_it_or_name_it(program: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Before, a program whose tensors are on a GPU was captured as if they were on the CPU."""
    x = torch.randn(5, 16, device="cuda")
    fast = rw.optimize(program, (x,), floor=False, remember=False)
    assert fast.status == "proved", fast.reason
    torch.testing.assert_close(fast(x), program(x))
