"""Mixtures of residual streams (mHC): coefficients by Sinkhorn's iterations, and what they mix, with gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from bench.kernel.liger import gradient, ops
from bench.kernel.rows import Row, Tensor, normal

COUNT, STREAMS, TIMES = 5, 4, 3
SETTINGS: dict[str, Any] = {"tmax": TIMES, "pre_eps": 1e-4, "sinkhorn_eps": 1e-6, "post_mult": 2.0}


def rows() -> Iterator[Row]:
    """The functions, in order."""
    mixing = ops("mhc")
    blocks = {"block_n": 16, "block_k": 16, "block_m": 16}
    x, phi = normal(20, 40), normal(40, 24)
    yield Row(
        "mhc_mm_norm_fwd",
        lambda x, p: (_projected(x, p), _scale(x)),
        lambda x, p: mixing.mhc_mm_norm_fwd(x, p, 1e-6, **blocks),
        (x, phi),
    )
    yield Row(
        "mhc_mm_norm_bwd",
        gradient(_projected, 2),
        lambda x, p, g: mixing.mhc_mm_norm_bwd(x, p, _projected(x, p), _scale(x), g, **blocks),
        (x, phi, normal(20, 24) + 1),
    )
    mix, b, alphas = normal(COUNT, 24), normal(24), normal(3) + 1
    yield Row(
        "mhc_split_sinkhorn_fwd",
        lambda m, b, a: _coefficients(m, b, a)[:3],
        lambda m, b, a: mixing.mhc_split_sinkhorn_fwd(m, b, *a.unbind(), **SETTINGS),
        (mix, b, alphas),
    )
    yield Row(
        "mhc_split_sinkhorn_fwd (with its history)",
        _coefficients,
        lambda m, b, a: mixing.mhc_split_sinkhorn_fwd(m, b, *a.unbind(), return_hist=True, **SETTINGS),
        (mix, b, alphas),
    )
    outer = normal(COUNT, STREAMS, STREAMS) + 1
    yield Row(
        "mhc_sinkhorn_bwd",
        _balanced_gradient,
        lambda m, b, a, g: mixing.mhc_sinkhorn_bwd(m, b, a, g, tmax=TIMES, sinkhorn_eps=1e-6),
        (mix, b, normal(1) + 1, outer),
    )
    yield Row(
        "mhc_sinkhorn_bwd (by the history)",
        _balanced_gradient,
        lambda m, b, a, g: mixing.mhc_sinkhorn_bwd(
            m, b, a, g, tmax=TIMES, sinkhorn_eps=1e-6, hist=torch.stack(_balance(_logits(m, b, a)), 1)
        ),
        (mix, b, normal(1) + 1, outer),
    )
    states = (normal(COUNT, STREAMS, 40), normal(COUNT, STREAMS))
    yield Row(
        "LigerMHCPreFunction, gradients",
        gradient(lambda x, h: (h[..., None] * x).sum(1), 2),
        gradient(mixing.LigerMHCPreFunction.apply, 2),
        (*states, normal(COUNT, 40) + 1),
    )
    yield Row(
        "LigerMHCPostResFunction, gradients",
        gradient(lambda x, f, p, r: p[..., None] * f[:, None] + torch.einsum("nij,njc->nic", r, x), 4),
        gradient(mixing.LigerMHCPostResFunction.apply, 4),
        (states[0], normal(COUNT, 40) + 1, states[1], outer, normal(COUNT, STREAMS, 40) + 2),
    )
    apply = mixing.LigerMHCCoeffsFunction.apply
    given = (normal(COUNT, STREAMS, 10), phi, b, *normal(3).add(1).unbind())
    yield Row("LigerMHCCoeffsFunction", _whole, lambda *a: apply(*a, True, TIMES, 1e-6, 1e-4, 1e-6, 2.0), given)
    for n, name in enumerate(("of what is read", "of what is written", "of the mixture")):
        yield Row(
            f"LigerMHCCoeffsFunction, gradients {name}",
            gradient(lambda *a, n=n: _whole(*a)[n], 3),
            gradient(lambda *a, n=n: apply(*a, True, TIMES, 1e-6, 1e-4, 1e-6, 2.0)[n], 3),
            (*given, (outer if n == 2 else normal(COUNT, STREAMS) + 1)),
        )


def _scale(x: Tensor) -> Tensor:
    return torch.rsqrt(x.square().mean(-1) + 1e-6)


def _projected(x: Tensor, phi: Tensor) -> Tensor:
    return (x @ phi) * _scale(x)[:, None]


def _logits(mix: Tensor, b: Tensor, alpha: Tensor) -> Tensor:
    return (mix[:, 2 * STREAMS :] * alpha + b[2 * STREAMS :]).unflatten(-1, (STREAMS, STREAMS))


def _balance(logits: Tensor) -> list[Tensor]:
    """Matrices after each of Sinkhorn's iterations, of which the first takes a softmax of rows."""
    m = torch.softmax(logits, -1) + 1e-6
    found = [m / (m.sum(-2, keepdim=True) + 1e-6)]
    for _ in range(TIMES - 1):
        m = found[-1] / (found[-1].sum(-1, keepdim=True) + 1e-6)
        found.append(m / (m.sum(-2, keepdim=True) + 1e-6))
    return found


def _coefficients(mix: Tensor, b: Tensor, alphas: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    pre = torch.sigmoid(mix[:, :STREAMS] * alphas[0] + b[:STREAMS]) + 1e-4
    post = torch.sigmoid(mix[:, STREAMS : 2 * STREAMS] * alphas[1] + b[STREAMS : 2 * STREAMS]) * 2
    found = _balance(_logits(mix, b, alphas[2]))
    return pre, post, found[-1], torch.stack(found, 1)


def _balanced_gradient(mix: Tensor, b: Tensor, alpha: Tensor, outer: Tensor) -> Tensor:
    leaf = _logits(mix, b, alpha).detach().requires_grad_()
    return torch.autograd.grad(_balance(leaf)[-1], leaf, outer)[0]


def _whole(
    x: Tensor, phi: Tensor, b: Tensor, first: Tensor, second: Tensor, third: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    return _coefficients(_projected(x.flatten(1), phi), b, torch.stack([first, second, third]))[:3]
