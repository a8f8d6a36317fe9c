"""vLLM's gated delta rules token by token: states that are read and written in place, of tokens and of channels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F

from bench.kernel.rows import Row, Tensor, normal
from bench.kernel.vllm import vllm

OPS = "third_party.flash_linear_attention.ops"
BATCH, HEADS, GROUPS, KEYS, VALUES = 3, 4, 2, 24, 40
STARTS = (0, 3, 4, 8)


def rows() -> Iterator[Row]:
    """The functions, in order."""
    yield from _packed()
    yield from _stepped()
    yield from _sequences()


def delta_attention() -> Any:
    """vLLM's Kimi delta attention."""
    return vllm(f"{OPS}.kda")


def _unit(x: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6)


def _shared(x: Tensor) -> Tensor:
    return x.repeat_interleave(HEADS // GROUPS, -2)


def step(h: Tensor, q: Tensor, k: Tensor, v: Tensor, g: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """What a query sees after a token, and the state then; decays are of a head or of each channel of the keys."""
    decay = g.exp()
    h = h * (decay[..., None, :] if g.ndim == k.ndim else decay[..., None, None])
    v = (v - (h * k[..., None, :]).sum(-1)) * (b if b.ndim == v.ndim else b[..., None])
    h = h + v[..., None] * k[..., None, :]
    return (h * q[..., None, :]).sum(-1), h


def _packed() -> Iterator[Row]:
    run = vllm(f"{OPS}.fused_recurrent").fused_recurrent_gated_delta_rule_packed_decode
    given = (
        normal(BATCH, 2 * GROUPS * KEYS + HEADS * VALUES), normal(BATCH, HEADS), normal(BATCH, HEADS) + 1,
        normal(HEADS), normal(HEADS) + 1, normal(5, HEADS, VALUES, KEYS), torch.tensor([4, 1, 2]),
    )  # fmt: skip
    for norms in (False, True):

        def kernel(
            x: Tensor, a: Tensor, b: Tensor, log: Tensor, bias: Tensor, states: Tensor, slots: Tensor, n: bool = norms
        ) -> Any:
            return run(x, a, b, log, bias, 0.2, states.clone(), torch.empty(BATCH, 1, HEADS, VALUES), slots, n)

        yield Row(
            f"fused_recurrent_gated_delta_rule_packed_decode{' (unit keys)' if norms else ''}",
            lambda *a, n=norms: _unpacked(*a, norms=n),
            kernel,
            given,
            given=are_slots,
        )


def _unpacked(
    x: Tensor, a: Tensor, b: Tensor, log: Tensor, bias: Tensor, states: Tensor, slots: Tensor, *, norms: bool
) -> tuple[Tensor, Tensor]:
    """Slots up to zero are none: what belongs to them is zero, and no state is written."""
    q, k, v = x.split([GROUPS * KEYS, GROUPS * KEYS, HEADS * VALUES], -1)
    q, k = (t.unflatten(-1, (GROUPS, KEYS)) for t in (q, k))
    q, k = (_shared(_unit(t) if norms else t) for t in (q, k))
    g = -log.exp() * F.softplus(a + bias)
    own = slots.clamp(min=0)
    old = states.index_select(0, own)
    out, new = step(old, q * 0.2, k, v.unflatten(-1, (HEADS, VALUES)), g, b.sigmoid())
    some = slots > 0
    new = torch.where(some[:, None, None, None], new, old)
    return torch.where(some[:, None, None], out, 0.0)[:, None], states.index_copy(0, own, new)


def _tokens(count: int, batch: int) -> tuple[Tensor, Tensor, Tensor]:
    return (
        normal(batch, count, GROUPS, KEYS),
        normal(batch, count, GROUPS, KEYS) / 4,
        normal(batch, count, HEADS, VALUES),
    )


def _one_by_one(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, b: Tensor, state: Tensor, scale: float = 0.2
) -> tuple[Tensor, Tensor]:
    """Outputs and states of all tokens, of which the second axis is time."""
    out, states = [], []
    for n in range(q.shape[1]):
        seen, state = step(state, _shared(q[:, n]) * scale, _shared(k[:, n]), v[:, n], g[:, n], b[:, n])
        out.append(seen)
        states.append(state)
    return torch.stack(out, 1), torch.stack(states, 1)


def _stepped() -> Iterator[Row]:
    run = vllm(f"{OPS}.fused_recurrent").fused_recurrent_gated_delta_rule
    q, k, v = _tokens(1, BATCH)
    g, b, h = -normal(BATCH, 1, HEADS).abs(), normal(BATCH, 1, HEADS).sigmoid(), normal(BATCH, HEADS, VALUES, KEYS)
    slots = torch.tensor([4, 1, 2])
    yield Row(
        "fused_recurrent_gated_delta_rule (a token of each slot)",
        _in_slots(lambda *a: _one_by_one(*a)),
        lambda q, k, v, g, b, s, i: run(q, k, v, g, b, 0.2, s.clone(), True, None, i),
        (q, k, v, g, b, normal(6, HEADS, VALUES, KEYS), slots),
        given=are_slots,
    )
    yield Row(
        "fused_recurrent_gated_delta_rule (a token of each slot, unit keys, gates of channels)",
        _in_slots(lambda q, k, *a: _one_by_one(_unit(q), _unit(k), *a)),
        lambda q, k, v, g, b, s, i: run(q, k, v, g, b, 0.2, s.clone(), True, None, i, use_qk_l2norm_in_kernel=True),
        (q, k, v, g, normal(BATCH, 1, HEADS, VALUES).sigmoid(), normal(6, HEADS, VALUES, KEYS), slots),
        given=are_slots,
    )
    q, k, v = _tokens(5, 1)
    yield Row(
        "fused_recurrent_gated_delta_rule (one sequence, all states)",
        lambda *a: tuple(x.flatten(0, 1) if n else x for n, x in enumerate(_one_by_one(*a))),
        lambda q, k, v, g, b, h: run(q, k, v, g, b, 0.2, h, False),
        (q, k, v, -normal(1, 5, HEADS).abs(), normal(1, 5, HEADS).sigmoid(), h[:1].contiguous()),
    )
    q, k, v = _tokens(3, 2)
    yield Row(
        "fused_recurrent_gated_delta_rule (two sequences, all states)",
        lambda *a: _one_by_one(*a)[0],
        lambda q, k, v, g, b, h: run(q, k, v, g, b, 0.2, h, False)[0],
        (q, k, v, -normal(2, 3, HEADS).abs(), normal(2, 3, HEADS).sigmoid(), h[:2].contiguous()),
    )
    kda = delta_attention().fused_recurrent_kda
    for size in (32, KEYS):
        q, k, v = normal(BATCH, 1, HEADS, size), normal(BATCH, 1, HEADS, size) / 4, normal(BATCH, 1, HEADS, size)
        channels = (-q.abs(), normal(BATCH, 1, HEADS).sigmoid(), normal(6, HEADS, size, size))
        yield Row(
            f"fused_recurrent_kda (a token of each slot, {size} channels)",
            _in_slots(_channels),
            lambda q, k, v, g, b, s, i: kda(q, k, v, g, b, 0.2, s.clone(), ssm_state_indices=i),
            (q, k, v, *channels, slots),
            given=are_slots,
        )


def _channels(q: Tensor, k: Tensor, v: Tensor, g: Tensor, b: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    out, state = step(state, _unit(q[:, 0]) * 0.2, _unit(k[:, 0]), v[:, 0], g[:, 0], b[:, 0])
    return out[:, None], state[:, None]


def are_slots(*args: Tensor) -> Tensor:
    """Whether the last argument holds slots, and none that stands for no slot."""
    return args[-1] > 0


def _in_slots(function: Callable[..., Any]) -> Callable[..., Any]:
    """States are those of slots, and what is written to a slot is the state after the token.

    Slots up to zero are none; the program needs none of these, since their outputs are never written.
    """

    def run(*args: Tensor) -> tuple[Tensor, Tensor]:
        *given, states, slots = args
        out, new = function(*given, states.index_select(0, slots))
        return out, states.index_copy(0, slots, new[:, 0])

    return run


def _sequences() -> Iterator[Row]:
    run = vllm(f"{OPS}.fused_sigmoid_gating").fused_sigmoid_gating_delta_rule_update
    q, k, v = _tokens(1, BATCH)
    parameters = (normal(HEADS), normal(HEADS) + 1)
    gates = (normal(BATCH, 1, HEADS), normal(BATCH, 1, HEADS) + 1)
    states, slots = normal(6, HEADS, VALUES, KEYS), torch.tensor([4, 1, 2])
    yield Row(
        "fused_sigmoid_gating_delta_rule_update (a token of each slot)",
        lambda log, bias, a, b, *rest: _in_slots(lambda *x: _gated(log, bias, a, b, *x))(*rest),
        lambda log, bias, a, b, q, k, v, s, i: run(
            log, a, b, bias, q, k, v, scale=0.2, initial_state=s.clone(), ssm_state_indices=i,
            use_qk_l2norm_in_kernel=True,
        ),
        (*parameters, *gates, q, k, v, states, slots),
        given=are_slots,
    )  # fmt: skip
    q, k, v = _tokens(5, 1)
    gates = (normal(1, 5, HEADS), normal(1, 5, HEADS) + 1)
    yield Row(
        "fused_sigmoid_gating_delta_rule_update (one sequence, all states)",
        lambda log, bias, a, b, *rest: _all_states(*_gated(log, bias, a, b, *rest)),
        lambda log, bias, a, b, q, k, v, s: run(
            log, a, b, bias, q, k, v, scale=0.2, initial_state=s, inplace_final_state=False,
            use_qk_l2norm_in_kernel=True,
        ),
        (*parameters, *gates, q, k, v, states[:1].contiguous()),
    )  # fmt: skip
    wide = (normal(HEADS), normal(HEADS, 32) + 1)
    for count in (1, 3):
        q, k = normal(1, count, HEADS, 32), normal(1, count, HEADS, 32) / 4
        yield Row(
            f"fused_sigmoid_gating_delta_rule_update (channels, {'a token' if count == 1 else 'three tokens'})",
            lambda log, bias, a, b, *rest: _all_states(*_gated_channels(log, bias, a, b, *rest)),
            lambda log, bias, a, b, q, k, v, s: run(
                log, a, b, bias, q, k, v, scale=0.2, initial_state=s, inplace_final_state=False,
                use_qk_l2norm_in_kernel=True, is_kda=True,
            ),
            (
                *wide, normal(1, count, HEADS, 32), normal(1, count, HEADS) + 1, q, k, normal(1, count, HEADS, VALUES),
                normal(1, HEADS, VALUES, 32),
            ),
        )  # fmt: skip


def _all_states(out: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
    return out, states.flatten(0, 1)


def _gated(
    log: Tensor, bias: Tensor, a: Tensor, b: Tensor, q: Tensor, k: Tensor, v: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    return _one_by_one(_unit(q), _unit(k), v, -log.exp() * F.softplus(a + bias), b.sigmoid(), state)


def _gated_channels(
    log: Tensor, bias: Tensor, a: Tensor, b: Tensor, q: Tensor, k: Tensor, v: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    g, b = -log.exp()[:, None] * F.softplus(a + bias), b.sigmoid()
    out, states = [], []
    for n in range(q.shape[1]):
        seen, state = step(state, _unit(q[:, n]) * 0.2, _unit(k[:, n]), v[:, n], g[:, n], b[:, n])
        out.append(seen)
        states.append(state)
    return torch.stack(out, 1), torch.stack(states, 1)
