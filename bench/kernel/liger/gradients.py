"""Gradients of rotations and of attention of several tokens, and what cross entropy gives beside the loss."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F

from bench.kernel.liger import gradient, ops
from bench.kernel.rows import Row, Tensor, normal

BATCH, HEADS, GROUPS, LENGTH, WIDTH = 2, 4, 2, 8, 16
SECTIONS = [2, 3, 3]


def rows() -> Iterator[Row]:
    """The functions, in order."""
    yield from _rotations()
    yield from _tokens()
    yield from _entropies()


def _rotations() -> Iterator[Row]:
    q, k = normal(BATCH, HEADS, LENGTH, WIDTH), normal(BATCH, GROUPS, LENGTH, WIDTH) + 1
    half = normal(1, LENGTH, WIDTH // 2)
    cos, sin = (torch.cat([x, x], -1) for x in (half, half + 1))
    rope = ops("rope").LigerRopeFunction.apply
    yield Row(
        "LigerRopeFunction, gradient of keys",
        gradient(lambda k, q, c, s: _turned(k, c[:, None], s[:, None])),
        gradient(lambda k, q, c, s: rope(q.clone(), k, c, s)[1]),
        (k, q, cos, sin, normal(*k.shape) + 2),
    )
    several = [torch.cat([x, x], -1) for x in (normal(3, BATCH, LENGTH, WIDTH // 2) + shift for shift in (0, 1))]
    mrope = ops("qwen2vl_mrope").LigerQwen2VLMRopeFunction.apply
    for n, (name, x) in enumerate((("queries", q), ("keys", k))):
        yield Row(
            f"LigerQwen2VLMRopeFunction, gradient of {name}",
            gradient(lambda x, y, c, s: _turned(x, _chosen(c), _chosen(s))),
            gradient(lambda x, y, c, s, n=n: mrope(*((x, y.clone()) if n == 0 else (y.clone(), x)), c, s, SECTIONS)[n]),
            (x, k if n == 0 else q, *several, normal(*x.shape) + 2),
        )
    llama = ops("llama4_rope").LigerLlama4RopeFunction.apply
    swapped = [x.transpose(1, 2).contiguous() for x in (q, k)]
    for n, (name, x) in enumerate(zip(("queries", "keys"), swapped, strict=True)):
        given = (x, swapped[1 - n], normal(LENGTH, WIDTH // 2, 2), normal(*x.shape) + 2)

        def rotated(x: Tensor, y: Tensor, f: Tensor, n: int = n) -> Tensor:
            return llama(*((x, y.clone()) if n == 0 else (y.clone(), x)), f)[n]

        yield Row(
            f"LigerLlama4RopeFunction, gradient of {name}",
            gradient(lambda x, y, f: _by_pairs(x, f)),
            gradient(lambda x, y, f, r=rotated: r(x, y, f)),
            given,
        )
        yield Row(
            f"LigerLlama4RopeFunction, gradient of {name} by a copy of the result's",
            gradient(lambda x, y, f: _by_pairs(x, f)),
            gradient(lambda x, y, f, r=rotated: r(x, y, f) * 1.0),
            given,
        )


def _turned(x: Tensor, c: Tensor, s: Tensor) -> Tensor:
    """The first half of the width rotated against the second, by one half of what are two equal ones."""
    a, b = x.chunk(2, -1)
    cos, sin = c[..., : WIDTH // 2], s[..., : WIDTH // 2]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def _chosen(x: Tensor) -> Tensor:
    parts = x[..., : WIDTH // 2].split(SECTIONS, -1)
    return torch.cat([part[n] for n, part in enumerate(parts)], -1)[:, None]


def _by_pairs(x: Tensor, f: Tensor) -> Tensor:
    a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
    re, im = f[:, None, :, 0], f[:, None, :, 1]
    return torch.stack([a * re - b * im, a * im + b * re], -1).flatten(-2)


def _tokens() -> Iterator[Row]:
    apply = ops("multi_token_attention").LigerMultiTokenAttentionFunction.apply
    given = (normal(2, 3, 12, 12), normal(3, 3, 3, 3), normal(3))
    for name, sparse in (("", False), (" (sparse)", True)):
        yield Row(
            f"LigerMultiTokenAttentionFunction{name}",
            lambda x, w, b, s=sparse: _attention(x, w, b, s),
            lambda x, w, b, s=sparse: apply(x, w, b, 1, 1, 1, 1, s),
            given,
        )
    yield Row(
        "LigerMultiTokenAttentionFunction, gradients",
        gradient(lambda x, w, b: _attention(x, w, b, False), 3),
        gradient(lambda x, w, b: apply(x, w, b, 1, 1), 3),
        (*given, normal(2, 3, 12, 12) + 1),
    )


def _attention(x: Tensor, w: Tensor, b: Tensor, sparse: bool) -> Tensor:
    """Weights of keys up to a query, mixed with those of its neighbours by a convolution."""
    future = torch.ones(12, 12, dtype=torch.bool).triu(1)
    scores = x.masked_fill(future, -1e9)
    weights = _sparsemax(scores) if sparse else torch.softmax(scores, -1)
    return F.conv2d(weights, w, b, padding=1).masked_fill(future, 0.0)


def _sparsemax(x: Tensor) -> Tensor:
    ordered = torch.sort(x, -1, descending=True).values
    sums = ordered.cumsum(-1)
    support = ordered * torch.arange(1, x.shape[-1] + 1) > sums - 1
    tau = ((ordered * support).sum(-1) - 1) / support.sum(-1)
    return torch.clamp(x - tau[..., None], min=0)


def _entropies() -> Iterator[Row]:
    cross = ops("cross_entropy").LigerCrossEntropyFunction.apply
    x, labels = normal(6, 40), torch.tensor([3, 39, 0, -100, 7, 20])
    yield Row(
        "LigerCrossEntropyFunction (none)",
        lambda x, t: F.cross_entropy(x, t, reduction="none"),
        lambda x, t: cross(x.clone(), t, None, -100, 0.0, 0.0, "none")[0],
        (x, labels),
    )
    yield Row(
        "LigerCrossEntropyFunction (none), gradient",
        gradient(lambda x, t: F.cross_entropy(x, t, reduction="none")),
        gradient(lambda x, t: cross(x, t, None, -100, 0.0, 0.0, "none")[0]),
        (x, labels, normal(6)),
    )
    yield Row(
        "LigerCrossEntropyFunction (tokens that are predicted)",
        lambda x, t: torch.where(t == -100, -1, x.argmax(-1)),
        lambda x, t: cross(x.clone(), t, None, -100, 0.0, 0.0, "mean", None, False, False, True)[3],
        (x, labels),
    )
    yield Row(
        "LigerCrossEntropyFunction (accuracy)",
        lambda x, t: ((x.argmax(-1) == t) & (t != -100)).sum() / (t != -100).sum(),
        lambda x, t: cross(x.clone(), t, None, -100, 0.0, 0.0, "mean", None, False, True)[2],
        (x, labels),
    )
