"""Modules with gradients, and one step of training by eager PyTorch and by the backend."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from rewright.optimize.backend import backend
from tests.optimize.programs import normal

Function = Callable[[Any, torch.Tensor], torch.Tensor]


class Program(torch.nn.Module):
    """Named layers, and a function of them and of one tensor."""

    def __init__(self, function: Function, **layers: torch.nn.Module) -> None:
        super().__init__()
        self.function = function
        for name, layer in layers.items():
            self.add_module(name, layer)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(self, x)


def mlp() -> tuple[Program, torch.Tensor]:
    """Two linear layers."""
    program = Program(lambda m, x: m.b(functional.gelu(m.a(x))), a=torch.nn.Linear(6, 8), b=torch.nn.Linear(8, 4))
    return program, normal(5, 6)


def layer_norm() -> tuple[Program, torch.Tensor]:
    """Normalised rows, and a linear layer."""
    return Program(lambda m, x: m.a(m.n(x)), n=torch.nn.LayerNorm(6), a=torch.nn.Linear(6, 4)), normal(5, 6)


def rms_norm() -> tuple[Program, torch.Tensor]:
    """Rows by the mean of their squares."""
    return Program(lambda m, x: m.n(x), n=torch.nn.RMSNorm(6)), normal(5, 6)


def masked_attention() -> tuple[Program, torch.Tensor]:
    """Attention with a causal mask, written out."""

    def run(m: Any, x: torch.Tensor) -> torch.Tensor:
        q, k, v = m.a(x).chunk(3, -1)
        keeps = torch.ones(5, 5, dtype=torch.bool).tril()
        scores = (q @ k.transpose(-1, -2) / 2).masked_fill(~keeps, float("-inf"))
        return torch.softmax(scores, -1) @ v

    return Program(run, a=torch.nn.Linear(4, 12)), normal(2, 5, 4)


def fused_attention() -> tuple[Program, torch.Tensor]:
    """Attention by PyTorch's own operator."""

    def run(m: Any, x: torch.Tensor) -> torch.Tensor:
        q, k, v = m.a(x).view(1, 5, 3, 2, 4).permute(2, 0, 3, 1, 4)
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    return Program(run, a=torch.nn.Linear(4, 24)), normal(1, 5, 4)


def cross_entropy() -> tuple[Program, torch.Tensor]:
    """The loss of a classifier, one of whose rows counts for nothing."""
    labels = torch.tensor([0, 3, -100, 1, 2])
    return Program(lambda m, x: functional.cross_entropy(m.a(x), labels), a=torch.nn.Linear(6, 4)), normal(5, 6)


def convolution() -> tuple[Program, torch.Tensor]:
    """A convolution, normalised over the batch, whose statistics are kept."""
    layers = {"c": torch.nn.Conv2d(2, 3, 3, padding=1), "n": torch.nn.BatchNorm2d(3)}
    return Program(lambda m, x: functional.relu(m.n(m.c(x))), **layers), normal(2, 2, 4, 4)


def embedding() -> tuple[Program, torch.Tensor]:
    """Rows of a table, normalised; two of the indices are equal."""
    layers = {"e": torch.nn.Embedding(5, 6), "n": torch.nn.LayerNorm(6)}
    return Program(lambda m, x: m.n(m.e(x)), **layers), torch.tensor([0, 3, 3, 1])


def tied() -> tuple[Program, torch.Tensor]:
    """The table of the words is that of the classes too."""
    table, last = torch.nn.Embedding(5, 6), torch.nn.Linear(6, 5)
    last.weight = table.weight
    return Program(lambda m, x: torch.log_softmax(m.o(torch.tanh(m.e(x))), -1), e=table, o=last), torch.arange(4)


def recomputed() -> tuple[Program, torch.Tensor]:
    """A part that is computed again for the backward."""

    def inner(m: Any, x: torch.Tensor) -> torch.Tensor:
        return m.b(torch.softmax(m.a(x), -1))

    def run(m: Any, x: torch.Tensor) -> torch.Tensor:
        found: Any = checkpoint(inner, m, x, use_reentrant=False)
        return found

    return Program(run, a=torch.nn.Linear(6, 8), b=torch.nn.Linear(8, 6)), normal(5, 6)


PROGRAMS: dict[str, Callable[[], tuple[Program, torch.Tensor]]] = {
    f.__name__: f
    for f in (
        *(mlp, layer_norm, rms_norm, masked_attention, fused_attention),
        *(cross_entropy, convolution, embedding, tied, recomputed),
    )
}


def compiled(program: Callable[..., Any], *, dynamic: bool = False, **options: Any) -> Callable[..., Any]:
    """A program by the backend on plain torch, which needs no compiler."""
    torch.compiler.reset()
    found: Any = torch.compile(program, backend=backend, options={"target": "torch", **options}, dynamic=dynamic)
    return found


@dataclass
class Twins:
    """A module by eager PyTorch, and a copy of it by the backend."""

    eager: torch.nn.Module
    copy: torch.nn.Module
    compiled: Callable[..., Any]

    @staticmethod
    def of(module: torch.nn.Module, **options: Any) -> Twins:
        """The copy has the same parameters and buffers; ``options`` are those of the backend."""
        copy = deepcopy(module)
        return Twins(module, copy, compiled(copy, **options))

    def step(self, x: torch.Tensor) -> None:
        """One forward and backward of each; their values and strides, and the gradients of the argument, are equal."""
        given = [x.clone().requires_grad_(x.is_floating_point()) for _ in range(2)]
        expected, found = self.eager(given[0]), self.compiled(given[1])
        assert found.stride() == expected.stride()
        torch.testing.assert_close(found, expected)
        weights = torch.cos(torch.arange(expected.numel(), dtype=expected.dtype)).reshape(expected.shape)
        expected.backward(weights)
        found.backward(weights)
        torch.testing.assert_close(given[1].grad, given[0].grad)

    def agree(self) -> None:
        """The gradients of parameters, and buffers, are equal."""
        for a, b in zip(self.eager.parameters(), self.copy.parameters(), strict=True):
            torch.testing.assert_close(b.grad, a.grad)
        for a, b in zip(self.eager.buffers(), self.copy.buffers(), strict=True):
            torch.testing.assert_close(b, a)
