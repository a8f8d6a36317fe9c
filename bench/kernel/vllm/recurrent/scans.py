"""vLLM's state-space models chunk by chunk, and what is kept of them: states of chunks, scans, slots, trackers."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import torch
import torch.nn.functional as F

from bench.kernel.rows import Row, Tensor, normal
from bench.kernel.vllm import vllm

OPS = "model_executor.layers.mamba.ops"
CHUNK, CHUNKS, HEADS, GROUPS, WIDTH, STATE = 16, 3, 4, 2, 24, 20
LENGTH = 40
STARTS, OWNERS, LAST = (0, 16, 24, 40), (0, 0, 1), (1, 2)
"""Where chunks start, the sequence of each, and the last chunk of each sequence."""


def rows() -> Iterator[Row]:
    """The functions, in order."""
    yield from _chunks()
    yield from _slots()


def _int(numbers: tuple[int, ...]) -> Tensor:
    return torch.tensor(numbers, dtype=torch.int32)


def _of(x: Tensor, chunk: int) -> Tensor:
    return x[STARTS[chunk] : STARTS[chunk + 1]]


def _shared(x: Tensor) -> Tensor:
    return x.repeat_interleave(HEADS // GROUPS, 1)


def _chunks() -> Iterator[Row]:
    x, b, c = normal(LENGTH, HEADS, WIDTH), normal(LENGTH, GROUPS, STATE), normal(LENGTH, GROUPS, STATE) + 1
    steps, sums = normal(HEADS, CHUNKS, CHUNK).exp(), -normal(HEADS, CHUNKS, CHUNK).abs().cumsum(-1)
    states = vllm(f"{OPS}.ssd_chunk_state")._chunk_state_fwd
    yield Row("_chunk_state_fwd", _states, lambda b, x, d, a: states(b, x, d, a, _int(STARTS)), (b, x, steps, sums))
    passing = vllm(f"{OPS}.ssd_state_passing")._state_passing_fwd
    flat, first = normal(CHUNKS, HEADS, 100), normal(2, HEADS, 100) + 1
    yield Row(
        "_state_passing_fwd",
        lambda s, a: _passed(s, a, torch.zeros(2, HEADS, 100)),
        lambda s, a: passing(s, a, _int(LAST)),
        (flat, sums),
    )
    yield Row(
        "_state_passing_fwd (from states)", _passed, lambda s, a, i: passing(s, a, _int(LAST), i), (flat, sums, first)
    )
    scan = vllm(f"{OPS}.ssd_chunk_scan")._chunk_scan_fwd
    scores, old = normal(CHUNKS, GROUPS, CHUNK, CHUNK), normal(CHUNKS, HEADS, WIDTH, STATE)

    def scanned(cb: Tensor, x: Tensor, d: Tensor, a: Tensor, c: Tensor, s: Tensor, *rest: Tensor) -> Tensor:
        out = torch.empty_like(x)
        scan(cb, x, d, a, c, s, _int(STARTS), out, _int(OWNERS), *rest)
        return out

    given = (scores, x, steps, sums, c, old)
    yield Row("_chunk_scan_fwd", lambda *a: _scanned(*a), scanned, given)
    yield Row(
        "_chunk_scan_fwd (skips, gates, from states)",
        lambda *a: _scanned(*a),
        scanned,
        (*given, normal(HEADS), normal(LENGTH, HEADS, WIDTH) + 1, normal(2, HEADS, WIDTH, STATE) + 1),
    )
    whole = vllm(f"{OPS}.ssd_combined").mamba_chunk_scan_combined_varlen

    def combined(x: Tensor, d: Tensor, a: Tensor, b: Tensor, c: Tensor, skip: Tensor) -> tuple[Tensor, Tensor]:
        out = torch.empty_like(x)
        last = whole(
            x, d, -a.abs(), b, c, CHUNK, _int((0, 24, 40)), _int(STARTS), _int(LAST), _int(OWNERS), out, D=skip,
            dt_softplus=True,
        )  # fmt: skip
        return out, last

    yield Row(
        "mamba_chunk_scan_combined_varlen",
        _recurrent,
        combined,
        (x, normal(LENGTH, HEADS), normal(HEADS), b, c, normal(HEADS)),
    )


def _states(b: Tensor, x: Tensor, d: Tensor, a: Tensor) -> Tensor:
    """What the tokens of a chunk add to the state after it."""
    found = []
    for n in range(CHUNKS):
        size = STARTS[n + 1] - STARTS[n]
        weight = (a[:, n, -1:] - a[:, n, :size]).clamp(max=0).exp() * d[:, n, :size]
        found.append(torch.einsum("tsn,st,tsp->spn", _shared(_of(b, n)), weight, _of(x, n)))
    return torch.stack(found)


def _passed(s: Tensor, a: Tensor, first: Tensor) -> Tensor:
    """The state after each chunk of what its sequence has seen."""
    found: list[Tensor] = []
    for n in range(CHUNKS):
        before = found[-1] if n and OWNERS[n] == OWNERS[n - 1] else first[OWNERS[n]]
        found.append(a[:, n, -1].exp()[:, None] * before + s[n])
    return torch.stack(found)


def _scanned(
    cb: Tensor, x: Tensor, d: Tensor, a: Tensor, c: Tensor, s: Tensor, skip: Tensor | None = None,
    z: Tensor | None = None, first: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """What tokens see of the state before their chunk, and of the tokens in it up to themselves."""
    found = []
    for n in range(CHUNKS):
        size = STARTS[n + 1] - STARTS[n]
        new = n == 0 or OWNERS[n] != OWNERS[n - 1]
        before = s[n - 1] if not new else torch.zeros(HEADS, WIDTH, STATE) if first is None else first[OWNERS[n]]
        sums = a[:, n, :size]
        seen = torch.einsum("tsn,spn,st->tsp", _shared(_of(c, n)), before, sums.exp())
        weight = (sums[:, :, None] - sums[:, None]).clamp(max=0).exp() * d[:, n, None, :size]
        own = cb[n].repeat_interleave(HEADS // GROUPS, 0)[:, :size, :size] * weight
        up_to = torch.ones(size, size, dtype=torch.bool).tril()
        found.append(seen + torch.einsum("sij,jsp->isp", torch.where(up_to, own, 0.0), _of(x, n)))
    out = torch.cat(found)
    out = out if skip is None else out + x * skip[:, None]
    return out if z is None else out * F.silu(z)


def _recurrent(x: Tensor, d: Tensor, a: Tensor, b: Tensor, c: Tensor, skip: Tensor) -> tuple[Tensor, Tensor]:
    """The model token by token, for two sequences; decays are below one."""
    steps, a, b, c = F.softplus(d), -a.abs(), _shared(b), _shared(c)
    out, last = [], []
    for first, end in ((0, 24), (24, LENGTH)):
        state = torch.zeros(HEADS, WIDTH, STATE)
        for t in range(first, end):
            state = state * (steps[t] * a).exp()[:, None, None]
            state = state + (steps[t][:, None] * x[t])[..., None] * b[t][:, None]
            out.append((state * c[t][:, None]).sum(-1) + skip[:, None] * x[t])
        last.append(state)
    return torch.stack(out), torch.stack(last)


def _slots() -> Iterator[Row]:
    scatter = vllm(f"{OPS}.scatter_states")._scatter_states_kernel

    def scattered(states: Tensor, new: Tensor, slots: Tensor) -> Tensor:
        states = states.clone()
        size = states[0].numel()
        scatter[(-(-size // 16), slots.shape[0])](
            states, new, slots, states.stride(0), new.stride(0), slots.stride(0), row_size=size, BLOCK_SIZE=16,
            launch_pdl=False,
        )  # fmt: skip
        return states

    yield Row(
        "_scatter_states_kernel",
        lambda s, new, i: s.index_copy(0, i, new),
        scattered,
        (normal(6, 5, 8), normal(3, 5, 8) + 1, torch.tensor([4, 0, 2])),
    )
    trackers = vllm(f"{OPS}.ssu_dispatch")
    generator = torch.Generator().manual_seed(0)
    tracked = tuple(torch.randint(0, 4, (8,), generator=generator, dtype=torch.int32) for _ in range(3))
    slots = torch.tensor([3, 5, 2], dtype=torch.int32)

    def moved(start: Tensor, count: Tensor, slots: Tensor) -> tuple[Tensor, Tensor]:
        start, count = start.clone(), count.clone()
        trackers.update_replayssm_ring_trackers(start, count, torch.zeros_like(start), slots, 3, 8)
        return start, count

    yield Row("update_replayssm_ring_trackers", _moved, moved, (*tracked[:2], slots))

    def reset(start: Tensor, count: Tensor, length: Tensor, slots: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        start, count, length = start.clone(), count.clone(), length.clone()
        trackers.reset_replayssm_ring_trackers(start, count, length, slots)
        return start, count, length

    yield Row(
        "reset_replayssm_ring_trackers",
        lambda *a: tuple(torch.where(_chosen(a[3]), 0, x) for x in a[:3]),
        reset,
        (*tracked, slots),
    )

    def committed(
        start: Tensor, count: Tensor, length: Tensor, slots: Tensor, accepted: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        start, count, length = start.clone(), count.clone(), length.clone()
        trackers.commit_replayssm_ring_trackers(start, count, length, slots, accepted, _int((0, 2, 5, 9)), 3, 8)
        return start, count, length

    accepted = (*tracked, slots, _int((1, 2, 1)))
    yield Row("commit_replayssm_ring_trackers", _committed, committed, accepted, given=_are_trackers)
    conv = vllm(f"{OPS}.causal_conv1d").causal_conv1d_fn

    def convolved(x: Tensor, w: Tensor, b: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
        """Of the first sequence there are two blocks of up to eight tokens, and one of the second."""
        states = states.clone()
        owners, offsets = _int((0, 0, 1)), _int((0, 1, 0))
        blocks = {8: {"tot": 3, "mlist": owners, "mlist_len": 3, "offsetlist": offsets, "batch_ptr": owners}}
        blocks[8]["token_chunk_offset_ptr"] = offsets
        metadata = SimpleNamespace(nums_dict=blocks, batch_ptr=owners, token_chunk_offset_ptr=offsets)
        some = torch.tensor([True, False])
        out = conv(x, w, b, states, _int((0, 12, 20)), _int((2, 1)), some, "silu", metadata=metadata)
        return out, states

    yield Row("causal_conv1d_fn", _convolved, convolved, (normal(8, 20), normal(8, 4), normal(8), normal(4, 8, 3)))


def _are_trackers(start: Tensor, count: Tensor, length: Tensor, slots: Tensor, accepted: Tensor) -> tuple[Tensor, ...]:
    """Sequences have trackers of their own, which hold as many steps as they can."""
    apart = (slots[:, None] != slots) | torch.eye(3, dtype=torch.bool)
    whole = [x >= 0 for x in (start, count, length, slots, accepted)]
    return apart, slots < 8, start < 8, count <= 8, *whole


def _chosen(slots: Tensor) -> Tensor:
    """Which of the eight trackers are a slot's; slot zero is none."""
    return ((slots[:, None] == torch.arange(8)) & (slots[:, None] != 0)).any(0)


def _moved(start: Tensor, count: Tensor, slots: Tensor) -> tuple[Tensor, Tensor]:
    full = count + 1 > 3
    chosen = _chosen(slots)
    return (
        torch.where(chosen & full, (start + count) % 8, start),
        torch.where(chosen, torch.where(full, 1, count + 1), count),
    )


def _committed(
    start: Tensor, count: Tensor, length: Tensor, slots: Tensor, accepted: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    own = (slots[:, None] == torch.arange(8)) & (slots[:, None] != 0)
    chosen = own.any(0)
    taken = (own * accepted[:, None]).sum(0)
    now = (own * torch.tensor([2, 3, 4])[:, None]).sum(0)
    full = (length > 0) & (count + length > 3)
    after = torch.where(length == 0, 0, torch.where(full, taken, count + taken))
    return (
        torch.where(chosen & full, (start + count) % 8, start),
        torch.where(chosen, after, count).int(),
        torch.where(chosen, now, length).int(),
    )


def _convolved(x: Tensor, w: Tensor, b: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
    first = torch.cat([states[2], x[:, :12]], 1)
    second = F.pad(x[:, 12:], (3, 0))
    out = [F.silu(F.conv1d(part[None], w[:, None], b, groups=8)[0]) for part in (first, second)]
    found = states.clone()
    found[2], found[1] = first[:, -3:], second[:, -3:]
    return torch.cat(out, 1), found
