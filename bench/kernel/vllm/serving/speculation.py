"""vLLM's speculative decoding: which drafts are accepted, what is drawn where one is not, and what is drafted next.

Three requests have two, one and three drafts. ``ENDS`` says where those of each end.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F

from bench.kernel.rows import Row, Tensor, are_places, normal
from bench.kernel.vllm import vllm
from bench.kernel.vllm.serving.batches import numbers, whole

ENDS = torch.tensor([2, 3, 6], dtype=torch.int32)
COUNTS = torch.tensor([2, 1, 3])
OWNERS = torch.tensor([0, 0, 1, 2, 2, 2])
PLACES = torch.tensor([[0, 1, 1], [2, 2, 2], [3, 4, 5]])
"""The place of each draft of each request, the last one again behind these."""


def rows() -> Iterator[Row]:
    """The functions, in order."""
    module = vllm("v1.sample.rejection_sampler")
    yield Row("expand_kernel (floats)", _expanded, lambda x: _expand_kernel(module, x), (normal(3),))
    yield Row("expand_kernel (integers)", _expanded, lambda x: _expand_kernel(module, x), (whole(3, 0, 7),))
    drafts, chosen, bonus = numbers(4, 6), numbers(4, 6, seed=1).long(), numbers(4, 3).long()
    greedy = torch.tensor([True, False, True])
    given = (drafts, chosen, bonus, greedy)
    yield Row("rejection_greedy_sample_kernel", _greedy, lambda *x: _greedy_kernel(module, *x), given)
    rates = (normal(6).sigmoid().double(), normal(3).sigmoid())
    yield Row("rejection_greedy_sample_kernel (synthetic)", _synthetic, lambda *x: _synthetic_kernel(module, *x),
        (*given, *rates))  # fmt: skip
    likely, target = normal(6, 10).softmax(-1), (normal(6, 10) * 2 + 1).softmax(-1)
    drawn = (drafts, likely, target, bonus, numbers(4, 6, seed=2), rates[0], greedy)
    yield Row("rejection_random_sample_kernel", _random, lambda *x: _random_kernel(module, *x), drawn)
    yield Row("rejection_random_sample_kernel (no probabilities of drafts)", _certain,
        lambda *x: _certain_kernel(module, *x), (drafts, *drawn[2:]))  # fmt: skip
    noise = normal(3, 10).abs()
    yield Row("sample_recovered_tokens_kernel", _recovered, lambda *x: _recover_kernel(module, *x),
        (likely, target, noise))  # fmt: skip
    yield Row("sample_recovered_tokens_kernel (no probabilities of drafts)", _other,
        lambda *x: _other_kernel(module, *x), (drafts, target, noise))  # fmt: skip
    yield Row(
        "eagle_prepare_inputs_padded_kernel", _padded, _pad_kernel, (whole(2, 2, 5), whole(1, 1, 3), whole(0, 3, 4, 8))
    )
    tokens = (whole(3, -1, 9, 4, 5, 6, -1, -1, -1).view(3, 3), torch.tensor([False, True, False]), whole(7, 8, 9))
    yield Row("eagle_prepare_next_token_padded_kernel", _last, _last_kernel, tokens)
    step = (torch.tensor([3, 15, 8]), numbers(9, 3, 4), whole(4, 16, 9))
    yield Row("eagle_step_update_slot_mapping_and_metadata", _stepped, _step_kernel, step, given=are_places)
    target_ids = (numbers(90, 9), torch.tensor([4, 5, 6, 0, 7, 8, 9, 10, 11]), whole(3, 0, 7))
    yield Row("copy_and_expand_eagle_inputs_kernel", _drafted, _draft_kernel, target_ids)
    flash = (whole(3, 0, 7), target_ids[1], numbers(9, 3, 4))
    yield Row("copy_and_expand_dflash_inputs_kernel", _flash, _flash_kernel, flash)


def _expanded(x: Tensor) -> Tensor:
    return torch.where(x == 0, 1, x).index_select(0, OWNERS)


def _expand_kernel(module: object, x: Tensor) -> Tensor:
    found = x.new_empty(6)
    module.expand_kernel[(3,)](found, x, ENDS, 0, 1, MAX_NUM_TOKENS=128)  # type: ignore[attr-defined]
    return found


def _accepted(accepted: Tensor, tokens: Tensor, bonus: Tensor, here: Tensor) -> Tensor:
    """The tokens up to the first draft that is not accepted, or all and one more; -1 where there is none."""
    accepted, tokens = accepted[PLACES], tokens[PLACES]
    drafted = torch.arange(3) < COUNTS[:, None]
    before = [here]
    for k in range(3):
        before.append(before[-1] & (accepted | ~drafted)[:, k])
    found = torch.where(drafted & torch.stack(before[:3], 1), tokens, -1)
    more = (torch.arange(4) == COUNTS[:, None]) & before[3][:, None]
    return torch.where(more, bonus[:, None], F.pad(found, (0, 1), value=-1)).int()


def _greedy(drafts: Tensor, chosen: Tensor, bonus: Tensor, greedy: Tensor) -> Tensor:
    return _accepted(drafts == chosen.int(), chosen.int(), bonus.int(), greedy)


def _greedy_kernel(module: object, drafts: Tensor, chosen: Tensor, bonus: Tensor, greedy: Tensor) -> Tensor:
    found = torch.full((3, 4), -1, dtype=torch.int32)
    module.rejection_greedy_sample_kernel[(3,)](  # type: ignore[attr-defined]
        found, ENDS, drafts, chosen, bonus, greedy, 3, None, None, SYNTHETIC_MODE=False
    )
    return found


def _synthetic(drafts: Tensor, chosen: Tensor, bonus: Tensor, greedy: Tensor, drawn: Tensor, rates: Tensor) -> Tensor:
    accepted = (drawn < rates.index_select(0, torch.tensor([0, 1, 0, 0, 1, 2]))) & (drafts >= 0)
    return _accepted(accepted, torch.where(accepted, drafts, chosen.int()), bonus.int(), greedy)


def _synthetic_kernel(
    module: object, drafts: Tensor, chosen: Tensor, bonus: Tensor, greedy: Tensor, drawn: Tensor, rates: Tensor
) -> Tensor:
    found = torch.full((3, 4), -1, dtype=torch.int32)
    module.rejection_greedy_sample_kernel[(3,)](  # type: ignore[attr-defined]
        found, ENDS, drafts, chosen, bonus, greedy, 3, drawn, rates, SYNTHETIC_MODE=True
    )
    return found


def _random(
    drafts: Tensor, likely: Tensor, target: Tensor, bonus: Tensor, other: Tensor, drawn: Tensor, greedy: Tensor
) -> Tensor:
    token = drafts.clamp(min=0).long()[:, None]
    p, q = (x.gather(1, token)[:, 0] for x in (target, likely))
    accepted = (drafts >= 0) & (q > 0) & (p / q >= drawn)
    return _accepted(accepted, torch.where(accepted, drafts, other), bonus.int(), ~greedy)


def _random_kernel(
    module: object, drafts: Tensor, likely: Tensor | None, target: Tensor, bonus: Tensor, other: Tensor, drawn: Tensor,
    greedy: Tensor,
) -> Tensor:  # fmt: skip
    found = torch.full((3, 4), -1, dtype=torch.int32)
    module.rejection_random_sample_kernel[(3,)](  # type: ignore[attr-defined]
        found, ENDS, drafts, likely, target, bonus, other, drawn, greedy, 3, target.shape[1], None,
        NO_DRAFT_PROBS=likely is None, SYNTHETIC_MODE=False,
    )  # fmt: skip
    return found


def _certain(drafts: Tensor, target: Tensor, bonus: Tensor, other: Tensor, drawn: Tensor, greedy: Tensor) -> Tensor:
    return _random(drafts, torch.ones_like(target), target, bonus, other, drawn, greedy)


def _certain_kernel(
    module: object, drafts: Tensor, target: Tensor, bonus: Tensor, other: Tensor, drawn: Tensor, greedy: Tensor
) -> Tensor:
    return _random_kernel(module, drafts, None, target, bonus, other, drawn, greedy)


def _recovered(likely: Tensor, target: Tensor, noise: Tensor) -> Tensor:
    return ((target - likely).clamp(min=0) * noise.index_select(0, OWNERS)).argmax(-1).int()


def _recover_kernel(module: object, likely: Tensor, target: Tensor, noise: Tensor) -> Tensor:
    found = torch.empty(6, dtype=torch.int32)
    module.sample_recovered_tokens_kernel[(3, 3)](  # type: ignore[attr-defined]
        found, ENDS, None, likely, target, noise, 10, BLOCK_SIZE=8, NO_DRAFT_PROBS=False, USE_FP64_GUMBEL=False
    )
    return found


def _other(drafts: Tensor, target: Tensor, noise: Tensor) -> Tensor:
    left = torch.where(torch.arange(10) == drafts[:, None], 0.0, target)
    return (left * noise.index_select(0, OWNERS)).argmax(-1).int()


def _other_kernel(module: object, drafts: Tensor, target: Tensor, noise: Tensor) -> Tensor:
    found = torch.empty(6, dtype=torch.int32)
    module.sample_recovered_tokens_kernel[(3, 3)](  # type: ignore[attr-defined]
        found, ENDS, drafts, None, target, noise, 10, BLOCK_SIZE=8, NO_DRAFT_PROBS=True, USE_FP64_GUMBEL=False
    )
    return found


def _padded(ends: Tensor, valid: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
    drafts = torch.diff(ends, prepend=ends.new_zeros(1))
    rejected = torch.where(drafts > 0, drafts + 1 - valid, 0)
    return starts[1:] - 1 - rejected, rejected


def _pad_kernel(ends: Tensor, valid: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
    places, rejected = torch.empty_like(valid), torch.empty_like(valid)
    vllm("v1.spec_decode.utils").eagle_prepare_inputs_padded_kernel[(3,)](ends, valid, starts, places, rejected, 3)
    return places, rejected


def _last(tokens: Tensor, discarded: Tensor, backup: Tensor) -> tuple[Tensor, Tensor]:
    """The last token that is one, and how many there are."""
    valid = (tokens != -1) & (tokens < 10) & ~discarded[:, None]
    place = torch.where(valid, torch.arange(3), -1).amax(1)
    last = tokens.gather(1, place.clamp(min=0)[:, None])[:, 0]
    return torch.where(place >= 0, last, backup), valid.sum(1).int()


def _last_kernel(tokens: Tensor, discarded: Tensor, backup: Tensor) -> tuple[Tensor, Tensor]:
    last, valid = torch.empty_like(backup), torch.empty_like(backup)
    vllm("v1.spec_decode.utils").eagle_prepare_next_token_padded_kernel[(3,)](
        tokens, discarded, backup, last, valid, 10, 3, 3, 3, BLOCK_SIZE_TOKENS=4
    )
    return last, valid


def _stepped(places: Tensor, table: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The next position and its slot; a position behind the longest sequence counts from zero, and has no slot."""
    over = places + 1 >= 16
    new = torch.where(over, 0, places + 1)
    block = table.gather(1, torch.div(new, 4, rounding_mode="floor").clamp(max=3)[:, None])[:, 0]
    slots = torch.where(over, -1, block * 4 + new % 4)
    return new, F.pad(slots, (0, 2), value=-1), torch.where(over, 1, lengths + 1).clamp(max=16)


def _step_kernel(places: Tensor, table: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    new, slots, lengths = torch.empty_like(places), torch.empty(5, dtype=torch.int64), lengths.clone()
    run = vllm("v1.spec_decode.utils").eagle_step_update_slot_mapping_and_metadata
    run(places, table, lengths, 4, 16, new, slots, 5)
    return new, slots, lengths


def _drafted(ids: Tensor, places: Tensor, following: Tensor) -> tuple[Tensor, ...]:
    """Each request's tokens, shifted by one, its next token, and one slot for a second draft; rejected ones behind."""
    starts, ends = torch.tensor([0, 3, 4]), torch.tensor([1, 3, 7])
    owner = torch.tensor([0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 2, 2])
    j = torch.tensor([0, 1, 2, 3, 0, 1, 0, 1, 2, 3, 4, 5])
    valid = (ends - starts)[owner]
    token = ids.index_select(0, (starts[owner] + 1 + j).clamp(max=8))
    token = torch.where(j < valid, token, following.index_select(0, owner))
    rejected, masked = j >= valid + 2, j == valid + 1
    token = torch.where(rejected, 11, torch.where(masked, 12, token)).int()
    position = torch.where(rejected, 0, places.index_select(0, starts[owner]) + j)
    first = torch.tensor([0, 4, 6])
    new = (first + ends - starts)[:, None] + torch.arange(2)
    moved = torch.tensor([0, 1, 2, 4, 6, 7, 8, 9, 10]).int()
    return token, position, rejected, masked, new.flatten().int(), moved


def _draft_kernel(ids: Tensor, places: Tensor, following: Tensor) -> tuple[Tensor, ...]:
    found = (
        torch.empty(12, dtype=torch.int32), torch.empty(12, dtype=torch.int64), torch.empty(12, dtype=torch.bool),
        torch.empty(12, dtype=torch.bool), torch.empty(6, dtype=torch.int32), torch.empty(9, dtype=torch.int32),
    )  # fmt: skip
    starts, ends = whole(0, 3, 4, 9), whole(1, 3, 7)
    vllm("v1.spec_decode.utils").copy_and_expand_eagle_inputs_kernel[(3, 2)](
        ids, places, following, *found, starts, ends, 11, 12, 9, 2, True, BLOCK_SIZE_TOKENS=4
    )
    return found


def _flash(following: Tensor, places: Tensor, table: Tensor) -> tuple[Tensor, ...]:
    """Each request's next token and two slots behind it, with positions and slots of a cache."""
    owner, ends = torch.tensor([0, 0, 0, 1, 2, 2, 2, 2, 2]), torch.tensor([3, 4, 9])
    mine = torch.arange(3)[:, None].expand(3, 3).flatten()
    positions = (places.index_select(0, ends - 1)[:, None] + 1 + torch.arange(3)).flatten()

    def slots(owner: Tensor, positions: Tensor) -> Tensor:
        block = torch.div(positions, 4, rounding_mode="floor").clamp(max=3)[:, None]
        return table.index_select(0, owner).gather(1, block)[:, 0].long() * 4 + positions % 4

    ids = F.pad(following[:, None], (0, 2), value=12).flatten()
    sampled = (torch.arange(3)[:, None] * 3 + torch.tensor([1, 2])).flatten().int()
    return ids, places.clone(), positions, slots(owner, places), slots(mine, positions), sampled


def _flash_kernel(following: Tensor, places: Tensor, table: Tensor) -> tuple[Tensor, ...]:
    found = (
        torch.empty(9, dtype=torch.int32), torch.empty(9, dtype=torch.int64), torch.empty(9, dtype=torch.int64),
        torch.empty(9, dtype=torch.int64), torch.empty(9, dtype=torch.int64), torch.empty(6, dtype=torch.int32),
    )  # fmt: skip
    vllm("v1.spec_decode.utils").copy_and_expand_dflash_inputs_kernel[(3, 2)](
        following, places, *found, table, 4, whole(0, 3, 4, 9), 0, 12, 4, 3, 2, 9, BLOCK_SIZE=4,
        HAS_NUM_REJECTED=False,
    )  # fmt: skip
    return found
