"""vLLM's lightning attention: decays that are numbers of heads, in blocks, and by slots in speculation."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from bench.kernel.rows import Row, Tensor, normal
from bench.kernel.vllm import vllm

HEADS, KEYS, VALUES = 2, 64, 16


def rows() -> Iterator[Row]:
    """The functions, in order."""
    run = vllm("model_executor.layers.lightning_attn").lightning_attention
    length = 70
    given = (normal(1, HEADS, length, KEYS), normal(1, HEADS, length, KEYS) + 1, normal(1, HEADS, length, VALUES))
    slopes = normal(HEADS) - 2  # their logarithms
    yield Row(
        "lightning_attention",
        lambda q, k, v, s: _attention(q, k, v, s, q.new_zeros(1, HEADS, KEYS, VALUES)),
        lambda q, k, v, s: run(q, k, v, s.exp()),
        (*given, slopes),
    )
    yield Row(
        "lightning_attention (from a state)",
        _attention,
        lambda q, k, v, s, h: run(q, k, v, s.exp(), kv_history=h),
        (*given, slopes, normal(1, HEADS, KEYS, VALUES)),
    )
    long = tuple(normal(1, 1, 300, size) / 4 for size in (KEYS, KEYS, VALUES))
    yield Row(
        "lightning_attention (two blocks)",
        lambda q, k, v, s: _attention(q, k, v, s, q.new_zeros(1, 1, KEYS, VALUES))[0],
        lambda q, k, v, s: run(q, k, v, s.exp())[0],
        (*long, slopes[:1]),
    )
    spec = vllm("model_executor.layers.mamba.linear.bailing_linear_attn")._bailing_linear_attn_decode_spec_step_kernel

    def stepped(q: Tensor, k: Tensor, v: Tensor, states: Tensor, s: Tensor, slots: Tensor) -> tuple[Tensor, Tensor]:
        """The first token of three sequences of two tokens each, of which two were accepted before."""
        states, out = states.clone(), torch.zeros(6, HEADS * 32)
        starts, accepted = torch.tensor([0, 2, 4, 6]), torch.tensor([2, 2, 2])
        spec[(3, HEADS, 2)](
            q, k, v, states, s, slots, starts, accepted, out, 0, 32, *q.stride(), *k.stride(), *v.stride(),
            *states.stride(), *slots.stride(), *out.stride(), DRAFT_IDX=0, STATE_WIDTH=2, BLOCK_SIZE=16,
        )  # fmt: skip
        return out, states

    tokens = (normal(6, HEADS, 32), normal(6, HEADS, 32) + 1, normal(6, HEADS, 32) + 2)
    yield Row(
        "_bailing_linear_attn_decode_spec_step_kernel",
        _stepped,
        stepped,
        (*tokens, normal(8, HEADS, 32, 32), slopes, torch.tensor([[0, 1], [2, 3], [6, 5]])),
    )


def _attention(q: Tensor, k: Tensor, v: Tensor, s: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """What queries see of tokens up to their own and of the state before, and the states before and after."""
    length = q.shape[2]
    place, s = torch.arange(length), s.exp()[:, None, None]
    apart = place[:, None] - place
    decay = torch.where(apart >= 0, (-s * apart).exp(), 0.0)
    out = (q @ k.mT * decay) @ v + (-s * (place + 1)[:, None]).exp() * (q @ h)
    after = (-s * length).exp() * h + (k * (-s * (length - 1 - place)[:, None]).exp()).mT @ v
    return out, torch.stack([h, after], 2)


def _stepped(q: Tensor, k: Tensor, v: Tensor, states: Tensor, s: Tensor, slots: Tensor) -> tuple[Tensor, Tensor]:
    old = states.index_select(0, slots[:, 1])
    new = k[::2, :, :, None] * v[::2, :, None] + (-s).exp()[:, None, None] * old
    out = (q[::2, :, :, None] * new).sum(2).flatten(1)
    return torch.stack([out, torch.zeros_like(out)], 1).flatten(0, 1), states.index_copy(0, slots[:, 0], new)
