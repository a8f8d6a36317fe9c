"""Rotations, attention over layers, masks of scores, and mixtures of streams."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F

from bench.kernel.liger import gradient, ops
from bench.kernel.rows import Row, Tensor, normal

BATCH, HEADS, GROUPS, LENGTH, WIDTH = 2, 4, 2, 8, 16


def rows() -> Iterator[Row]:
    """The functions, in order."""
    yield from _rotations()
    yield from _attentions()
    yield from _streams()


def _rotations() -> Iterator[Row]:
    rope, mrope, llama4 = (ops(n) for n in ("rope", "qwen2vl_mrope", "llama4_rope"))
    q, k = normal(BATCH, HEADS, LENGTH, WIDTH), normal(BATCH, GROUPS, LENGTH, WIDTH) + 1
    cos, sin = _twice(normal(1, LENGTH, WIDTH // 2)), _twice(normal(1, LENGTH, WIDTH // 2) + 1)
    yield Row("rope_forward", rotated, lambda q, k, c, s: rope.rope_forward(q, k, c, s)[:2], (q, k, cos, sin))
    yield Row(
        "LigerRopeFunction, gradient of queries",
        gradient(lambda q, k, c, s: rotated(q, k, c, s)[0]),
        gradient(lambda q, k, c, s: rope.LigerRopeFunction.apply(q, k, c, s)[0]),
        (q, k, cos, sin, normal(*q.shape) + 2),
    )
    several = [_twice(normal(3, BATCH, LENGTH, WIDTH // 2) + shift) for shift in (0, 1)]
    yield Row(
        "LigerQwen2VLMRopeFunction",
        lambda q, k, c, s: _in_sections(q, k, c, s, [2, 3, 3]),
        lambda q, k, c, s: mrope.LigerQwen2VLMRopeFunction.apply(q.clone(), k.clone(), c, s, [2, 3, 3]),
        (q, k, *several),
    )
    yield Row(
        "llama4_rope_forward",
        _by_pairs,
        lambda q, k, f: llama4.llama4_rope_forward(q.clone(), k.clone(), f),
        (q.transpose(1, 2).contiguous(), k.transpose(1, 2).contiguous(), normal(LENGTH, WIDTH // 2, 2)),
    )


def _twice(x: Tensor) -> Tensor:
    return torch.cat([x, x], -1)


def rotated(q: Tensor, k: Tensor, c: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    """Queries and keys, with the first half of their width rotated against the second."""

    def turned(x: Tensor) -> Tensor:
        a, b = x.chunk(2, -1)
        half = x.shape[-1] // 2  # the kernel reads one half of what are two equal ones
        cos, sin = c[:, None, :, :half], s[:, None, :, :half]
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    return turned(q), turned(k)


def _in_sections(q: Tensor, k: Tensor, c: Tensor, s: Tensor, sections: list[int]) -> tuple[Tensor, Tensor]:
    def chosen(x: Tensor) -> Tensor:
        parts = x[..., : WIDTH // 2].split(sections, -1)
        return torch.cat([part[n] for n, part in enumerate(parts)], -1)

    return rotated(q, k, chosen(c), chosen(s)) if c.shape[-1] == WIDTH // 2 else _with(q, k, chosen(c), chosen(s))


def _with(q: Tensor, k: Tensor, c: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    return rotated(q, k, _twice(c), _twice(s))


def _by_pairs(q: Tensor, k: Tensor, f: Tensor) -> tuple[Tensor, Tensor]:
    def turned(x: Tensor) -> Tensor:
        a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
        re, im = f[:, None, :, 0], f[:, None, :, 1]
        return torch.stack([a * re - b * im, a * im + b * re], -1).flatten(-2)

    return turned(q), turned(k)


def _attentions() -> Iterator[Row]:
    layers, query, weight = normal(3, 2, 4, 24), normal(24), normal(24) + 1
    residual, sparse, tokens = ops("attn_res"), ops("sparsemax"), ops("multi_token_attention")
    yield Row(
        "LigerAttnResFunction",
        _over_layers,
        lambda v, q, w: residual.LigerAttnResFunction.apply(v, q, w, 1e-6),
        (layers, query, weight),
    )
    scores = normal(2, 3, 12, 12)
    yield Row("_mask_inf_forward", lambda x: x.masked_fill(_future(), -1e9), tokens._mask_inf_forward, (scores,))
    yield Row("_mask_inf_backward", lambda x: x.masked_fill(_future(), 0.0), tokens._mask_inf_backward, (scores,))
    x = normal(6, 40)
    yield Row("_sparsemax_forward", _sparsemax, lambda x: sparse._sparsemax_forward(x, -1)[0], (x,))
    yield Row(
        "_sparsemax_backward",
        lambda g, y: torch.where(y > 0, g - ((g * (y > 0)).sum(-1) / (y > 0).sum(-1).clamp(min=1e-6))[:, None], 0.0),
        lambda g, y: sparse._sparsemax_backward(g, y, -1),
        (x, torch.relu(normal(6, 40) - 0.5)),
    )


def _future() -> Tensor:
    return torch.ones(12, 12, dtype=torch.bool).triu(1)


def _over_layers(v: Tensor, q: Tensor, w: Tensor) -> Tensor:
    scores = (F.rms_norm(v, (v.shape[-1],), w, 1e-6) * q).sum(-1)
    return (torch.softmax(scores, 0)[..., None] * v).sum(0)


def _sparsemax(x: Tensor) -> Tensor:
    ordered = torch.sort(x, -1, descending=True).values
    count = torch.arange(1, x.shape[-1] + 1)
    sums = ordered.cumsum(-1)
    support = ordered * count > sums - 1
    size = support.sum(-1).clamp(min=1)
    tau = ((ordered * support).sum(-1) - 1) / size
    return torch.clamp(x - tau[:, None], min=0)


def _streams() -> Iterator[Row]:
    mixing = ops("mhc")
    x, weights = normal(6, 4, 40), normal(6, 4)
    yield Row("mhc_pre_fwd", lambda x, h: (h[..., None] * x).sum(1), mixing.mhc_pre_fwd, (x, weights))
    yield Row(
        "mhc_pre_bwd",
        lambda x, h, g: (h[..., None] * g[:, None], (x * g[:, None]).sum(-1)),
        mixing.mhc_pre_bwd,
        (x, weights, normal(6, 40)),
    )
    yield Row(
        "mhc_post_res_fwd",
        lambda x, f, post, res: post[..., None] * f[:, None] + torch.einsum("nij,njc->nic", res, x),
        mixing.mhc_post_res_fwd,
        (x, normal(6, 40), weights, normal(6, 4, 4)),
    )
