"""Modules with parameters, buffers and modes."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from bench.optimize.calls.spec import Sizes, programs

Tensor = torch.Tensor


class Block(nn.Module):
    """A block of a transformer, with a buffer of positions."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.all = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width, bias=False)
        self.register_buffer("places", torch.arange(4.0))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.all(self.norm(x)).chunk(3, -1)
        return x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True)) * self.places.mean()


class Counter(nn.Module):
    """A module that counts its calls in a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.calls.add_(1)
        return torch.softmax(x * self.calls, -1)


def _seeded(module: nn.Module) -> nn.Module:
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / 4)
    return module.requires_grad_(False)


def block(sizes: Sizes) -> nn.Module:
    return _seeded(Block(sizes["d"])).eval()


def perceptron(sizes: Sizes) -> nn.Module:
    width = sizes["d"]
    return _seeded(nn.Sequential(nn.Linear(width, 8), nn.GELU(), nn.Dropout(0.1), nn.Linear(8, width))).eval()


def convolutions(sizes: Sizes) -> nn.Module:
    return _seeded(nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())).eval()


def training_norm(sizes: Sizes) -> nn.Module:
    return _seeded(nn.BatchNorm1d(sizes["d"]))


def counter(sizes: Sizes) -> nn.Module:
    return Counter()


def recurrent(sizes: Sizes) -> nn.Module:
    return _seeded(nn.GRU(sizes["d"], 4, batch_first=True)).eval()


def encoder(sizes: Sizes) -> nn.Module:
    return _seeded(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)).eval()


PROGRAMS = programs(
    module=True,
    block=(block, "f b s d"),
    perceptron=(perceptron, "f b d"),
    convolutions=(convolutions, "f b 3 s t"),
    training_norm=(training_norm, "f b d"),
    counter=(counter, "f b s"),
    recurrent=(recurrent, "f b s d"),
    encoder=(encoder, "f b s 8"),
)
