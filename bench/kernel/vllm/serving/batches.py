"""vLLM's batches: positions and lengths of requests, what of a prompt is next, where logits are, and what was sampled.

Where the tokens of a request start, and where its logits, is fixed here. A batch has three of five requests.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F

from bench.kernel.rows import Row, Tensor
from bench.kernel.vllm import vllm

STARTS = torch.tensor([0, 3, 4, 9], dtype=torch.int32)
OWNER, WITHIN = torch.tensor([0, 0, 0, 1, 2, 2, 2, 2, 2]), torch.tensor([0, 1, 2, 0, 0, 1, 2, 3, 4])
"""The request of each token, and its place among the tokens of that request."""
LOGITS = torch.tensor([0, 2, 3, 6], dtype=torch.int32)
OWNERS, PLACES = torch.tensor([0, 0, 1, 2, 2, 2]), torch.tensor([0, 1, 0, 0, 1, 2], dtype=torch.int32)
"""The same of logits."""


def numbers(high: int, *shape: int, seed: int = 0) -> Tensor:
    """Whole numbers below ``high``, the same in each run."""
    return torch.randint(0, high, shape, generator=torch.Generator().manual_seed(seed), dtype=torch.int32)


def whole(*values: int) -> Tensor:
    """Integers of 32 bits."""
    return torch.tensor(values, dtype=torch.int32)


def rows() -> Iterator[Row]:
    """The functions, in order."""
    states, computed = whole(4, 0, 2), whole(2, 20, 0, 1, 7)
    prompts, tokens = whole(9, 20, 3, 20, 30), numbers(90, 5, 40)
    yield Row("prepare_pos_seq_lens", _placed, _place_kernel, (states, computed))
    yield Row("expand_idx_mapping", _expanded, _expand_kernel, (states,))
    yield Row("get_num_sampled_and_rejected", _counted, _count_kernel, (numbers(3, 3), whole(9, 9, 9), states, prompts))
    yield Row("post_update_num_computed_tokens", _computed, _compute_kernel, (states, computed, STARTS))
    yield Row("prepare_prefill_inputs", _prefilled, _prefill_kernel, (states, tokens, prompts, computed))
    drafts = (numbers(90, 9), states, numbers(90, 5), whole(9, 9, 9), prompts, numbers(90, 5, 3, seed=1))
    yield Row("combine_sampled_and_draft_tokens", _combined, _combine_kernel, drafts)
    after = (states, whole(1, 3, 2), whole(1, 0, 1), numbers(90, 3, 3), computed, numbers(90, 5), tokens, prompts)
    yield Row("post_update", _updated, _update_kernel, after, given=_are_apart)
    recounted = (*after, numbers(3, 5, 90))
    yield Row("post_update (counts of tokens)", _recounted, _recount_kernel, recounted, given=_are_apart)
    yield Row("get_prompt_logprobs_token_ids", _next, _next_kernel, (states, computed, tokens))
    rope = (states, prompts, computed, numbers(9, 5), numbers(50, 15, 40))
    yield Row("_prepare_rope_positions_kernel", _turned, _turn_kernel, rope)


def mine(values: Tensor, states: Tensor) -> Tensor:
    """What a batch's requests have in a table of all."""
    return values.index_select(0, states)


def _placed(states: Tensor, computed: Tensor) -> tuple[Tensor, Tensor]:
    done = mine(computed, states)
    return (done.index_select(0, OWNER) + WITHIN).long(), F.pad(done + STARTS.diff(), (0, 3))


def _place_kernel(states: Tensor, computed: Tensor) -> tuple[Tensor, Tensor]:
    places, lengths = torch.empty(9, dtype=torch.int64), torch.empty(6, dtype=torch.int32)
    vllm("v1.worker.gpu.input_batch").prepare_pos_seq_lens(states, STARTS, computed, places, lengths)
    return places, lengths


def _expanded(states: Tensor) -> tuple[Tensor, Tensor]:
    return states.index_select(0, OWNERS), PLACES.clone()


def _expand_kernel(states: Tensor) -> tuple[Tensor, Tensor]:
    return vllm("v1.worker.gpu.input_batch").expand_idx_mapping(states, 6, LOGITS, 4)


def _counted(sampled: Tensor, lengths: Tensor, states: Tensor, prompts: Tensor) -> tuple[Tensor, Tensor]:
    within = lengths < mine(prompts, states)
    left = torch.where(within, 0, sampled)
    return left, torch.where(within, 0, LOGITS.diff() - left)


def _count_kernel(sampled: Tensor, lengths: Tensor, states: Tensor, prompts: Tensor) -> tuple[Tensor, Tensor]:
    run = vllm("v1.worker.gpu.input_batch").get_num_sampled_and_rejected
    return run(sampled.clone(), lengths, LOGITS, states, prompts)


def _computed(states: Tensor, computed: Tensor, starts: Tensor) -> Tensor:
    return computed.index_copy(0, states.long(), mine(computed, states) + starts.diff())


def _compute_kernel(states: Tensor, computed: Tensor, starts: Tensor) -> Tensor:
    found = computed.clone()
    vllm("v1.worker.gpu.input_batch").post_update_num_computed_tokens(states, found, starts)
    return found


def _prefilled(states: Tensor, tokens: Tensor, prompts: Tensor, computed: Tensor) -> tuple[Tensor, Tensor]:
    """The next tokens of prompts, and the two behind these; what decodes is left as it was."""
    prompt, done, known = mine(prompts, states), mine(computed, states), mine(tokens, states)
    places = done.index_select(0, OWNER) + WITHIN
    ids = known.index_select(0, OWNER).gather(1, places.clamp(max=39)[:, None])[:, 0]
    behind = (done + STARTS.diff())[:, None] + torch.arange(2)
    then = torch.where(behind < prompt[:, None], known.gather(1, behind.clamp(max=39)), 0)
    now = done < prompt
    ahead = torch.full((5, 2), -1, dtype=torch.int32).index_copy(0, states.long(), torch.where(now[:, None], then, -1))
    return torch.where(now.index_select(0, OWNER), ids, -1), ahead.T


def _prefill_kernel(states: Tensor, tokens: Tensor, prompts: Tensor, computed: Tensor) -> tuple[Tensor, Tensor]:
    ids, ahead = torch.full((9,), -1, dtype=torch.int32), torch.full((2, 5), -1, dtype=torch.int32)
    run = vllm("v1.worker.gpu.input_batch").prepare_prefill_inputs
    run(ids, ahead, states, STARTS, tokens, prompts, computed)
    return ids, ahead


def _combined(
    ids: Tensor, states: Tensor, last: Tensor, lengths: Tensor, prompts: Tensor, drafts: Tensor
) -> tuple[Tensor, Tensor]:
    """A request's last token and its drafts are at the end of its tokens, which is where its logits are."""
    logits = LOGITS.diff()
    place = STARTS[1:].index_select(0, OWNERS) - logits.index_select(0, OWNERS) + PLACES
    behind, prompt = lengths > mine(prompts, states), mine(prompts, states)
    sampled = behind & (lengths - logits >= prompt)
    tokens = torch.cat([mine(last, states)[:, None], mine(drafts, states)], 1)[OWNERS, PLACES]
    write = torch.where(PLACES == 0, sampled.index_select(0, OWNERS), behind.index_select(0, OWNERS))
    found = ids.index_copy(0, place.long(), torch.where(write, tokens, ids.gather(0, place.long())))
    return found, place.long()


def _combine_kernel(
    ids: Tensor, states: Tensor, last: Tensor, lengths: Tensor, prompts: Tensor, drafts: Tensor
) -> tuple[Tensor, Tensor]:
    found = ids.clone()
    run = vllm("v1.worker.gpu.input_batch").combine_sampled_and_draft_tokens
    return found, run(found, states, last, STARTS, lengths, prompts, drafts, LOGITS, 6)


def _updated(
    states: Tensor, sampled: Tensor, rejected: Tensor, new: Tensor, computed: Tensor, last: Tensor, tokens: Tensor,
    lengths: Tensor,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Sampled tokens go behind the tokens of their requests."""
    to, length = states.long(), mine(lengths, states)
    final = new.gather(1, (sampled - 1).clamp(min=0)[:, None])[:, 0]
    behind = torch.arange(40) - length[:, None]
    written = (behind >= 0) & (behind < sampled[:, None])
    said = torch.where(written, new.gather(1, behind.clamp(0, 2)), mine(tokens, states))
    return (
        computed.index_copy(0, to, mine(computed, states) + STARTS.diff() - rejected),
        last.index_copy(0, to, torch.where(sampled > 0, final, mine(last, states))),
        tokens.index_copy(0, to, said),
        lengths.index_copy(0, to, length + sampled),
    )


def _are_apart(states: Tensor, sampled: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
    """The requests of a batch are several, and each has as many tokens as are there."""
    others_differ = (states[:, None] != states) | torch.eye(3, dtype=torch.bool)
    return others_differ, states >= 0, sampled >= 0, sampled <= 3


def _update_kernel(
    states: Tensor, sampled: Tensor, rejected: Tensor, new: Tensor, computed: Tensor, last: Tensor, tokens: Tensor,
    lengths: Tensor, counts: Tensor | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    computed, last, tokens, lengths = computed.clone(), last.clone(), tokens.clone(), lengths.clone()
    run = vllm("v1.worker.gpu.input_batch").post_update
    run(states, computed, last, counts, new, sampled, rejected, STARTS, tokens, lengths)
    return computed, last, tokens, lengths


def _recounted(
    states: Tensor, sampled: Tensor, rejected: Tensor, new: Tensor, computed: Tensor, last: Tensor, tokens: Tensor,
    lengths: Tensor, counts: Tensor,
) -> tuple[Tensor, ...]:  # fmt: skip
    said = (new[..., None] == torch.arange(90)) & (torch.arange(3) < sampled[:, None])[..., None]
    found = counts.index_copy(0, states.long(), mine(counts, states) + said.sum(1).int())
    return (*_updated(states, sampled, rejected, new, computed, last, tokens, lengths), found)


def _recount_kernel(
    states: Tensor, sampled: Tensor, rejected: Tensor, new: Tensor, computed: Tensor, last: Tensor, tokens: Tensor,
    lengths: Tensor, counts: Tensor,
) -> tuple[Tensor, ...]:  # fmt: skip
    counts = counts.clone()
    return (*_update_kernel(states, sampled, rejected, new, computed, last, tokens, lengths, counts), counts)


def _next(states: Tensor, computed: Tensor, tokens: Tensor) -> Tensor:
    """The token behind each of the batch."""
    places = mine(computed, states).index_select(0, OWNER) + WITHIN + 1
    return mine(tokens, states).index_select(0, OWNER).gather(1, places[:, None])[:, 0].long()


def _next_kernel(states: Tensor, computed: Tensor, tokens: Tensor) -> Tensor:
    run = vllm("v1.worker.gpu.sample.prompt_logprob").get_prompt_logprobs_token_ids
    return run(9, STARTS, states, computed, tokens)


def _turned(states: Tensor, prompts: Tensor, computed: Tensor, delta: Tensor, given: Tensor) -> Tensor:
    """Positions in three dimensions: those of a prompt are given, later ones count on."""
    known = given.unflatten(0, (5, 3)).index_select(0, states).index_select(0, OWNER)
    place = (mine(computed, states).index_select(0, OWNER) + WITHIN)[:, None]
    at = known.gather(2, place.clamp(max=39)[:, None].expand(9, 3, 1))[..., 0]
    within = (mine(computed, states) < mine(prompts, states)).index_select(0, OWNER)[:, None]
    return torch.where(within, at, place + mine(delta, states).index_select(0, OWNER)[:, None]).T.long()


def _turn_kernel(states: Tensor, prompts: Tensor, computed: Tensor, delta: Tensor, given: Tensor) -> Tensor:
    found = torch.empty(3, 9, dtype=torch.int64)
    vllm("v1.worker.gpu.mm.rope")._prepare_rope_positions_kernel[(3,)](
        found, 9, given, 120, 40, delta, states, STARTS, prompts, computed, BLOCK_SIZE=1024, NUM_DIMS=3
    )
    return found
