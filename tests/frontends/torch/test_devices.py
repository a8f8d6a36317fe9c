"""A program is captured where its tensors are: what it asks of a device is answered as when it runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import rewright as rw
from rewright.frontends.torch.fakes import device_of

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


@on_gpu
@pytest.mark.parametrize("program", [by_device, named])
def test_programs_that_ask_for_it_or_name_it(program: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Before, a program whose tensors are on a GPU was captured as if they were on the CPU."""
    x = torch.randn(5, 16, device="cuda")
    fast = rw.optimize(program, (x,), floor=False, remember=False)
    assert fast.status == "proved", fast.reason
    torch.testing.assert_close(fast(x), program(x))
