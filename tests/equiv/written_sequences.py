"""Pairs of layers that go along a sequence: step by step, block by block, by shifts, or with everything at once."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from tests.equiv.written_blocks import pairs
from tests.equiv.written_pairs import Tensor, zeros

B, S, D, N = 2, 4, 3, 2


# --- attention that mends the sums of the blocks before


def at_once(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.mT).softmax(-1) @ v


def by_blocks(q: Tensor, k: Tensor, v: Tensor, *, mends: tuple[bool, bool] = (True, True)) -> Tensor:
    """Beginning with minus infinity for the largest score, and with sums of nothing."""
    largest, total, sums = torch.full((B, S, 1), -math.inf), torch.zeros(B, S, 1), torch.zeros(B, S, D)
    for start in range(0, S, 2):
        scores = q @ k[:, start : start + 2].mT
        larger = torch.maximum(largest, scores.amax(-1, keepdim=True))
        mended, grown = torch.exp(largest - larger), torch.exp(scores - larger)
        total = total * (mended if mends[0] else 1) + grown.sum(-1, keepdim=True)
        sums = sums * (mended if mends[1] else 1) + grown @ v[:, start : start + 2]
        largest = larger
    return sums / total


# --- causal convolutions


def convolved(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.conv1d(x.mT, w[:, None], b, padding=2, groups=D)[..., :S].mT


def shifted(x: Tensor, w: Tensor, b: Tensor, *, more: int = 0) -> Tensor:
    for place in range(3):
        b = b + F.pad(x, (0, 0, 2 - place + more, 0))[:, :S] * w[:, place]
    return b


def padded_once(x: Tensor, w: Tensor, b: Tensor, *, turned: bool = False) -> Tensor:
    long = F.pad(x, (0, 0, 2, 0))
    return torch.stack([long[:, p : p + S] * w[:, 2 - p if turned else p] for p in range(3)]).sum(0) + b


def mixed(x: Tensor, w: Tensor) -> Tensor:
    return F.conv1d(x.mT, w, stride=2, dilation=2, padding=1, groups=2).mT


def mixed_by_products(x: Tensor, w: Tensor, *, step: int = 2) -> Tensor:
    long = F.pad(x, (0, 0, 1, 1))
    taps = [long[:, p * step : p * step + 3 : 2].unflatten(-1, (2, 2)) for p in range(2)]
    return (
        torch.stack([torch.einsum("bsgi,goi->bsgo", tap, w[..., p].unflatten(0, (2, 2))) for p, tap in enumerate(taps)])
        .sum(0)
        .flatten(-2)
    )


# --- states with decay


def stepwise(x: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    state, found = torch.zeros(B, N, D), list[Tensor]()
    for s in range(S):
        state = state * torch.exp(a[:, s])[:, None, None] + b[:, s, :, None] * x[:, s, None]
        found.append((c[:, s, :, None] * state).sum(1))
    return torch.stack(found, 1)


def by_matrix(x: Tensor, a: Tensor, b: Tensor, c: Tensor, *, early: bool = False) -> Tensor:
    """Products with all that decays between two steps, as of attention."""
    total = a.cumsum(1)
    between = total[:, :, None] - total[:, None] + (a[:, None] if early else 0)
    kept = between.masked_fill(~torch.ones(S, S, dtype=torch.bool).tril(), -math.inf).exp()
    return torch.einsum("bin,bjn,bij,bjk->bik", c, b, kept, x)


def weighted(k: Tensor, v: Tensor, w: Tensor, u: Tensor) -> Tensor:
    above, below, found = torch.zeros(B, D), torch.zeros(B, D), list[Tensor]()
    for s in range(S):
        own, grown = torch.exp(u + k[:, s]), torch.exp(k[:, s])
        found.append((above + own * v[:, s]) / (below + own))
        above, below = torch.exp(-w) * above + grown * v[:, s], torch.exp(-w) * below + grown
    return torch.stack(found, 1)


def weighted_by_softmax(k: Tensor, v: Tensor, w: Tensor, u: Tensor, *, since: int = 1) -> Tensor:
    place = torch.arange(S)
    apart = place[:, None] - place[None]
    scores = k[:, None] - w * (apart - since)[None, :, :, None]
    scores = torch.where((apart == 0)[None, :, :, None], u + k[:, None], scores)
    return (scores.masked_fill((apart < 0)[None, :, :, None], -math.inf).softmax(2) * v[:, None]).sum(2)


def added_up(x: Tensor) -> Tensor:
    return x.cumsum(1)


def one_after_the_other(x: Tensor, *, first: int = 0) -> Tensor:
    return torch.stack([x[:, min(first, s) : s + 1].sum(1) for s in range(S)], 1)


QKV = (zeros(B, S, D),) * 3
KERNEL, GROUPS = (zeros(B, S, D), zeros(D, 3), zeros(D)), (zeros(B, S, 4), zeros(4, 2, 2))
STATES = (zeros(B, S, D), zeros(B, S), zeros(B, S, N), zeros(B, S, N))
WEIGHTED = (zeros(B, S, D), zeros(B, S, D), zeros(D), zeros(D))
SAME = {
    **pairs(QKV, at_once, by_blocks=by_blocks),
    **pairs(KERNEL, convolved, shifted=shifted, padded_once=padded_once),
    **pairs(GROUPS, mixed, mixed_by_products=mixed_by_products),
    **pairs(STATES, stepwise, by_matrix=by_matrix),
    **pairs(WEIGHTED, weighted, weighted_by_softmax=weighted_by_softmax),
    **pairs(QKV[:1], added_up, one_after_the_other=one_after_the_other),
}
OTHER = {
    **pairs(
        QKV,
        at_once,
        total_not_mended=lambda *a: by_blocks(*a, mends=(False, True)),
        sums_not_mended=lambda *a: by_blocks(*a, mends=(True, False)),
    ),
    **pairs(
        KERNEL,
        convolved,
        shifted_once_more=lambda *a: shifted(*a, more=1),
        turned=lambda *a: padded_once(*a, turned=True),
    ),
    **pairs(GROUPS, mixed, not_dilated=lambda *a: mixed_by_products(*a, step=1)),
    **pairs(STATES, stepwise, decays_too_early=lambda *a: by_matrix(*a, early=True)),
    **pairs(WEIGHTED, weighted, decays_at_once=lambda *a: weighted_by_softmax(*a, since=0)),
    **pairs(QKV[:1], added_up, without_the_first=lambda x: one_after_the_other(x, first=1)),
}
