"""Numbers that programs read of tensors stay what they are in every run, and are never taken from one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import rewright as rw
from rewright.interp.program import run
from rewright.ir.errors import CaptureError
from tests.frontends.torch.checked_programs import (
    asserting,
    caught,
    caught_outside,
    finally_done,
    half_asserted,
    in_a_call,
    in_the_library,
    raising,
)

Tensor = torch.Tensor
FLAG = torch.tensor(1.0)


def mean(x: Tensor, counted: Tensor) -> Tensor:
    return x * (1.0 / counted.sum().item())


def kept(x: Tensor, counted: Tensor) -> Tensor:
    total = counted.sum()
    count = total.item()
    total.zero_()
    return x * count + total


def whole(x: Tensor, counted: Tensor) -> Tensor:
    n = counted.sum().item()
    return x + n // 2 + n % 3 - (-n) * 4 + abs(n - 7)


def integers(x: Tensor, counted: Tensor) -> Tensor:
    return counted * x.sum().item() + counted / counted.sum().item()


def of_double(x: Tensor, counted: Tensor) -> Tensor:
    total = x.double().sum()
    value = total.item()
    total.add_(1.0)
    return x * value


def chosen(x: Tensor, counted: Tensor) -> Tensor:
    return torch.where(x > x.mean().item(), x, 0.0).masked_fill(x < -1, counted.sum().item())


@pytest.mark.parametrize(
    "program", [mean, kept, whole, integers, of_double, chosen, asserting, raising, in_the_library]
)
def test_a_number_is_that_of_each_run(program: Callable[..., Tensor]) -> None:
    graph = rw.capture(program, (torch.zeros(4), torch.tensor([1, 0, 1])))
    for seed in range(3):
        torch.manual_seed(seed)
        x, counted = torch.randn(4), torch.randint(0, 5, (3,)) + 1
        if program is chosen:
            x = x * 3
        if program is integers:
            x, counted = torch.randn(3), counted
            graph = rw.capture(program, (torch.zeros(3), torch.tensor([1, 0, 1])))
        found = run(graph, {"x": x.numpy(), "counted": counted.numpy()})["output"]
        np.testing.assert_allclose(found, program(x, counted), rtol=1e-5, atol=1e-6)


def test_a_number_has_no_gradient_and_scales_that_of_others() -> None:
    def step(x: Tensor) -> Tensor:
        x = x.detach().requires_grad_()
        loss = (x * x.sum().item()).sum()
        return torch.autograd.grad(loss, x)[0]

    x = torch.randn(4)
    graph = rw.capture(step, (torch.zeros(4),))
    np.testing.assert_allclose(run(graph, {"x": x.numpy()})["output"], step(x), rtol=1e-5)


@pytest.mark.parametrize(("program", "checks"), [(asserting, 4), (raising, 2), (finally_done, 1)])
def test_what_is_checked_is_assumed(program: Callable[..., Tensor], checks: int) -> None:
    graph = rw.capture(program, (torch.zeros(4), torch.tensor([1, 0, 1])))
    assert graph.metadata["assumptions"].count("the check at checked_programs.py") == checks


def branching(x: Tensor) -> Tensor:
    return x if x.sum().item() > 0 else -x


def size(x: Tensor) -> Tensor:
    return torch.zeros(int(x.long().sum()))


def place(x: Tensor) -> Tensor:
    return x[x.long().sum().item()]  # pyright: ignore[reportArgumentType]


def text(x: Tensor) -> Tensor:
    return x * float(f"{x.sum().item():.1f}")


def written(x: Tensor) -> Tensor:
    one = torch.ones(2)
    one[0] = x.sum()
    return x if torch.equal(one, torch.ones(2)) else -x


@pytest.mark.parametrize(
    "program", [branching, half_asserted, in_a_call, caught, caught_outside, size, place, text, written]
)
def test_what_needs_the_value_is_refused(program: Callable[..., Any]) -> None:
    with pytest.raises(CaptureError):
        rw.capture(program, (torch.randn(4),))


def test_what_depends_on_nothing_given_is_known() -> None:
    def program(x: Tensor) -> Tensor:
        rows = int(torch.prod(torch.tensor([2, 2])))
        is_one = torch.equal(torch.ones_like(x.sum()), torch.tensor(1.0)) and FLAG.item() == 1.0
        return x.reshape(rows, -1) * (2.0 if is_one else 3.0)

    found = run(rw.capture(program, (torch.zeros(8),)), {"x": np.ones(8, np.float32)})["output"]
    np.testing.assert_array_equal(found, np.full((4, 2), 2.0))
