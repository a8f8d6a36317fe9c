"""Views, joins, and what is returned: memory that is shared, structures, tensors of the caller."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from bench.optimize.calls.spec import programs

Tensor = torch.Tensor


class Pair(NamedTuple):
    """What a program returns."""

    first: Tensor
    second: Tensor


def same(x: Tensor) -> Any:
    return x, x.view(x.shape), x.clone(), x * 1


def views(x: Tensor) -> Any:
    y = x.relu()
    return x.T, y.T, y[0], y[:, ::2], y.reshape(-1), x.reshape(-1), y.unsqueeze(0).expand(3, -1, -1)


def structure(x: Tensor) -> Any:
    y = torch.softmax(x, -1)
    return {"a": y, "b": [y, None, 3], "c": (Pair(x, y), "text", True)}


def joined(x: Tensor, y: Tensor) -> Any:
    return torch.cat((x, y)), torch.stack((x, y), -1), torch.cat((x, y[:0], y * 2), 0).softmax(0)


def split(x: Tensor) -> Any:
    a, b = x.tensor_split(2, -1)
    return a.relu(), b.sum(-1), x.chunk(3, 0), x.unbind(0)[0], x.split(2, 0)[-1]


def permuted(x: Tensor) -> Any:
    return x.permute(2, 0, 1) + 1, x.movedim(0, -1).contiguous(), x.transpose(0, 2).exp(), x.flatten(1)


def broadcast(x: Tensor, y: Tensor, z: Tensor) -> Any:
    return x[:, None] + y, x[:, None] * y * z, (x[:, None] * y).sum(0), torch.broadcast_tensors(x[:, None], y)[0]


def padded(x: Tensor) -> Any:
    f = torch.nn.functional.pad
    return f(x, (1, 2)), f(x, (-1, 0, 0, 1), value=float("-inf")), f(x[None], (1, 1), mode="replicate")


def windows(x: Tensor) -> Any:
    return x.unfold(-1, 2, 1).sum(-1), x.as_strided((2, 2), (1, 1)).exp(), x.diagonal() * 2, x.tril(), x.triu(1)


def repeated(x: Tensor) -> Any:
    return x.repeat(2, 1), x.repeat_interleave(2, -1) + 1, x.tile(2), x.expand(2, *x.shape).exp()


def sizes_of(x: Tensor) -> Any:
    return x / x.shape[-1], x.numel(), x.sum() / x.shape[0], torch.arange(x.shape[0]) * 2, tuple(x.shape)


def made(x: Tensor) -> Any:
    return torch.zeros_like(x), x.new_ones(3), torch.full((2,), 3.5), torch.eye(x.shape[0]), torch.linspace(0, 1, 5)


def scalars(x: Tensor) -> Any:
    return x.sum().item() if x.numel() < 4 else 1, x.mean()


def strided(x: Tensor) -> Any:
    return x[::2].exp(), x[:, 1:].relu(), x[-1], x[..., None, :] + 1, x.stride(), x.is_contiguous()


PROGRAMS = programs(
    same=(same, "f b s"),
    views=(views, "f b s"),
    structure=(structure, "f b s"),
    joined=(joined, "f b s,f b s"),
    split=(split, "f b s"),
    permuted=(permuted, "f b s d"),
    broadcast=(broadcast, "f b,f s,f b s"),
    padded=(padded, "f b s"),
    windows=(windows, "f b s"),
    repeated=(repeated, "f b s"),
    sizes_of=(sizes_of, "f b s"),
    made=(made, "f b s"),
    scalars=(scalars, "f b s"),
    strided=(strided, "f b s"),
)
