"""Losses with their gradients, which kernels compute in one pass."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F

from bench.kernel.liger import loss, ops
from bench.kernel.rows import Row, Tensor, normal

ROWS, COLUMNS = 6, 40
LABELS = torch.tensor([3, 39, 0, -100, 7, 20])


def rows() -> Iterator[Row]:
    """The functions, in order."""
    yield from _cross_entropies()
    yield from _divergences()
    yield from _policies()


def _cross_entropies() -> Iterator[Row]:
    x, w = normal(ROWS, COLUMNS), normal(COLUMNS, 16)
    cross = ops("cross_entropy").LigerCrossEntropyFunction.apply
    for reduction in ("mean", "sum"):
        yield Row(
            f"LigerCrossEntropyFunction ({reduction}), value and gradient",
            loss(lambda x, t, r=reduction: F.cross_entropy(x, t, reduction=r)),
            loss(lambda x, t, r=reduction: cross(x, t, None, -100, 0.0, 0.0, r)[0]),
            (x, LABELS),
        )
    yield Row(
        "LigerCrossEntropyFunction (smoothing 0.1), value and gradient",
        loss(lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1)),
        loss(lambda x, t: cross(x, t, None, -100, 0.0, 0.1)[0]),
        (x, LABELS),
    )
    yield Row(
        "LigerCrossEntropyFunction (soft-cap 30), value and gradient",
        loss(lambda x, t: F.cross_entropy(30.0 * torch.tanh(x / 30.0), t)),
        loss(lambda x, t: cross(x, t, None, -100, 0.0, 0.0, "mean", 30.0)[0]),
        (x, LABELS),
    )
    yield Row(
        "LigerCrossEntropyFunction (z loss), value and gradient",
        loss(lambda x, t: F.cross_entropy(x, t) + 1e-4 * _squares(x, t)),
        loss(lambda x, t: cross(x, t, None, -100, 1e-4)[0]),
        (x, LABELS),
    )
    weights = normal(COLUMNS).exp()
    yield Row(
        "LigerCrossEntropyFunction (weights of classes), value and gradient",
        loss(lambda x, t, c: F.cross_entropy(x, t, c)),
        loss(lambda x, t, c: cross(x, t, c)[0]),
        (x, LABELS, weights),
    )
    fused = ops("fused_linear_cross_entropy").LigerFusedLinearCrossEntropyFunction.apply
    yield Row(
        "LigerFusedLinearCrossEntropyFunction, value and gradients",
        loss(lambda h, w, t: F.cross_entropy(h @ w.T, t), 2),
        loss(lambda h, w, t: fused(h, w, t)[0], 2),
        (normal(ROWS, 16) + 1, w, LABELS),
    )
    yield Row(
        "LigerFusedLinearCrossEntropyFunction (bias, sum), value and gradients",
        loss(lambda h, w, b, t: F.cross_entropy(F.linear(h, w, b), t, reduction="sum"), 3),
        loss(lambda h, w, b, t: fused(h, w, t, b, None, -100, 0.0, 0.0, "sum")[0], 3),
        (normal(ROWS, 16) + 1, w, normal(COLUMNS), LABELS),
    )


def _squares(x: Tensor, t: Tensor) -> Tensor:
    counted = t != -100
    return torch.where(counted, torch.logsumexp(x, -1).square(), 0.0).sum() / counted.sum()


def _divergences() -> Iterator[Row]:
    x = normal(ROWS, COLUMNS)
    q = x + normal(COLUMNS)
    logs = (torch.log_softmax(x, -1), torch.log_softmax(q, -1))
    probabilities = (torch.softmax(x, -1), torch.softmax(q, -1))
    tvd, divergence, jsd = ops("tvd").LigerTVDLossFunction.apply, ops("kl_div").LigerKLDivLossFunction.apply, ops("jsd")
    for reduction in ("batchmean", "sum", "mean"):
        yield Row(
            f"LigerTVDLossFunction ({reduction})",
            lambda p, q, r=reduction: _reduced(0.5 * (p - q).abs(), r),
            lambda p, q, r=reduction: tvd(p, q, None, r),
            probabilities,
        )
    yield Row(
        "LigerTVDLossFunction, gradient",
        loss(lambda p, q: _reduced(0.5 * (p - q).abs(), "batchmean")),
        loss(lambda p, q: tvd(p, q, None, "batchmean")),
        probabilities,
    )
    for reduction in ("batchmean", "sum", "mean"):
        yield Row(
            f"LigerKLDivLossFunction ({reduction}), value and gradient",
            loss(lambda p, q, r=reduction: _reduced(q * (q.clamp(min=1e-10).log() - p), r)),
            loss(lambda p, q, r=reduction: divergence(p, q, r, False, 1e-10)),
            (logs[0], probabilities[1]),
        )
    yield Row(
        "LigerKLDivLossFunction (target in logarithms), value and gradient",
        loss(lambda p, q: F.kl_div(p, q, reduction="batchmean", log_target=True)),
        loss(lambda p, q: divergence(p, q, "batchmean", True)),
        logs,
    )
    for beta in (0.0, 0.3, 0.5, 1.0):
        yield Row(
            f"LigerJSDFunction (beta {beta}), value and gradient",
            loss(lambda p, q, b=beta: _jensen_shannon(p, q, b)),
            loss(lambda p, q, b=beta: jsd.LigerJSDFunction.apply(p, q, None, b)),
            logs,
        )
    linear = ops("fused_linear_jsd").LigerFusedLinearJSDFunction.apply
    yield Row(
        "LigerFusedLinearJSDFunction, value and gradients",
        loss(
            lambda a, w, b, v: _jensen_shannon(torch.log_softmax(a @ w.T, -1), torch.log_softmax(b @ v.T, -1), 0.5), 2
        ),
        loss(linear, 2),
        (normal(ROWS, 16), normal(COLUMNS, 16), normal(ROWS, 16) + 1, normal(COLUMNS, 16) + 1),
    )


def _reduced(x: Tensor, reduction: str) -> Tensor:
    total = x.sum()
    return total if reduction == "sum" else total / (x.shape[0] if reduction == "batchmean" else x.numel())


def _jensen_shannon(x: Tensor, y: Tensor, beta: float) -> Tensor:
    if beta == 0.0:
        return F.kl_div(x, y, reduction="batchmean", log_target=True)
    if beta == 1.0:
        return F.kl_div(y, x, reduction="batchmean", log_target=True)
    middle = (beta * y.exp() + (1 - beta) * x.exp()).log()
    sides = (F.kl_div(middle, side, reduction="batchmean", log_target=True) for side in (y, x))
    return sum(weight * side for weight, side in zip((beta, 1 - beta), sides, strict=True))  # pyright: ignore[reportReturnType]


def _policies() -> Iterator[Row]:
    grpo = ops("grpo_loss")
    logits, ids = normal(2, 5, 24), torch.tensor([[3, 20, 1, 7], [0, 23, 5, 9]])
    yield Row(
        "fused_selective_log_softmax",
        lambda x, i: torch.log_softmax(x[:, :-1] / 0.9, -1).gather(-1, i[..., None])[..., 0],
        lambda x, i: grpo.fused_selective_log_softmax(x, i, 0.9),
        (logits, ids),
    )
    mask = torch.tensor([[True, True, True, False], [True, True, False, False]])
    old, ref, advantages = normal(2, 4) - 3, normal(2, 4) - 2.5, normal(2)
    for kind in ("grpo", "bnpo", "dr_grpo"):
        yield Row(
            f"GrpoLossFunction ({kind})",
            lambda x, o, r, i, a, m, k=kind: _policy(x, o, r, i, a, m, k),
            lambda x, o, r, i, a, m, k=kind: grpo.GrpoLossFunction.apply(
                x, o, r, i, a, m, 0.9, 0.04, 0.2, 0.4, False, k, 4
            )[0],
            (logits, old, ref, ids, advantages, mask),
        )
    yield Row(
        "GrpoLossFunction (grpo), gradient",
        loss(lambda x, o, r, i, a, m: _policy(x, o, r, i, a, m, "grpo")),
        loss(
            lambda x, o, r, i, a, m: grpo.GrpoLossFunction.apply(
                x, o, r, i, a, m, 0.9, 0.04, 0.2, 0.4, False, "grpo", 4
            )[0]
        ),
        (logits, old, ref, ids, advantages, mask),
    )


def _policy(x: Tensor, old: Tensor, ref: Tensor, ids: Tensor, advantages: Tensor, mask: Tensor, kind: str) -> Tensor:
    logs = torch.log_softmax(x[:, :-1] / 0.9, -1).gather(-1, ids[..., None])[..., 0]
    ratio = (logs - old).exp()
    clipped = ratio.clamp(0.8, 1.4)
    each = -torch.min(ratio * advantages[:, None], clipped * advantages[:, None])
    each = each + 0.04 * ((ref - logs).exp() - (ref - logs) - 1)
    counted = mask.float()
    if kind == "grpo":
        return ((each * counted).sum(-1) / counted.sum(-1).clamp(min=1.0)).sum() / each.shape[0]
    if kind == "bnpo":
        return (each * counted).sum() / counted.sum().clamp(min=1.0)
    return (each * counted).sum() / (each.shape[0] * each.shape[1])
