"""vLLM's Kimi delta attention: decays of channels, chunk by chunk, token by token, and what Kimi-K3 has beside it."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F

from bench.kernel.rows import Row, Tensor, normal
from bench.kernel.vllm import vllm
from bench.kernel.vllm.recurrent.recurrences import are_slots, delta_attention, step

KIMI = "models.kimi_k3.nvidia.ops.third_party.kda"
BATCH, LENGTH, CHUNK, HEADS, KEYS, VALUES = 2, 40, 32, 2, 24, 40


def rows() -> Iterator[Row]:
    """The functions, in order."""
    yield from _chunks()
    yield from _inverses()
    yield from _tokens()
    yield from _layers()


def _chunks() -> Iterator[Row]:
    q, k = normal(BATCH, LENGTH, HEADS, KEYS), normal(BATCH, LENGTH, HEADS, KEYS) / 4
    g, b = -normal(BATCH, LENGTH, HEADS, KEYS).abs(), normal(BATCH, LENGTH, HEADS).sigmoid()
    v, a = normal(BATCH, LENGTH, HEADS, VALUES), normal(BATCH, LENGTH, HEADS, CHUNK)
    h = normal(BATCH, -(-LENGTH // CHUNK), HEADS, VALUES, KEYS)
    kda = delta_attention()
    products = kda.chunk_kda_scaled_dot_kkt_fwd
    yield Row(
        "chunk_kda_scaled_dot_kkt_fwd",
        _products,
        lambda q, k, g, b: products(q, k, g, b, 0.2, chunk_size=CHUNK),
        (q, k, g, b),
    )
    for name, run in (("kda", kda), ("kimi_k3", vllm(f"{KIMI}.chunk"))):
        yield Row(
            f"{name}.recompute_w_u_fwd",
            _solved,
            lambda k, v, b, a, g, r=run: [r.recompute_w_u_fwd(k, v, b, a, None, g)[n] for n in (0, 1, 3)],
            (k, v, b, a, g),
        )
        yield Row(
            f"{name}.chunk_gla_fwd_o_gk",
            _seen,
            lambda q, v, g, a, h, r=run: r.chunk_gla_fwd_o_gk(
                q, v, g, a, h, torch.empty_like(v), 0.2, None, None, CHUNK
            ),
            (q, v, g, a, h),
        )

    def tokens(q: Tensor, k: Tensor, g: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        scores, keys = torch.zeros(BATCH, LENGTH, HEADS, CHUNK), torch.zeros(BATCH, LENGTH, HEADS, 16)
        run = vllm(f"{KIMI}.chunk_intra_token_parallel").chunk_kda_fwd_intra_token_parallel
        return run(q, k, g, b, scores, keys, 0.2, None, CHUNK, 16)

    yield Row("kimi_k3.chunk_kda_fwd_intra_token_parallel", _blocks, tokens, (q, k, g, b))


def _parts(x: Tensor, size: int = CHUNK) -> tuple[Tensor, ...]:
    return x.split(size, 1)


def _pair(q: Tensor, k: Tensor, g: Tensor, b: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Of one chunk the products of keys, below the diagonal, and those of queries with keys, to the diagonal."""
    size = q.shape[1]
    decay = torch.exp2(g[:, :, None] - g[:, None])
    keys = torch.einsum("bihk,bjhk,bijhk->bihj", k * b[..., None], k, decay)
    scores = torch.einsum("bihk,bjhk,bijhk->bihj", q, k, decay) * 0.2
    below = torch.ones(size, size, dtype=torch.bool).tril(-1)[:, None]
    up_to = torch.ones(size, size, dtype=torch.bool).tril()[:, None]
    found = torch.where(below, keys, 0.0), torch.where(up_to, scores, 0.0)
    return F.pad(found[0], (0, width - size)), F.pad(found[1], (0, width - size))


def _products(q: Tensor, k: Tensor, g: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    found = [_pair(*parts, CHUNK) for parts in zip(*(_parts(x) for x in (q, k, g, b)), strict=True)]
    return torch.cat([keys for keys, _ in found], 1), torch.cat([scores for _, scores in found], 1)


def _blocks(q: Tensor, k: Tensor, g: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Only the blocks of 16 on the diagonal; those of queries are where they belong in their chunk."""
    found = [_pair(*parts, 16) for parts in zip(*(_parts(x, 16) for x in (q, k, g, b)), strict=True)]
    scores = [F.pad(s, (16, 0) if n % 2 else (0, 16)) for n, (_, s) in enumerate(found)]
    return torch.cat(scores, 1), torch.cat([keys for keys, _ in found], 1)


def _solved(k: Tensor, v: Tensor, b: Tensor, a: Tensor, g: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    w, u, last = [], [], []
    for k_, v_, b_, a_, g_ in zip(*(_parts(x) for x in (k, v, b, a, g)), strict=True):
        own = a_[..., : k_.shape[1]]
        w.append(torch.einsum("bihj,bjhk->bihk", own, k_ * b_[..., None] * torch.exp2(g_)))
        u.append(torch.einsum("bihj,bjhv->bihv", own, v_ * b_[..., None]))
        last.append(k_ * torch.exp2(g_[:, -1:] - g_))
    return torch.cat(w, 1), torch.cat(u, 1), torch.cat(last, 1)


def _seen(q: Tensor, v: Tensor, g: Tensor, a: Tensor, h: Tensor) -> Tensor:
    found = []
    for n, (q_, v_, g_, a_) in enumerate(zip(*(_parts(x) for x in (q, v, g, a)), strict=True)):
        size = q_.shape[1]
        up_to = torch.ones(size, size, dtype=torch.bool).tril()[:, None]
        old = torch.einsum("bthk,bhvk->bthv", q_ * 0.2 * torch.exp2(g_), h[:, n])
        found.append(old + torch.einsum("bihj,bjhv->bihv", torch.where(up_to, a_[..., :size], 0.0), v_))
    return torch.cat(found, 1)


def _inverses() -> Iterator[Row]:
    run = vllm(f"{KIMI}.chunk_intra").chunk_kda_fwd_intra
    count = 24
    q, k = normal(1, count, 1, KEYS), normal(1, count, 1, KEYS) / 4
    g, b = -normal(1, count, 1, KEYS).abs(), normal(1, count, 1).sigmoid()
    up_to = torch.ones(count, 64, dtype=torch.bool).tril()[:, None]
    for safe in (False, True):

        def kernel(q: Tensor, k: Tensor, g: Tensor, b: Tensor, safe: bool = safe) -> tuple[Tensor, Tensor]:
            """Above the diagonal scores are left unwritten."""
            scores, inverse = run(q, k, g, b, 0.2, safe_gate=safe)
            return torch.where(up_to, scores, 0.0), inverse

        yield Row(f"kimi_k3.chunk_kda_fwd_intra{' (safe gates)' if safe else ''}", _inverted, kernel, (q, k, g, b))


def _inverted(q: Tensor, k: Tensor, g: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """The scores, and of one with the products of keys the inverse, by substitution."""
    keys, scores = _pair(q, k, g, b, 64)
    size = q.shape[1]
    matrix = keys[..., :size].transpose(1, 2)
    found, one = torch.zeros_like(matrix), torch.eye(size)
    for n in range(size):
        row = one[n] - (matrix[..., n, :, None] * found).sum(-2)
        found = torch.where((torch.arange(size) == n)[:, None], row[..., None, :], found)
    return scores, F.pad(found.transpose(1, 2), (0, 64 - size))


def _unit(x: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6)


def _tokens() -> Iterator[Row]:
    run = vllm(f"{KIMI}.fused_recurrent")
    count = 3
    q, k, v = (normal(1, count, HEADS, size) for size in (KEYS, KEYS, VALUES))
    g, b = normal(1, count, HEADS, KEYS), normal(1, count, HEADS)
    log, bias, states = normal(HEADS), normal(HEADS, KEYS) + 1, normal(5, HEADS, VALUES, KEYS)
    slots = torch.tensor([4, 1, 2])
    mixed = torch.cat([x.flatten(2)[0] for x in (q, k, v)], -1).contiguous()
    for fused in (True, False):

        def kernel(
            x: Tensor, g: Tensor, b: Tensor, log: Tensor, bias: Tensor, s: Tensor, i: Tensor, fused: bool = fused
        ) -> tuple[Tensor, Tensor]:
            starts = torch.tensor([0, 1, 2, 3])
            return run.fused_recurrent_kda(*_split(x), g, b, log, bias, None, s.clone(), starts, i, fuse_gate=fused)

        yield Row(
            f"kimi_k3.fused_recurrent_kda{' (gates fused)' if fused else ''}",
            lambda x, *a: _by_slots(*_split(x), *a),
            kernel,
            (mixed, g, b, log, bias, states, slots),
            given=are_slots,
        )
    packed = run.fused_recurrent_kda_packed_decode
    for bound in (None, -5.0):
        yield Row(
            f"kimi_k3.fused_recurrent_kda_packed_decode{'' if bound is None else ' (bound)'}",
            lambda x, *a, b=bound: _by_slots(*_split(x), *a, b),
            lambda x, g, b, log, bias, s, i, bound=bound: packed(x, g, b, log, bias, bound, s.clone(), i),
            (mixed, g, b, log, bias, states, slots),
            given=are_slots,
        )


def _by_slots(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, b: Tensor, log: Tensor, bias: Tensor, states: Tensor, slots: Tensor,
    bound: float | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """One token of each sequence; slots up to zero are none, what they give is zero, and no state of theirs is kept."""
    rate = log.exp()[:, None]
    gate = -rate * F.softplus(g[0] + bias) if bound is None else bound * (rate * (g[0] + bias)).sigmoid()
    own = slots.clamp(min=0)
    old = states.index_select(0, own)
    out, new = step(old, _unit(q[0]) * KEYS**-0.5, _unit(k[0]), v[0], gate, b[0].sigmoid())
    some = (slots > 0)[:, None, None]
    new = torch.where(some[..., None], new, old)
    return torch.where(some, out, 0.0)[None], states.index_copy(0, own, new)


def _split(x: Tensor) -> tuple[Tensor, ...]:
    parts = x.split([HEADS * KEYS, HEADS * KEYS, HEADS * VALUES], -1)
    return tuple(part.unflatten(-1, (HEADS, -1))[None] for part in parts)


def _layers() -> Iterator[Row]:
    residual = vllm("models.kimi_k3.nvidia.ops.attn_res").attn_res
    given = (normal(4, 40), normal(4, 5, 40) + 1, normal(40), normal(40) + 1)
    yield Row(
        "kimi_k3.attn_res",
        lambda p, x, w, a: _attended(p, x[:, :5], w, a),
        lambda p, x, w, a: residual(p, None, x, w, a, None, 5, -1, 1e-6, 1e-6),
        given,
        {"p": "tokens", "x": "tokens"},
    )

    def written(p: Tensor, d: Tensor, x: Tensor, w: Tensor, a: Tensor, n: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        p, x = p.clone(), x.clone()
        return residual(p, d, x, w, a, n, 3, 4, 1e-6, 1e-6), p, x

    yield Row(
        "kimi_k3.attn_res (adds, writes, norms)", _written, written, (given[0], given[0] + 2, *given[1:], normal(40))
    )
    joined = vllm("models.kimi_k3.common.mtp").fused_mtp_input
    yield Row(
        "kimi_k3.fused_mtp_input",
        lambda i, x, h, e, w: torch.cat(
            [F.rms_norm(torch.where(i[:, None] != 0, x, 0.0), (40,), e, 1e-6), F.rms_norm(h, (40,), w, 1e-6)], -1
        ),
        lambda i, x, h, e, w: joined(i, x, h, e, w, 1e-6),
        (torch.tensor([0, 3, 1, 0, 2]), normal(5, 40), normal(5, 40) + 1, normal(40), normal(40) + 1),
        {"i": "tokens", "x": "tokens", "h": "tokens"},
    )
    metadata = vllm("models.kimi_k3.nvidia.kda_metadata")

    def aligned(table: Tensor, lengths: Tensor) -> Tensor:
        found = torch.empty(5, 3, dtype=table.dtype)
        metadata._get_aligned_state_indices_kernel[(2,)](
            table, lengths, found, *table.stride(), lengths.stride(0), *found.stride(), 5, CACHE_BLOCK_SIZE=4,
            NUM_STATE_SLOTS=3, BLOCK_STATE_SLOTS=4, BLOCK_ROWS=4, launch_pdl=False,
        )  # fmt: skip
        return found

    yield Row(
        "kimi_k3._get_aligned_state_indices_kernel",
        lambda t, n: t.gather(1, ((n.long() - 1) // 4).clamp(min=0)[:, None] + torch.arange(3)),
        aligned,
        (torch.arange(40, dtype=torch.int32).view(5, 8), torch.tensor([1, 9, 0, 16, 20], dtype=torch.int32)),
    )

    def staged(slots: Tensor, starts: Tensor, accepted: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        found = (
            torch.empty(6, 3, dtype=torch.int32),
            torch.empty(7, dtype=torch.int32),
            torch.empty(6, dtype=torch.int32),
        )
        metadata._stage_spec_decode_metadata_kernel[(2,)](
            slots, starts, accepted, *found, *slots.stride(), *found[0].stride(), 4, 6, NUM_STATE_SLOTS=3,
            BLOCK_STATE_SLOTS=4, NULL_STATE_ID=0, BLOCK_ROWS=4, launch_pdl=False,
        )  # fmt: skip
        return found

    yield Row(
        "kimi_k3._stage_spec_decode_metadata_kernel",
        lambda s, q, n: (F.pad(s, (0, 0, 0, 2)), torch.cat([q, q[-1:], q[-1:]]), F.pad(n, (0, 2), value=1)),
        staged,
        (
            torch.arange(12, dtype=torch.int32).view(4, 3), torch.tensor([0, 2, 5, 6, 9], dtype=torch.int32),
            torch.tensor([1, 2, 1, 3], dtype=torch.int32),
        ),
    )  # fmt: skip


def _attended(p: Tensor, x: Tensor, w: Tensor, a: Tensor) -> Tensor:
    """A mixture of earlier blocks and the present one, by how a query meets their norms."""
    every = torch.cat([x, p[:, None]], 1)
    scores = (F.rms_norm(every, (40,), w, 1e-6) * a).sum(-1)
    return (torch.softmax(scores, -1)[..., None] * every).sum(1)


def _written(p: Tensor, d: Tensor, x: Tensor, w: Tensor, a: Tensor, n: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    new = p + d
    return F.rms_norm(_attended(new, x[:, :3], w, a), (40,), n, 1e-6), new, torch.cat([x[:, :4], new[:, None]], 1)
