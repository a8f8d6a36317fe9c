"""vLLM's ragged rows: what counts, moves and masks entries of rows that are not full; rotations; vision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from bench.kernel.rows import Row, Tensor, normal
from bench.kernel.vllm import vllm

ROWS, WIDTH = 5, 20


def rows() -> Iterator[Row]:
    """The functions, in order."""
    sparse = vllm("v1.attention.ops.rocm_aiter_mla_sparse")
    numbers = torch.randint(-3, 30, (ROWS, WIDTH), generator=torch.Generator().manual_seed(0), dtype=torch.int32)
    lengths = torch.tensor([3, 20, 0, 11, 7], dtype=torch.int32)
    yield Row(
        "_count_valid_row_entries_kernel",
        lambda x, n: _kept(x, n).sum(1).int(),
        lambda x, n: _count(sparse._count_valid_row_entries_kernel, x, n),
        (numbers, lengths),
    )
    yield Row("build_ragged_indices_from_dense", _ragged, lambda x, n: _flat(sparse, x, n), (numbers, lengths))
    yield Row(
        "_localize_aiter_prefill_topk_kernel",
        lambda x, start: torch.where(x < 0, x, x - start[:, None]),
        lambda x, start: _localised(sparse._localize_aiter_prefill_topk_kernel, x, start),
        (numbers, lengths),
    )
    yield Row(
        "_mask_candidates_strided_kernel",
        _masked,
        lambda x, ends, flags: _mask(sparse._mask_candidates_strided_kernel, x, ends, flags),
        (normal(ROWS, WIDTH), lengths, torch.tensor([[1, 0, 1, 1, 0, 0]] * ROWS, dtype=torch.int32)),
    )
    yield Row(
        "_fused_inverse_rope_gptj",
        _turned,
        lambda x, places, table: sparse._fused_inverse_rope_gptj(x, places, table, 12),
        (normal(ROWS, 3, 32), torch.tensor([3, 0, 7, 7, 1]), normal(9, 12)),
    )
    vision = vllm("model_executor.layers.rotary_embedding.mrope_vit_setup")._vit_mrope_setup_kernel
    yield Row("_vit_mrope_setup_kernel", _angles, lambda t, h, w: _vision(vision, t, h, w),
              (normal(3), normal(4), normal(5)))  # fmt: skip
    deep = vllm("model_executor.models.deepencoder")._deepencoder_rel_pos_attention_kernel
    yield Row(
        "_deepencoder_rel_pos_attention_kernel",
        _encoded,
        lambda q, k, v, h, w: _encode(deep, q, k, v, h, w),
        (*(normal(2, 2, 35, 16) + n for n in range(3)), normal(2, 2, 35, 5), normal(2, 2, 35, 7)),
    )
    prep = vllm("models.inkling.nvidia.ops.qkvr_prep")
    yield Row(
        "qkvr_rel_proj (Inkling)",
        lambda x, w, s: torch.einsum("thd,de->the", x[:, 64:].unflatten(1, (4, 16)), w) * s[:, None, None],
        lambda x, w, s: _projected(prep, x, w, s),
        (normal(5, 128), normal(16, 40), normal(5)),
    )
    engram = vllm("models.deepseek_v41.common.engram")
    yield Row(
        "_fused_engram_post_wkv_kernel (DeepSeek V4.1)",
        _gated,
        lambda x, kv, q, k: _gate(engram._fused_engram_post_wkv_kernel, x, kv, q, k),
        (normal(5, 3, 24), normal(5, 96), normal(3, 24), normal(3, 24) + 1),
    )


def _kept(x: Tensor, lengths: Tensor) -> Tensor:
    return (torch.arange(WIDTH) < lengths[:, None]) & (x >= 0) & (x < 25)


def _count(kernel: Any, x: Tensor, lengths: Tensor) -> Tensor:
    counts, ends = torch.empty(ROWS, dtype=torch.int32), torch.empty(ROWS + 1, dtype=torch.int32)
    kernel[(3,)](x, lengths, counts, ends, x.stride(0), 25, ROWS, WIDTH, BLOCK_R=2, BLOCK_W=8)
    return counts


def _ragged(x: Tensor, lengths: Tensor) -> Tensor:
    """Where rows of the entries that are kept end."""
    return torch.nn.functional.pad(_kept(x, lengths).sum(1).cumsum(0), (1, 0)).int()


def _flat(module: Any, x: Tensor, lengths: Tensor) -> Tensor:
    return module.build_ragged_indices_from_dense(x, lengths, 25)[1]


def _localised(kernel: Any, x: Tensor, start: Tensor) -> Tensor:
    x = x.clone()
    kernel[(ROWS, 3)](x, start, x.stride(0), WIDTH, BLOCK_SIZE=8)
    return x


def _masked(x: Tensor, ends: Tensor, flags: Tensor) -> Tensor:
    """Columns up to the end of the tile (of 8) that the row ends in, the last of all where its flag says so."""
    at = torch.arange(WIDTH)
    kept = (flags[:, :5].repeat_interleave(4, 1) != 0) | ((at == WIDTH - 1) & (flags[:, 5:] != 0))
    visited = at // 8 * 8 < ends[:, None]
    return torch.where(visited & ~((at < ends[:, None]) & kept), -torch.inf, x)


def _mask(kernel: Any, x: Tensor, ends: Tensor, flags: Tensor) -> Tensor:
    x = x.clone()
    kernel[(ROWS, 2)](
        x, None, ends, flags, x.stride(0), 1, 0, 1, WIDTH, 5, BLOCK_SIZE=4, HAS_STARTS=False, ROW_REPEAT=1, TILE=8
    )
    return x


def _turned(x: Tensor, places: Tensor, table: Tensor) -> Tensor:
    cos, sin = (y[:, None] for y in table.index_select(0, places).chunk(2, 1))
    a, b = x[..., 20::2], x[..., 21::2]
    turned = torch.stack([a * cos + b * sin, b * cos - a * sin], -1).flatten(-2)
    return torch.cat([x[..., :20], turned], -1).bfloat16()


def _angles(t: Tensor, h: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    places = []
    for frames, high, wide in ((2, 4, 6), (1, 2, 2)):
        frame = torch.arange(frames).repeat_interleave(high * wide)
        row, column = (
            y.reshape(high // 2, 2, wide // 2, 2).permute(0, 2, 1, 3).flatten().repeat(frames)
            for y in torch.meshgrid(torch.arange(high), torch.arange(wide), indexing="ij")
        )
        places.append((frame, row, column))
    found = [torch.cat(x)[:, None] * y for x, y in zip(zip(*places, strict=True), (t, h, w), strict=True)]
    return (*(x.cos() for x in found), *(x.sin() for x in found))


def _vision(kernel: Any, t: Tensor, h: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    cos, sin = torch.empty(3, 52, 12), torch.empty(3, 52, 12)
    ends, grids = torch.tensor([0, 48, 52], dtype=torch.int32), torch.tensor([[2, 4, 6], [1, 2, 2]], dtype=torch.int32)
    kernel[(7,)](
        t, h, w, cos, sin, ends, grids, 52, 2, half_t=3, half_h=4, half_w=5, spatial_merge=2, BLOCK_N=8, BLOCK_D=16
    )
    return _sections(cos, sin)


def _sections(cos: Tensor, sin: Tensor) -> tuple[Tensor, ...]:
    parts = ((0, slice(0, 3)), (1, slice(3, 7)), (2, slice(7, 12)))
    return tuple(x[axis, :, own] for x in (cos, sin) for axis, own in parts)


def _encoded(q: Tensor, k: Tensor, v: Tensor, h: Tensor, w: Tensor) -> Tensor:
    bias = (h[..., :, None] + w[..., None, :]).flatten(-2)
    return torch.softmax(q @ k.transpose(-1, -2) * 0.25 + bias, -1) @ v


def _encode(kernel: Any, q: Tensor, k: Tensor, v: Tensor, h: Tensor, w: Tensor) -> Tensor:
    out = torch.empty_like(q)
    kernel[(3, 4)](
        q, k, v, h, w, out, 0.25, *q.stride(), *k.stride(), *v.stride(), *h.stride(), *w.stride(), *out.stride(),
        num_tokens=35, num_heads=2, key_width=7, BLOCK_M=16, BLOCK_N=16, BLOCK_D=16,
    )  # fmt: skip
    return out


def _projected(module: Any, x: Tensor, w: Tensor, s: Tensor) -> Tensor:
    out = torch.empty(5, 4, 40)
    module.qkvr_rel_proj(x, w, out, s, num_q_heads=4, num_kv_heads=2, head_dim=8, d_rel=16)
    return out


def _gated(x: Tensor, kv: Tensor, q: Tensor, k: Tensor) -> Tensor:
    def scaled(y: Tensor) -> Tensor:
        return y * torch.rsqrt((y * y).mean(-1, keepdim=True) + 1e-6)

    score = (scaled(x) * q * scaled(kv[:, :72].unflatten(1, (3, 24))) * k).sum(-1) / 24**0.5
    size = score.abs().clamp(min=1e-6).sqrt()
    return x + torch.sigmoid(torch.where(score < 0, -size, size))[..., None] * kv[:, None, 72:]


def _gate(kernel: Any, x: Tensor, kv: Tensor, q: Tensor, k: Tensor) -> Tensor:
    out = torch.empty_like(x)
    kernel[(15,)](
        x, kv, q, k, None, out, 5, *x.stride(), *kv.stride(), *q.stride(), *k.stride(), 0, *out.stride(), 1e-6, 1e-6,
        DIM=24, HC_MULT=3, BLOCK_SIZE=32, HAS_MASK=False,
    )  # fmt: skip
    return out
