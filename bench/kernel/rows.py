"""A row of the table of released kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

Tensor = torch.Tensor


@dataclass(frozen=True)
class Row:
    """A reference, what launches kernels, and arguments."""

    name: str
    reference: Callable[..., Any]
    launcher: Callable[..., Any]
    args: tuple[Tensor, ...]
    symbols: Mapping[str, str] = field(default_factory=dict)
    """The symbols of arguments whose first axis is one."""
    given: Callable[..., Any] | None = None
    """A condition on arguments."""


def normal(*shape: int) -> Tensor:
    """Numbers that are the same in each run."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def are_places(*args: Tensor) -> tuple[Tensor, ...]:
    """A condition: no integer is negative."""
    whole = (torch.int8, torch.int16, torch.int32, torch.int64)
    return tuple(x >= 0 for x in args if isinstance(x, torch.Tensor) and x.dtype in whole)
