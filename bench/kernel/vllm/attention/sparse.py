"""vLLM's sparse and compressed attention: which tokens are seen, and where they are in a cache."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from bench.kernel.rows import Row, Tensor, are_places
from bench.kernel.vllm import vllm
from bench.kernel.vllm.serving.batches import OWNER, STARTS, WITHIN, numbers, whole

MLA = "v1.attention.backends.mla"


def rows() -> Iterator[Row]:
    """The functions, in order."""
    table = numbers(20, 3, 4)
    yield Row(
        "ComputePrefillMetadataKernel",
        _lengths,
        _length_kernel,
        (whole(9, 3, 12, 20), whole(0, 3, 4, 9, 11), whole(2, 0, 3, 1)),
    )
    yield Row(
        "sparse_mla_prepare_safe_lengths",
        _safe,
        _safe_kernel,
        (numbers(9, 5, 4), whole(3, 0, 1, 0, 2)),
        {"places": "tokens", "counts": "tokens"},
    )
    yield Row("generate_sparse_seqlen_triton", _sparse, _sparse_kernel, (whole(9, 5, 12),))
    fit = torch.cat([torch.where(torch.arange(6) < torch.tensor([[6], [4], [2]]), numbers(9, 3, 6), -1),
        torch.where(torch.arange(3) < torch.tensor([[1], [3], [2]]), numbers(9, 3, 3, seed=1), -1)], 1)  # fmt: skip
    yield Row("fit_kpool_indices_to_aiter", _fitted, _fit_kernel, (fit.int(),), {"places": "tokens"})
    converted = (whole(2, 0, 1), table, numbers(16, 3, 8) - 1)
    yield Row("triton_convert_req_index_to_global_index", _converted, _convert_kernel, converted)
    yield Row(
        "PrepareUniformDecodeKernel",
        _uniform,
        _uniform_kernel,
        (whole(9, 1, 0), table),
        {"lengths": "requests", "table": "requests"},
    )
    yield Row(
        "_compute_image_visibility_kernel",
        _visible,
        _visible_kernel,
        (whole(2, 8, 3, 7), whole(5, 9, 6, 20), whole(9, 3, 12)),
    )
    yield Row(
        "CompressedSlotMappingKernel",
        _compressed,
        _compress_kernel,
        (torch.tensor([4, -1, 6, 0, 7, 8, -1, 10, 11]), whole(7, 4, 12), table),
    )
    remap = (whole(2, 0, 1), table, numbers(20, 3, 8) - 2)
    yield Row("sparse_mla_index_remap_kernel", _remapped, _remap_kernel, remap)
    yield Row("sparse_mla_index_remap_kernel (counts, second of two ranks)", _ours, _our_kernel, remap)
    yield Row("sparse_mla_index_remap_kernel (valid ones first)", _front, _front_kernel, remap)
    seen = (torch.tensor([True, True, False, True]), whole(0, 2, 1, 1), whole(5, 3, 7), table, whole(0, 1, 0))
    yield Row("_compute_swa_indices_and_lens_kernel", _window, _window_kernel, seen)
    tail = (torch.arange(12), numbers(3, 3, 4), torch.tensor([4, 5, 6, 0, 7, 8, 9, 10, 11]))
    yield Row("_kpool_tail_slot_mapping_kernel", _tail, _tail_kernel, tail, given=are_places)


def _lengths(lengths: Tensor, starts: Tensor, replay: Tensor) -> Tensor:
    """How many tokens a window of eight needs for each request but the first."""
    count = starts.diff()
    return (count + (lengths - count - replay).clamp(min=0).clamp(max=7))[1:]


def _length_kernel(lengths: Tensor, starts: Tensor, replay: Tensor) -> Tensor:
    found = torch.empty(3, dtype=torch.int32)
    vllm(f"{MLA}.sparse_swa").ComputePrefillMetadataKernel.kernel[(1,)](
        found, lengths, starts, replay, 3, 1, 8, BLOCK_SIZE=4
    )
    return found


def _safe(places: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    first = (torch.arange(4) == 0) & (counts == 0)[:, None]
    return torch.where(first, 0, places), counts.clamp(min=1)


def _safe_kernel(places: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    places = places.clone()
    return places, vllm(f"{MLA}.sparse_utils").prepare_sparse_mla_safe_lengths(places, counts)


def _sparse(lengths: Tensor) -> Tensor:
    """How many tokens each query sees, of six at most."""
    seen = (lengths - STARTS.diff()).index_select(0, OWNER) + WITHIN.int() + 1
    return torch.where(lengths.index_select(0, OWNER) == 0, 0, seen.clamp(max=6))


def _sparse_kernel(lengths: Tensor) -> Tensor:
    run = vllm(f"{MLA}.rocm_aiter_mla_sparse").generate_sparse_seqlen_triton
    return run(STARTS.diff(), lengths, STARTS, 6, 9, 5)


def _fitted(places: Tensor) -> Tensor:
    """The first of six places, and behind them all of the last three; places that are none are at the end of each."""
    history, tail = (places[:, :6] >= 0).sum(1, keepdim=True), (places[:, 6:] >= 0).sum(1, keepdim=True)
    keep = torch.minimum(history, 6 - tail)
    at = torch.arange(6)
    late = places.gather(1, (6 + at - keep).clamp(6, 8))
    fitted = torch.where(at < keep, places[:, :6], torch.where((at - keep >= 0) & (at - keep < 3), late, -1))
    return torch.where(at < keep + tail, fitted, -1)


def _fit_kernel(places: Tensor) -> Tensor:
    return vllm(f"{MLA}.rocm_aiter_mla_sparse").fit_kpool_indices_to_aiter(places, 6)


def _converted(owner: Tensor, table: Tensor, tokens: Tensor) -> Tensor:
    """The places in a cache of blocks of four of tokens of requests; of what is no token it is zero."""
    block = torch.div(tokens, 4, rounding_mode="floor")
    base = table.index_select(0, owner).gather(1, block.clamp(0, 3).long())
    return torch.where((tokens < 0) | (block >= 4), 0, base * 4 + tokens % 4).flatten()


def _convert_kernel(owner: Tensor, table: Tensor, tokens: Tensor) -> Tensor:
    found = torch.empty(24, dtype=torch.int32)
    vllm(f"{MLA}.rocm_aiter_mla_sparse").triton_convert_req_index_to_global_index(
        owner, table, tokens, whole(0, 8, 16, 24), found, 4, BLOCK_SIZE=4, NUM_TOPK_TOKENS=8, BLOCK_N=4
    )
    return found


def _uniform(lengths: Tensor, table: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Two tokens of each request, as requests of their own."""
    seen = (lengths[:, None] - 2 + torch.tensor([1, 2])).clamp(min=0).flatten()
    return seen.int(), table.repeat_interleave(2, 0), torch.ones(2 * table.shape[0], dtype=torch.int32)


def _uniform_kernel(lengths: Tensor, table: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    many = 2 * table.shape[0]
    seen, blocks, ones = (torch.empty(n, dtype=torch.int32) for n in (many, (many, 4), many))
    vllm(f"{MLA}.indexer").PrepareUniformDecodeKernel.kernel[(many,)](
        lengths, seen, table, 4, blocks, 4, ones, 2, BLOCK_SIZE=1024
    )
    return seen, blocks, ones


def _visible(first: Tensor, last: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """How many tokens of its image each token sees on its left and right; requests have two, none and two images."""
    place = ((lengths - STARTS.diff()).index_select(0, OWNER) + WITHIN.int())[:, None]
    mine = torch.tensor([0, 0, 2, 2]) == OWNER[:, None]
    within = mine & (place >= first) & (place <= last)
    left, right = torch.zeros(9, dtype=torch.int32), torch.zeros(9, dtype=torch.int32)
    for i in range(4):
        left = torch.where(within[:, i], (place[:, 0] - first[i]).clamp(max=4), left)
        right = torch.where(within[:, i], (last[i] - place[:, 0]).clamp(max=5), right)
    return left, right


def _visible_kernel(first: Tensor, last: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    left, right = torch.empty(9, dtype=torch.int32), torch.empty(9, dtype=torch.int32)
    vllm(f"{MLA}.sparse_swa")._compute_image_visibility_kernel[(9,)](
        left, right, whole(0, 2, 2, 4), first, last, STARTS, lengths, OWNER.int(), 5, 0
    )
    return left, right


def _compressed(slots: Tensor, lengths: Tensor, table: Tensor) -> Tensor:
    """Each second token of a request has a slot in a cache of blocks of four."""
    place = (lengths - STARTS.diff()).index_select(0, OWNER).long() + WITHIN
    block = table.index_select(0, OWNER).gather(1, (place // 8)[:, None])[:, 0].long()
    valid = ((place + 1) % 2 == 0) & (slots != -1)
    return torch.where(valid, block * 4 + place // 2 % 4, -1)


def _compress_kernel(slots: Tensor, lengths: Tensor, table: Tensor) -> Tensor:
    found = torch.empty(9, dtype=torch.int64)
    vllm(f"{MLA}.compressor_utils").CompressedSlotMappingKernel.kernel[(3,)](
        found, slots, STARTS, lengths, table, 4, 4, 1, 1, COMPRESS_RATIO=2, PAD_ID=-1, TRITON_BLOCK_SIZE=1024
    )
    return found


def _slot(owner: Tensor, table: Tensor, tokens: Tensor, used: Tensor) -> Tensor:
    """The places of tokens in a cache of blocks of four, or -1."""
    valid = used & (tokens >= 0) & (tokens < 16)
    place = tokens.clamp(0, 15)
    base = table.index_select(0, owner).gather(1, (place // 4).long())
    return torch.where(valid, base * 4 + place % 4, -1)


def _remapped(owner: Tensor, table: Tensor, tokens: Tensor) -> Tensor:
    return _slot(owner, table, tokens, tokens >= 0)


def _remap(owner: Tensor, table: Tensor, tokens: Tensor, ranks: int, front: bool, block: int) -> tuple[Tensor, Tensor]:
    found, counts = torch.full_like(tokens, -1), torch.zeros(3, dtype=torch.int32)
    kernel = vllm(f"{MLA}.sparse_utils").ConvertReqIndexToGlobalIndexKernel.sparse_mla_index_remap_kernel
    kernel[(3, 8 // block)](
        owner, table, tokens, found, counts, None, None, 0, 4, BLOCK_SIZE=4, BLOCK_STRIDE_ROWS=4, BLOCK_N=block,
        NUM_TOPK_TOKENS=8, HAS_PREFILL=False, COUNT_VALID=ranks > 1 or front, SINGLE_TILE=block == 8,
        COMPACT_TO_FRONT=front, DCP_SIZE=ranks, DCP_RANK=ranks - 1, DCP_INTERLEAVE=1, bt_stride0=4, bt_stride1=1,
        ti_stride0=8, ti_stride1=1, out_stride0=8, out_stride1=1,
    )  # fmt: skip
    return found, counts


def _remap_kernel(owner: Tensor, table: Tensor, tokens: Tensor) -> Tensor:
    return _remap(owner, table, tokens, 1, False, 4)[0]


def _ours(owner: Tensor, table: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Each second token is here."""
    ours = (tokens >= 0) & (tokens % 2 == 1)
    found = _slot(owner, table, torch.div(tokens, 2, rounding_mode="trunc"), ours)
    return found, (found >= 0).sum(1).int()


def _our_kernel(owner: Tensor, table: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
    return _remap(owner, table, tokens, 2, False, 4)


def _front(owner: Tensor, table: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Those that are valid, in order, and -1 behind them."""
    found = _remapped(owner, table, tokens)
    valid = (tokens >= 0) & (tokens < 16)
    place = valid.int().cumsum(1) - 1
    first = valid[:, None] & (place[:, None] == torch.arange(8)[:, None])
    return torch.where(first.any(-1), (first * found[:, None]).sum(-1), -1).int(), valid.sum(1).int()


def _front_kernel(owner: Tensor, table: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
    return _remap(owner, table, tokens, 1, True, 8)


def _window(valid: Tensor, owner: Tensor, lengths: Tensor, table: Tensor, replay: Tensor) -> tuple[Tensor, Tensor]:
    """The slots of the last four tokens that each token sees, and how many these are."""
    ends = lengths.index_select(0, owner)
    start = torch.maximum((ends - 4).clamp(min=0), replay.index_select(0, owner))
    place = start[:, None] + torch.arange(6)
    block = table.index_select(0, owner).gather(1, (place // 4).clamp(0, 3).long())
    many = ends - start
    slots = torch.where((torch.arange(6) < many[:, None]) & valid[:, None], block * 4 + place % 4, -1)
    return slots.int(), torch.where(valid, many, 0).int()


def _window_kernel(
    valid: Tensor, owner: Tensor, lengths: Tensor, table: Tensor, replay: Tensor
) -> tuple[Tensor, Tensor]:
    """Where each request has the one token that it is asked for at its end."""
    slots, many = torch.empty(4, 6, dtype=torch.int32), torch.empty(4, dtype=torch.int32)
    places = lengths.index_select(0, owner)
    module, table = vllm(f"{MLA}.sparse_swa"), table.index_select(0, owner)
    module._compute_swa_indices_and_lens_kernel[(4,)](
        slots, 6, many, 4, 6, None, None, torch.arange(5, dtype=torch.int32), places, torch.arange(4).int(), valid,
        table, 4, 4, replay.index_select(0, owner), 0, HAS_IMAGE=False, TRITON_BLOCK_SIZE=4,
    )  # fmt: skip
    return slots, many


def _tail(slots: Tensor, table: Tensor, places: Tensor) -> Tensor:
    """Tokens of requests are in turn in the one block of a request; the null block holds nothing."""
    mine = table[:, 0].index_select(0, OWNER).long()
    return torch.cat([torch.where(mine != 0, mine * 4 + places % 4, -1), slots[9:]])


def _tail_kernel(slots: Tensor, table: Tensor, places: Tensor) -> Tensor:
    found = torch.empty_like(slots)
    vllm(f"{MLA}.indexer")._kpool_tail_slot_mapping_kernel[(4,)](
        slots, table, 4, STARTS, places, found, 3, 9, 12, 4, BLOCK=256
    )
    return found
