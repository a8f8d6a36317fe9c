"""vLLM's attention: merging of states, decoding in splits, prefill, paged caches."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from bench.kernel.rows import Row, Tensor, normal
from bench.kernel.vllm import vllm


def rows() -> Iterator[Row]:
    """The functions, in order."""
    ops = "v1.attention.ops"
    merge = vllm(f"{ops}.triton_merge_attn_states").merge_attn_states
    merged = vllm(f"{ops}.merge_attn_states")._merge_attn_states_torch
    states = (normal(5, 3, 16), normal(3, 5), normal(5, 3, 16) + 1, normal(3, 5) + 1)
    symbols = {"p": "tokens", "s": "tokens"}

    def into(function: object) -> object:
        def run(p: Tensor, pl: Tensor, s: Tensor, sl: Tensor) -> tuple[Tensor, Tensor]:
            out, lse = torch.empty_like(p), torch.empty_like(pl)
            function(out, p, pl, s, sl, lse)  # type: ignore[operator]
            return out, lse

        return run

    del symbols
    yield Row("merge_attn_states", into(merged), into(merge), states)  # type: ignore[arg-type]
    yield Row("_decode_softmax_reducev_fwd", _reduced, _reduce_kernel, (normal(4, 3, 8, 17),))
    yield Row("decode_attention_fwd (MHA)", _paged, _paged_kernel, _cache(4, 4))
    yield Row("decode_attention_fwd (GQA)", _paged, _paged_kernel, _cache(4, 2))
    dcp = vllm(f"{ops}.dcp")
    yield Row("_dcp_a2a_unpack_combine", _combined, lambda x: _combine_kernel(dcp, x), (normal(4, 5, 3, 17),))
    yield Row("context_attention_fwd (causal)", _prefill, _prefill_kernel, _sequences())


def _reduced(parts: Tensor) -> tuple[Tensor, Tensor]:
    lse = parts[..., -1]
    weights = torch.softmax(lse, -1)
    return (weights[..., None] * parts[..., :-1]).sum(2), torch.logsumexp(lse, -1)


def _reduce_kernel(parts: Tensor) -> tuple[Tensor, Tensor]:
    batch, heads, splits, width = parts.shape
    out, lse = torch.empty(batch, heads, width - 1), torch.empty(batch, heads)
    lengths = torch.full((batch,), 100, dtype=torch.int32)
    run = vllm("v1.attention.ops.triton_decode_attention")._decode_softmax_reducev_fwd
    run(parts, torch.empty(batch, heads, width - 1), out, lse, torch.empty(1, heads, width - 1), lengths, splits)
    return out, lse


def _cache(heads: int, keys: int) -> tuple[Tensor, ...]:
    """Queries (3 sequences), 12 pages of 4 tokens of keys and values, and each sequence's pages."""
    pages = torch.tensor([[3, 1], [0, 2], [9, 11]], dtype=torch.int32)
    return normal(3, heads, 16), normal(12, 4, keys, 16), normal(12, 4, keys, 16) + 1, pages


def _paged(q: Tensor, k: Tensor, v: Tensor, pages: Tensor) -> Tensor:
    def sequence(x: Tensor) -> Tensor:
        tokens = torch.nn.functional.embedding(pages, x.flatten(1)).unflatten(-1, x.shape[1:]).flatten(1, 2)
        return tokens.repeat_interleave(q.shape[1] // x.shape[2], 2)

    keys, values = sequence(k), sequence(v)
    scores = torch.einsum("bhd,bthd->bht", q, keys) * 0.25
    return torch.einsum("bht,bthd->bhd", torch.softmax(scores, -1), values)


def _paged_kernel(q: Tensor, k: Tensor, v: Tensor, pages: Tensor) -> Tensor:
    batch, heads, width = q.shape
    out, lse = torch.empty(batch, heads, width), torch.empty(batch, heads)
    lengths = torch.full((batch,), 8, dtype=torch.int32)
    parts = torch.empty(batch, heads, 2, width + 1)
    vllm("v1.attention.ops.triton_decode_attention").decode_attention_fwd(
        q, k, v, out, lse, pages, lengths, parts, 2, 0.25, 4
    )
    return out


def _combined(parts: Tensor) -> Tensor:
    weights = torch.softmax(parts[..., -1], 0)
    return (weights[..., None] * parts[..., :-1]).sum(0)


def _combine_kernel(dcp: object, parts: Tensor) -> Tensor:
    ranks, batch, heads, width = parts.shape
    out = torch.empty(batch, heads, width - 1)
    dcp._dcp_a2a_unpack_combine_kernel[(batch, heads, 1)](  # type: ignore[attr-defined]
        parts, out, None, *parts.stride(), *out.stride(), 0, 0, N=ranks, HEAD_DIM=width - 1, IS_BASE_E=True,
        RETURN_LSE=False, LSE_PACK_DIM=1,
    )  # fmt: skip
    return out


def _sequences() -> tuple[Tensor, ...]:
    return normal(20, 2, 16), normal(20, 2, 16) + 1, normal(20, 2, 16) + 2


def _prefill(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    found = [
        torch.nn.functional.scaled_dot_product_attention(*(x[a:b].transpose(0, 1) for x in (q, k, v)), is_causal=True)
        for a, b in ((0, 8), (8, 20))
    ]
    return torch.cat([x.transpose(0, 1) for x in found])


def _prefill_kernel(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    out = torch.empty_like(q)
    starts, lengths = torch.tensor([0, 8], dtype=torch.int32), torch.tensor([8, 12], dtype=torch.int32)
    run = vllm("v1.attention.ops.triton_prefill_attention").context_attention_fwd
    run(q, k, v, out, starts, lengths, 12, True)
    return out
