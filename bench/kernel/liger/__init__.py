"""Kernels of liger-kernel as they are released, against plain PyTorch.

Each row is a function of the package that launches kernels, for any number of rows where that is a symbol. ``norms``
are maps and statistics of rows, ``losses`` losses, ``positions`` rotations and attention, ``blocks`` kernels for long
rows, ``distances`` more losses, ``streams`` mixtures of residual streams, ``neighbours`` attention to a neighbourhood,
``mixtures`` perceptrons and experts.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from bench.kernel.rows import Row, Tensor


def ops(name: str) -> Any:
    """A module of the package."""
    return importlib.import_module(f"liger_kernel.ops.{name}")


def gradient(function: Callable[..., Tensor], count: int = 1) -> Callable[..., Any]:
    """The gradients of a function with respect to its first arguments; the last argument is that of its result.

    What the function is given are copies, as results of other layers are: some backward kernels write to them.
    """

    def run(*args: Tensor) -> Any:
        *given, outer = args
        leaves = [x.detach().requires_grad_() for x in given[:count]]
        found = torch.autograd.grad(function(*(x.clone() for x in leaves), *given[count:]), leaves, outer)
        return found[0] if count == 1 else found

    return run


def loss(function: Callable[..., Tensor], count: int = 1) -> Callable[..., Any]:
    """A loss with its gradients with respect to its first arguments."""

    def run(*args: Tensor) -> Any:
        leaves = [x.detach().requires_grad_() for x in args[:count]]
        value = function(*(x.clone() for x in leaves), *args[count:])
        return (value.detach(), *torch.autograd.grad(value, leaves))

    return run


def rows() -> Iterator[Row]:
    """The functions, in order."""
    from bench.kernel.liger import blocks, distances, gradients, losses, mixtures, neighbours, norms, positions, streams

    for part in (norms, losses, positions, gradients, blocks, distances, streams, neighbours, mixtures):
        yield from part.rows()
