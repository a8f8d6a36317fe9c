"""vLLM's norms with gates, and gates of decays, of linear attention and of state-space models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F

from bench.kernel.rows import Row, Tensor, normal
from bench.kernel.vllm import vllm
from bench.kernel.vllm.recurrent.recurrences import delta_attention

FLA, MAMBA = "third_party.flash_linear_attention.ops", "model_executor.layers.mamba.ops"
KIMI = "models.kimi_k3.nvidia.ops.third_party.kda"
ROWS, HEADS, WIDTH = 20, 4, 24
PER_LOG2 = 1.4426950408889634


def rows() -> Iterator[Row]:
    """The functions, in order."""
    yield from _gated()
    yield from _grouped()
    yield from _decays()


def _rms(x: Tensor, eps: float) -> Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)


def _gate(g: Tensor, activation: str) -> Tensor:
    return F.silu(g) if activation == "swish" else g.sigmoid()


def _gated() -> Iterator[Row]:
    x, g, w, b = normal(5, HEADS, WIDTH), normal(5, HEADS, WIDTH) + 1, normal(WIDTH), normal(WIDTH) + 1
    module = vllm(f"{FLA}.fused_norm_gate")
    for name, home in (("fused_norm_gate", module), ("kda", delta_attention())):
        run = home.rms_norm_gated
        for activation in ("swish", "sigmoid"):
            yield Row(
                f"{name}.rms_norm_gated ({activation})",
                lambda x, g, w, a=activation: _rms(x, 1e-6) * w * _gate(g, a),
                lambda x, g, w, a=activation, r=run: r(x.clone(), g, w, None, a),
                (x, g, w),
            )
        yield Row(
            f"{name}.rms_norm_gated (residual, bias)",
            lambda x, g, w, b, r: ((_rms(x + r, 1e-6) * w + b) * F.silu(g), x + r),
            lambda x, g, w, b, r, run=run: run(x.clone(), g, w, b, "swish", r, True),
            (x, g, w, b, x + 2),
        )

    def norm(x: Tensor, g: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return module.layer_norm_gated_fwd(x.clone(), g, w, b)[:3]

    yield Row(
        "layer_norm_gated_fwd",
        lambda x, g, w, b: (F.layer_norm(x, (WIDTH,), w, b) * F.silu(g), x.mean(-1), _deviation(x)),
        norm,
        (normal(ROWS, WIDTH), normal(ROWS, WIDTH) + 1, w, b),
    )

    def wide(x: Tensor, g: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """As for rows of more than 512 elements."""
        y, mean, rstd = torch.empty_like(x), torch.empty(x.shape[0]), torch.empty(x.shape[0])
        module.layer_norm_gated_fwd_kernel1[(x.shape[0],)](
            x=x, g=g, y=y, w=w, b=b, residual=None, residual_out=None, mean=mean, rstd=rstd, eps=1e-5, D=WIDTH, BD=32,
            ACTIVATION="swish", IS_RMS_NORM=False, launch_pdl=False,
        )  # fmt: skip
        return y, mean, rstd

    yield Row(
        "layer_norm_gated_fwd_kernel1",
        lambda x, g, w, b: (F.layer_norm(x, (WIDTH,), w, b) * F.silu(g), x.mean(-1), _deviation(x)),
        wide,
        (normal(ROWS, WIDTH), normal(ROWS, WIDTH) + 1, w, b),
        {"x": "rows", "g": "rows"},
    )


def _deviation(x: Tensor) -> Tensor:
    return torch.rsqrt(x.var(-1, correction=0) + 1e-5)


def _grouped() -> Iterator[Row]:
    x, z, w, b = normal(ROWS, 48), normal(ROWS, 48) + 1, normal(48), normal(48) + 1
    guard = vllm(f"{FLA}.layernorm_guard")
    yield Row(
        "layernorm_guard.rmsnorm_fn (groups, gate last)",
        lambda x, z, w: _groups(x) * w * F.silu(z),
        lambda x, z, w: guard.rmsnorm_fn(x, w, None, z, group_size=WIDTH),
        (x, z, w),
    )
    yield Row(
        "layernorm_guard.rmsnorm_fn (groups, gate first)",
        lambda x, z, w: _groups(x * z.sigmoid()) * w,
        lambda x, z, w: guard.rmsnorm_fn(x, w, None, z, group_size=WIDTH, norm_before_gate=False, activation="sigmoid"),
        (x, z, w),
    )
    yield Row(
        "layernorm_guard.layernorm_fn",
        lambda x, z, w, b: F.layer_norm(x, (48,), w, b, 1e-6) * F.silu(z),
        lambda x, z, w, b: guard.layernorm_fn(x, w, b, z),
        (x, z, w, b),
    )
    one = vllm(f"{MAMBA}.layernorm_gated").rms_norm_gated
    yield Row(
        "layernorm_gated.rms_norm_gated (groups, gate last)",
        lambda x, z, w: _groups(x) * w * F.silu(z),
        lambda x, z, w: one(x, w, None, z, group_size=WIDTH),
        (x, z, w),
        {"x": "rows", "z": "rows"},
    )
    yield Row(
        "layernorm_gated.rms_norm_gated (groups, gate first, bias)",
        lambda x, z, w, b: _groups(x * F.silu(z)) * w + b,
        lambda x, z, w, b: one(x, w, b, z, group_size=WIDTH, norm_before_gate=False),
        (x, z, w, b),
        {"x": "rows", "z": "rows"},
    )


def _groups(x: Tensor) -> Tensor:
    return _rms(x.unflatten(-1, (2, WIDTH)), 1e-6).flatten(-2)


def _decay(g: Tensor, log: Tensor, bound: float | None) -> Tensor:
    """The logarithm of a decay of each head's channels; with a bound it is no smaller than that."""
    rate = log.exp()[:, None]
    return -rate * F.softplus(g) if bound is None else bound * (rate * g).sigmoid()


def _decays() -> Iterator[Row]:
    log, bias = normal(HEADS), normal(HEADS, WIDTH) + 1
    flat = normal(ROWS, HEADS * WIDTH)
    kda = delta_attention()
    for name, home in (("kda", kda), ("kimi_k3", vllm(f"{KIMI}.chunk"))):
        run = home.fused_kda_gate
        for bound in (None, -5.0):
            yield Row(
                f"{name}.fused_kda_gate{'' if bound is None else ' (bound)'}",
                lambda g, log, bias, b=bound: _decay(g.unflatten(-1, (HEADS, WIDTH)) + bias, log, b),
                lambda g, log, bias, b=bound, r=run: r(g, log, WIDTH, bias.flatten(), lower_bound=b),
                (flat, log, bias),
            )
    raw, betas = normal(2, 40, HEADS, WIDTH), normal(2, 40, HEADS)
    sums: Any = kda.fused_kda_gate_chunk_cumsum
    both: Any = vllm(f"{KIMI}.chunk").fused_kda_gate_chunk_cumsum
    for bound in (None, -5.0):
        name = "" if bound is None else " (bound)"
        yield Row(
            f"kda.fused_kda_gate_chunk_cumsum{name}",
            lambda g, log, bias, b=bound: _within_chunks(_decay(g + bias, log, b)) * PER_LOG2,
            lambda g, log, bias, b=bound: sums(g, log, bias, lower_bound=b, chunk_size=16),
            (raw, log, bias),
        )
        yield Row(
            f"kimi_k3.fused_kda_gate_chunk_cumsum{name}",
            lambda g, s, log, bias, b=bound: (_within_chunks(_decay(g + bias, log, b)) * PER_LOG2, s.sigmoid()),
            lambda g, s, log, bias, b=bound: both(g, s, log, bias, lower_bound=b, chunk_size=16),
            (raw, betas, log, bias),
        )
    gate = vllm(f"{KIMI}.fused_recurrent")._fused_kda_gate_beta
    yield Row(
        "kimi_k3._fused_kda_gate_beta",
        lambda g, s, log, bias: (_decay(g + bias, log, None), s.sigmoid()),
        lambda g, s, log, bias: gate(g, s, log, bias, None),
        (raw[:1].contiguous(), betas[:1].contiguous(), log, bias),
    )


def _within_chunks(x: Tensor) -> Tensor:
    return torch.cat([part.cumsum(1) for part in x.split(16, 1)], 1)
