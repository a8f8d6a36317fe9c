"""Losses against distributions, over parts of a vocabulary, and policies by their kinds, with gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F

from bench.kernel.liger import gradient, loss, ops
from bench.kernel.rows import Row, Tensor, normal

ROWS, COLUMNS = 6, 40
LABELS = torch.tensor([3, 39, 0, -100, 7, 20])


def rows() -> Iterator[Row]:
    """The functions, in order."""
    yield from _distillations()
    yield from _vocabularies()
    yield from _policies()


def _distillations() -> Iterator[Row]:
    x = normal(ROWS, COLUMNS)
    both = ops("fused_ce_tvd").LigerFusedCETVDFunction.apply
    given = (x, x + normal(COLUMNS), LABELS)
    yield Row("LigerFusedCETVDFunction", _entropy_and_distance, lambda x, y, t: both(x, y, t), given)
    yield Row(
        "LigerFusedCETVDFunction, gradient",
        _gradient_of_two(_entropy_and_distance),
        _gradient_of_two(lambda x, y, t: both(x, y, t)),
        (*given, normal(ROWS), normal(ROWS) + 1),
    )
    kernel = ops("fused_linear_kl_div").LigerFusedLinearKLDivFunction.apply
    parts = (normal(ROWS, 16), normal(COLUMNS, 16), torch.softmax(x, -1))
    for reduction in ("batchmean", "mean", "sum"):
        yield Row(
            f"LigerFusedLinearKLDivFunction ({reduction}), value and gradients",
            loss(lambda x, w, q, r=reduction: _divergence(x, w, q, r), 2),
            loss(lambda x, w, q, r=reduction: kernel(x, w, q, None, r, -100, 0.7), 2),
            parts,
        )
    yield Row(
        "LigerFusedLinearKLDivFunction (labels), value and gradients",
        loss(lambda x, w, q, t: _counted(x, w, q, t), 2),
        loss(lambda x, w, q, t: kernel(x, w, q, t, "batchmean", -100, 0.7), 2),
        (*parts, LABELS),
    )


def _entropy_and_distance(x: Tensor, y: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
    distance = 0.5 * (torch.softmax(x, -1) - torch.softmax(y, -1)).abs().sum(-1)
    return F.cross_entropy(x, t, reduction="none"), torch.where(t == -100, 0.0, distance)


def _gradient_of_two(function: Callable[..., Any]) -> Callable[..., Tensor]:
    def run(x: Tensor, y: Tensor, t: Tensor, first: Tensor, second: Tensor) -> Tensor:
        leaf = x.detach().requires_grad_()
        return torch.autograd.grad(function(leaf.clone(), y, t), leaf, (first, second))[0]

    return run


def _divergence(x: Tensor, w: Tensor, q: Tensor, reduction: str) -> Tensor:
    each = q * (q.clamp(min=1e-10).log() - torch.log_softmax(x @ w.T / 0.7, -1))
    return each.sum() / {"batchmean": each.shape[0], "mean": each.numel(), "sum": 1}[reduction]


def _counted(x: Tensor, w: Tensor, q: Tensor, t: Tensor) -> Tensor:
    each = (q * (q.clamp(min=1e-10).log() - torch.log_softmax(x @ w.T / 0.7, -1))).sum(-1)
    return torch.where(t == -100, 0.0, each).sum() / (t != -100).sum()


def _vocabularies() -> Iterator[Row]:
    cross = ops("vocab_parallel_cross_entropy")
    apply = cross.LigerVocabParallelCEFunction.apply
    given = (normal(3, 2, COLUMNS), LABELS.view(3, 2))
    for name, smoothing, formula in (
        ("", 0.0, "pytorch"),
        (" (smoothing 0.1)", 0.1, "pytorch"),
        (" (smoothing 0.1 as in Megatron)", 0.1, "megatron"),
    ):
        amount = smoothing * COLUMNS / (COLUMNS - 1) if formula == "megatron" else smoothing

        def whole(x: Tensor, t: Tensor, amount: float = amount) -> Tensor:
            found = F.cross_entropy(x.flatten(0, 1), t.flatten(), label_smoothing=amount, reduction="none")
            return found.view(t.shape)

        def kernel(x: Tensor, t: Tensor, s: float = smoothing, f: str = formula) -> Tensor:
            return apply(x, t, None, -100, s, f, "global")

        yield Row(f"LigerVocabParallelCEFunction{name}", whole, kernel, given)
        yield Row(
            f"LigerVocabParallelCEFunction{name}, gradient", gradient(whole), gradient(kernel), (*given, normal(3, 2))
        )

    def part(x: Tensor, most: Tensor, t: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        powers, found, total = torch.empty_like(x), torch.empty(ROWS), torch.empty(ROWS)
        cross.liger_vocab_parallel_ce_forward_kernel[(ROWS,)](
            x, x.stride(0), powers, powers.stride(0), most, t, found, total, COLUMNS, COLUMNS, -100, BLOCK_SIZE=16
        )
        return powers, found, total

    yield Row(
        "liger_vocab_parallel_ce_forward_kernel (second part)",
        _second_part,
        part,
        (normal(ROWS, COLUMNS), normal(ROWS) + 3, torch.tensor([3, 41, 79, -100, 40, 20])),
    )


def _second_part(x: Tensor, most: Tensor, t: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of labels that are in the second half of the vocabulary the logit, and of the others zero."""
    powers = (x - most[:, None]).exp()
    own = (t - COLUMNS)[:, None] == torch.arange(COLUMNS)
    return powers, torch.where(own, x - most[:, None], 0.0).sum(-1), powers.sum(-1)


KINDS = ("dapo", "luspo", "cispo", "sapo")


def _policies() -> Iterator[Row]:
    apply = ops("grpo_loss").GrpoLossFunction.apply
    logits, ids = normal(2, 5, 24), torch.tensor([[3, 20, 1, 7], [0, 23, 5, 9]])
    mask = torch.tensor([[True, True, True, False], [True, True, False, False]])
    given = (logits, normal(2, 4) - 3, normal(2, 4) - 2.5, ids, normal(2), mask)
    for kind in KINDS:
        yield Row(
            f"GrpoLossFunction ({kind}), value and gradient",
            loss(lambda *a, k=kind: _policy(*a, kind=k)),
            loss(lambda *a, k=kind: apply(*a, 0.9, 0.04, 0.2, 0.4, False, k)[0]),
            given,
        )
    more = {"delta": 1.2, "use_bias_correction_kl": True}
    options = {
        "delta": {"delta": 1.2},
        "bias-corrected KL": {"use_bias_correction_kl": True},
        "of sequences": {"importance_sampling_level": "sequence"},
        "of sequences, delta, bias-corrected KL": {"importance_sampling_level": "sequence", **more},
    }
    for name, option in options.items():
        yield Row(
            f"GrpoLossFunction (grpo, {name}), value and gradient",
            loss(lambda *a, o=option: _policy(*a, kind="grpo", **o)),
            loss(lambda *a, o=option: apply(*a, 0.9, 0.04, 0.2, 0.4, False, "grpo", None, True, *_positional(o))[0]),
            given,
        )
    for level in ("token", "sequence"):
        yield Row(
            f"GrpoLossFunction (grpo, ratios of vLLM, {level}), value and gradient",
            loss(lambda *a, x=level: _policy(*a[:-1], kind="grpo", ratios=a[-1], importance_sampling_level=x)),
            loss(
                lambda *a, x=level: apply(*a[:-1], 0.9, 0.04, 0.2, 0.4, False, "grpo", None, True, x, 1.0, 1.05, a[-1])[
                    0
                ]
            ),
            (*given, normal(2, 4).exp()),
        )
    yield Row(
        "GrpoLossFunction (vespo), value and gradient",
        loss(lambda *a: _policy(*a[:-1], kind="vespo", phi=a[-1])),
        loss(
            lambda *a: apply(
                *a[:-1], 0.9, 0.04, 0.2, 0.4, False, "vespo", None, True, "token", 1.0, 1.05, None, None, False, None,
                a[-1],
            )[0]
        ),
        (*given, normal(2).exp()),
    )  # fmt: skip


def _positional(option: dict[str, Any]) -> tuple[Any, ...]:
    """What follows ``reduce`` among the arguments of the function."""
    level, delta = option.get("importance_sampling_level", "token"), option.get("delta")
    return level, 1.0, 1.05, None, delta, option.get("use_bias_correction_kl", False)


def _policy(
    x: Tensor, old: Tensor, ref: Tensor, ids: Tensor, advantages: Tensor, mask: Tensor, *, kind: str,
    delta: float | None = None, use_bias_correction_kl: bool = False, importance_sampling_level: str = "token",
    ratios: Tensor | None = None, phi: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The loss of a policy: ratios are clipped to 0.8 .. 1.4, the temperature is 0.9, and KL weighs 0.04."""
    logs = torch.log_softmax(x[:, :-1] / 0.9, -1).gather(-1, ids[..., None])[..., 0]
    counted, advantages = mask.float(), advantages[:, None]
    lengths = counted.sum(-1, keepdim=True)
    ratio = (logs - old).exp()
    if importance_sampling_level == "sequence":
        ratio = (((logs - old) * counted).sum(-1, keepdim=True) / lengths.clamp(min=1.0)).exp()
    if kind == "cispo":
        each = -ratio.clamp(max=0.4).detach() * advantages * logs
    elif kind == "sapo":
        warmth = torch.where(advantages > 0, 1.0, 1.05)
        each = -torch.sigmoid(warmth * (ratio - 1)) * 4 / warmth * advantages
    elif phi is not None:
        each = -phi[:, None] * advantages * logs
    else:
        bounded = ratio if delta is None else ratio.clamp(max=delta)
        each = -torch.min(bounded * advantages, ratio.clamp(0.8, 1.4) * advantages)
    if ratios is not None:
        each = each * ratios
    distance = (ref - logs).exp() - (ref - logs) - 1
    each = torch.where(mask, each + 0.04 * (distance * ratio if use_bias_correction_kl else distance), 0.0)
    if kind in ("grpo", "sapo"):
        return (each.sum(-1) / lengths[:, 0].clamp(min=1.0)).mean()
    if kind == "luspo":
        return (each * lengths).mean()
    return each.sum() / counted.sum().clamp(min=1.0)
