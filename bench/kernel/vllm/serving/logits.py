"""vLLM's kernels over logits of a batch: tokens that are told apart, words that are not said, masks, who reasons on."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F

from bench.kernel.rows import Row, Tensor, normal
from bench.kernel.vllm import vllm
from bench.kernel.vllm.serving.batches import numbers, whole

SAMPLE = "v1.worker.gpu.sample"
NONE = -float("inf")


def rows() -> Iterator[Row]:
    """The functions, in order."""
    owner, logits = whole(2, 0, 0, 1, 2), normal(5, 40)
    chosen = (numbers(40, 5).long(), numbers(40, 5, 3), owner, whole(2, 0, 4), numbers(40, 3, 4, seed=1))
    yield Row("_fill_logprob_token_ids_kernel", _told, _told_kernel, chosen)
    replay = (numbers(90, 5).long(), owner, numbers(90, 3, 20), whole(5, 0, 9), whole(9, 8, 7), whole(6, 6, 6))
    yield Row("apply_trace_tokens", _replayed, _replay_kernel, replay)
    few = torch.where(normal(5, 40) > 0.3, logits, NONE)
    yield Row("_compact_sampling_mask_kernel", _kept, _keep_kernel, (few,))
    count = (whole(2, 0), numbers(40, 3, 20), whole(5, 9, 7), whole(8, 20, 15), numbers(9, 3, 2), numbers(9, 3, 40))
    yield Row("bincount", _said, _said_kernel, count)
    numbers_of = (logits, owner, whole(0, 3, 1), numbers(40, 3, 4), normal(3, 4))
    yield Row("apply_logit_bias (allowed tokens)", _allowed, _allow_kernel, numbers_of[:4])
    yield Row("apply_logit_bias (biases)", _biased, _bias_kernel, (*numbers_of[:3], _distinct(), normal(3, 4)))
    stops = (logits, owner, whole(5, 6, 7, 3, 20), whole(6, 7, 8), whole(1, 0, 3), _distinct())
    yield Row("apply_logit_bias (least numbers of tokens)", _stopped, _stop_kernel, stops)
    words = (logits, owner, numbers(40, 3, 6), numbers(40, 3, 20))
    yield Row("apply_bad_words (of two tokens)", _unsaid, _unsaid_kernel, words)
    yield Row("_apply_grammar_bitmask_kernel", _grammatical, _grammar_kernel, (logits, numbers(1 << 31, 5, 2)))
    yield Row("gumbel_sample (temperature zero)", lambda x: x.argmax(-1), _greedy_kernel, (logits,))


def _distinct() -> Tensor:
    return torch.stack([torch.arange(40).roll(-i)[:4] for i in (3, 17, 30)]).int()


def _told(sampled: Tensor, top: Tensor, owner: Tensor, count: Tensor, own: Tensor) -> tuple[Tensor, Tensor]:
    """The sampled token, and behind it those that a request asked for, or else the likeliest ones."""
    asked = count.index_select(0, owner)[:, None]
    place = torch.arange(4)
    valid = place < torch.where(asked > 0, asked, 3)
    tokens = torch.where(asked > 0, own.index_select(0, owner), F.pad(top, (0, 1)))
    tokens = torch.where(valid, tokens, 0).long()
    return torch.cat([sampled[:, None], tokens], 1), F.pad(valid, (1, 0), value=True)


def _told_kernel(sampled: Tensor, top: Tensor, owner: Tensor, count: Tensor, own: Tensor) -> tuple[Tensor, Tensor]:
    tokens, valid = torch.zeros(5, 5, dtype=torch.int64), torch.zeros(5, 5, dtype=torch.bool)
    vllm(f"{SAMPLE}.logprob")._fill_logprob_token_ids_kernel[(5,)](
        tokens, 5, valid, 5, sampled, top, 3, owner, count, own, 4, NUM_TOPK=3, PADDED_COLS=4
    )
    return tokens, valid


def _replayed(sampled: Tensor, owner: Tensor, trace: Tensor, count: Tensor, total: Tensor, prompt: Tensor) -> Tensor:
    """A request that is replayed says what it said then."""
    step, many = (total - prompt).index_select(0, owner), count.index_select(0, owner)
    then = trace.index_select(0, owner).gather(1, step.clamp(0, 19).long()[:, None])[:, 0].long()
    return torch.where((step >= 0) & (step < many), then, sampled)


def _replay_kernel(
    sampled: Tensor, owner: Tensor, trace: Tensor, count: Tensor, total: Tensor, prompt: Tensor
) -> Tensor:
    found = sampled.clone()
    vllm(f"{SAMPLE}.trace_replay").apply_trace_tokens(found, owner, trace, count, total, prompt)
    return found


def _bits(marked: Tensor) -> Tensor:
    """Rows of truth values as words of 32 bits."""
    padded = F.pad(marked.long(), (0, -marked.shape[1] % 32)).unflatten(1, (-1, 32))
    return (padded << torch.arange(32)).sum(-1).int()


def _kept(logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The first tokens of those that may be sampled, all of them as bits, and how many there are."""
    kept = logits.isfinite()
    place = kept.int().cumsum(1) - 1
    first = kept[:, None] & (place[:, None] == torch.arange(16)[:, None])
    tokens = torch.where(first.any(-1), (first * torch.arange(40)).sum(-1), -1)
    bits = kept.unflatten(1, (5, 8)).int() << torch.arange(8)
    return tokens.int(), bits.sum(-1).to(torch.uint8), kept.sum(1).int()


def _keep_kernel(logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    tokens, bits = torch.full((5, 16), -1, dtype=torch.int32), torch.empty(5, 5, dtype=torch.uint8)
    counts, starts = torch.empty(5, dtype=torch.int32), torch.arange(5, dtype=torch.int32)
    vllm(f"{SAMPLE}.output")._compact_sampling_mask_kernel[(5,)](
        logits, 40, 1, starts, torch.ones_like(starts), tokens, 16, bits, 5, counts, 40, 16, ROWS_PER_REQUEST=1,
        BLOCK_SIZE=16,
    )  # fmt: skip
    return tokens, bits, counts


def _said(
    owner: Tensor, tokens: Tensor, prompt: Tensor, filled: Tensor, mask: Tensor, counts: Tensor
) -> tuple[Tensor, Tensor]:
    """Which tokens a prompt has, and how often each one was said behind it."""
    place = torch.arange(20)
    told, known = place < prompt[:, None], place < filled[:, None]
    each = tokens[..., None] == torch.arange(40)
    bits, said = _bits((each & told[..., None]).any(1)), (each & (known & ~told)[..., None]).sum(1).int()
    to = owner.long()
    return mask.index_copy(0, to, bits.index_select(0, to)), counts.index_copy(0, to, said.index_select(0, to))


def _said_kernel(
    owner: Tensor, tokens: Tensor, prompt: Tensor, filled: Tensor, mask: Tensor, counts: Tensor
) -> tuple[Tensor, Tensor]:
    mask, counts = mask.clone(), counts.clone()
    vllm(f"{SAMPLE}.penalties").bincount(owner, tokens, prompt, filled, mask, counts, 20)
    return mask, counts


def _mine(owner: Tensor, *tables: Tensor) -> tuple[Tensor, ...]:
    return tuple(x.index_select(0, owner) for x in tables)


def _marked(tokens: Tensor, count: Tensor) -> Tensor:
    """Whether each token is one of the first of a list."""
    listed = (tokens[..., None] == torch.arange(40)) & (torch.arange(4) < count[:, None])[..., None]
    return listed.any(1)


def _allowed(logits: Tensor, owner: Tensor, count: Tensor, tokens: Tensor) -> Tensor:
    count, tokens = _mine(owner, count, tokens)
    return torch.where((count > 0)[:, None] & ~_marked(tokens, count), NONE, logits)


def _biases(logits: Tensor, owner: Tensor, **given: Tensor) -> Tensor:
    found, zero, none = logits.clone(), torch.zeros(3, dtype=torch.int32), torch.zeros(3, 4, dtype=torch.int32)
    values = {
        "pos": torch.zeros(5, dtype=torch.int32), "num_allowed_token_ids": zero, "allowed_token_ids": none,
        "num_logit_bias": zero, "logit_bias_token_ids": none, "logit_bias": torch.zeros(3, 4), "min_lens": zero,
        "num_stop_token_ids": zero, "restore_when_all_masked": zero.bool(), "stop_token_ids": none,
    }  # fmt: skip
    vllm(f"{SAMPLE}.logit_bias").apply_logit_bias(found, owner, **(values | given))
    return found


def _allow_kernel(logits: Tensor, owner: Tensor, count: Tensor, tokens: Tensor) -> Tensor:
    return _biases(logits, owner, num_allowed_token_ids=count, allowed_token_ids=tokens)


def _biased(logits: Tensor, owner: Tensor, count: Tensor, tokens: Tensor, bias: Tensor) -> Tensor:
    count, tokens, bias = _mine(owner, count, tokens, bias)
    added = torch.where(torch.arange(4) < count[:, None], bias, 0.0)
    return logits.scatter_add(1, tokens.long(), added)


def _bias_kernel(logits: Tensor, owner: Tensor, count: Tensor, tokens: Tensor, bias: Tensor) -> Tensor:
    return _biases(logits, owner, num_logit_bias=count, logit_bias_token_ids=tokens, logit_bias=bias)


def _stopped(logits: Tensor, owner: Tensor, place: Tensor, least: Tensor, count: Tensor, tokens: Tensor) -> Tensor:
    least, count, tokens = _mine(owner, least, count, tokens)
    return torch.where((place + 1 < least)[:, None] & _marked(tokens, count), NONE, logits)


def _stop_kernel(logits: Tensor, owner: Tensor, place: Tensor, least: Tensor, count: Tensor, tokens: Tensor) -> Tensor:
    return _biases(logits, owner, pos=place, min_lens=least, num_stop_token_ids=count, stop_token_ids=tokens)


def _unsaid(logits: Tensor, owner: Tensor, words: Tensor, tokens: Tensor) -> Tensor:
    """The second token of a word of two is not said behind the first one; each request has said 12 tokens."""
    words, tokens = _mine(owner, words, tokens)
    said = tokens[:, 11, None] == words[:, 0::2]
    ends = (words[:, 1::2, None] == torch.arange(40)) & said[..., None]
    return torch.where(ends.any(1), NONE, logits)


def _unsaid_kernel(logits: Tensor, owner: Tensor, words: Tensor, tokens: Tensor) -> Tensor:
    found, zero = logits.clone(), torch.zeros(5, dtype=torch.int32)
    starts, three = whole(0, 2, 4, 6).expand(3, 4).contiguous(), torch.full((3,), 3, dtype=torch.int32)
    run = vllm(f"{SAMPLE}.bad_words").apply_bad_words
    run(found, owner, words, starts, three, tokens, three, three * 4, zero, zero, 3)
    return found


def _grammatical(logits: Tensor, packed: Tensor) -> Tensor:
    """The bits of words say which tokens may be."""
    may = (packed[..., None] >> torch.arange(32)) & 1
    return torch.where(may.flatten(1)[:, :40] != 0, logits, NONE)


def _grammar_kernel(logits: Tensor, packed: Tensor) -> Tensor:
    found, places = logits.clone(), torch.arange(5, dtype=torch.int32)
    vllm("v1.worker.gpu.structured_outputs")._apply_grammar_bitmask_kernel[(5, 1)](
        found, 40, places, torch.arange(6, dtype=torch.int32), packed, 2, 40, MASK_STRIDE=1, BLOCK_SIZE=64
    )
    return found


def _greedy_kernel(logits: Tensor) -> Tensor:
    zero = torch.zeros(5, dtype=torch.int64)
    run = vllm(f"{SAMPLE}.gumbel").gumbel_sample
    return run(logits, torch.arange(5), torch.zeros(5), zero, zero, True, False)
