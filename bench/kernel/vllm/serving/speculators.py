"""vLLM's draft models: what they read at first and in each step, and drafts that repeat what was said before.

Three of five requests have three, one and five tokens, of which the model takes the last ones back.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F

from bench.kernel.rows import Row, Tensor, normal
from bench.kernel.vllm import vllm
from bench.kernel.vllm.serving.batches import OWNER, STARTS, WITHIN, numbers, whole

DECODE = "v1.worker.gpu.spec_decode"
STATES = torch.tensor([4, 0, 2])
EACH = ("drafts", "hidden", "out", "ids", "places", "keys", "lengths")


def rows() -> Iterator[Row]:
    """The functions, in order."""
    ids, places = numbers(90, 9), torch.tensor([4, 5, 6, 0, 7, 8, 9, 10, 11])
    first = (ids, places, numbers(90, 5), numbers(90, 5, seed=1), whole(1, 0, 2), whole(9, 5, 12))
    yield Row("prepare_prefill_inputs (of a draft model)", _first, _first_kernel, first)
    step = (numbers(90, 3, 2), whole(9, 16, 5), whole(1, 0, 2), torch.tensor([3, 15, 7]), torch.tensor([4, 2, 9]))
    yield Row("prepare_decode_inputs (of a draft model)", _decoded, _decode_kernel, step)
    update = (numbers(90, 3), whole(1), normal(3, 40), numbers(90, 3, 4), numbers(90, 3, seed=1), *step[3:], step[1])
    yield Row("update_draft_inputs", _updated, _update_kernel, update, dict.fromkeys(EACH, "requests"))
    alone = (ids, places, numbers(90, 5), whole(1, 0, 2), whole(9, 5, 12))
    yield Row("prepare_prefill_inputs (of a model of its own)", _alone, _alone_kernel, alone)
    ended = (torch.arange(18).view(2, 9), torch.tensor([1, 3, 6]))
    yield Row("pad_trailing_draft_slots", _ended, _end_kernel, ended, given=_are_within)
    yield Row("_shift_input_ids_kernel", _shifted, _shift_kernel, (ids, numbers(90, 3), torch.tensor([1, 3, 6])))
    yield Row("_shift_input_embeds_kernel", _moved, _move_kernel, (normal(9, 40), normal(3, 40)))
    cache = (ids, normal(9, 40), numbers(90, 5, 2), normal(5, 2, 40))
    yield Row("cache_inputs", _cached, _cache_kernel, cache)
    kept = (normal(5, 3, 20), _drafts(5, 0), _drafts(3, 1)[:, :1].expand(3, 3, 4).contiguous(), normal(3, 3, 4))
    yield Row("_cache_draft_logits_kernel", _kept, _keep_kernel, kept)
    yield Row(
        "_selector_walk_kernel (temperature zero)", _walked, _walk_kernel, (normal(3, 2, 4, 4), numbers(90, 3, 2, 4))
    )
    said = (numbers(3, 5, 24), whole(20, 24, 9, 3, 15), whole(1, 0, 1))
    yield Row("_ngram_scan_kernel", _scanned, _scan_kernel, said)
    found = (
        numbers(90, 5, 24),
        whole(20, 24, 9, 3, 15),
        whole(1, 0, 1),
        numbers(90, 5).long(),
        numbers(3, 3, 2).long() * 30,
    )
    yield Row("_ngram_finalize_kernel", _repeated, _repeat_kernel, found)


def _drafts(count: int, seed: int) -> Tensor:
    return torch.stack([torch.arange(20).roll(-i - seed).view(5, 4)[:3] for i in range(count)])


def _first(
    ids: Tensor, places: Tensor, last: Tensor, ahead: Tensor, sampled: Tensor, lengths: Tensor
) -> tuple[Tensor, ...]:
    """Tokens, shifted by one, with the token that was sampled, or that a prompt has, at the end of each request."""
    following = torch.where(sampled > 0, last.index_select(0, STATES), ahead.index_select(0, STATES))
    final = (STARTS.diff().index_select(0, OWNER) - 1) == WITHIN
    shifted = torch.where(final, following.index_select(0, OWNER), ids.roll(-1))
    ends = F.pad(STARTS[1:] - 1, (0, 3)).long()
    return ends, torch.zeros(1).int(), shifted, places.clone(), F.pad(STARTS, (0, 3), value=9), F.pad(lengths, (0, 3))


def _first_kernel(
    ids: Tensor, places: Tensor, last: Tensor, ahead: Tensor, sampled: Tensor, lengths: Tensor
) -> tuple[Tensor, ...]:
    ends, step = torch.empty(6, dtype=torch.int64), torch.empty(1, dtype=torch.int32)
    shifted, copied = torch.empty_like(ids), torch.empty_like(places)
    starts, many = torch.empty(7, dtype=torch.int32), torch.empty(6, dtype=torch.int32)
    vllm(f"{DECODE}.target_dependent_ar.speculator")._prepare_prefill_inputs_kernel[(3,)](
        ends, step, shifted, copied, starts, many, ids, places, STATES, last, ahead, sampled, torch.zeros(3).int(),
        STARTS, lengths, 6, BLOCK_SIZE=1024,
    )  # fmt: skip
    return ends, step, shifted, copied, starts, many


def _decoded(drafts: Tensor, lengths: Tensor, rejected: Tensor, places: Tensor, keys: Tensor) -> tuple[Tensor, ...]:
    """One token of each request, one place further on, up to sixteen."""
    many = (lengths - rejected + 1).clamp(max=16)
    starts = torch.arange(6).clamp(max=3).int()
    return drafts[:, 0], (places + 1).clamp(max=15), keys + 1, starts, F.pad(many, (0, 2))


def _decode_kernel(
    drafts: Tensor, lengths: Tensor, rejected: Tensor, places: Tensor, keys: Tensor
) -> tuple[Tensor, ...]:
    ids, places, keys = torch.empty(3, dtype=torch.int32), places.clone(), keys.clone()
    starts, many = torch.empty(6, dtype=torch.int32), torch.empty(5, dtype=torch.int32)
    vllm(f"{DECODE}.target_dependent_ar.speculator")._prepare_decode_inputs_kernel[(4,)](
        drafts, 2, lengths, rejected, ids, places, keys, starts, many, 16, 5, BLOCK_SIZE=1024,
        ADVANCE_DRAFT_POSITIONS=True,
    )  # fmt: skip
    return ids, places, keys, starts, many


def _updated(
    drafts: Tensor, step: Tensor, hidden: Tensor, out: Tensor, ids: Tensor, places: Tensor, keys: Tensor,
    lengths: Tensor,
) -> tuple[Tensor, ...]:  # fmt: skip
    """The drafts of this step are written down, and are the next inputs where it is not the last of four."""
    said = torch.where(torch.arange(4) == step, drafts[:, None], out)
    more = step < 3
    return (
        said,
        torch.where(more, hidden, 0.0),
        torch.where(more, drafts, ids),
        torch.where(more, (places + 1).clamp(max=15), places),
        torch.where(more, keys + 1, keys),
        torch.where(more, (lengths + 1).clamp(max=16), lengths),
    )


def _update_kernel(
    drafts: Tensor, step: Tensor, hidden: Tensor, out: Tensor, ids: Tensor, places: Tensor, keys: Tensor,
    lengths: Tensor,
) -> tuple[Tensor, ...]:  # fmt: skip
    out, ids, places, keys, lengths = (x.clone() for x in (out, ids, places, keys, lengths))
    following = torch.zeros_like(hidden)
    vllm(f"{DECODE}.target_dependent_ar.speculator")._update_draft_inputs_kernel[(drafts.shape[0],)](
        out, 4, following, 40, ids, places, keys, lengths, drafts, step, hidden, 40, 40, 16, 4, BLOCK_SIZE=16,
        ADVANCE_DRAFT_POSITIONS=True,
    )  # fmt: skip
    return out, following, ids, places, keys, lengths


def _alone(ids: Tensor, places: Tensor, last: Tensor, rejected: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
    """Each request's tokens that were accepted, the one that was sampled behind them, and a place for each rejected."""
    owner = torch.tensor([0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 2, 2])
    j = torch.tensor([0, 1, 2, 3, 0, 1, 0, 1, 2, 3, 4, 5])
    valid = (STARTS.diff() - rejected).index_select(0, owner)
    token = ids.index_select(0, (STARTS.index_select(0, owner) + j).clamp(max=8))
    own = last.index_select(0, STATES).index_select(0, owner)
    token = torch.where(j < valid, token, torch.where(j == valid, own, 0))
    position = (places.index_select(0, STARTS[:3].index_select(0, owner)) + j).clamp(max=15)
    ends = torch.tensor([0, 4, 6]) + STARTS.diff() - rejected
    starts = torch.tensor([0, 4, 6, 12, 12, 12, 12]).int()
    return token, position, F.pad(ends, (0, 3)), starts, F.pad((lengths + 1).clamp(max=16), (0, 3))


def _alone_kernel(ids: Tensor, places: Tensor, last: Tensor, rejected: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
    token, position = torch.empty(12, dtype=torch.int32), torch.empty(12, dtype=torch.int64)
    ends, starts = torch.empty(6, dtype=torch.int64), torch.empty(7, dtype=torch.int32)
    many = torch.empty(6, dtype=torch.int32)
    vllm(f"{DECODE}.standalone_ar.speculator")._prepare_prefill_inputs_kernel[(3,)](
        ids, places, last, STATES, token, position, ends, starts, many, STARTS, lengths, rejected, 6, 16, BLOCK_SIZE=8
    )
    return token, position, ends, starts, many


def _ended(slots: Tensor, last: Tensor) -> Tensor:
    """Behind the last token that counts there is no slot."""
    return torch.where(torch.arange(9) > last.index_select(0, OWNER), -1, slots)


def _are_within(slots: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
    """The last token of each request is one of its own."""
    return last >= STARTS[:3], last < STARTS[1:]


def _end_kernel(slots: Tensor, last: Tensor) -> Tensor:
    found = slots.clone()
    vllm(f"{DECODE}.multi_module_mtp.speculator").pad_trailing_draft_slots(found, STARTS, last, 3)
    return found


def _shifted(ids: Tensor, drafts: Tensor, last: Tensor) -> Tensor:
    """Tokens of each request, shifted by one, with its draft at the end; what is behind that stays."""
    place, end = torch.arange(9), last.index_select(0, OWNER)
    shifted = torch.where(place == end, drafts.index_select(0, OWNER), ids.roll(-1))
    return torch.where(place <= end, shifted, ids)


def _shift_kernel(ids: Tensor, drafts: Tensor, last: Tensor) -> Tensor:
    found = ids.clone()
    vllm(f"{DECODE}.multi_module_mtp.speculator")._shift_input_ids_kernel[(3,)](
        found, STATES, STARTS, last, drafts, BLOCK_SIZE=1024
    )
    return found


def _moved(x: Tensor, drafts: Tensor) -> Tensor:
    final = (STARTS.diff().index_select(0, OWNER) - 1) == WITHIN
    return torch.where(final[:, None], drafts.index_select(0, OWNER), x.roll(-1, 0))


def _move_kernel(x: Tensor, drafts: Tensor) -> Tensor:
    found = x.clone()
    vllm(f"{DECODE}.multi_module_mtp.speculator")._shift_input_embeds_kernel[(3, 3)](
        found, 40, drafts, 40, STATES, STARTS, STARTS[1:] - 1, 40, BLOCK_SIZE_Q=16, BLOCK_SIZE_H=16
    )
    return found


def _cached(ids: Tensor, hidden: Tensor, tokens: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
    """The last two tokens of each request, with their hidden states; a request of one token leaves the first place."""
    tokens, states = tokens.clone(), states.clone()
    to, at, mine = torch.tensor([4, 4, 0, 2, 2]), torch.tensor([0, 1, 1, 0, 1]), torch.tensor([1, 2, 3, 7, 8])
    return tokens.index_put((to, at), ids[mine]), states.index_put((to, at), hidden[mine])


def _cache_kernel(ids: Tensor, hidden: Tensor, tokens: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
    tokens, states = tokens.clone(), states.clone()
    vllm(f"{DECODE}.multi_module_mtp.speculator")._cache_inputs_kernel[(3, 3)](
        ids, None, 0, hidden, 40, tokens, 2, None, 0, 0, states, 80, 40, STATES, STARTS[1:] - 1, STARTS, 3, 40,
        BLOCK_SIZE=16, USE_INPUT_EMBEDS=False,
    )  # fmt: skip
    return tokens, states


def _kept(logits: Tensor, old: Tensor, new: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
    """Old candidates are impossible, then new ones have their scores."""
    mine = logits.index_select(0, STATES).scatter(2, old.index_select(0, STATES), -torch.inf)
    return logits.index_copy(0, STATES, mine.scatter(2, new, scores)), old.index_copy(0, STATES, new)


def _keep_kernel(logits: Tensor, old: Tensor, new: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
    logits, old = logits.clone(), old.clone()
    vllm(f"{DECODE}.dflash2.speculator")._cache_draft_logits_kernel[(9,)](
        logits, old, new, scores, STATES.repeat_interleave(3), 60, 20, num_steps=3, top_k=4, BLOCK_K=4
    )
    return logits, old


def _walked(scores: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
    """The best candidate after the one before, in two steps."""
    first = scores[:, 0, 0]
    best = first.argmax(1)
    second = scores[:, 1].gather(1, best[:, None, None].expand(3, 1, 4))[:, 0]
    places = torch.stack([best, second.argmax(1)], 1)
    return candidates.gather(2, places[..., None])[..., 0], torch.stack([first, second], 1)


def _walk_kernel(scores: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
    tokens, found, zero = torch.empty(3, 2, dtype=torch.int32), torch.empty(3, 2, 4), torch.zeros(6).long()
    vllm(f"{DECODE}.dflash2.speculator")._selector_walk_kernel[(3,)](
        scores, candidates, zero, STATES.repeat_interleave(2), torch.zeros(5), zero, tokens, found, num_steps=2,
        top_k=4, BLOCK_K=4, SAMPLE_PROBABILISTIC=False, USE_FP64=False,
    )  # fmt: skip
    return tokens, found


def _scanned(tokens: Tensor, lengths: Tensor, sampled: Tensor) -> Tensor:
    """Of each block of eight: the longest part of two or three tokens that ends the sequence, and where it was last."""
    mine, length = tokens.index_select(0, STATES), lengths.index_select(0, STATES)[:, None]
    place, score = torch.arange(24), torch.zeros(3, 24, dtype=torch.int64)
    for n in (2, 3):
        match = place <= length - n - 1
        for j in range(n):
            late = mine.gather(1, (length - n + j).clamp(0, 23).long())
            match = match & (F.pad(mine, (0, 3))[:, j : j + 24] == late)
        score = torch.where(match, n * 25 + place + 1, score)
    used = (sampled > 0)[:, None] & (length >= 2)
    return torch.where(used, score.unflatten(1, (3, 8)).amax(-1), 0)


def _scan_kernel(tokens: Tensor, lengths: Tensor, sampled: Tensor) -> Tensor:
    found = torch.empty(3, 3, dtype=torch.int64)
    vllm(f"{DECODE}.ngram.speculator")._ngram_scan_kernel[(3, 3)](
        tokens, 24, STATES, lengths, sampled, found, 3, 24, MIN_N=2, MAX_N=3, MAX_N_PO2=4, BLOCK_L=8
    )
    return found


def _repeated(tokens: Tensor, lengths: Tensor, sampled: Tensor, last: Tensor, scores: Tensor) -> Tensor:
    """What followed where the end of a sequence was before; else the last token."""
    mine, length = tokens.index_select(0, STATES), lengths.index_select(0, STATES)[:, None]
    score = scores.amax(1, keepdim=True)
    start = torch.where(score > 0, (score - 1) % 25 + (score - 1) // 25, 0)
    place = start + torch.arange(3)
    used = (place < length) & (sampled > 0)[:, None] & (score > 0)
    return torch.where(used, mine.gather(1, place.clamp(0, 23)).long(), last.index_select(0, STATES)[:, None])


def _repeat_kernel(tokens: Tensor, lengths: Tensor, sampled: Tensor, last: Tensor, scores: Tensor) -> Tensor:
    found = torch.empty(3, 3, dtype=torch.int64)
    vllm(f"{DECODE}.ngram.speculator")._ngram_finalize_kernel[(3,)](
        tokens, 24, STATES, lengths, sampled, last, scores, 2, found, 24, 2, K=3, K_PO2=4, N_BLOCKS_PO2=2
    )
    return found
