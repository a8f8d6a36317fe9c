"""vLLM's inputs of parallel drafts and of several draft modules, chunks of a prefill, and penalties of drafts."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F

from bench.kernel.rows import Row, Tensor, normal
from bench.kernel.vllm import vllm
from bench.kernel.vllm.serving.batches import OWNER, STARTS, WITHIN, numbers, whole

DECODE = "v1.worker.gpu.spec_decode"
STATES = torch.tensor([4, 0, 2])


def rows() -> Iterator[Row]:
    """The functions, in order."""
    places = torch.tensor([4, 5, 6, 0, 7, 8, 9, 10, 11])
    flash = (places, whole(3, 7, 1, 0, 2), whole(5, 5, 6, 6, 4), whole(1, 0, 2), normal(5), torch.arange(5) * 9)
    yield Row("_prepare_dflash_inputs_kernel", _flash, _flash_kernel, (*flash, numbers(9, 3, 5) + 1))
    modules = (numbers(90, 9), places, numbers(90, 5), numbers(90, 2, 5), whole(1, 0, 2), whole(9, 5, 12))
    yield Row("_prepare_input_buffers_kernel (none rejected)", _buffers, _buffer_kernel, modules)
    yield Row("_prepare_input_hidden_states_and_embeddings_kernel (none rejected)", _hidden, _hidden_kernel,
        (normal(9, 40),))  # fmt: skip
    yield Row("BuildPrefillChunkMetadataKernel", _chunk, _chunk_kernel, (whole(9, 5, 12),))
    said = (normal(6, 40), numbers(40, 6), normal(3).abs() + 0.5, normal(3), normal(3), numbers(3, 3, 40))
    yield Row("apply_penalties (of three, one and two drafts)", _penalised, _penalty_kernel, said)
    yield Row("gumbel_sample (temperature zero, logits kept)", _kept, _keep_kernel, (normal(4, 10),))


def _slots(table: Tensor, owner: Tensor, places: Tensor) -> Tensor:
    block = table.index_select(0, owner).gather(1, (places // 4).clamp(max=4)[:, None])[:, 0].long()
    return torch.where(block != 0, block * 4 + places % 4, -1)


def _flash(
    places: Tensor, last: Tensor, ahead: Tensor, sampled: Tensor, warm: Tensor, seeds: Tensor, table: Tensor
) -> tuple[Tensor, ...]:
    """Each request's next token and two empty places for drafts behind it, of four requests at most."""
    following = torch.where(sampled > 0, last.index_select(0, STATES), ahead.index_select(0, STATES))
    ids = F.pad(following[:, None], (0, 2), value=12).flatten()
    ends = places.index_select(0, STARTS[1:] - 1)
    query = (ends[:, None] + 1 + torch.arange(3)).flatten()
    owner = torch.arange(3).repeat_interleave(3)
    drafts = torch.arange(9).view(3, 3)[:, 1:].flatten()
    return (
        ids,
        query.clamp(max=19),
        whole(0, 3, 6, 9, 9),
        F.pad((ends + 4).clamp(max=20), (0, 1)).int(),
        F.pad(_slots(table, owner, query), (0, 3), value=-1),
        places.clone(),
        _slots(table, OWNER, places),
        F.pad(drafts, (0, 2)),
        F.pad(query.index_select(0, drafts), (0, 2)),
        F.pad(STATES.repeat_interleave(2), (0, 2), value=-1),
        torch.zeros(5).index_copy(0, STATES, warm.index_select(0, STATES)),
        torch.zeros(5).long().index_copy(0, STATES, seeds.index_select(0, STATES)),
    )


def _flash_kernel(
    places: Tensor, last: Tensor, ahead: Tensor, sampled: Tensor, warm: Tensor, seeds: Tensor, table: Tensor
) -> tuple[Tensor, ...]:
    def empty(size: int) -> Tensor:
        return torch.empty(size, dtype=torch.int64)

    found = (
        empty(9).int(), empty(9), empty(5).int(), empty(4).int(), empty(12), empty(9), empty(9), empty(8), empty(8),
        empty(8), torch.zeros(5), torch.zeros(5).long(),
    )  # fmt: skip
    vllm(f"{DECODE}.dflash.speculator")._prepare_dflash_inputs_kernel[(3, 2)](
        *found, places, STARTS, STATES, last, ahead, sampled, torch.zeros(3, dtype=torch.int32), warm, seeds, table, 5,
        12, 4, 3, 2, 4, 12, 20, 0, SAMPLE_FROM_ANCHOR=False, PAD_SLOT_ID=-1, CP_SIZE=1, CP_INTERLEAVE=1, BLOCK_SIZE=4,
    )  # fmt: skip
    return found


def _buffers(
    ids: Tensor, places: Tensor, last: Tensor, ahead: Tensor, sampled: Tensor, lengths: Tensor
) -> tuple[Tensor, ...]:
    """Tokens, shifted by one, with the next one at the end of each request, and what a prompt has behind it."""
    following = torch.where(sampled > 0, last.index_select(0, STATES), ahead[0].index_select(0, STATES))
    final = (STARTS.diff().index_select(0, OWNER) - 1) == WITHIN
    shifted = torch.where(final, following.index_select(0, OWNER), ids.roll(-1))
    then = torch.where(sampled > 0, -1, ahead[1].index_select(0, STATES)).long()
    return F.pad(STARTS[1:] - 1, (0, 1)).long(), shifted, places.clone(), F.pad(lengths, (0, 1)), then[:, None]


def _buffer_kernel(
    ids: Tensor, places: Tensor, last: Tensor, ahead: Tensor, sampled: Tensor, lengths: Tensor
) -> tuple[Tensor, ...]:
    ends, shifted, copied = torch.empty(4, dtype=torch.int64), torch.empty_like(ids), torch.empty_like(places)
    many, then = torch.empty(4, dtype=torch.int32), torch.empty(3, 1, dtype=torch.int64)
    vllm(f"{DECODE}.multi_module_mtp.speculator")._prepare_input_buffers_kernel[(3,)](
        ends, shifted, copied, many, ids, places, torch.zeros(5, 1).int(), 1, then, 1, STATES, last, ahead, 5, sampled,
        torch.zeros(3).int(), lengths, F.pad(STARTS, (0, 1), value=9), 4, 2, BLOCK_SIZE=1024,
    )  # fmt: skip
    return ends, shifted, copied, many, then


def _hidden(x: Tensor) -> Tensor:
    return x.clone()


def _hidden_kernel(x: Tensor) -> Tensor:
    found, cached = torch.empty_like(x), torch.zeros(5, 1, 40)
    vllm(f"{DECODE}.multi_module_mtp.speculator")._prepare_input_hidden_states_and_embeddings_kernel[(3, 2, 3)](
        found, 40, x, 40, cached, 40, 40, None, 0, None, 0, 0, STATES, torch.zeros(3).int(), STARTS, 2, 40,
        BLOCK_SIZE_Q=4, BLOCK_SIZE_H=16, USE_INPUT_EMBEDS=False,
    )  # fmt: skip
    return found


def _chunk(lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Whose key each key is, where the keys that each token sees start, and where these end."""
    ends = torch.tensor([9, 14, 26])
    seen = (lengths - STARTS.diff()).index_select(0, OWNER) + WITHIN.int() + 1
    first = torch.tensor([0, 9, 14]).index_select(0, OWNER).int()
    owner = (ends <= torch.arange(26)[:, None]).sum(1).int()
    return owner, first, first + seen


def _chunk_kernel(lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    owner, first, last = (torch.empty(n, dtype=torch.int32) for n in (26, 9, 9))
    keys = whole(0, 9, 14, 26)
    vllm("v1.attention.backends.mla.indexer").BuildPrefillChunkMetadataKernel.kernel[(3,)](
        STARTS, lengths, keys, keys, owner, first, last, 0, 9, 0, 1, 1, BLOCK_SIZE=1024, COMPRESS_RATIO=1
    )
    return owner, first, last


def _penalised(logits: Tensor, drafts: Tensor, again: Tensor, often: Tensor, seen: Tensor, counts: Tensor) -> Tensor:
    """A draft counts as said for those behind it; three, one and two logits are of three requests."""
    owner, within = torch.tensor([0, 0, 0, 1, 2, 2]), torch.tensor([0, 1, 2, 0, 0, 1])
    again, often, seen = (x.index_select(0, owner)[:, None] for x in (again, often, seen))
    token, i = torch.arange(40), torch.arange(6)
    before = (i > (i - within)[:, None]) & (i <= i[:, None])
    said = counts.index_select(0, owner) + (before[..., None] & (drafts[:, None] == token)).sum(1)
    scale = torch.where(said > 0, again, 1.0)
    return logits * torch.where(logits > 0, 1 / scale, scale) - often * said - seen * (said > 0)


def _penalty_kernel(
    logits: Tensor, drafts: Tensor, again: Tensor, often: Tensor, seen: Tensor, counts: Tensor
) -> Tensor:
    found, none = logits.clone(), torch.zeros(3, 2, dtype=torch.int32)
    owner, within = whole(0, 0, 0, 1, 2, 2), whole(0, 1, 2, 0, 0, 1)
    run = vllm("v1.worker.gpu.sample.penalties").apply_penalties
    run(found, owner, drafts, within, again, often, seen, none, counts)
    return found


def _kept(logits: Tensor) -> tuple[Tensor, Tensor]:
    return logits.argmax(-1), F.pad(logits[:, None], (0, 0, 0, 1))


def _keep_kernel(logits: Tensor) -> tuple[Tensor, Tensor]:
    zero, found = torch.zeros(4, dtype=torch.int64), torch.zeros(4, 2, 10)
    run = vllm("v1.worker.gpu.sample.gumbel").gumbel_sample
    return run(logits, torch.arange(4), torch.zeros(4), zero, zero, True, True, found, zero[:1].view(())), found
