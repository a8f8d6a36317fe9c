"""vLLM's sampling by several ranks: which one samples what, and what they send to each other."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F

from bench.kernel.rows import Row, Tensor, normal
from bench.kernel.vllm import vllm
from bench.kernel.vllm.serving.batches import numbers, whole

SAMPLE = "v1.worker.gpu.sample"


def rows() -> Iterator[Row]:
    """The functions, in order."""
    pack = (numbers(90, 3, 4).long(), whole(1, 2, 4), whole(0, 1, 0))
    yield Row(
        "_pack_sampler_output_kernel",
        _packed,
        _pack_kernel,
        pack,
        dict.fromkeys(("tokens", "sampled", "rejected"), "requests"),
    )
    yield Row("_pack_sampler_output_kernel (with counts of what is no number)", _summed, _sum_kernel,
        (*pack, numbers(9, 6)))  # fmt: skip
    yield Row(
        "_unpack_gathered_output_kernel",
        _unpacked,
        _unpack_kernel,
        (numbers(90, 6, 7).long(), torch.tensor([4, 0, 2])),
        {"places": "requests"},
    )
    spread = (numbers(90, 5, 3).long(), normal(5, 3), numbers(40, 5).long())
    yield Row("_pack_logprobs_kernel", _spread, _spread_kernel, spread)
    gathered = (numbers(90, 12, 4).long(), normal(12, 3), torch.tensor([2, 0, 5]))
    yield Row("_unpack_logprobs_kernel", _gathered, _gather_kernel, gathered)
    yield Row(
        "_build_shard_plan_kernel", _planned, _plan_kernel, (whole(4, 1, 3, 0), whole(0, 3, 5, 6, 9), whole(3, 4, 1, 8))
    )


def _packed(tokens: Tensor, sampled: Tensor, rejected: Tensor) -> Tensor:
    return torch.cat([tokens, sampled[:, None].long(), rejected[:, None].long()], 1)


def _pack_kernel(tokens: Tensor, sampled: Tensor, rejected: Tensor) -> Tensor:
    packed = torch.empty(tokens.shape[0], 6, dtype=torch.int64)
    vllm(f"{SAMPLE}.batch_shard")._pack_sampler_output_kernel[(tokens.shape[0],)](
        packed, 6, tokens, 4, sampled, rejected, None, whole(0, 2, 3, 6), 4, 4, BLOCK_SIZE=4
    )
    return packed


def _summed(tokens: Tensor, sampled: Tensor, rejected: Tensor, wrong: Tensor) -> Tensor:
    total = torch.stack([wrong[0:2].sum(), wrong[2:3].sum(), wrong[3:6].sum()])
    return torch.cat([_packed(tokens, sampled, rejected), total[:, None]], 1)


def _sum_kernel(tokens: Tensor, sampled: Tensor, rejected: Tensor, wrong: Tensor) -> Tensor:
    packed = torch.empty(3, 7, dtype=torch.int64)
    vllm(f"{SAMPLE}.batch_shard")._pack_sampler_output_kernel[(3,)](
        packed, 7, tokens, 4, sampled, rejected, wrong, whole(0, 2, 3, 6), 4, 4, BLOCK_SIZE=4
    )
    return packed


def _unpacked(gathered: Tensor, places: Tensor) -> tuple[Tensor, ...]:
    mine = gathered.index_select(0, places)
    return mine[:, :4], *(mine[:, i].int() for i in (4, 5, 6))


def _unpack_kernel(gathered: Tensor, places: Tensor) -> tuple[Tensor, ...]:
    tokens = gathered.new_empty(places.shape[0], 4)
    a, b, c = (torch.empty(places.shape[0], dtype=torch.int32) for _ in range(3))
    vllm(f"{SAMPLE}.batch_shard")._unpack_gathered_output_kernel[(places.shape[0],)](
        gathered, 7, places, tokens, a, b, c, 4, BLOCK_SIZE=4
    )
    return tokens, a, b, c


def _spread(ids: Tensor, scores: Tensor, ranks: Tensor) -> tuple[Tensor, Tensor]:
    """Rows of requests with two, one and two logits, apart; what is between them is zero."""
    places = torch.tensor([0, 1, 2, 4, 5])
    whole = torch.cat([ids, ranks[:, None]], 1)
    return ids.new_zeros(6, 4).index_copy(0, places, whole), scores.new_zeros(6, 3).index_copy(0, places, scores)


def _spread_kernel(ids: Tensor, scores: Tensor, ranks: Tensor) -> tuple[Tensor, Tensor]:
    sent, likely = torch.zeros(6, 4, dtype=torch.int64), torch.zeros(6, 3)
    vllm(f"{SAMPLE}.batch_shard")._pack_logprobs_kernel[(3, 2)](
        sent, 4, likely, 3, ids, 3, scores, 3, ranks, whole(0, 2, 3, 5), 2, 3, 3, BLOCK_SIZE=4
    )
    return sent, likely


def _gathered(ids: Tensor, scores: Tensor, places: Tensor) -> tuple[Tensor, ...]:
    rows = places.index_select(0, torch.tensor([0, 0, 1, 2, 2])) * 2 + torch.tensor([0, 1, 0, 0, 1])
    mine = ids.index_select(0, rows)
    return mine[:, :3], scores.index_select(0, rows), mine[:, 3]


def _gather_kernel(ids: Tensor, scores: Tensor, places: Tensor) -> tuple[Tensor, ...]:
    tokens, likely, ranks = torch.empty(5, 3, dtype=torch.int64), torch.empty(5, 3), torch.empty(5, dtype=torch.int64)
    vllm(f"{SAMPLE}.batch_shard")._unpack_logprobs_kernel[(3, 2)](
        ids, 4, scores, 3, places, whole(0, 2, 3, 5), tokens, likely, ranks, 2, 3, BLOCK_SIZE=4
    )
    return tokens, likely, ranks


def _planned(states: Tensor, starts: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
    """Requests of one logit each, sorted by which of two ranks has them, and what the first rank has of them."""
    owner, ends = states % 2, starts[1:].long() - 1
    before = torch.arange(4) < torch.arange(4)[:, None]
    within = ((owner == owner[:, None]) & before).sum(1)
    place = within + (owner < owner[:, None]).sum(1)
    here = (owner == 0) & (within == torch.arange(4)[:, None])

    def mine(values: Tensor) -> Tensor:
        return torch.where(here.any(1), torch.where(here, values, 0).sum(1), -1)

    zero, count = torch.zeros(4, dtype=torch.int64), torch.arange(1, 5)
    sums = F.pad(torch.where(here.any(1), count, -1), (1, 0))
    of_first = (mine(states), sums, mine(ends), mine(states), mine(zero), mine(lengths))
    return torch.zeros_like(ends).scatter(0, place, ends), owner.long() * 4 + within, *of_first


def _plan_kernel(states: Tensor, starts: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
    found = [torch.full((4 + (i == 3),), -1, dtype=torch.int64) for i in range(8)]
    vllm(f"{SAMPLE}.batch_shard")._build_shard_plan_kernel[(4,)](
        states, whole(0, 1, 2, 3, 4), starts, lengths, *found, 4, 0, 4, TP_SIZE=2, TP_RANK=0, PADDED_NUM_REQS=4,
        PADDED_NUM_LOGITS_PER_REQ=1,
    )  # fmt: skip
    return tuple(found)
