"""Matrix products of operands with different dtypes: PyTorch refuses them once they have values."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional

import rewright as rw
from rewright.ir.errors import CaptureError

X, W, BIAS = torch.ones(2, 3, dtype=torch.float64), torch.ones(3, 4), torch.ones(4)
PRODUCTS: dict[str, Callable[..., torch.Tensor]] = {
    "mm": lambda x, w, b: x @ w,
    "mv": lambda x, w, b: x @ w[:, 0],
    "bmm": lambda x, w, b: x[None] @ w[None],
    "addmm": lambda x, w, b: torch.addmm(b, x, w),
    "addmm, the addend": lambda x, w, b: torch.addmm(b, x, w.double()),
    "baddbmm": lambda x, w, b: torch.baddbmm(b[None, None], x[None], w[None]),
    "linear": lambda x, w, b: functional.linear(x, w.T),
    "linear with a bias": lambda x, w, b: functional.linear(x, w.T, b),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_dtypes_that_differ_are_refused_as_pytorch_does(name: str) -> None:
    with pytest.raises(RuntimeError, match=r"dtype|scalar type"):
        PRODUCTS[name](X, W, BIAS)
    with pytest.raises(CaptureError, match=r"f64 and f32|f32 and f64|scalar type|dtypes must be the same"):
        rw.capture(PRODUCTS[name], (X, W, BIAS))


@pytest.mark.parametrize("name", PRODUCTS)
def test_equal_dtypes_are_captured(name: str) -> None:
    assert rw.capture(PRODUCTS[name], (X, W.double(), BIAS.double())).outputs
