"""vLLM's caches and what it looks up: slots of a cache, rows of a table, lengths of a rank."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import torch
import torch.nn.functional as F

from bench.kernel.rows import Row, Tensor, are_places, normal
from bench.kernel.vllm import vllm


def rows() -> Iterator[Row]:
    """The functions, in order."""
    yield Row("triton_reshape_and_cache_flash", _cached, _cache_kernel, _cache(), given=are_places)
    states = (normal(5, 3, 16), torch.tensor([4, 0, 2]), torch.tensor([True, False, True]))
    yield Row("_gather_initial_states_kernel", _initial, _initial_kernel, states)
    embed = vllm("model_executor.layers.fused_embed_norm")
    ids = torch.tensor([3, 0, 7, 7, 1])
    yield Row(
        "fused_embed_norm",
        lambda ids, table, w: (F.embedding(ids, table), F.rms_norm(F.embedding(ids, table), (40,), w, 1e-6)),
        lambda ids, table, w: embed.fused_embed_norm(ids, table, w, 1e-6),
        (ids, normal(9, 40), normal(40)),
        {"ids": "tokens"},
    )
    yield Row("_dcp_local_seq_lens_kernel", _lengths, _length_kernel, (torch.tensor([0, 5, 17, 100, 31]),))
    yield Row("_dcp_a2a_pack_send", _packed, _pack_kernel, (normal(5, 6, 16), normal(5, 6)))
    rope = vllm("model_executor.layers.rotary_embedding.mrope").triton_mrope
    angles = normal(3, 5, 8)
    given = (normal(5, 64), normal(5, 32), angles.cos(), angles.sin())
    for interleaved in (False, True):
        yield Row(
            f"triton_mrope ({'interleaved' if interleaved else 'one after the other'})",
            lambda q, k, c, s, i=interleaved: _rotated(q, k, c, s, i),
            lambda q, k, c, s, i=interleaved: rope(q.clone(), k.clone(), c, s, [4, 2, 2], 16, 16, i, True),
            given,
        )


def _cache() -> tuple[Tensor, ...]:
    """Keys and values of 5 tokens, caches of 4 blocks of 8 tokens, and each token's slot."""
    return (
        normal(5, 2, 16),
        normal(5, 2, 16) + 1,
        normal(4, 8, 2, 16),
        normal(4, 8, 2, 16),
        torch.tensor([3, 17, 4, 31, 8]),
    )


def _cached(k: Tensor, v: Tensor, keys: Tensor, values: Tensor, slots: Tensor) -> tuple[Tensor, Tensor]:
    found = [c.flatten(0, 1).index_copy(0, slots, x).unflatten(0, (4, 8)) for c, x in ((keys, k), (values, v))]
    return found[0], found[1]


def _cache_kernel(k: Tensor, v: Tensor, keys: Tensor, values: Tensor, slots: Tensor) -> tuple[Tensor, Tensor]:
    keys, values, one = keys.clone(), values.clone(), torch.ones(1)
    run = vllm("v1.attention.ops.triton_reshape_and_cache_flash").triton_reshape_and_cache_flash
    with mock.patch.object(torch.cuda, "get_device_capability", return_value=(9, 0)):  # of any device
        run(k, v, keys, values, slots, "auto", one, one)
    return keys, values


def _initial(states: Tensor, numbers: Tensor, has: Tensor) -> Tensor:
    return torch.where(has[:, None, None], states.index_select(0, torch.where(has, numbers, 0)), 0.0)


def _initial_kernel(states: Tensor, numbers: Tensor, has: Tensor) -> Tensor:
    out = torch.empty(3, 3, 16)
    kernel = vllm("model_executor.layers.mamba.ops.gather_initial_states")._gather_initial_states_kernel
    kernel[(1, 3)](states, numbers, has, out, states.stride(0), 1, 1, row_size=48, BLOCK_SIZE=64, launch_pdl=False)
    return out


def _lengths(lengths: Tensor) -> Tensor:
    rest = (torch.fmod(lengths, 8) - 1 * 2).clamp(min=0).clamp(max=2)
    return F.pad(torch.div(lengths, 8, rounding_mode="trunc") * 2 + rest, (0, 3))


def _length_kernel(lengths: Tensor) -> Tensor:
    out = torch.empty(8, dtype=torch.int64)
    kernel = vllm("v1.worker.gpu.cp_utils")._dcp_local_seq_lens_kernel
    kernel[(1,)](out, lengths, 4, 1, 2, 5, 8, BLOCK_SIZE=128)
    return out


def _packed(out: Tensor, lse: Tensor) -> Tensor:
    whole = torch.cat([out, lse[..., None]], -1)
    return whole.unflatten(1, (2, 3)).transpose(0, 1)


def _pack_kernel(out: Tensor, lse: Tensor) -> Tensor:
    send = torch.empty(2, 5, 3, 17)
    vllm("v1.attention.ops.dcp")._dcp_a2a_pack_send(out, lse, send, 2, 3, 16, 1)
    return send


def _rotated(q: Tensor, k: Tensor, c: Tensor, s: Tensor, interleaved: bool) -> tuple[Tensor, Tensor]:
    def chosen(x: Tensor) -> Tensor:
        if not interleaved:
            return torch.cat([x[0, :, :4], x[1, :, 4:6], x[2, :, 6:]], -1)
        place = torch.arange(8)
        high, wide = (place % 3 == 1) & (place <= 6), (place % 3 == 2) & (place <= 6)
        return torch.where(high, x[1], torch.where(wide, x[2], x[0]))

    cos, sin = chosen(c)[:, None], chosen(s)[:, None]

    def turned(x: Tensor) -> Tensor:
        a, b = x.unflatten(-1, (-1, 16)).chunk(2, -1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)

    return turned(q), turned(k)
