"""Norms, gates and rotations of the models that vLLM has kernels for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F

from bench.kernel.rows import Row, Tensor, normal
from bench.kernel.vllm import vllm
from bench.kernel.vllm.layers.alone import alone

EPS = 1e-6


def rows() -> Iterator[Row]:
    """The functions, in order."""
    yield from _inkling()
    gemma = alone("models.minimax_m3.amd.ops.gemma_rmsnorm")
    yield Row(
        "gemma_rmsnorm (MiniMax)",
        lambda x, w: _rms(x, 1 + w),
        lambda x, w: gemma.gemma_rmsnorm(x, w, EPS),
        (normal(5, 40), normal(40)),
        {"x": "rows"},
    )
    yield Row(
        "gemma_fused_add_rmsnorm (MiniMax)",
        lambda x, r, w: (_rms(x + r, 1 + w), x + r),
        lambda x, r, w: gemma.gemma_fused_add_rmsnorm(x, r, w, EPS),
        (normal(5, 40), normal(5, 40) + 1, normal(40)),
        {"x": "rows", "r": "rows"},
    )
    oai = alone("models.minimax_m3.amd.ops.swiglu_oai")._swiglu_oai_kernel
    yield Row("_swiglu_oai_kernel (MiniMax)", _oai, lambda x: _oai_kernel(oai, x), (normal(5, 80),), {"x": "rows"})
    heads = alone("models.glm5next.nvidia.ops.fused_eh_norm").fused_eh_norm
    yield Row(
        "fused_eh_norm (GLM)",
        lambda places, x, h, v, w: torch.cat([_rms(torch.where(places[:, None] == 0, 0.0, x), v), _rms(h, w)], 1),
        lambda places, x, h, v, w: heads(places, x, h, v, w, EPS),
        (torch.tensor([0, 3, 1, 0, 2]), normal(5, 40), normal(5, 40) + 1, normal(40), normal(40) + 1),
        {"places": "tokens", "x": "tokens", "h": "tokens"},
    )
    both = vllm("models.common.ops.fused_qk_rmsnorm").FusedQKVRMSNormKernel.kernel
    yield Row(
        "FusedQKVRMSNormKernel",
        lambda q, k, v, w: (_rms(q, v), _rms(k, w)),
        lambda q, k, v, w: _both(both, q, k, v, w),
        (normal(5, 40), normal(5, 24), normal(40), normal(24)),
        {"q": "tokens", "k": "tokens"},
    )
    yield from _rotations()


def _inkling() -> Iterator[Row]:
    norm = vllm("models.inkling.nvidia.ops.norm")
    x, r, w = normal(5, 40), normal(5, 40) + 1, normal(40)
    yield Row(
        "add_rmsnorm (Inkling)",
        lambda x, r, w: (_rms(x + r, w), x + r),
        lambda x, r, w: norm.add_rmsnorm(x, r, w, EPS),
        (x, r, w),
        {"x": "rows", "r": "rows"},
    )
    ids, table = torch.tensor([3, 0, 7, 7, 1]), normal(9, 40)
    yield Row(
        "embed_rmsnorm (Inkling)",
        lambda ids, t, w, v: (_rms(F.embedding(ids, t), w), _rms(_rms(F.embedding(ids, t), w), v)),
        lambda ids, t, w, v: norm.embed_rmsnorm(ids, t, w, EPS, v),
        (ids, table, w, w + 1),
        {"ids": "tokens"},
    )
    yield Row(
        "embed_dual_rmsnorm_cat (Inkling)",
        lambda h, ids, t, v, w, p: torch.cat([_rms(h, v), _rms(_rms(F.embedding(ids, t), p), w)], 1),
        lambda h, ids, t, v, w, p: norm.embed_dual_rmsnorm_cat(
            h, v, w, EPS, input_ids=ids, embed_table=t, pre_norm_weight=p
        ),
        (x, ids, table, w, w + 1, w + 2),
        {"h": "tokens", "ids": "tokens"},
    )
    yield Row(
        "_rmsnorm_fwd_kernel (Inkling)",
        lambda x, w: (_rms(x, w), torch.rsqrt((x * x).mean(1) + EPS)),
        lambda x, w: _norm(norm._rmsnorm_fwd_kernel, x, w),
        (x, w),
        {"x": "rows"},
    )
    yield Row(
        "_rmsnorm_fwd_kernel_block_m (Inkling)",
        lambda x, w: (_rms(x, w), torch.rsqrt((x * x).mean(1) + EPS)),
        lambda x, w: _norm_blocks(norm._rmsnorm_fwd_kernel_block_m, x, w),
        (normal(21, 40), w),
    )
    silu = vllm("models.inkling.nvidia.ops.silu_and_mul")
    yield Row(
        "_silu_and_mul_triton_kernel (Inkling)",
        lambda x: F.silu(x[:, ::2]) * x[:, 1::2],
        lambda x: _silu(silu._silu_and_mul_triton_kernel, x),
        (normal(9, 80),),
    )
    yield Row(
        "sink_silu_mul_epilogue (Inkling)",
        _sinks,
        lambda x, a, g, r: silu.sink_silu_mul_epilogue(x, a, g, r, 3, torch.float32),
        (normal(5, 144), normal(3), normal(5, 3), normal(3) + 1),
        {"x": "tokens", "g": "tokens"},
    )


def _rotations() -> Iterator[Row]:
    packed = vllm("model_executor.layers.rotary_embedding.packed_qk_rope")._packed_qk_rope_kernel
    yield Row(
        "_packed_qk_rope_kernel",
        _packed,
        lambda x, c, s: _packed_kernel(packed, x, c, s),
        (normal(9, 3, 2, 12), normal(9, 6), normal(9, 6) + 1),
    )
    bailing = vllm("model_executor.layers.rotary_embedding.bailing_mrope").triton_bailing_mrope
    places = torch.tensor([[3, 0, 7, 7, 1], [0, 1, 2, 3, 4], [8, 8, 2, 1, 0]])
    yield Row(
        "triton_bailing_mrope",
        _bailing,
        lambda q, k, places, table: bailing(q.clone(), k.clone(), places, table, 4, 16, 12),
        (normal(5, 48), normal(5, 32), places, normal(9, 12)),
    )
    fused = vllm("model_executor.layers.fused_qk_norm_rope").fused_qk_rmsnorm_rope_gate
    given = (normal(5, 2 * 2 * 16).half(), normal(5, 16).half(), normal(16).half(), normal(16).half(), normal(9, 12))
    for sections in (None, [2, 2, 2]):
        yield Row(
            f"fused_qk_rmsnorm_rope_gate{' (three places)' if sections else ''}",
            lambda q, k, v, w, table, places, s=sections: _gated(q, k, v, w, table, places, s is not None),
            lambda q, k, v, w, table, places, s=sections: fused(
                q, k, v, w, table, places, EPS, 2, 1, 16, 12, s, norm_beta=1.0
            ),
            (*given, places if sections else places[0].contiguous()),
        )


def _rms(x: Tensor, w: Tensor) -> Tensor:
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + EPS) * w


def _norm(kernel: Any, x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    out, scale = torch.empty_like(x), torch.empty(x.shape[0])
    kernel[(x.shape[0],)](x, w, out, scale, EPS, x.stride(0), out.stride(0), x.shape[1], 64)
    return out, scale


def _norm_blocks(kernel: Any, x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    out, scale = torch.empty_like(x), torch.empty(x.shape[0])
    kernel[(3,)](x, w, out, scale, EPS, x.stride(0), out.stride(0), x.shape[0], x.shape[1], 4, 64)
    return out, scale


def _silu(kernel: Any, x: Tensor) -> Tensor:
    rows, width = x.shape[0], x.shape[1] // 2
    out = torch.empty(rows, width)
    kernel[(4,)](
        gateup_out_ptr=x, down_inp_ptr=out, M=rows, N=width, GRID_SIZE=4, NUM_STAGES=1, BLOCK_SIZE_M=2,
        BLOCK_SIZE_N=16, EVEN_N=False, INT64_INDEX=False,
    )  # fmt: skip
    return out


def _sinks(x: Tensor, a: Tensor, g: Tensor, r: Tensor) -> Tensor:
    pairs = x.unflatten(1, (3, -1, 2)) * a[:, None, None]
    return (F.silu(pairs[..., 0]) * pairs[..., 1] * (g * r)[..., None]).flatten(1)


def _oai(x: Tensor) -> Tensor:
    gate, up = x[:, :40].clamp(max=0.7), x[:, 40:].clamp(min=-0.7, max=0.7)
    return gate * torch.sigmoid(1.702 * gate) * (up + 1)


def _oai_kernel(kernel: Any, x: Tensor) -> Tensor:
    out = torch.empty(x.shape[0], 40)
    kernel[(x.shape[0], 3)](x, out, 40, *x.stride(), *out.stride(), 1.702, 1.0, 0.7, HAS_LIMIT=True, BLOCK_I=16)
    return out


def _both(kernel: Any, q: Tensor, k: Tensor, v: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    out, other = torch.empty_like(q), torch.empty_like(k)
    kernel[(q.shape[0], 2)](
        q, out, v, q.stride(0), out.stride(0), k, other, w, k.stride(0), other.stride(0), EPS,
        Q_SIZE=q.shape[1], KV_SIZE=k.shape[1], BLOCK_SIZE=64, launch_pdl=False,
    )  # fmt: skip
    return out, other


def _pairs(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)


def _packed(x: Tensor, c: Tensor, s: Tensor) -> Tensor:
    turned = _pairs(x[:, :2], c[:, None, None], s[:, None, None])
    return torch.cat([turned, x[:, 2:]], 1)


def _packed_kernel(kernel: Any, x: Tensor, c: Tensor, s: Tensor) -> Tensor:
    out, angles = x.clone(), torch.stack([c, s], -1).flatten(1)
    view = out.as_strided((x.shape[0], 4, 12), (72, 12, 1))
    kernel[(3, 4)](view, angles, x.shape[0], 72, 12, rotary_dim=12, BLOCK_M=4)
    return out


def _angles(places: Tensor, table: Tensor, axis: Tensor) -> tuple[Tensor, Tensor]:
    """Cosines and sines, where each frequency has a place of its own axis."""
    found = [F.embedding(x, table).unflatten(1, (2, 6)) for x in places]
    both = torch.where(axis == 0, found[0], torch.where(axis == 1, found[1], found[2]))
    return both[:, None, 0], both[:, None, 1]


def _bailing(q: Tensor, k: Tensor, places: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    number = torch.arange(6)
    chosen = torch.where(number < 4, torch.where(number % 2 == 0, 1, 2), 0)
    cos, sin = _angles(places, table, chosen)

    def turned(x: Tensor) -> Tensor:
        heads = x.unflatten(1, (-1, 16))
        return torch.cat([_pairs(heads[..., :12], cos, sin), heads[..., 12:]], -1).flatten(1)

    return turned(q), turned(k)


def _gated(
    q: Tensor, k: Tensor, v: Tensor, w: Tensor, table: Tensor, places: Tensor, three: bool
) -> tuple[Tensor, ...]:
    number = torch.arange(6)
    if three:
        cos, sin = _angles(places, table, number % 3)
    else:
        cos, sin = (x[:, None] for x in table.index_select(0, places).chunk(2, 1))

    def turned(x: Tensor, weight: Tensor) -> Tensor:
        found = _rms(x.float(), weight.float() + 1).to(x.dtype).float()
        a, b = found[..., :12].chunk(2, -1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin, found[..., 12:]], -1).flatten(1).to(x.dtype)

    both = q.unflatten(1, (2, 2, 16))
    return turned(both[:, :, 0], v), turned(k.unflatten(1, (1, 16)), w), both[:, :, 1].flatten(1)
