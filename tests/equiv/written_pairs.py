"""Pairs of small layers, written by hand in the idioms of several libraries."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

Tensor = torch.Tensor
B, S, H, KV, D = 2, 7, 4, 2, 6
LOWEST = torch.finfo(torch.float32).min


@dataclass(frozen=True)
class Pair:
    """Two functions over the same arguments."""

    left: Callable[..., Tensor]
    right: Callable[..., Tensor]
    arguments: tuple[Tensor, ...]


def zeros(*shape: int) -> Tensor:
    return torch.zeros(shape)


def causal(n: int = S) -> Tensor:
    return torch.ones(n, n, dtype=torch.bool).tril()


def distance() -> Tensor:
    place = torch.arange(S)
    return place[:, None] - place[None]


def window(width: int) -> Tensor:
    return (distance() >= 0) & (distance() < width)


def scores(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.repeat_interleave(q.shape[1] // k.shape[1], 1).mT * D**-0.5


def weighted(weights: Tensor, v: Tensor) -> Tensor:
    return weights @ v.repeat_interleave(weights.shape[1] // v.shape[1], 1)


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, cap: float | None = None) -> Tensor:
    """Attention as the others are compared with."""
    s = scores(q, k)
    s = s if cap is None else cap * torch.tanh(s / cap)
    return weighted((s if mask is None else s.masked_fill(~mask, -math.inf)).softmax(-1), v)


def plain(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return attend(q, k, v, causal())


def over(function: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    """Attention whose weights are a function of scores."""
    return lambda q, k, v: weighted(function(scores(q, k)), v)


def masked(mask: Callable[[], Tensor], cap: float | None = None) -> Callable[..., Tensor]:
    return lambda q, k, v: attend(q, k, v, mask(), cap)


def grouped(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    s = torch.einsum("bkgsd,bktd->bkgst", q.reshape(B, KV, H // KV, S, D), k) / math.sqrt(D)
    s = torch.where(causal(), s, LOWEST)
    return torch.einsum("bkgst,bktd->bkgsd", s.softmax(-1), v).reshape(B, H, S, D)


def expanded(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    k, v = (x[:, :, None].expand(B, KV, H // KV, S, D).flatten(1, 2) for x in (k, v))
    return F.softmax((q * D**-0.5) @ k.mT + torch.triu(torch.full((S, S), -math.inf), 1), -1) @ v


def tiled(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    k, v = (x.repeat(1, H // KV, 1, 1) for x in (k, v))
    return F.softmax(q @ k.mT * D**-0.5 + torch.where(causal(), 0.0, -math.inf), -1) @ v


def late(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    s = scores(q, k).masked_fill(~causal(), -math.inf)
    grown = torch.exp(s - s.amax(-1, keepdim=True))
    return weighted(grown, v) / grown.sum(-1, keepdim=True)


def more_than_one(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    s = scores(q, k).masked_fill(~causal(), -math.inf)
    grown = torch.exp(s - s.amax(-1, keepdim=True))
    return weighted(grown / (1 + grown.sum(-1, keepdim=True)), v)


def one_sum(s: Tensor) -> Tensor:
    s = s.masked_fill(~causal(), -math.inf)
    return torch.exp(s - torch.logsumexp(s, -1, keepdim=True))


def share(x: Tensor) -> Tensor:
    return x / x.sum(-1, keepdim=True)


def kept(s: Tensor, mask: Tensor) -> Tensor:
    """Causal weights, and zero where a mask says so."""
    return s.masked_fill(~causal(), -math.inf).softmax(-1) * mask.float()


def slopes() -> Tensor:
    return torch.tensor([2 ** (-8 * (h + 1) / H) for h in range(H)])[:, None, None]


def sloped(bias: Callable[[], Tensor]) -> Callable[..., Tensor]:
    return over(lambda s: (s + bias()).masked_fill(~causal(), -math.inf).softmax(-1))


def sunk(q: Tensor, k: Tensor, v: Tensor, sink: Tensor) -> Tensor:
    s = scores(q, k).masked_fill(~causal(), -math.inf)
    both = torch.cat([s, sink.reshape(1, -1, 1, 1).expand(B, H, S, 1)], -1)
    return weighted((both - both.amax(-1, keepdim=True)).softmax(-1)[..., :-1], v)


def sunk_below(q: Tensor, k: Tensor, v: Tensor, sink: Tensor) -> Tensor:
    s, sink = scores(q, k).masked_fill(~causal(), -math.inf), sink.view(1, -1, 1, 1)
    largest = torch.maximum(s.amax(-1, keepdim=True), sink)
    grown = torch.exp(s - largest)
    return weighted(grown / (grown.sum(-1, keepdim=True) + torch.exp(sink - largest)), v)


def sunk_after(q: Tensor, k: Tensor, v: Tensor, sink: Tensor) -> Tensor:
    s = scores(q, k).masked_fill(~causal(), -math.inf)
    return weighted(s.softmax(-1), v) * torch.sigmoid(torch.logsumexp(s, -1, keepdim=True) - sink.view(1, -1, 1, 1))


def sunk_and_lost(q: Tensor, k: Tensor, v: Tensor, sink: Tensor) -> Tensor:
    s = scores(q, k).masked_fill(~causal(), -math.inf)
    both = torch.cat([s, sink.reshape(1, -1, 1, 1).expand(B, H, S, 1)], -1)
    return weighted(share(both.softmax(-1)[..., :-1]), v)


def rms(x: Tensor, w: Tensor) -> Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w


def layer_norm(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.layer_norm(x, (8,), w, b, 1e-5)


def one_pass(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    mean = x.mean(-1, keepdim=True)
    return (x - mean) * torch.rsqrt((x * x).mean(-1, keepdim=True) - mean * mean + 1e-5) * w + b


def two_passes(x: Tensor, w: Tensor, b: Tensor, *, unbiased: bool = False) -> Tensor:
    variance = x.var(-1, unbiased=unbiased, keepdim=True)
    return (x - x.mean(-1, keepdim=True)) / torch.sqrt(variance + 1e-5) * w + b


def centred(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    y = x @ (torch.eye(8) - 1 / 8)
    return y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-5) * w + b


def angles(base: float = 10000.0) -> Tensor:
    return torch.arange(S).float()[:, None] / base ** (torch.arange(0, D, 2).float() / D)


def halves(x: Tensor, base: float = 10000.0, sign: float = 1.0) -> Tensor:
    both = torch.cat([angles(base)] * 2, -1)[:, None]
    one, other = x.chunk(2, -1)
    return x * both.cos() + sign * torch.cat([-other, one], -1) * both.sin()


def split(x: Tensor) -> Tensor:
    cos, sin, (one, other) = angles().cos()[:, None], angles().sin()[:, None], x.split(D // 2, -1)
    return torch.cat([one * cos - other * sin, other * cos + one * sin], -1)


def complex_halves(x: Tensor) -> Tensor:
    pairs = torch.view_as_complex(torch.stack(x.chunk(2, -1), -1).contiguous())
    turned = pairs * torch.polar(torch.ones_like(angles()), angles())[:, None]
    return torch.view_as_real(turned).transpose(-1, -2).flatten(-2)


def complex_pairs(x: Tensor) -> Tensor:
    pairs = torch.view_as_complex(x.reshape(B, S, H, D // 2, 2))
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles()), angles())[:, None]).flatten(-2)


def pairs(x: Tensor) -> Tensor:
    cos, sin = (table.repeat_interleave(2, -1)[:, None] for table in (angles().cos(), angles().sin()))
    return x * cos + torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2) * sin


def experts(t: Tensor, chosen: Tensor, weights: Tensor, up: Tensor, gate: Tensor, down: Tensor) -> Tensor:
    inner = F.silu(torch.einsum("td,efd->tef", t, up)) * torch.einsum("td,efd->tef", t, gate)
    shares = torch.zeros(t.shape[0], 4).scatter(1, chosen, weights)
    return (torch.einsum("tef,edf->ted", inner, down) * shares[..., None]).sum(1)


def routed(weigh: Callable[[Tensor], tuple[Tensor, Tensor]]) -> Callable[..., Tensor]:
    def mixture(t: Tensor, router: Tensor, up: Tensor, gate: Tensor, down: Tensor) -> Tensor:
        weights, chosen = weigh(t @ router.T)
        return experts(t, chosen, weights, up, gate, down)

    return mixture


def renormalised(logits: Tensor) -> tuple[Tensor, Tensor]:
    weights, chosen = logits.softmax(-1).topk(2, -1)
    return share(weights), chosen


def softmax_after(logits: Tensor) -> tuple[Tensor, Tensor]:
    best, chosen = logits.topk(2, -1)
    return best.softmax(-1), chosen


def sigmoid_after(logits: Tensor) -> tuple[Tensor, Tensor]:
    best, chosen = logits.topk(2, -1)
    return share(best.sigmoid()), chosen


def swapped(t: Tensor, router: Tensor, up: Tensor, gate: Tensor, down: Tensor) -> Tensor:
    return routed(renormalised)(t, router, gate, up, down)


def cut_in(order: tuple[int, ...]) -> Callable[..., Tensor]:
    return lambda image, w: image.reshape(2, 3, 2, 4, 2, 4).permute(order).reshape(2, 4, 48) @ w.flatten(1).T


def convolved(image: Tensor, w: Tensor) -> Tensor:
    return F.conv2d(image, w, stride=4).flatten(2).mT


def last(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return plain(q, k, v)[:, :, -1:]


def step(q: Tensor, k: Tensor, v: Tensor, first: int = 0) -> Tensor:
    k, v = (torch.cat([x[:, :, first:-1], x[:, :, -1:]], 2) for x in (k, v))
    return attend(q[:, :, -1:], k, v)


QKV = (zeros(B, H, S, D), zeros(B, KV, S, D), zeros(B, KV, S, D))
SINKS = (*QKV, zeros(H))
ROW, NORM, ROTATED = (zeros(3, 8),), (zeros(3, 8), zeros(8)), (zeros(B, S, H, D),)
LAYER = (*NORM, zeros(8))
MOE = (zeros(5, 8), zeros(4, 8), zeros(4, 6, 8), zeros(4, 6, 8), zeros(4, 8, 6))
IMAGE = (zeros(2, 3, 8, 8), zeros(6, 3, 4, 4))


def _pairs(arguments: tuple[Tensor, ...], left: Callable[..., Tensor], **rights: Any) -> dict[str, Pair]:
    return {name: Pair(left, right, arguments) for name, right in rights.items()}


SAME: dict[str, Pair] = {
    **_pairs(
        QKV,
        plain,
        grouped=grouped,
        expanded=expanded,
        shared_heads=lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True),
        lowest=over(lambda s: (s + (1.0 - causal().float()) * LOWEST).softmax(-1)),
        by_sum=over(lambda s: share(torch.exp(s) * causal().float())),
        masked_late=over(lambda s: share(s.softmax(-1) * causal().float())),
        by_logarithm=over(one_sum),
        divided_late=late,
    ),
    **_pairs(
        QKV,
        masked(lambda: window(3)),
        triangles=masked(lambda: causal() & ~torch.ones(S, S, dtype=torch.bool).tril(-3)),
        strict=masked(lambda: (distance() >= 0) & (distance() - 3 < 0)),
        denied=masked(lambda: ~((distance() < 0) | (distance() > 2))),
        shared_again=over(lambda s: share(kept(s, distance() < 3))),
    ),
    **_pairs(
        QKV,
        masked(causal, 5.0),
        cap_by_sigmoid=over(
            lambda s: (5 * (2 * torch.sigmoid(2 * s / 5) - 1)).masked_fill(~causal(), -math.inf).softmax(-1)
        ),
    ),
    **_pairs(QKV, sloped(lambda: -slopes() * distance()), slopes_by_key=sloped(lambda: slopes() * torch.arange(S))),
    **_pairs(SINKS, sunk, sink_below=sunk_below, sink_after=sunk_after),
    **_pairs(
        NORM,
        rms,
        root=lambda x, w: x / torch.sqrt(torch.linalg.vector_norm(x, dim=-1, keepdim=True) ** 2 / 8 + 1e-6) * w,
    ),
    **_pairs(LAYER, layer_norm, two_passes=two_passes, one_pass=one_pass, centred=centred),
    **_pairs(ROTATED, halves, split=split, complex_halves=complex_halves),
    **_pairs(ROTATED, complex_pairs, pairs=pairs),
    **_pairs(MOE, routed(renormalised), softmax_after=routed(softmax_after)),
    **_pairs(
        ROW,
        lambda x: F.gelu(x, approximate="tanh"),
        gelu_by_sigmoid=lambda x: x * torch.sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)),
    ),
    **_pairs(ROW, F.gelu, by_distribution=lambda x: x * torch.special.ndtr(x)),
    **_pairs(ROW, F.silu, by_tanh=lambda x: x * (0.5 * torch.tanh(x / 2) + 0.5)),
    **_pairs(
        ROW,
        lambda x: F.relu(x).square(),
        chosen_square=lambda x: torch.where(x > 0, x * x, 0.0),
        half_square=lambda x: x * F.relu(x),
    ),
    **_pairs(
        IMAGE,
        convolved,
        unfolded=lambda image, w: F.unfold(image, 4, stride=4).mT @ w.flatten(1).T,
        patches=cut_in((0, 2, 4, 1, 3, 5)),
    ),
    **_pairs(QKV, last, cached=step),
}
OTHER: dict[str, Pair] = {
    **_pairs(
        QKV,
        plain,
        tiled=tiled,
        one_later=over(lambda s: (s + torch.triu(torch.full((S, S), -math.inf), 2)).softmax(-1)),
        not_renormalised=over(lambda s: s.softmax(-1) * causal().float()),
        more_than_one=more_than_one,
    ),
    **_pairs(
        QKV,
        masked(lambda: window(3)),
        one_more=masked(lambda: window(4)),
        not_shared_again=over(lambda s: kept(s, distance() < 3)),
        shared_with_more=over(lambda s: kept(s, distance() < 3) / kept(s, distance() < 4).sum(-1, keepdim=True)),
        chunks=masked(lambda: causal() & (torch.arange(S)[:, None] // 3 == torch.arange(S) // 3)),
    ),
    **_pairs(
        QKV,
        masked(causal, 5.0),
        cap_after_mask=over(lambda s: (5 * torch.tanh(s.masked_fill(~causal(), -1e9) / 5)).softmax(-1)),
    ),
    **_pairs(QKV, sloped(lambda: -slopes() * distance()), slopes_up=sloped(lambda: slopes() * distance())),
    **_pairs(SINKS, sunk, sink_lost=sunk_and_lost),
    **_pairs(NORM, rms, seven=lambda x, w: x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) / 7 + 1e-6) * w),
    **_pairs(
        LAYER,
        layer_norm,
        unbiased=lambda x, w, b: two_passes(x, w, b, unbiased=True),
        no_bias=lambda x, w, b: F.layer_norm(x, (8,), w, None, 1e-5) + 0 * b,
    ),
    **_pairs(
        ROTATED,
        halves,
        in_pairs=complex_pairs,
        other_way=lambda x: halves(x, sign=-1.0),
        other_base=lambda x: halves(x, 9999.0),
    ),
    **_pairs(
        MOE,
        routed(renormalised),
        not_shared=routed(lambda logits: tuple(logits.softmax(-1).topk(2, -1))),
        sigmoid_after=routed(sigmoid_after),
        swapped=swapped,
    ),
    **_pairs(ROW, F.gelu, tanh=lambda x: F.gelu(x, approximate="tanh"), quick=lambda x: x * torch.sigmoid(1.702 * x)),
    **_pairs(IMAGE, convolved, patches_in_columns=cut_in((0, 4, 2, 1, 3, 5))),
    **_pairs(QKV, last, first_is_forgotten=lambda q, k, v: step(q, k, v, 1)),
}
