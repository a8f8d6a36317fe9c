"""Reductions along rows and columns: softmax, norms, losses, scans."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from bench.optimize.calls.spec import programs

Tensor = torch.Tensor


def softmaxes(x: Tensor) -> Any:
    return torch.softmax(x, -1), torch.log_softmax(x, 0), torch.logsumexp(x, -1), F.softmin(x, 0)


def sums(x: Tensor) -> Any:
    return x.sum(), x.sum(0), x.mean(-1, keepdim=True), x.sum((0, 1)), x.norm(dim=-1), x.abs().sum(-1)


def extremes(x: Tensor) -> Any:
    return x.amax(-1), x.amin(0), x.max(), x.amax((0, 1)), x.abs().amax(-1, keepdim=True)


def places(x: Tensor) -> Any:
    return x.argmax(-1), x.argmin(0), x.max(-1), x.min(0)


def deviations(x: Tensor) -> Any:
    return x.var(-1), x.std(0, correction=0), torch.var_mean(x, -1)


def layer_norm(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.layer_norm(x, (w.shape[-1],), w, b)


def rms_norm(x: Tensor, w: Tensor) -> Tensor:
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w


def normalized(x: Tensor) -> Any:
    return F.normalize(x, dim=-1), x / x.abs().amax(-1, keepdim=True).clamp(min=1e-9)


def cross_entropy(x: Tensor, t: Tensor) -> Any:
    return F.cross_entropy(x, t), F.cross_entropy(x, t, reduction="none", label_smoothing=0.1)


def ignored(x: Tensor, t: Tensor) -> Tensor:
    return F.cross_entropy(x, torch.where(t > 0, t, -100))


def divergences(x: Tensor, y: Tensor) -> Any:
    p = torch.log_softmax(x, -1)
    return F.kl_div(p, torch.softmax(y, -1), reduction="batchmean"), F.mse_loss(x, y), F.huber_loss(x, y)


def binary(x: Tensor, m: Tensor) -> Tensor:
    return F.binary_cross_entropy_with_logits(x, m.to(x.dtype))


def scans(x: Tensor) -> Any:
    return x.cumsum(-1), x.cumprod(-1), x.cummax(-1)[0], x.logcumsumexp(-1)


def integer_sums(a: Tensor, m: Tensor) -> Any:
    return a.sum(-1), a.sum(), m.sum(0), a.cumsum(-1), a.amax(-1), a.prod(-1), (a * m).sum(-1)


def masked_softmax(x: Tensor, m: Tensor) -> Tensor:
    return torch.softmax(x.masked_fill(m, float("-inf")), -1)


def masked_mean(x: Tensor, m: Tensor) -> Tensor:
    return (x * m).sum(-1) / m.sum(-1)


def cosine(x: Tensor, y: Tensor) -> Any:
    return F.cosine_similarity(x, y, dim=-1), (x - y).pow(2).sum(-1).sqrt(), torch.dist(x, y)


def entropy(x: Tensor) -> Tensor:
    p = torch.softmax(x, -1)
    return -(p * torch.log(p + 1e-9)).sum(-1)


def differences(x: Tensor) -> Any:
    return x.diff(dim=-1), x[:, 1:] - x[:, :-1], x.roll(1, -1), x.flip(-1).cumsum(-1)


PROGRAMS = programs(
    softmaxes=(softmaxes, "f b s"),
    sums=(sums, "f b s"),
    extremes=(extremes, "f b s"),
    places=(places, "f b s"),
    deviations=(deviations, "f b s"),
    layer_norm=(layer_norm, "f b s d,f d,f d"),
    rms_norm=(rms_norm, "f b s,f s"),
    normalized=(normalized, "f b s"),
    cross_entropy=(cross_entropy, "f b v,i v b"),
    ignored=(ignored, "f b v,i v b"),
    divergences=(divergences, "f b s,f b s"),
    binary=(binary, "f b s,m b s"),
    scans=(scans, "f b s"),
    integer_sums=(integer_sums, "n b s,m b s"),
    masked_softmax=(masked_softmax, "f b s,m b s"),
    masked_mean=(masked_mean, "f b s,m b s"),
    cosine=(cosine, "f b s,f b s"),
    entropy=(entropy, "f b s"),
    differences=(differences, "f b s"),
)
