"""The table of definitions: an operator of ATen, and a function of tensors that computes the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import _decomp

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Definitions(dict[Any, Callable[..., Any]]):
    """Functions by the overload that they define."""

    def define(self, *names: str) -> Callable[[_Function], _Function]:
        """Enter a function as that of some overloads of ATen, ``median.dim``; this PyTorch need not have them all."""

        def enter(function: _Function) -> _Function:
            for name in names:
                target = overload(name)
                assert target not in self, name
                if target is not None:
                    self[target] = function
            return function

        return enter


def overload(name: str) -> Any:
    """An overload of ATen by its name, ``median.dim``; None where this version of PyTorch has no such operator."""
    packet, kind = name.split(".")
    return getattr(getattr(torch.ops.aten, packet, None), kind, None)


def axis_of(x: torch.Tensor, dim: int) -> int:
    """An axis counted from the front; a tensor without axes counts as one with one."""
    return dim % max(x.dim(), 1)


_untyped: Any = _decomp
KNOWN: dict[Any, Callable[..., Any]] = _untyped.decomposition_table
"""PyTorch's own decompositions."""


def common_shape(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that all broadcast to."""
    untyped: Any = torch
    return tuple(untyped.broadcast_shapes(*shapes))


def broadcast_pair(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Two tensors in their common shape."""
    shape = common_shape(x.shape, y.shape)
    return x.expand(shape), y.expand(shape)
