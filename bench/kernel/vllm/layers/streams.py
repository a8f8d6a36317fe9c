"""Models whose residual is several streams: what mixes them, and what adds a block's output to each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F

from bench.kernel.rows import Row, Tensor, normal
from bench.kernel.vllm import vllm
from bench.kernel.vllm.layers.norms import EPS, _rms


def rows() -> Iterator[Row]:
    """The functions, in order."""
    hc = vllm("models.qwen4_exp.nvidia.ops.hc")
    x, block, logits = normal(5, 120), normal(5, 40) + 1, normal(5, 3)
    for shared in (False, True):
        weight = normal(40 if shared else 120)
        yield Row(
            f"_grouped_gemma_rmsnorm (Qwen4{', one weight' if shared else ''})",
            lambda x, w: _grouped(x, w),
            lambda x, w: hc._grouped_gemma_rmsnorm(x, w, EPS, 3),
            (x, weight),
        )
        yield Row(
            f"_hc_combine_norm (Qwen4{', one weight' if shared else ''})",
            lambda x, b, g, w: (_combined(x, b, g), _grouped(_combined(x, b, g), w)),
            lambda x, b, g, w: hc._hc_combine_norm(x, b, g, w, EPS, 3),
            (x, block, logits, weight),
        )
    yield Row("_hc_silu (Qwen4)", lambda x: F.silu(x / 3), lambda x: hc._hc_silu(x, 3), (x,), {"x": "rows"})
    yield Row(
        "_hc_gate_mix (Qwen4)",
        lambda x, g: (g.sigmoid() * x).unflatten(1, (3, 40)).mean(1),
        lambda x, g: hc._hc_gate_mix(x, g, 3),
        (x, x + 1),
        {"x": "rows", "g": "rows"},
    )
    yield Row(
        "_hc_combine (Qwen4)",
        lambda x, b, g: _combined(x, b, g),
        lambda x, b, g: hc._hc_combine(x, b, g, 3),
        (x, block, logits),
        {"x": "rows", "b": "rows", "g": "rows"},
    )
    kimi = vllm("models.kimi_k3.common.mtp").fused_mtp_input
    yield Row(
        "fused_mtp_input (Kimi)",
        lambda places, x, h, v, w: torch.cat([_rms(torch.where(places[:, None] == 0, 0.0, x), v), _rms(h, w)], 1),
        lambda places, x, h, v, w: kimi(places, x, h, v, w, EPS),
        (torch.tensor([0, 3, 1, 0, 2]), normal(5, 40), normal(5, 40) + 1, normal(40), normal(40) + 1),
        {"places": "tokens", "x": "tokens", "h": "tokens"},
    )
    mixed = vllm("models.kimi_k3.nvidia.ops.attn_res").attn_res
    given = (normal(5, 40), normal(5, 40) + 1, normal(5, 7, 40), normal(40), normal(40) + 1, normal(40) + 2)
    for count in (1, 6):
        yield Row(
            f"attn_res (Kimi, {count} blocks)",
            lambda p, d, b, n, q, o, c=count: _mixed(p, d, b, n, q, o, c),
            lambda p, d, b, n, q, o, c=count: _mix(mixed, p, d, b, n, q, o, c),
            given,
        )
    hy = vllm("models.hy_v4.nvidia.triton_ihc")
    streams = normal(5, 3, 40)
    yield Row(
        "_ihc_pre_stage1 and 2 (HY)",
        _before,
        lambda x, w, s, b: _before_kernels(hy, x, w, s, b),
        (streams, normal(6, 120), normal(2), normal(6)),
    )
    yield Row(
        "_ihc_post_kernel (HY)",
        lambda x, r, g: g[..., None] * x[:, None] + r,
        lambda x, r, g: _after(hy._ihc_post_kernel, x, r, g),
        (normal(5, 40), streams, normal(5, 3)),
        {"x": "tokens", "r": "tokens", "g": "tokens"},
    )
    mhc = vllm("model_executor.kernels.mhc.triton")
    yield Row(
        "hc_head_reduce_triton_kernel",
        lambda x, w, s, b: _headed(x, w, s, b),
        lambda x, w, s, b: _head(mhc, x, w, s, b),
        (streams, normal(3, 120), normal(1), normal(3)),
    )
    yield Row(
        "hc_collapse_triton",
        lambda x, g: (x.float() * g[..., None]).sum(1).bfloat16(),
        lambda x, g: mhc.hc_collapse_triton(x, g),
        (normal(5, 3, 1100).bfloat16(), normal(5, 3)),
    )


def _grouped(x: Tensor, w: Tensor) -> Tensor:
    return _rms(x.unflatten(1, (3, 40)), 1 + (w if w.shape[0] == 40 else w.unflatten(0, (3, 40)))).flatten(1)


def _combined(x: Tensor, block: Tensor, logits: Tensor) -> Tensor:
    return (x.unflatten(1, (3, 40)) + block[:, None] * 2 * torch.sigmoid(logits / 3)[..., None]).flatten(1)


def _mixed(
    prefix: Tensor, delta: Tensor, blocks: Tensor, norm: Tensor, query: Tensor, out: Tensor, count: int
) -> tuple[Tensor, Tensor, Tensor]:
    new = prefix + delta
    values = torch.cat([blocks[:, :count], new[:, None]], 1)
    weights = torch.softmax((_rms(values, norm) * query).sum(-1), -1)
    written = torch.cat([blocks[:, :count], new[:, None], blocks[:, count + 1 :]], 1)
    return _rms((weights[..., None] * values).sum(1), out), new, written


def _mix(
    run: Any, prefix: Tensor, delta: Tensor, blocks: Tensor, norm: Tensor, query: Tensor, out: Tensor, count: int
) -> tuple[Tensor, Tensor, Tensor]:
    mine, own = prefix.clone(), blocks.clone()
    return run(mine, delta, own, norm, query, out, count, count, EPS, EPS), mine, own


def _before(x: Tensor, w: Tensor, s: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    flat = x.flatten(1)
    logits = (flat @ w.T) * torch.rsqrt((flat * flat).mean(1, keepdim=True) + EPS)
    pre = torch.sigmoid(logits[:, :3] * s[0] + b[:3]) + 1e-5
    post = 2 * torch.sigmoid(logits[:, 3:] * s[1] + b[3:]) + 1e-5
    return (pre[..., None] * x).sum(1), post


def _before_kernels(module: Any, x: Tensor, w: Tensor, s: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    out, post, parts = torch.empty(5, 40), torch.empty(5, 3), torch.empty(5, 4, 9)
    module._ihc_pre_stage1[(5, 4)](
        x, w, parts, K_TOTAL=120, HC_MULT=3, HC_POW2=4, NUM_SPLITS=4, BLOCK_K=32, PARTIAL_STRIDE=9
    )
    module._ihc_pre_stage2[(5, 3)](
        x, parts, s, b, out, post, HIDDEN_SIZE=40, K_TOTAL=120, HC_MULT=3, HC_POW2=4, NUM_SPLITS=4,
        PARTIAL_STRIDE=9, BLOCK_D=16, MAGNITUDE=2.0, NORM_EPS=EPS, HC_EPS=1e-5,
    )  # fmt: skip
    return out, post


def _after(kernel: Any, x: Tensor, r: Tensor, g: Tensor) -> Tensor:
    out = torch.empty_like(r)
    kernel[(x.shape[0], 3)](x, r, g, out, HIDDEN_SIZE=40, HC_MULT=3, HC_POW2=4, BLOCK_D=16)
    return out


def _headed(x: Tensor, w: Tensor, s: Tensor, b: Tensor) -> Tensor:
    flat = x.flatten(1)
    gates = torch.sigmoid((flat * torch.rsqrt((flat * flat).mean(1, keepdim=True) + EPS)) @ w.T * s + b) + 1e-5
    return (gates[..., None] * x).sum(1)


def _head(module: Any, x: Tensor, w: Tensor, s: Tensor, b: Tensor) -> Tensor:
    out = torch.empty(5, 40)
    module.hc_head_reduce_triton_kernel(x, w, s, b, out, EPS, 1e-5)
    return out
