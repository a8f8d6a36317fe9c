"""vLLM's linear attention: parts of gated delta rules, chunk by chunk, and decays."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F

from bench.kernel.rows import Row, Tensor, normal
from bench.kernel.vllm import vllm

BATCH, CHUNKS, CHUNK, HEADS, GROUPS, WIDTH = 2, 3, 16, 4, 2, 32
LENGTH = CHUNKS * CHUNK


def rows() -> Iterator[Row]:
    """The functions, in order."""
    ops = "third_party.flash_linear_attention.ops"
    sums = vllm(f"{ops}.cumsum")
    gates = normal(BATCH, LENGTH, HEADS)
    yield Row(
        "chunk_local_cumsum_scalar",
        lambda g: g.unflatten(1, (CHUNKS, CHUNK)).cumsum(2).flatten(1, 2),
        lambda g: sums.chunk_local_cumsum_scalar(g, CHUNK),
        (gates,),
    )
    yield Row(
        "chunk_local_cumsum_scalar (reversed, a part of a chunk at the end)",
        lambda g: F.pad(g, (0, 0, 0, 8)).unflatten(1, (-1, CHUNK)).flip(2).cumsum(2).flip(2).flatten(1, 2)[:, :-8],
        lambda g: sums.chunk_local_cumsum_scalar(g, CHUNK, reverse=True),
        (gates[:, :-8].contiguous(),),
    )
    yield Row(
        "chunk_local_cumsum_vector",
        lambda g: g.unflatten(1, (CHUNKS, CHUNK)).cumsum(2).flatten(1, 2),
        lambda g: sums.chunk_local_cumsum_vector(g, CHUNK),
        (normal(BATCH, LENGTH, HEADS, WIDTH),),
    )
    keys, beta = normal(BATCH, LENGTH, GROUPS, WIDTH), normal(BATCH, LENGTH, HEADS).sigmoid()
    yield Row(
        "chunk_scaled_dot_kkt_fwd",
        _products,
        lambda k, g, b: vllm(f"{ops}.chunk_scaled_dot_kkt").chunk_scaled_dot_kkt_fwd(k, g, b, chunk_size=CHUNK),
        (keys, -gates.abs(), beta),
    )
    yield Row(
        "recompute_w_u_fwd",
        _solved,
        lambda k, v, b, g, a: vllm(f"{ops}.wy_fast").recompute_w_u_fwd(k, v, b, g, a, None),
        (keys, normal(BATCH, LENGTH, HEADS, WIDTH), beta, -gates.abs(), normal(BATCH, LENGTH, HEADS, CHUNK)),
    )
    gate = vllm("model_executor.layers.mamba.gdn.olmo_gdn_linear_attn").fused_olmo_hybrid_gdn_gating
    yield Row(
        "fused_olmo_hybrid_gdn_gating",
        lambda log, a, b, bias: (
            (-log.exp() * F.softplus(a + bias))[None],
            (b.sigmoid() * 2)[None],
        ),
        lambda log, a, b, bias: gate(log, a, b, bias, True),
        (normal(6), normal(5, 6), normal(5, 6) + 1, normal(6) + 2),
    )
    yield Row("linear_decode_forward_triton", _decayed, _decay_kernel, _decay())


def _products(k: Tensor, g: Tensor, b: Tensor) -> Tensor:
    k = k.repeat_interleave(HEADS // GROUPS, 2).unflatten(1, (CHUNKS, CHUNK))
    g, b = (x.unflatten(1, (CHUNKS, CHUNK)) for x in (g, b))
    scores = torch.einsum("bcihk,bcjhk->bcihj", k * b[..., None], k)
    decay = (g[:, :, :, :, None] - g.transpose(2, 3)[:, :, None]).exp()
    below = torch.ones(CHUNK, CHUNK, dtype=torch.bool).tril(-1)[:, None]
    return torch.where(below, scores * decay, 0.0).flatten(1, 2)


def _solved(k: Tensor, v: Tensor, b: Tensor, g: Tensor, a: Tensor) -> tuple[Tensor, Tensor]:
    k = k.repeat_interleave(HEADS // GROUPS, 2)
    k, v, b, g, a = (x.unflatten(1, (CHUNKS, CHUNK)) for x in (k, v, b, g, a))
    w = torch.einsum("bcihj,bcjhk->bcihk", a, k * b[..., None] * g.exp()[..., None])
    u = torch.einsum("bcihj,bcjhk->bcihk", a, v * b[..., None])
    return w.flatten(1, 2), u.flatten(1, 2)


def _decay() -> tuple[Tensor, ...]:
    """Queries, keys and values of 3 sequences, 5 states, a decay of each head, and each sequence's state."""
    shape = (3, 2, 1, 32)
    return (
        normal(*shape),
        normal(*shape) + 1,
        normal(*shape) + 2,
        normal(5, 2, 32, 32),
        normal(2).exp(),
        torch.tensor([4, 0, 2]),
    )


def _decayed(q: Tensor, k: Tensor, v: Tensor, states: Tensor, slope: Tensor, slots: Tensor) -> tuple[Tensor, Tensor]:
    own = states.index_select(0, slots)
    new = k.transpose(-1, -2) * v + torch.exp(-slope)[:, None, None] * own
    out = (q.transpose(-1, -2) * new).sum(-2)
    return out.flatten(1), states.index_copy(0, slots, new)


def _decay_kernel(
    q: Tensor, k: Tensor, v: Tensor, states: Tensor, slope: Tensor, slots: Tensor
) -> tuple[Tensor, Tensor]:
    mine = states.clone()
    run = vllm("model_executor.layers.lightning_attn").linear_decode_forward_triton
    return run(q, k, v, mine, slope, slots), mine
