"""vLLM's choices of experts, and what moves tokens to them and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F

from bench.kernel.rows import Row, Tensor, normal
from bench.kernel.vllm import vllm

MOE = "model_executor.layers.fused_moe"


def rows() -> Iterator[Row]:
    """The functions, in order."""
    gate = vllm("models.inkling.nvidia.moe").inkling_gate_select
    yield Row(
        "inkling_gate_select (logits that are numbers in [-1, 1])",
        lambda x, b, s: _selected(x.nan_to_num().tanh(), b.nan_to_num().tanh(), s),
        lambda x, b, s: gate(x.nan_to_num().tanh(), 12, 10, 2, 2, b.nan_to_num().tanh(), 2.5, s)[::-1],
        (normal(5, 16), normal(10), normal(1)),
    )
    gemma = vllm("model_executor.models.gemma4")._gemma4_routing_kernel
    yield Row("_gemma4_routing_kernel", _routed, lambda x, s: _route(gemma, x, s), (normal(5, 12), normal(12)))
    lora = vllm(f"{MOE}.experts.trtllm_lora_moe")
    places = torch.tensor([3, -1, 0, 6, -1, 2])
    yield Row(
        "_unpermute_activation_kernel",
        lambda x, at: torch.where(at[:, None] >= 0, x.index_select(0, at.clamp(min=0)), 0.0),
        lambda x, at: _unpermuted(lora._unpermute_activation_kernel, x, at),
        (normal(7, 40), places),
    )
    yield Row(
        "_finalize_lora_kernel",
        _finalised,
        lambda x, w, at, d: _finalise(lora._finalize_lora_kernel, x, w, at, d),
        (normal(7, 40), normal(6), places, normal(3, 2, 40)),
    )
    triton = vllm(f"{MOE}.experts.gpt_oss_triton_kernels_moe")
    ids = torch.tensor([[0, 3], [1, -1], [5, 2], [-1, -1]])
    yield Row(
        "masked_moe_sum",
        lambda x, ids: torch.where((ids >= 0)[..., None], x, 0.0).sum(1),
        lambda x, ids: _into(torch.empty(4, 40), lambda out: triton.masked_moe_sum(x, ids, out)),
        (normal(4, 2, 40), ids),
    )
    yield Row(
        "pack_bitmatrix",
        lambda ids: ((ids[..., None] == torch.arange(32)).any(1) * 2 ** torch.arange(32)).sum(1, keepdim=True),
        lambda ids: _packed(triton.pack_bitmatrix, ids),
        (torch.tensor([[0, 3], [1, 9], [5, 2], [7, 20]]),),
    )
    deep = vllm(f"{MOE}.deep_gemm_utils")
    yield Row(
        "ep_gather",
        lambda x, ids, w, at: (
            x.index_select(0, at.flatten()).view(4, 2, 96) * torch.where(ids >= 0, w, 0.0)[..., None]
        ).sum(1),
        lambda x, ids, w, at: _into(torch.empty(4, 96), lambda out: deep.ep_gather(x, ids, w, at, None, out)),
        (normal(9, 96), ids, normal(4, 2), torch.tensor([[0, 8], [1, 1], [5, 2], [3, 4]])),
    )
    yield Row(
        "_fwd_kernel_ep_scatter_1 (ends of experts)",
        _ends,
        lambda counts: _end(deep._fwd_kernel_ep_scatter_1, counts),
        (torch.tensor([3, 0, 9, 4], dtype=torch.int32),),
    )
    batched = vllm(f"{MOE}.experts.batched_deep_gemm_moe")._silu_mul_fp8_quant_deep_gemm
    yield Row(
        "_silu_mul_fp8_quant_deep_gemm (numbers before they are rounded)",
        _activated,
        lambda x, counts: _activate(batched, x, counts),
        (normal(3, 4, 64), torch.tensor([3, 0, 4], dtype=torch.int32)),
    )
    terms = vllm(f"{MOE}.router.bf16x3_router_gemm_rocm")._reduce_terms_kernel
    yield Row(
        "_reduce_terms_kernel",
        lambda x: x.unflatten(1, (3, 12)).sum(1),
        lambda x: _terms(terms, x),
        (normal(21, 36),),
    )
    norm = vllm("model_executor.layers.minimax_rms_norm.rms_norm_tp")
    yield Row(
        "_minimax_qk_var_kernel",
        lambda x: torch.stack([(x[:, :40] ** 2).mean(1), (x[:, 40:64] ** 2).mean(1)], 1),
        lambda x: _variances(norm._minimax_qk_var_kernel, x),
        (normal(5, 80),),
        {"x": "tokens"},
    )
    yield Row(
        "_minimax_rms_apply_kernel",
        lambda x, v, w, u: (
            x[:, :40] * torch.rsqrt(v.exp()[:, :1] / 2 + 1e-6) * w,
            x[:, 40:64] * torch.rsqrt(v.exp()[:, 1:] / 2 + 1e-6) * u,
        ),
        lambda x, v, w, u: _applied(norm._minimax_rms_apply_kernel, x, v.exp(), w, u),
        (normal(5, 80), normal(5, 2), normal(40), normal(24)),
        {"x": "tokens", "v": "tokens"},
    )
    engram = vllm("models.deepseek_v41.common.engram")
    yield Row(
        "_engram_select_rows (DeepSeek V4.1)",
        lambda x: x.view(2, 9, 3, 8)[:, 4:8].transpose(0, 1).reshape(4, 6, 8),
        lambda x: _into(torch.empty(4, 6, 8), lambda out: engram._engram_select_rows(x, out, 9, 4, 24)),
        (normal(18, 3, 8),),
    )
    tokens = torch.tensor([3, 0, 7, 7, 1])
    yield Row(
        "_write_hash_cache_kernel (DeepSeek V4.1)",
        _hashed,
        lambda ids, table, dead, slots, cache: _hash(engram._write_hash_cache_kernel, ids, table, dead, slots, cache),
        (tokens, torch.arange(20, 29), tokens > 2, torch.tensor([3, -1, 4, 15, 8]), torch.arange(16)),
    )
    yield from _inputs()


def _inputs() -> Iterator[Row]:
    mtp = vllm("models.deepseek_v4.common.ops.fused_mtp_input_rmsnorm")

    def rms(x: Tensor, w: Tensor) -> Tensor:
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w

    def kernel(places: Tensor, x: Tensor, h: Tensor, v: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        out, other = torch.empty_like(x), torch.empty_like(h)
        mtp.FusedMTPInputRMSNormKernel.kernel[(x.shape[0], 4)](
            x, places, h, v, w, out, other, 1e-6, HIDDEN=40, HC_MULT=3, BLOCK_SIZE=64
        )
        return out, other

    yield Row(
        "FusedMTPInputRMSNormKernel (DeepSeek V4)",
        lambda places, x, h, v, w: (rms(torch.where(places[:, None] == 0, 0.0, x), v), rms(h, w)),
        kernel,
        (torch.tensor([0, 3, 1, 0, 2]), normal(5, 40), normal(5, 3, 40), normal(40), normal(40) + 1),
        {"places": "tokens", "x": "tokens", "h": "tokens"},
    )

    def head(x: Tensor, w: Tensor) -> Tensor:
        out = torch.empty_like(x)
        mtp.MTPSharedHeadRMSNormKernel.kernel[(x.shape[0],)](x, w, out, 1e-6, HIDDEN=40, BLOCK_SIZE=64)
        return out

    yield Row("MTPSharedHeadRMSNormKernel (DeepSeek V4)", rms, head, (normal(5, 40), normal(40)), {"x": "tokens"})
    ple = vllm("models.qwen4_exp.common.ops.ple")
    yield Row(
        "_ple_gate (Qwen4)",
        _gated,
        lambda k, v, h, a, b, c: ple._ple_gate(k, v, h, a, b, c, 1e-6),
        (normal(5, 80).half(), normal(5, 40).half(), (normal(5, 80) + 1).half(), *(normal(80) + n for n in range(3))),
    )


def _selected(x: Tensor, b: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    ids = torch.argsort(torch.sigmoid(x[:, :10]) + b, descending=True, stable=True)[:, :2]
    active = torch.cat([x.gather(1, ids), x[:, 10:12]], 1)
    shared = torch.tensor([10, 11]).expand(5, 2)
    return torch.cat([ids, shared], 1).int(), torch.softmax(F.logsigmoid(active), 1) * (2.5 * s)


def _routed(x: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    top = torch.topk(x, 3)
    return torch.softmax(top.values, 1) * s[top.indices], top.indices.int()


def _route(kernel: Any, x: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    weights, ids = torch.empty(5, 3), torch.empty(5, 3, dtype=torch.int32)
    kernel[(5,)](x, s, weights, ids, E=12, K=3, BLOCK_E=16)
    return weights, ids


def _into(out: Tensor, run: Any) -> Tensor:
    run(out)
    return out


def _unpermuted(kernel: Any, x: Tensor, at: Tensor) -> Tensor:
    out = torch.empty(6, 40)
    kernel[(6, 3)](x, at, out, 40, x.stride(0), out.stride(0), BLOCK_I=16)
    return out


def _finalised(x: Tensor, w: Tensor, at: Tensor, d: Tensor) -> Tensor:
    rows = torch.where(at[:, None] >= 0, x.index_select(0, at.clamp(min=0)) * w[:, None], 0.0)
    return rows.view(3, 2, 40).sum(1) * 0.5 + d.sum(1)


def _finalise(kernel: Any, x: Tensor, w: Tensor, at: Tensor, d: Tensor) -> Tensor:
    out = torch.empty(3, 40)
    kernel[(3, 3)](x, w, at, d, out, 40, x.stride(0), d.stride(0), d.stride(1), out.stride(0), 0.5, TOP_K=2, BLOCK_K=16)
    return out


def _packed(kernel: Any, ids: Tensor) -> Tensor:
    out = torch.empty(4, 1, dtype=torch.int64)
    kernel[(2,)](out, ids, 4, 1, 2, BLOCK_SIZE_M=2, BLOCK_SIZE_K=32)
    return out


def _ends(counts: Tensor) -> tuple[Tensor, Tensor]:
    counts = counts.clamp(min=0)
    aligned = (counts + 7) // 8 * 8
    starts = aligned.cumsum(0) - aligned
    return starts.int(), (starts + counts).int()


def _end(kernel: Any, counts: Tensor) -> tuple[Tensor, Tensor]:
    starts, ends = torch.empty(4, dtype=torch.int32), torch.empty(4, dtype=torch.int32)
    kernel[(4,)](
        counts.clamp(min=0), starts, ends, num_experts=4, BLOCK_E=4, BLOCK_EXPERT_NUM=4, ALIGN_M=8, USE_PSUM_LAYOUT=True
    )
    return starts, ends


def _activated(x: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Zeros where there is no token."""
    groups = (F.silu(x[..., :32]) * x[..., 32:]).unflatten(2, (2, 16))
    scale = groups.abs().amax(-1).clamp(min=1e-10) / 448
    there = torch.arange(4) < counts[:, None]
    scaled = (groups / scale[..., None]).clamp(-448, 448).flatten(2)
    return torch.where(there[..., None], scaled, 0.0), torch.where(there[..., None], scale, 0.0)


def _activate(kernel: Any, x: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    out, scale = torch.zeros(3, 4, 32), torch.zeros(3, 4, 2)
    kernel[(6,)](
        x, out, scale, counts.clamp(max=4), 32, 16, *x.stride(), *out.stride(), *scale.stride(), 1, 1e-10, -448.0,
        448.0, False, BLOCK=16, NUM_STAGES=1,
    )  # fmt: skip
    return out, scale


def _terms(kernel: Any, x: Tensor) -> Tensor:
    out = torch.empty(21, 12)
    kernel[(2,)](x, out, 21, x.stride(0), out.stride(0), N=12, TERMS=3, BLOCK_M=16, BLOCK_N=16)
    return out


def _variances(kernel: Any, x: Tensor) -> Tensor:
    out = torch.empty(x.shape[0], 2)
    kernel[(x.shape[0],)](x, out, x.stride(0), q_size=40, kv_size=24, BLOCK=16)
    return out


def _applied(kernel: Any, x: Tensor, v: Tensor, w: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    q, k = torch.empty(x.shape[0], 40), torch.empty(x.shape[0], 24)
    kernel[(x.shape[0],)](x, v, w, u, q, k, x.stride(0), q_size=40, kv_size=24, tp_world=2, eps=1e-6, BLOCK=16)
    return q, k


def _hashed(ids: Tensor, table: Tensor, dead: Tensor, slots: Tensor, cache: Tensor) -> Tensor:
    values = torch.where(dead, 99, table.index_select(0, ids))
    at = torch.where(slots >= 0, slots, 16)
    return torch.cat([cache, cache[:1]]).index_copy(0, at, values)[:-1]


def _hash(kernel: Any, ids: Tensor, table: Tensor, dead: Tensor, slots: Tensor, cache: Tensor) -> Tensor:
    cache = cache.clone()
    kernel[(2,)](ids, table, dead, slots, cache, 5, 1, 1, 1, BLOCK_SIZE=4, dead_id=99)
    return cache


def _gated(k: Tensor, v: Tensor, h: Tensor, a: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    def rms(x: Tensor, w: Tensor) -> Tensor:
        x = x.float()
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * (1 + w.unflatten(0, (2, 40)))

    keys, queries = (rms(x.unflatten(1, (2, 40)), w).half() for x, w in ((k, a), (h, b)))
    score = (keys * queries).float().sum(-1) / 40**0.5
    gate = torch.sigmoid(torch.sign(score) * score.abs().clamp(min=1e-6).sqrt())
    gated = (gate[..., None] * v.float()[:, None]).half()
    return gated.flatten(1), rms(gated, c).half().flatten(1)
