"""vLLM's gated delta rule chunk by chunk: states between chunks, what queries see, inverses, and what comes before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F

from bench.kernel.rows import Row, Tensor, normal
from bench.kernel.vllm import vllm

BATCH, LENGTH, CHUNK, HEADS, GROUPS, KEYS, VALUES = 2, 40, 16, 4, 2, 24, 40
CHUNKS = -(-LENGTH // CHUNK)
OPS = "third_party.flash_linear_attention.ops"


def rows() -> Iterator[Row]:
    """The functions, in order."""
    yield from _states()
    yield from _outputs()
    yield from _inverses()
    yield from _preparations()


def _parts(x: Tensor) -> tuple[Tensor, ...]:
    """The chunks, of which the last may be shorter."""
    return x.split(CHUNK, 1)


def _shared(x: Tensor) -> Tensor:
    """Of each group of heads what its heads share."""
    return x.repeat_interleave(HEADS // GROUPS, 2)


def _gates() -> Tensor:
    """Logarithms of decays, added up within each chunk."""
    return torch.cat([part.cumsum(1) for part in _parts(-normal(BATCH, LENGTH, HEADS).abs())], 1)


def _states() -> Iterator[Row]:
    run = vllm(f"{OPS}.chunk_delta_h").chunk_gated_delta_rule_fwd_h
    k, w = normal(BATCH, LENGTH, GROUPS, KEYS), normal(BATCH, LENGTH, HEADS, KEYS) / 4
    u, g, h = normal(BATCH, LENGTH, HEADS, VALUES), _gates(), normal(BATCH, HEADS, VALUES, KEYS)
    yield Row(
        "chunk_gated_delta_rule_fwd_h",
        lambda k, w, u, g: _passed(k, w, u, g.exp(), None)[:2],
        lambda k, w, u, g: run(k, w, u, g, chunk_size=CHUNK)[:2],
        (k, w, u, g),
    )
    yield Row(
        "chunk_gated_delta_rule_fwd_h (from and to a state)",
        lambda k, w, u, g, h: _passed(k, w, u, g.exp(), h),
        lambda k, w, u, g, h: run(k, w, u, g, None, h, True, CHUNK),
        (k, w, u, g, h),
    )
    yield Row(
        "chunk_gated_delta_rule_fwd_h (no decay)",
        lambda k, w, u, h: _passed(k, w, u, torch.ones(BATCH, LENGTH, HEADS), h),
        lambda k, w, u, h: run(k, w, u, None, None, h, True, CHUNK),
        (k, w, u, h),
    )
    yield Row(
        "chunk_gated_delta_rule_fwd_h (decays of channels, powers of two)",
        lambda k, w, u, g, h: _passed_by_channels(k, w, u, g, h),
        lambda k, w, u, g, h: run(k, w, u, None, g, h, True, CHUNK, use_exp2=True),
        (normal(BATCH, LENGTH, HEADS, KEYS), w, u, -normal(BATCH, LENGTH, HEADS, KEYS).abs(), h),
    )


def _passed(k: Tensor, w: Tensor, u: Tensor, d: Tensor, h: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """The states before each chunk, the new values, and the last state."""
    state = torch.zeros(BATCH, HEADS, VALUES, KEYS) if h is None else h
    states, values = [], []
    for k_, w_, u_, d_ in zip(*(_parts(x) for x in (_shared(k), w, u, d)), strict=True):
        states.append(state)
        new = u_ - torch.einsum("bthk,bhvk->bthv", w_, state)
        values.append(new)
        last = d_[:, -1]
        kept = new * (last[:, None] / d_)[..., None]
        state = state * last[..., None, None] + torch.einsum("bthv,bthk->bhvk", kept, k_)
    return torch.stack(states, 1), torch.cat(values, 1), state


def _passed_by_channels(k: Tensor, w: Tensor, u: Tensor, g: Tensor, h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """As above; each channel of the keys has a decay of its own, and the keys are decayed already."""
    state, states, values = h, [], []
    for k_, w_, u_, g_ in zip(*(_parts(x) for x in (k, w, u, g)), strict=True):
        states.append(state)
        new = u_ - torch.einsum("bthk,bhvk->bthv", w_, state)
        values.append(new)
        state = state * torch.exp2(g_[:, -1])[:, :, None] + torch.einsum("bthv,bthk->bhvk", new, k_)
    return torch.stack(states, 1), torch.cat(values, 1), state


def _outputs() -> Iterator[Row]:
    run = vllm(f"{OPS}.chunk_o").chunk_fwd_o
    q, k = normal(BATCH, LENGTH, GROUPS, KEYS), normal(BATCH, LENGTH, GROUPS, KEYS) + 1
    v, h, g = normal(BATCH, LENGTH, HEADS, VALUES), normal(BATCH, CHUNKS, HEADS, VALUES, KEYS), _gates()
    yield Row(
        "chunk_fwd_o",
        lambda q, k, v, h, g: _seen(q, k, v, h, g),
        lambda q, k, v, h, g: run(q, k, v, h, g, 0.2, chunk_size=CHUNK),
        (q, k, v, h, g),
    )
    yield Row(
        "chunk_fwd_o (no decay)",
        lambda q, k, v, h: _seen(q, k, v, h, torch.zeros(BATCH, LENGTH, HEADS)),
        lambda q, k, v, h: run(q, k, v, h, None, 0.2, chunk_size=CHUNK),
        (q, k, v, h),
    )


def _seen(q: Tensor, k: Tensor, v: Tensor, h: Tensor, g: Tensor) -> Tensor:
    found = []
    for n, (q_, k_, v_, g_) in enumerate(zip(*(_parts(x) for x in (_shared(q), _shared(k), v, g)), strict=True)):
        old = torch.einsum("bthk,bhvk->bthv", q_, h[:, n]) * g_.exp()[..., None]
        decay = (g_[:, :, None] - g_[:, None]).exp()
        scores = torch.einsum("bihk,bjhk->bijh", q_, k_) * decay
        before = torch.ones(scores.shape[1], scores.shape[1], dtype=torch.bool).tril()[..., None]
        found.append((old + torch.einsum("bijh,bjhv->bihv", torch.where(before, scores, 0.0), v_)) * 0.2)
    return torch.cat(found, 1)


def _inverses() -> Iterator[Row]:
    run = vllm(f"{OPS}.solve_tril").solve_tril
    for size in (16, 32):
        yield Row(f"solve_tril ({size})", _inverse, lambda x: run(_below(x)), (normal(2, size + 8, 2, size) / 4,))


def _below(x: Tensor) -> Tensor:
    """What is strictly below the diagonal of each chunk: nothing else may be there."""
    size = x.shape[-1]
    return torch.where((torch.arange(x.shape[1]) % size)[:, None, None] > torch.arange(size), x, 0.0)


def _inverse(x: Tensor) -> Tensor:
    """Of one with each chunk's matrix the inverse, by substitution."""
    size = x.shape[-1]
    found = []
    for part in _below(x).split(size, 1):
        rows = part.shape[1]
        matrix, one = part[..., :rows].transpose(1, 2), torch.eye(rows)
        inverse = torch.zeros_like(matrix)
        for n in range(rows):
            row = one[n] - (matrix[..., n, :, None] * inverse).sum(-2)
            inverse = torch.where((torch.arange(rows) == n)[:, None], row[..., None, :], inverse)
        found.append(F.pad(inverse.transpose(1, 2), (0, size - rows)))
    return torch.cat(found, 1)


def _preparations() -> Iterator[Row]:
    norms = vllm(f"{OPS}.l2norm")
    x = normal(40, 24)
    yield Row("l2norm_fwd", _unit, lambda x: norms.l2norm_fwd(x), (x,), {"x": "rows"})

    def blocks(x: Tensor) -> Tensor:
        y = torch.empty_like(x)
        norms.l2norm_fwd_kernel[lambda meta: (-(-x.shape[0] // meta["BT"]),)](
            x, y, 1e-6, NB=1, T=x.shape[0], D=x.shape[1], BD=32
        )
        return y

    def lines(x: Tensor) -> Tensor:
        y = torch.empty_like(x)
        norms.l2norm_fwd_kernel1[(x.shape[0],)](x, y, eps=1e-6, D=x.shape[1], BD=32)
        return y

    yield Row("l2norm_fwd_kernel", _unit, blocks, (x,))
    yield Row("l2norm_fwd_kernel1", _unit, lines, (x,), {"x": "rows"})
    run = vllm(f"{OPS}.fused_gdn_prefill_post_conv").fused_post_conv_prep
    for name, unit, exp, size in (
        ("", True, False, KEYS),
        (" (decays, no norms)", False, True, KEYS),
        (" (values wider than keys)", True, False, VALUES),
    ):
        given = (normal(20, 2 * 2 * KEYS + 4 * size), normal(20, 4), normal(20, 4) + 1, normal(4), normal(4) + 1)
        yield Row(
            f"fused_post_conv_prep{name}",
            lambda *a, u=unit, e=exp, n=size: _prepared(*a, unit=u, exp=e, size=n),
            lambda *a, u=unit, e=exp, n=size: run(*a, 2, KEYS, n, u, e),
            given,
        )


def _unit(x: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6)


def _prepared(x: Tensor, a: Tensor, b: Tensor, log: Tensor, bias: Tensor, *, unit: bool, exp: bool, size: int) -> Any:
    q, k, v = x.split([2 * KEYS, 2 * KEYS, 4 * size], -1)
    q, k = q.unflatten(-1, (2, KEYS)), k.unflatten(-1, (2, KEYS))
    g = -log.exp() * F.softplus(a + bias)
    parts = (_unit(q), _unit(k)) if unit else (q, k)
    return (*parts, v.unflatten(-1, (4, size)), g.exp() if exp else g, b.sigmoid())
