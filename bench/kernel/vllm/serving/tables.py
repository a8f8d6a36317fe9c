"""vLLM's tables of blocks: slots of tokens, blocks of requests, and what is written into tables from a host."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F

from bench.kernel.rows import Row, Tensor, normal
from bench.kernel.vllm import vllm
from bench.kernel.vllm.serving.batches import OWNER, STARTS, WITHIN, numbers, whole

OPS, MLA = "v1.attention.ops", "v1.attention.backends.mla"


def rows() -> Iterator[Row]:
    """The functions, in order."""
    places, table = torch.tensor([4, 5, 6, 0, 7, 8, 9, 10, 11]), numbers(20, 3, 4)
    yield Row("ComputeSlotMappingKernel", _slots, _slot_kernel, (places, table))
    yield Row("ComputeSlotMappingKernel (second of two ranks)", _shared, _share_kernel, (places, table))
    yield Row(
        "_apply_write_kernel",
        _written,
        _write_kernel,
        (numbers(90, 5, 20), whole(3, 0, 2), whole(1, 4, 2), numbers(90, 9, seed=1)),
    )
    yield Row("compute_token_to_req_indices", _owners, _owner_kernel, (STARTS,))
    yield Row("_indexer_decode_metadata_kernel", _metadata, _metadata_kernel, (whole(9, 5, 12), table))
    yield Row("pack_seq_triton", _rectangular, _rectangle_kernel, (normal(9, 12),))
    yield Row("unpack_seq_triton", _flat, _flat_kernel, (normal(3, 5, 12),))
    yield Row("CorrectAttnCPOutKernel", _corrected, _correct_kernel, (normal(5, 3, 16), normal(4, 5, 3)))
    yield Row(
        "CorrectAttnCPOutKernel (base two)", _corrected_two, _correct_two_kernel, (normal(5, 3, 16), normal(4, 5, 3))
    )
    yield Row("_expand_page_indices_kernel", _places, _place_kernel, (table,))


def _slots(places: Tensor, table: Tensor) -> Tensor:
    """The slot of each token of three requests, and none for three more."""
    block = table.index_select(0, OWNER).gather(1, (places // 4)[:, None])[:, 0]
    return F.pad(block.long() * 4 + places % 4, (0, 3), value=-1)


def _slot_kernel(places: Tensor, table: Tensor) -> Tensor:
    found = torch.empty(12, dtype=torch.int64)
    run = vllm("v1.worker.block_table").ComputeSlotMappingKernel.kernel
    run[(4,)](
        9, 12, STARTS, places, table, 4, found, KV_CACHE_BLOCK_SIZE=4, TOTAL_CP_WORLD_SIZE=1, TOTAL_CP_RANK=0,
        CP_KV_CACHE_INTERLEAVE_SIZE=1, PAD_ID=-1, BLOCK_SIZE=1024,
    )  # fmt: skip
    return found


def _shared(places: Tensor, table: Tensor) -> Tensor:
    """Tokens are dealt out to two ranks, two at a time."""
    block = table.index_select(0, OWNER).gather(1, (places // 8)[:, None])[:, 0]
    within = places % 8
    slot = block.long() * 4 + within // 4 * 2 + within % 2
    return F.pad(torch.where(within // 2 % 2 == 1, slot, -1), (0, 3), value=-1)


def _share_kernel(places: Tensor, table: Tensor) -> Tensor:
    found = torch.empty(12, dtype=torch.int64)
    run = vllm("v1.worker.block_table").ComputeSlotMappingKernel.kernel
    run[(4,)](
        9, 12, STARTS, places, table, 4, found, KV_CACHE_BLOCK_SIZE=4, TOTAL_CP_WORLD_SIZE=2, TOTAL_CP_RANK=1,
        CP_KV_CACHE_INTERLEAVE_SIZE=2, PAD_ID=-1, BLOCK_SIZE=1024,
    )  # fmt: skip
    return found


def _written(table: Tensor, to: Tensor, at: Tensor, values: Tensor) -> Tensor:
    """Three, one and five values go into rows of a table."""
    return table.index_put((to.long().index_select(0, OWNER), at.index_select(0, OWNER) + WITHIN), values)


def _write_kernel(table: Tensor, to: Tensor, at: Tensor, values: Tensor) -> Tensor:
    found = table.clone()
    vllm("v1.worker.gpu.buffer_utils")._apply_write_kernel[(3,)](
        found, 20, to, at, values, STARTS[1:].clone(), None, BLOCK_SIZE=1024, MULTI_GROUP=False
    )
    return found


def _owners(starts: Tensor) -> Tensor:
    token = torch.arange(9)
    return F.pad((starts[1:] <= token[:, None]).sum(1).clamp(max=2), (0, 2)).int()


def _owner_kernel(starts: Tensor) -> Tensor:
    out = torch.empty(11, dtype=torch.int32)
    return vllm(f"{OPS}.metadata").compute_token_to_req_indices(starts, out, 9, 11)


def _metadata(lengths: Tensor, table: Tensor) -> tuple[Tensor, ...]:
    """Each token as a request of its own: how much it sees, of which request it is, and its blocks."""
    counts = STARTS.diff()
    seen = (lengths - counts).index_select(0, OWNER) + WITHIN.int() + 1
    return F.pad(seen, (0, 3)), table.index_select(0, OWNER), torch.ones(9).int(), OWNER.int(), counts


def _metadata_kernel(lengths: Tensor, table: Tensor) -> tuple[Tensor, ...]:
    seen, blocks, ones, owner, counts = (torch.empty(n, dtype=torch.int32) for n in (12, (9, 4), 9, 9, 3))
    vllm(f"{OPS}.metadata")._indexer_decode_metadata_kernel[(10,)](
        STARTS, lengths, table, seen, blocks, ones, owner, counts, 3, 9, 12, 4, 4, BLOCK_COLS=4
    )
    return seen, blocks, ones, owner, counts


def _rectangular(x: Tensor) -> Tensor:
    """Sequences of three, one and five tokens, padded."""
    return torch.stack([F.pad(x[a:b], (0, 0, 0, 5 - b + a), value=-torch.inf) for a, b in ((0, 3), (3, 4), (4, 9))])


def _rectangle_kernel(x: Tensor) -> Tensor:
    return vllm(f"{OPS}.common").pack_seq_triton(x, STARTS.diff(), block_t=4, block_d=8)


def _flat(x: Tensor) -> Tensor:
    return torch.cat([x[0, :3], x[1, :1], x[2]])


def _flat_kernel(x: Tensor) -> Tensor:
    out = torch.empty(9, 12)
    vllm(f"{OPS}.common").UnpackSeqTritonKernel.kernel[(3, 2, 2)](x, out, STARTS.diff(), 3, 5, 12, BLOCK_T=4, BLOCK_D=8)
    return out


def _corrected(out: Tensor, lse: Tensor) -> tuple[Tensor, Tensor]:
    """What the second of four ranks adds to attention over all of their keys."""
    whole = torch.logsumexp(lse, 0)
    return out * (lse[1] - whole).exp()[..., None], whole


def _correct(out: Tensor, lse: Tensor, base: bool) -> tuple[Tensor, Tensor]:
    found, whole = torch.empty_like(out), torch.empty_like(lse[0])
    vllm(f"{OPS}.dcp").CorrectAttnCPOutKernel.kernel[(5, 3, 1)](
        out, found, lse, whole, *out.stride(), *lse.stride(), 1, HEAD_DIM=16, N_ROUNDED=4, IS_BASE_E=base
    )
    return found, whole


def _correct_kernel(out: Tensor, lse: Tensor) -> tuple[Tensor, Tensor]:
    return _correct(out, lse, True)


def _corrected_two(out: Tensor, lse: Tensor) -> tuple[Tensor, Tensor]:
    top = lse.amax(0)
    whole = (lse - top).exp2().sum(0).log2() + top
    return out * (lse[1] - whole).exp2()[..., None], whole


def _correct_two_kernel(out: Tensor, lse: Tensor) -> tuple[Tensor, Tensor]:
    return _correct(out, lse, False)


def _places(table: Tensor) -> Tensor:
    """The place of each token in a cache of blocks of two."""
    return table[OWNER, WITHIN // 2] * 2 + (WITHIN % 2).int()


def _place_kernel(table: Tensor) -> Tensor:
    found = torch.empty(9, dtype=torch.int32)
    vllm(f"{MLA}.rocm_aiter_mla")._expand_page_indices_kernel[(3, 2)](
        found, table, 4, 1, STARTS, KERNEL_BLOCK_SIZE=2, BLOCK_SIZE=4
    )
    return found
