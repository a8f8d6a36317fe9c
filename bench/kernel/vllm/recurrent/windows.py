"""vLLM's windows of recurrent states: tokens that are kept beside a state, drafts that are verified, checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import torch
import torch.nn.functional as F

from bench.kernel.rows import Row, Tensor, normal
from bench.kernel.vllm import vllm
from bench.kernel.vllm.recurrent.recurrences import step

BATCH, HEADS, GROUPS, WIDTH, STATE, WINDOW = 3, 4, 2, 24, 20, 8
COUNTS = (2, 0, 5)
"""How many tokens each sequence keeps."""


def rows() -> Iterator[Row]:
    """The functions, in order."""
    yield from _replays()
    yield from _drafts()
    yield from _checkpoints()


def _int(*numbers: int) -> Tensor:
    return torch.tensor(numbers, dtype=torch.int32)


def _replays() -> Iterator[Row]:
    place = "model_executor.layers.mamba.ops.selective_state_update_replayssm_output_only"
    run = vllm(place).selective_state_update_replayssm_output_only

    def replayed(
        s: Tensor, x: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, xs: Tensor, dts: Tensor, bs: Tensor,
        flush: bool,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        s, xs, dts, bs, out = s.clone(), xs.clone(), dts.abs(), bs.clone(), torch.empty_like(x)
        run(
            s, x, dt[..., None].expand(-1, -1, WIDTH), (-a.abs())[:, None, None].expand(-1, WIDTH, STATE), b, c,
            dt_softplus=True, x_cache=xs, dt_cache=dts, B_cache=bs, bc_pre=torch.zeros(BATCH, GROUPS, WINDOW),
            write_pos=_int(*COUNTS), is_flush=torch.full((BATCH,), flush), max_cache_len=WINDOW, out=out,
        )  # fmt: skip
        return out, s, xs, dts, bs

    given = (
        normal(BATCH, HEADS, WIDTH, STATE), normal(BATCH, HEADS, WIDTH), normal(BATCH, HEADS), normal(HEADS),
        normal(BATCH, GROUPS, STATE), normal(BATCH, GROUPS, STATE) + 1, normal(BATCH, HEADS, WINDOW, WIDTH),
        normal(BATCH, HEADS, WINDOW).exp(), normal(BATCH, GROUPS, WINDOW, STATE),
    )  # fmt: skip
    for name, flush in (("keeps a token", False), ("makes a state", True)):
        yield Row(
            f"selective_state_update_replayssm_output_only ({name})",
            lambda *a, f=flush: _replayed(*a, flush=f),
            lambda *a, f=flush: replayed(*a, f),
            given,
        )


def _replayed(
    s: Tensor, x: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, xs: Tensor, dts: Tensor, bs: Tensor, *,
    flush: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """The model token by token, through those that are kept, to the present one.

    Either this one is kept too, or the state is what it is after it. Decays are below one.
    """
    steps, repeat, dts = F.softplus(dt), HEADS // GROUPS, dts.abs()
    out, after = [], []
    for n, count in enumerate(COUNTS):
        state = s[n]
        for t in range(count + 1):
            now = steps[n] if t == count else dts[n, :, t]
            token, key = (x[n], b[n]) if t == count else (xs[n, :, t], bs[n, :, t])
            state = state * (-a.abs() * now).exp()[:, None, None]
            state = state + (now[:, None] * token)[..., None] * key.repeat_interleave(repeat, 0)[:, None]
        after.append(state)
        out.append((state * c[n].repeat_interleave(repeat, 0)[:, None]).sum(-1))
    if flush:
        return torch.stack(out), torch.stack(after), xs, dts, bs
    own = torch.arange(WINDOW) == torch.tensor(COUNTS)[:, None, None]
    kept = (
        torch.where(own[..., None], x[:, :, None], xs),
        torch.where(own, steps[:, :, None], dts),
        torch.where(own[..., None], b[:, :, None], bs),
    )
    return torch.stack(out), s, *kept


def _drafts() -> Iterator[Row]:
    run = vllm("models.kimi_k3.nvidia.ops.recoverssm").kda_recoverssm_verify
    count, keys, values = 2, 24, 40
    starts = (0, 2, 3, 5)

    def verified(
        q: Tensor, k: Tensor, v: Tensor, g: Tensor, b: Tensor, log: Tensor, bias: Tensor, s: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        changes, kept = torch.zeros(5, HEADS, count, values), torch.zeros(5, HEADS, count, 2 * keys)
        out = run(q, k, v, g, b, log, bias, -5.0, s, changes, kept, _int(*starts), _int(4, 1, 2), count)
        return out, changes, kept

    def reference(
        q: Tensor, k: Tensor, v: Tensor, g: Tensor, b: Tensor, log: Tensor, bias: Tensor, s: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        changes, kept, out = torch.zeros(5, HEADS, count, values), torch.zeros(5, HEADS, count, 2 * keys), []
        gates = -5.0 * (log.exp()[:, None] * (g + bias)).sigmoid()
        for slot, first, end in zip((4, 1, 2), starts, starts[1:], strict=False):
            state = s[slot]
            for t in range(first, end):
                key = _unit(k[0, t])
                old = (state * gates[0, t].exp()[:, None] * key[:, None]).sum(-1)
                changes[slot, :, t - first] = (v[0, t] - old) * b[0, t].sigmoid()[:, None]
                kept[slot, :, t - first] = torch.cat([k[0, t], g[0, t]], -1)
                seen, state = step(state, _unit(q[0, t]) * keys**-0.5, key, v[0, t], gates[0, t], b[0, t].sigmoid())
                out.append(seen)
        return torch.stack(out)[None], changes, kept

    yield Row(
        "kimi_k3.kda_recoverssm_verify",
        reference,
        verified,
        (
            normal(1, 5, HEADS, keys), normal(1, 5, HEADS, keys) + 1, normal(1, 5, HEADS, values),
            normal(1, 5, HEADS, keys), normal(1, 5, HEADS), normal(HEADS), normal(HEADS, keys) + 1,
            normal(5, HEADS, values, keys),
        ),
    )  # fmt: skip


def _unit(x: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6)


def _checkpoints() -> Iterator[Row]:
    """Of three sequences the first and the last have a checkpoint, after four tokens and after five."""
    store = vllm("model_executor.layers.mamba.ops.ssd_checkpoint").store_prefill_checkpoint

    def stored(x: Tensor, conv: Tensor, chunks: Tensor, states: Tensor, slots: Tensor) -> tuple[Tensor, Tensor]:
        conv, states = conv.clone(), states.clone()
        checkpoint = SimpleNamespace(checkpoint_offsets=_int(4, 0, 5), state_indices=slots)
        store(checkpoint, _int(1, 0, 3), x, conv, chunks, states, _int(0, 6, 9), state_len=3)
        return conv, states

    given = (normal(8, 16), normal(6, 8, 3), normal(4, 2, 5), normal(6, 2, 5) + 1, torch.tensor([4, 1, 2]))
    yield Row("store_prefill_checkpoint", _stored, stored, given)
    kernel = vllm("model_executor.layers.mamba.kda_checkpoint").store_cache_checkpoints_kernel

    def kept(x: Tensor, conv: Tensor, found: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
        conv, states, offsets = conv.clone(), states.clone(), _int(4, 0, 5)
        kernel[(3, 2)](
            x, conv, found, states, _int(0, 6, 9), offsets, _int(4, 1, 2), *x.stride(), *conv.stride(),
            found.stride(0), states.stride(0), offsets.stride(0), 3, 8, 10, 0, 16,
        )  # fmt: skip
        return conv, states

    yield Row(
        "store_cache_checkpoints_kernel",
        lambda x, conv, found, states: _stored(x.T, conv, found[[0, 0, 1, 2]], states, torch.tensor([4, 1, 2])),
        kept,
        (normal(16, 8), normal(6, 8, 3), normal(3, 2, 5), normal(6, 2, 5) + 1),
    )


def _stored(x: Tensor, conv: Tensor, chunks: Tensor, states: Tensor, slots: Tensor) -> tuple[Tensor, Tensor]:
    own = slots[[0, 2]]
    last = torch.stack([x[:, 1:4], x[:, 11:14]])
    return conv.index_copy(0, own, last), states.index_copy(0, own, chunks[[1, 3]])
