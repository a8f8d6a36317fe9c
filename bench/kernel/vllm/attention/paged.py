"""vLLM's caches of keys and values: what is written to the slots that a tensor says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch

from bench.kernel.rows import Row, Tensor, normal
from bench.kernel.vllm import vllm

SLOTS = torch.tensor([3, 17, 4, 31, 8])
SOME = torch.tensor([3, -1, 4, 31, -1])


def rows() -> Iterator[Row]:
    """The functions, in order."""
    flash = vllm("v1.attention.ops.triton_reshape_and_cache_flash")
    keys, values = normal(5, 2, 16), normal(5, 2, 16) + 1
    for name, slots in (("", SLOTS), (", some tokens without a slot", SOME)):
        yield Row(
            f"reshape_and_cache_kernel_flash (short tiles{name})",
            lambda k, v, a, b, slots: (_written(a, slots, k), _written(b, slots, v)),
            lambda k, v, a, b, slots: _flash(flash.reshape_and_cache_kernel_flash, k, v, a, b, slots),
            (keys, values, normal(4, 8, 2, 16), normal(4, 8, 2, 16), slots),
        )
    yield Row(
        "triton_reshape_and_cache_flash (heads first)",
        _heads_first,
        lambda k, v, a, b, slots: _whole(flash, k, v, a, b, slots),
        (keys, values, normal(4, 2, 4, 8, 4), normal(4, 2, 16, 8), SLOTS),
    )
    yield Row(
        "triton_reshape_and_cache_flash_diffkv",
        lambda k, v, c, slots: _written(c, slots, torch.cat([k, v], -1)),
        lambda k, v, c, slots: _both(flash, k, v, c, slots),
        (keys, normal(5, 2, 12), normal(4, 8, 2, 28), SLOTS),
    )
    yield Row(
        "_reshape_cache_per_token_head (int8)",
        _rounded,
        lambda k, v, a, b, s, t, slots: _heads(flash, k, v, a, b, s, t, slots),
        (
            keys,
            values,
            torch.zeros(4, 8, 2, 16, dtype=torch.int8),
            torch.zeros(4, 8, 2, 16, dtype=torch.int8),
            normal(4, 8, 2),
            normal(4, 8, 2),
            SLOTS,
        ),
    )
    partial = vllm("models.deepseek_v4.common.ops.save_partial_states")
    kernel = next(x.kernel for x in vars(partial).values() if hasattr(x, "kernel") and isinstance(x, type))
    for name, slots in (("", SLOTS), (" (some tokens without a slot)", SOME)):
        yield Row(
            f"save_partial_states (DeepSeek V4){name}",
            _states,
            lambda x, s, a, places, cache, slots: _save(kernel, x, s, a, places, cache, slots),
            (normal(5, 24), normal(5, 24), normal(4, 24), torch.tensor([9, 0, 2, 7, 5]), normal(4, 8, 48), slots),
        )
    sconv = vllm("models.inkling.nvidia.ops.sconv")
    yield Row("sconv_seq_metadata (Inkling)", _owners, lambda lengths: _metadata(sconv, lengths),
              (torch.tensor([2, 0, 5], dtype=torch.int32),))  # fmt: skip
    yield Row(
        "fused_sconv (Inkling, a new sequence)",
        lambda x, w, cache: _convolved(x, w, cache),
        lambda x, w, cache: _convolve(sconv, x, w, cache),
        (normal(9, 24), normal(24, 4), normal(4, 2, 8, 20)),
    )


def _written(cache: Tensor, slots: Tensor, new: Tensor) -> Tensor:
    """The cache with the new rows in their slots, where these are not negative."""
    flat = cache.flatten(0, 1)
    longer = torch.cat([flat, flat[:1]])  # a last row for the tokens that have no slot
    at = torch.where(slots >= 0, slots, flat.shape[0])
    return longer.index_copy(0, at, new)[:-1].unflatten(0, cache.shape[:2])


def _flash(kernel: Any, k: Tensor, v: Tensor, a: Tensor, b: Tensor, slots: Tensor) -> tuple[Tensor, Tensor]:
    a, b, one = a.clone(), b.clone(), torch.ones(1)
    kernel[(5, 2)](
        key_ptr=k, value_ptr=v, key_cache_ptr=a, value_cache_ptr=b, slot_mapping_ptr=slots, k_scale=one, v_scale=one,
        key_stride=k.stride(0), value_stride=v.stride(0), block_stride=a.stride(0), head_stride=a.stride(2),
        dim_stride_k=0, dim_stride_v=0, page_stride=a.stride(1), num_heads=2, head_size=16, block_size=8, x=1,
        USE_HEAD_MAJOR_LAYOUT=False, FP8_KV_CACHE=False, TILE_SIZE=16,
    )  # fmt: skip
    return a, b


def _heads_first(k: Tensor, v: Tensor, a: Tensor, b: Tensor, slots: Tensor) -> tuple[Tensor, Tensor]:
    keys = a.permute(0, 3, 1, 2, 4).reshape(32, 2, 4, 4).index_copy(0, slots, k.unflatten(2, (4, 4)))
    values = b.permute(0, 3, 1, 2).reshape(32, 2, 16).index_copy(0, slots, v)
    return keys.view(4, 8, 2, 4, 4).permute(0, 2, 3, 1, 4), values.view(4, 8, 2, 16).permute(0, 2, 3, 1)


def _whole(module: Any, k: Tensor, v: Tensor, a: Tensor, b: Tensor, slots: Tensor) -> tuple[Tensor, Tensor]:
    a, b, one = a.clone(), b.clone(), torch.ones(1)
    with mock.patch.object(torch.cuda, "get_device_capability", return_value=(9, 0)):  # of any device
        module.triton_reshape_and_cache_flash(k, v, a, b, slots, "auto", one, one)
    return a, b


def _both(module: Any, k: Tensor, v: Tensor, cache: Tensor, slots: Tensor) -> Tensor:
    cache, one = cache.clone(), torch.ones(1)
    module.triton_reshape_and_cache_flash_diffkv(k, v, cache, slots, "auto", one, one)
    return cache


def _rounded(
    k: Tensor, v: Tensor, a: Tensor, b: Tensor, s: Tensor, t: Tensor, slots: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    found = []
    for x, cache, scales in ((k, a, s), (v, b, t)):
        scale = (x.abs().amax(-1) / 127).clamp(min=1e-6)
        scaled = x / scale[..., None]
        away = torch.where(scaled >= 0, scaled + 0.5, scaled - 0.5).clamp(-128, 127).to(torch.int8)
        found += [_written(cache, slots, away), _written(scales, slots, scale)]
    return found[0], found[2], found[1], found[3]


def _heads(
    module: Any, k: Tensor, v: Tensor, a: Tensor, b: Tensor, s: Tensor, t: Tensor, slots: Tensor
) -> tuple[Tensor, ...]:
    mine = [x.clone() for x in (a, b, s, t)]
    module.triton_reshape_and_cache_flash_per_token_head_quant(k, v, *mine, slots, None)
    return tuple(mine)


def _states(x: Tensor, s: Tensor, a: Tensor, places: Tensor, cache: Tensor, slots: Tensor) -> Tensor:
    return _written(cache, slots, torch.cat([x, s + a.index_select(0, torch.remainder(places, 4))], 1))


def _save(kernel: Any, x: Tensor, s: Tensor, a: Tensor, places: Tensor, cache: Tensor, slots: Tensor) -> Tensor:
    cache = cache.clone()
    kernel[(5,)](
        x, x.stride(0), s, s.stride(0), a, a.stride(0), places, cache, cache.stride(0), cache.stride(1), slots, 8,
        HEAD_SIZE=24, TRITON_BLOCK_SIZE=32, STATE_WIDTH=24, COMPRESS_RATIO=4,
    )  # fmt: skip
    return cache


def _starts(lengths: Tensor) -> Tensor:
    return torch.nn.functional.pad(lengths.clamp(min=0).cumsum(0), (1, 0)).int()


def _owners(lengths: Tensor) -> tuple[Tensor, Tensor]:
    """The last sequence that starts at a token or before, and where it starts."""
    starts = _starts(lengths)
    before = starts[:3] <= torch.arange(7)[:, None]
    owner = (before.sum(1) - 1).clamp(min=0)
    return owner.int(), starts.index_select(0, owner)


def _metadata(module: Any, lengths: Tensor) -> tuple[Tensor, Tensor]:
    owners, first = torch.empty(7, dtype=torch.int32), torch.empty(7, dtype=torch.int32)
    module.sconv_seq_metadata(_starts(lengths), 3, 7, owners, first)
    return owners, first


def _convolved(x: Tensor, w: Tensor, cache: Tensor) -> tuple[Tensor, Tensor]:
    """A causal convolution of each channel, and the tokens in the pages 2 and 1 of the cache."""
    found = torch.nn.functional.conv1d(torch.nn.functional.pad(x.T, (3, 0)), w[:, None], groups=24).T
    tokens = x.unflatten(1, (2, 12))
    first = torch.cat([cache[2, :, :, :4], tokens[:8].transpose(0, 1), cache[2, :, :, 16:]], 2)
    second = torch.cat([cache[1, :, :1, :4], tokens[8:].transpose(0, 1), cache[1, :, :1, 16:]], 2)
    new = torch.stack([cache[0], torch.cat([second, cache[1, :, 1:]], 1), first, cache[3]])
    return found + x, new


def _convolve(module: Any, x: Tensor, w: Tensor, cache: Tensor) -> tuple[Tensor, Tensor]:
    cache = cache.clone()
    places, pages = torch.arange(9), torch.tensor([[2, 1]], dtype=torch.int32)
    slots = torch.tensor([16, 17, 18, 19, 20, 21, 22, 23, 8])
    owners, first = torch.zeros(9, dtype=torch.int32), torch.zeros(9, dtype=torch.int32)
    return module.fused_sconv(x, w, cache, places, pages, owners, slots, first, 4, 12, 8), cache
