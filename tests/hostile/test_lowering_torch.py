"""Settings of PyTorch's operators that captures once read wrongly, or ended in a traceback on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import rewright as rw
from rewright.interp.program import run


def _captured(function: Callable[..., Any], *args: torch.Tensor) -> np.ndarray:
    """What the captured graph of a function computes; its arguments are x, y, .. in this order."""
    graph = rw.capture(function, args)
    names = function.__code__.co_varnames[: len(args)]
    return run(graph, {name: arg.numpy() for name, arg in zip(names, args, strict=True)})["output"]


def test_variances_of_different_corrections_are_told_apart() -> None:
    """The correction was cut off to an integer: 0.5 was read as 0, and the false pair was proved."""

    def left(x: torch.Tensor) -> torch.Tensor:
        return torch.var(x, 1, correction=0.5)

    def right(x: torch.Tensor) -> torch.Tensor:
        return torch.var(x, 1, correction=0)

    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    assert rw.equiv(rw.capture(left, (x,)), rw.capture(right, (x,))).status == "refuted"


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("function", [torch.var, torch.std])
@pytest.mark.parametrize("correction", [0, 0.5, 1, 1.3, 3.7, 4, 5])
def test_a_correction_of_variance_is_no_integer(function: Callable[..., torch.Tensor], correction: float) -> None:
    x = torch.tensor([[0.5, -1.0, 2.0, 4.0]], dtype=torch.float64)
    wanted = function(x, 1, correction=correction)
    np.testing.assert_allclose(_captured(lambda x: function(x, 1, correction=correction), x), wanted)


def test_integer_steps_are_counted_from_both_ends() -> None:
    """The steps were those of one rounded width, 0 3 6 9: the false pair was proved and the true one refuted."""

    def steps(x: torch.Tensor) -> torch.Tensor:
        return torch.linspace(0, 10, 4, dtype=torch.long) * x

    def wrong(x: torch.Tensor) -> torch.Tensor:
        return torch.tensor([0, 3, 6, 9]) * x

    def true(x: torch.Tensor) -> torch.Tensor:
        return torch.tensor([0, 3, 6, 10]) * x

    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    graph = rw.capture(steps, (x,))
    assert rw.equiv(graph, rw.capture(wrong, (x,))).status == "refuted"
    assert rw.equiv(graph, rw.capture(true, (x,))).status == "proved"


@pytest.mark.parametrize(("start", "end", "count"), [(0, 10, 4), (43, -75, 7), (-2, -3, 50), (63, -48, 16), (5, 9, 1)])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16])
def test_integer_steps_are_those_of_pytorch(start: int, end: int, count: int, dtype: torch.dtype) -> None:
    zeros = torch.zeros(count, dtype=dtype)
    found = _captured(lambda x: x + torch.linspace(start, end, count, dtype=dtype), zeros)
    np.testing.assert_array_equal(found, torch.linspace(start, end, count, dtype=dtype))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_classes_after_the_first_negative_one_do_not_count(reduction: str) -> None:
    """They did, by PyTorch's own decomposition: 1.65 instead of 0.60."""
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    y = torch.tensor([[0, 2, -1, 1], [3, -1, 0, 1], [1, 0, 2, 3]])
    found = _captured(lambda x, y: F.multilabel_margin_loss(x, y, reduction=reduction), x, y)
    np.testing.assert_allclose(found, F.multilabel_margin_loss(x, y, reduction=reduction))


@pytest.mark.parametrize("size", [(3, 5), (1, 1), (7, 8)])
def test_adaptive_maximum_pooling_has_a_capture(size: tuple[int, int]) -> None:
    """It ended in a NotImplementedError out of PyTorch's decomposition."""
    x = torch.randn(2, 3, 7, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    np.testing.assert_allclose(_captured(lambda x: F.adaptive_max_pool2d(x, size), x), F.adaptive_max_pool2d(x, size))


CALLS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "roll of nothing": lambda x: x[:0].roll(1, 0),
    "isinf of integers": lambda x: x.isinf(),
    "sign of truth": lambda x: (x > 0).sign(),
    "take": lambda x: x.take(torch.tensor([0, -1, 5])),
    "bucketize": lambda x: torch.bucketize(x, torch.tensor([-1, 0, 3])),
    "unfold of a scalar": lambda x: x.sum().unfold(0, 1, 1),
    "any of bytes": lambda x: x.to(torch.uint8).any(1),
    "sums of truths": lambda x: torch.zeros(4, dtype=torch.bool).index_add(0, torch.tensor([1, 1, 3]), x[0] > 0),
    "a product into a scalar": lambda x: x.sum().scatter_reduce(0, torch.tensor(0), x.sum(), "prod"),
    "a ramp down": lambda x: x.to(torch.uint8)[0] + torch.arange(3, 0, -1, dtype=torch.uint8),
}


@pytest.mark.parametrize("name", CALLS)
def test_rare_settings_are_read_as_pytorch_has_them(name: str) -> None:
    """These ended in ZeroDivisionError, OverflowError, TypeMismatch and the like, and the product in a sum."""
    x = torch.tensor([[3, 0, -2], [1, 5, 4]])
    np.testing.assert_array_equal(_captured(CALLS[name], x), CALLS[name](x))


CHOICES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "the place of the smallest": lambda x: x.argmin(1),
    "the places of the smallest": lambda x: x.min(1).indices,
    "the two smallest": lambda x: x.topk(2, largest=False).values,
    "the smallest up to each": lambda x: x.cummin(1).values,
}


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int64])
def test_the_smallest_number_of_a_type_is_the_smallest(name: str, dtype: torch.dtype) -> None:
    """Smallest elements were the largest of the negated ones; zero is its own negative, as is the least one."""
    x = torch.tensor([[3, torch.iinfo(dtype).min, 2], [0, 1, 1]]).to(dtype)
    np.testing.assert_array_equal(_captured(CHOICES[name], x), CHOICES[name](x))


def test_nan_is_not_among_the_smallest() -> None:
    """It was, as its negative is NaN too."""
    x = torch.tensor([2.0, float("nan"), 1.0, 3.0])
    np.testing.assert_array_equal(
        _captured(lambda x: x.topk(2, largest=False).values, x), x.topk(2, largest=False).values
    )
