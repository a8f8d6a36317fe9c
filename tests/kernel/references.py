"""What the right kernels of ``programs`` compute, in plain PyTorch, with arguments and the sizes that are symbols."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F

Tensor = torch.Tensor


@dataclass(frozen=True)
class Reference:
    """A function, its arguments, and by parameter the sizes that are symbols."""

    function: Callable[..., Tensor]
    args: tuple[Tensor, ...]
    dynamic: dict[str, dict[int, str]] | None


def normal(*shape: int) -> Tensor:
    """Numbers that are the same in each run."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def whole(count: int, below: int) -> Tensor:
    """Places below a number, the same in each run."""
    return torch.randint(0, below, (count,), generator=torch.Generator().manual_seed(0))


def sum_of(x: Tensor, y: Tensor) -> Tensor:
    return x + y


def softmax(x: Tensor) -> Tensor:
    return torch.softmax(x, -1)


def product(a: Tensor, b: Tensor) -> Tensor:
    return a @ b


def causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    length = q.shape[1]
    hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
    scores = (q @ k.transpose(-1, -2) * 0.25).masked_fill(hidden, -float("inf"))
    return torch.softmax(scores, -1) @ v


def loss(x: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(x, labels, reduction="none")


def sums(x: Tensor) -> Tensor:
    return x.sum(0)


def norm(x: Tensor, weight: Tensor) -> Tensor:
    return F.rms_norm(x, (x.shape[-1],), weight, 1e-5)


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.layer_norm(x, (x.shape[-1],), weight, bias, 1e-5)


def recurrence(a: Tensor, x: Tensor) -> Tensor:
    found = [x[0]]
    for step in range(1, x.shape[0]):
        found.append(found[-1] * a[step] + x[step])
    return torch.stack(found)


def rows(ids: Tensor, table: Tensor) -> Tensor:
    return F.embedding(ids, table)


MATRICES = {"a": {0: "m", 1: "k"}, "b": {0: "k", 1: "n"}}
HEADS = {name: {0: "heads", 1: "length"} for name in "qkv"}

REFERENCES = {
    "add": Reference(sum_of, (normal(300), normal(300)), {"x": {0: "n"}, "y": {0: "n"}}),
    "softmax": Reference(softmax, (normal(5, 70),), {"x": {0: "rows", 1: "columns"}}),
    "matmul": Reference(product, (normal(20, 35), normal(35, 18)), MATRICES),
    "attention": Reference(causal, (normal(2, 70, 16), normal(2, 70, 16), normal(2, 70, 16)), HEADS),
    "attention_by_pointers": Reference(causal, (normal(2, 70, 16), normal(2, 70, 16), normal(2, 70, 16)), HEADS),
    "loss": Reference(loss, (normal(9, 70), whole(9, 70)), {"x": {0: "n", 1: "classes"}, "labels": {0: "n"}}),
    "sums": Reference(sums, (normal(30, 40),), {"x": {0: "rows", 1: "columns"}}),
    "norm": Reference(norm, (normal(6, 40), normal(40)), {"x": {0: "rows"}}),
    "layer_norm": Reference(
        layer_norm,
        (normal(5, 70), normal(70), normal(70)),
        {"x": {0: "rows", 1: "columns"}, "weight": {0: "columns"}, "bias": {0: "columns"}},
    ),
    "recurrence": Reference(recurrence, (normal(6, 16), normal(6, 16) + 1), None),
    "grouped": Reference(product, (normal(70, 40), normal(40, 50)), None),
    "rows": Reference(rows, (whole(9, 30), normal(30, 20)), {"ids": {0: "n"}}),
}
"""By name of the function in ``programs`` that launches."""
