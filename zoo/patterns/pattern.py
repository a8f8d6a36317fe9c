"""What a bug pattern is: a program on one device, and one for ranks that is right or has the bug."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed
from torch.distributed.device_mesh import DeviceMesh

dist: Any = torch.distributed  # most of it is not annotated
Program = tuple[Callable[..., Any], tuple[Any, ...]]
Relations = Mapping[str, str | Sequence[str]]


@dataclass(frozen=True)
class Pattern:
    """A bug that people have had.

    ``references`` are public threads about it. ``place`` is a piece of the line that a report should point to.
    ``gradient`` says whether the bug is in a backward pass, so that the loss is right. ``misread`` are relations that
    the wrong program has instead of ``relations``.
    """

    references: tuple[str, ...]
    sequential: Callable[[], Program]
    parallel: Callable[[DeviceMesh, bool], Program]
    relations: Relations
    place: str
    gradient: bool = False
    misread: Relations = field(default_factory=dict[str, "str | Sequence[str]"])
    mesh: Mapping[str, int] = field(default_factory=lambda: {"ranks": 2})

    def stated(self, wrong: bool) -> dict[str, str | Sequence[str]]:
        """The relations of the right or of the wrong program."""
        return dict(self.relations) | (dict(self.misread) if wrong else {})


class Exchange(torch.autograd.Function):
    """An operation over all ranks whose gradient is another one."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, operation: Any, adjoint: Any) -> torch.Tensor:
        """The operation."""
        ctx.adjoint = adjoint
        return operation(x)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        """The adjoint."""
        return ctx.adjoint(gradients[0]), None, None


def exchange(x: torch.Tensor, operation: Any, adjoint: Any) -> torch.Tensor:
    """Call it."""
    function: Any = Exchange
    return function.apply(x, operation, adjoint)


def keep(x: torch.Tensor) -> torch.Tensor:
    """The tensor itself."""
    return x.view_as(x)


def world() -> tuple[int, int]:
    """Number of ranks and the own one; one device is the first of one."""
    return (dist.get_world_size(), dist.get_rank()) if dist.is_initialized() else (1, 0)


def reduced(x: torch.Tensor) -> torch.Tensor:
    """The sum over the ranks."""
    total = x.clone()
    if dist.is_initialized():
        dist.all_reduce(total)
    return total


def gathered(x: torch.Tensor) -> torch.Tensor:
    """Everybody's tensors one after the other along axis 0."""
    whole = x.new_empty((x.shape[0] * dist.get_world_size(), *x.shape[1:]))
    dist.all_gather_into_tensor(whole, x.contiguous())
    return whole


def scattered(x: torch.Tensor) -> torch.Tensor:
    """This rank's part along axis 0 of the sum."""
    part = x.new_empty((x.shape[0] // dist.get_world_size(), *x.shape[1:]))
    dist.reduce_scatter_tensor(part, x.contiguous())
    return part


def enter(x: torch.Tensor) -> torch.Tensor:
    """Into a region where ranks hold parts of the weights: gradients are addends."""
    return exchange(x, keep, reduced)


def leave(x: torch.Tensor) -> torch.Tensor:
    """Out of it: addends become their sum."""
    return exchange(x, reduced, keep)


def sum_gradients(*tensors: Any) -> None:
    """Gradients that are addends become their sums."""
    for tensor in tensors:
        dist.all_reduce(tensor.grad)


def weight(*shape: int) -> torch.Tensor:
    """A tensor that wants a gradient."""
    return torch.zeros(*shape, requires_grad=True)
