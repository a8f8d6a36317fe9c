"""Attention to a neighbourhood: its scores, its products, and their gradients, in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from bench.kernel.liger import gradient, ops
from bench.kernel.rows import Row, Tensor, normal

BATCH, HEADS, LENGTH, WIDTH = 2, 2, 24, 20
BLOCKS = (16, 16, 16, 2, 4)  # of both sides and of what is summed, then stages and warps
SCALE = 0.25


def rows() -> Iterator[Row]:
    """The functions, in order."""
    near = ops("fused_neighborhood_attention")
    apply = near.LigerFusedNeighborhoodAttentionFunction.apply
    for dilation in (1, 2):
        given = (
            normal(BATCH, HEADS, LENGTH, 16),
            normal(BATCH, HEADS, LENGTH, 16) + 1,
            normal(BATCH, HEADS, LENGTH, 16),
        )
        yield Row(
            f"LigerFusedNeighborhoodAttentionFunction (dilation {dilation})",
            lambda q, k, v, d=dilation: _attention(q, k, v, d),
            lambda q, k, v, d=dilation: apply(q, k, v, 5, d, SCALE),
            given,
        )
        yield Row(
            f"LigerFusedNeighborhoodAttentionFunction (dilation {dilation}), gradients",
            gradient(lambda q, k, v, d=dilation: _attention(q, k, v, d), 3),
            gradient(lambda q, k, v, d=dilation: apply(q, k, v, 5, d, SCALE), 3),
            (*given, normal(BATCH, HEADS, LENGTH, 16) + 2),
        )

    def masks() -> Tensor:
        found = torch.zeros(LENGTH, LENGTH)
        near._neighborhood_mask_kernel[(LENGTH,)](found, LENGTH, 5, 2, 32, 2, 4)
        return found

    yield Row(
        "_neighborhood_mask_kernel",
        lambda x: x * _near(LENGTH, 2).float(),
        lambda x: x * masks(),
        (normal(LENGTH, LENGTH),),
    )
    wide, square = normal(BATCH, HEADS, LENGTH, WIDTH), normal(BATCH, HEADS, LENGTH, LENGTH)
    side = -(-LENGTH // 16)

    def launched(name: str, a: Tensor, b: Tensor, width: int, *more: Any) -> Tensor:
        out = torch.zeros(BATCH, HEADS, LENGTH, width)
        kernel = getattr(near, f"_fused_neighborhood_attention_{name}_kernel")
        kernel[(BATCH * HEADS, side, -(-width // 16))](
            a, b, out, *a.stride(), *b.stride(), *out.stride(), BATCH, HEADS, LENGTH, WIDTH, *more, *BLOCKS
        )
        return out

    def scores(q: Tensor, k: Tensor, mask: Tensor) -> Tensor:
        out = torch.zeros(BATCH, HEADS, LENGTH, LENGTH)
        near._fused_neighborhood_attention_qk_kernel[(BATCH * HEADS, side, side)](
            q, k, out, mask, *q.stride(), *k.stride(), *out.stride(), BATCH, HEADS, LENGTH, WIDTH, SCALE, 5, 1, *BLOCKS
        )
        return out

    yield Row(
        "_fused_neighborhood_attention_qk_kernel",
        lambda q, k, m: torch.where(m > 0, q @ k.mT * SCALE, float("-inf")),
        scores,
        (wide, wide + 1, _near(LENGTH, 1).float()),
    )
    yield Row(
        "_fused_neighborhood_attention_av_kernel",
        lambda a, v: a @ v,
        lambda a, v: launched("av", a, v, WIDTH),
        (square, wide),
    )
    yield Row(
        "_fused_neighborhood_attention_grad_qk_kernel",
        lambda g, k: g @ k * SCALE,
        lambda g, k: launched("grad_qk", g, k, WIDTH, SCALE),
        (square, wide),
    )
    yield Row(
        "_fused_neighborhood_attention_grad_k_kernel",
        lambda g, q: g.mT @ q * SCALE,
        lambda g, q: launched("grad_k", g, q, WIDTH, SCALE),
        (square, wide),
    )
    yield Row(
        "_fused_neighborhood_attention_grad_v_kernel",
        lambda a, g: a.mT @ g,
        lambda a, g: launched("grad_v", a, g, WIDTH),
        (square, wide),
    )
    yield Row(
        "_fused_neighborhood_attention_grad_attn_kernel",
        lambda g, v: g @ v.mT,
        lambda g, v: launched("grad_attn", g, v, LENGTH),
        (wide, wide + 1),
    )


def _near(length: int, dilation: int) -> Tensor:
    """Whether a key is one of two neighbours of a query on each side, of those that are ``dilation`` apart."""
    apart = torch.arange(length) - torch.arange(length)[:, None]
    return (apart.abs() <= 2 * dilation) & (apart % dilation == 0)


def _attention(q: Tensor, k: Tensor, v: Tensor, dilation: int) -> Tensor:
    scores = (q @ k.mT * SCALE).masked_fill(~_near(q.shape[2], dilation), float("-inf"))
    return torch.softmax(scores, -1) @ v
