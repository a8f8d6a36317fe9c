"""Triton's random numbers in PyTorch, for references of kernels that draw some: ``rand(seed, places)``."""

from __future__ import annotations

import math
from typing import Any

import torch

from rewright.ops.functions.random import philox as _words

_library: Any = torch.library.Library("rewright", "FRAGMENT")
_library.define("philox(Tensor low, Tensor high, Tensor seed, int word) -> Tensor")


@torch.library.impl(_library, "philox", "Meta")
def _shape(low: torch.Tensor, high: torch.Tensor, seed: torch.Tensor, word: int) -> torch.Tensor:
    return (low + high + seed).long()


@torch.library.impl(_library, "philox", "CPU")
def _values(low: torch.Tensor, high: torch.Tensor, seed: torch.Tensor, word: int) -> torch.Tensor:
    zero = torch.zeros((), dtype=torch.int64)
    operands = [low, high, zero, zero, seed % (1 << 32), seed // (1 << 32), zero + word]
    return torch.tensor(_words(*(x.numpy() for x in operands)))


def philox(seed: torch.Tensor | int, places: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Four words from 0 to 2^32 - 1 for each place, as int64: what ``tl.randint4x`` gives, without a sign.

    Args:
        seed: an integer from zero on.
        places: integers, of which Triton's ``offset`` are some.
    """
    operator: Any = torch.ops.rewright.philox.default
    wide = places.long()
    high = wide // (1 << 32) if places.dtype is torch.int64 else torch.zeros_like(wide)
    key = torch.as_tensor(seed).long()
    return tuple(operator(wide, high, key, word) for word in range(4))


def randint(seed: torch.Tensor | int, places: torch.Tensor) -> torch.Tensor:
    """Integers of 32 bits with a sign: ``tl.randint``."""
    return _with_sign(philox(seed, places)[0]).int()


def rand(seed: torch.Tensor | int, places: torch.Tensor) -> torch.Tensor:
    """Floats from zero to one: ``tl.rand``."""
    return _uniform(philox(seed, places)[0])


def randn(seed: torch.Tensor | int, places: torch.Tensor) -> torch.Tensor:
    """Floats of the normal distribution: ``tl.randn``."""
    one, other = map(_uniform, philox(seed, places)[:2])
    return torch.sqrt(-2.0 * torch.log(one.clamp(min=1e-7))) * torch.cos(2 * math.pi * other)


def _with_sign(words: torch.Tensor) -> torch.Tensor:
    return torch.where(words >= 1 << 31, words - (1 << 32), words)


def _uniform(words: torch.Tensor) -> torch.Tensor:
    signed = _with_sign(words)
    return torch.where(signed < 0, -signed - 1, signed).float() * 4.6566127342e-10
