"""``python -m bench.kernel.inductor [NAME ...]``: the Triton kernels that Inductor generates, against their program."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import rewright as rw
from bench.kernel.rows import normal
from rewright.ir.errors import RewrightError


@dataclass(frozen=True)
class Program:
    """A program, its arguments, and the sizes that are symbols by name of an argument and axis."""

    name: str
    function: Callable[..., Any]
    args: tuple[Tensor, ...]
    symbols: Mapping[str, Mapping[int, str]] = field(default_factory=dict[str, Mapping[int, str]])


def labels(*shape: int, below: int) -> Tensor:
    """Integers from zero on."""
    return torch.randint(0, below, shape, generator=torch.Generator().manual_seed(0))


def rms_norm(x: Tensor, w: Tensor) -> Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w


def rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = q @ k.transpose(-1, -2) / 8.0
    mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    return torch.softmax(scores.masked_fill(~mask, float("-inf")), -1) @ v


def linear_gradient(x: Tensor, w: Tensor, y: Tensor) -> Tensor:
    w = w.detach().requires_grad_()
    return torch.autograd.grad(F.mse_loss(torch.tanh(x @ w), y), w)[0]


def norm_gradients(x: Tensor, w: Tensor, b: Tensor, g: Tensor) -> tuple[Tensor, ...]:
    given = [t.detach().requires_grad_() for t in (x, w, b)]
    return torch.autograd.grad(F.layer_norm(given[0], (32,), given[1], given[2]), given, g)


def loss_gradient(x: Tensor, y: Tensor) -> Tensor:
    x = x.detach().requires_grad_()
    return torch.autograd.grad(F.cross_entropy(x, y), x)[0]


def adam(p: Tensor, g: Tensor, m: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    m = 0.9 * m + 0.1 * g
    v = 0.99 * v + 0.01 * g * g
    return p - 0.01 * m / (v.sqrt() + 1e-8), m, v


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.gelu(self.up(x)))


class Convolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.norm(self.conv(x)))


class Block(nn.Module):
    """A block of a transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(32), nn.LayerNorm(32)
        self.into, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, x: Tensor) -> Tensor:
        n, t, d = x.shape
        q, k, v = self.into(self.first(x)).view(n, t, 3, 4, 8).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, t, d))
        return x + self.down(F.gelu(self.up(self.second(x))))


class Step:
    """A training step, which leaves gradients in parameters."""

    def __init__(self) -> None:
        self.net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        loss = F.mse_loss(self.net(x), y)
        loss.backward()
        return loss


def programs() -> list[Program]:
    """The table's rows."""
    torch.manual_seed(0)
    rows, ids, images = {"x": {0: "n"}}, labels(8, below=50), normal(2, 16, 6, 6)
    both = {"x": {0: "n"}, "y": {0: "n"}}
    heads = tuple(normal(2, 4, 16, 8) for _ in range(3))
    step = Step()
    return [
        Program("sigmoid, relu, product", lambda x, y: torch.relu(x * 2 + y) * x.sigmoid(), (normal(8, 16),) * 2),
        Program(
            "where, clamp",
            lambda x, y: torch.where(x > 0, x, y).clamp(-1, 1),
            (normal(8, 10),) * 2,
            {name: {0: "n", 1: "m"} for name in "xy"},
        ),
        Program("sum of columns", lambda x: x.sum(0) + 1, (normal(40, 30),), {"x": {1: "n"}}),
        Program("mean of all", lambda x: x.mean(), (normal(40, 30),)),
        Program("running sum", lambda x: x.cumsum(-1), (normal(8, 30),), rows),
        Program("transpose", lambda x, y: x.t() + y, (normal(30, 20), normal(20, 30)), {"x": {1: "n"}, "y": {0: "n"}}),
        Program("roll, flip", lambda x: torch.roll(x, 1, 0) + x.flip(1), (normal(8, 10),)),
        Program("pad", lambda x: F.pad(x, (1, 2)) + 1, (normal(8, 10),), rows),
        Program(
            "cat",
            lambda x, y: torch.cat((x, y * 2), 1).relu(),
            (normal(8, 10), normal(8, 12)),
            both,
        ),
        Program("in place", lambda x, y: x.add_(y).mul_(2), (normal(8, 10), normal(8, 10) + 1)),
        Program("Adam", adam, tuple(normal(40).abs() + k for k in range(4))),
        Program("softmax", lambda x: torch.softmax(x, -1), (normal(8, 100),), rows),
        Program("softmax of long rows", lambda x: torch.softmax(x, -1), (normal(2, 3000),), rows),
        Program("log-softmax", lambda x: F.log_softmax(x, -1), (normal(8, 100),), rows),
        Program("layer norm", lambda x, w, b: F.layer_norm(x, (64,), w, b), (normal(8, 64), *(normal(64),) * 2), rows),
        Program("layer norm of long rows", lambda x: F.layer_norm(x, (3000,)), (normal(2, 3000),), rows),
        Program("RMS norm", rms_norm, (normal(8, 64), normal(64)), rows),
        Program("group norm", lambda x, w, b: F.group_norm(x, 4, w, b), (images, normal(16), normal(16))),
        Program("GELU perceptron", Perceptron(), (normal(4, 16),), rows),
        Program("SwiGLU", lambda x, a, b: F.silu(x @ a) * (x @ b), (normal(8, 16), *(normal(16, 32),) * 2), rows),
        Program("rotary positions", rotary, (normal(2, 4, 8, 16), normal(8, 16), normal(8, 16)), {"x": {0: "b"}}),
        Program("attention", F.scaled_dot_product_attention, heads),
        Program("causal attention", causal_attention, heads),
        Program("block of a transformer", Block(), (normal(2, 6, 32),)),
        Program("embedding", lambda i, w: F.embedding(i, w) * 2, (ids, normal(50, 16)), {"i": {0: "n"}}),
        Program("gather", lambda x, i: x.gather(1, i), (normal(8, 30), labels(8, 5, below=30))),
        Program(
            "cross entropy", lambda x, y: F.cross_entropy(x, y), (normal(8, 50), ids), {"x": {0: "n"}, "y": {0: "n"}}
        ),
        Program("convolution, batch norm", Convolution().eval(), (normal(2, 3, 8, 8),)),
        Program("maximum pooling", lambda x: F.max_pool2d(x, 2), (normal(2, 3, 8, 8),)),
        Program("argmax", lambda x: x.argmax(-1), (normal(8, 30),)),
        Program("index_add", lambda x, i, y: x.index_add(0, i, y), (normal(8, 10), labels(5, below=8), normal(5, 10))),
        Program("dropout", lambda x: F.dropout(x, 0.5, True), (normal(8, 10),)),
        Program(
            "gradient of a perceptron",
            linear_gradient,
            (normal(8, 16), normal(16, 8), normal(8, 8)),
            both,
        ),
        Program(
            "gradients of layer norm",
            norm_gradients,
            (normal(8, 32), normal(32), normal(32), normal(8, 32) + 1),
            {"x": {0: "n"}, "g": {0: "n"}},
        ),
        Program("gradient of cross entropy", loss_gradient, (normal(8, 50), ids), both),
        Program("training step", step.__call__, (normal(6, 8), normal(6, 4))),
    ]


def line(program: Program) -> str:
    """What the table says of a program."""
    started = time.process_time()
    try:
        found = rw.kernel(
            program.function, "inductor", program.args, dynamic=program.symbols or None, budget=30, explain=False
        )
        status = found.status if found.status == "proved" else f"{found.status}: {found.reason[:90]}"
        runs = found.runs
    except RewrightError as error:
        status, runs = f"error: {str(error)[:90]}", 0
    seconds = time.process_time() - started
    symbols = ", ".join(sorted({name for axes in program.symbols.values() for name in axes.values()}))
    return f"| {program.name} | {symbols} | {status} | {runs} | {seconds:.1f} |"


def main() -> int:
    rw.kernel(lambda x: x, lambda x: x, (normal(1),))  # what is imported once
    print(f"torch {metadata.version('torch')}, triton {metadata.version('triton')}\n")
    print("| program | sizes that are symbols | verdict | runs | seconds of CPU |\n|---|---|---|---|---|")
    for program in programs():
        if not sys.argv[1:] or any(name in program.name for name in sys.argv[1:]):
            print(line(program), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
