"""Programs that check numbers which they read, in a module of their own: pytest writes the asserts of tests anew."""

from __future__ import annotations

import torch

Tensor = torch.Tensor


def asserting(x: Tensor, counted: Tensor) -> Tensor:
    n = counted.sum().item()
    assert n >= 0, f"{n} is too small"
    assert n < 100
    assert n > -5
    assert (x * 0).max() < 1 and counted.max() < 50
    return x / (n + 1)


def raising(x: Tensor, counted: Tensor) -> Tensor:
    n = counted.sum().item()
    if n > 100 or n < -3:
        raise ValueError(f"{n} tokens")
    with torch.no_grad():
        if not n < 100:
            raise ValueError("too many")
    return x / (n + 1)


def half_asserted(x: Tensor) -> Tensor:
    n = x.sum().item()
    assert x.max() > 5 if n > 0 else x.max() > 3
    return x


def in_a_call(x: Tensor) -> Tensor:
    assert any([x.sum().item() > 0])
    return x


def caught(x: Tensor) -> Tensor:
    try:
        if x.sum().item() > 0:
            raise ValueError
        return x
    except ValueError:
        return -x


def caught_outside(x: Tensor) -> Tensor:
    try:
        return half_checked(x)
    except AssertionError:
        return -x


def half_checked(x: Tensor) -> Tensor:
    assert x.sum().item() > 0
    return x


def in_the_library(x: Tensor, counted: Tensor) -> Tensor:
    return torch.nn.functional.gaussian_nll_loss(x, x * 2, counted.float().mean().expand(x.shape))


def finally_done(x: Tensor, counted: Tensor) -> Tensor:
    try:
        assert counted.max() < 50
    finally:
        x = x * 2
    return x
