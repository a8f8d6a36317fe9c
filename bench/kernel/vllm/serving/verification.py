"""vLLM's verification of drafts by blocks of a vocabulary, and how likely it thinks that a draft is accepted.

Three of five requests have two, one and three logits, of which the last one has no draft.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F

from bench.kernel.rows import Row, Tensor, normal
from bench.kernel.vllm import vllm
from bench.kernel.vllm.serving.batches import LOGITS, OWNERS, PLACES, numbers, whole

UTILS = "v1.worker.gpu.spec_decode.rejection_sampler_utils"
STATES = torch.tensor([4, 0, 2])


def rows() -> Iterator[Row]:
    """The functions, in order."""
    target, draft, warm = normal(6, 20), normal(5, 2, 20) + 1, normal(5)
    yield Row("_compute_local_logits_stats_kernel", _stats, _stats_kernel, (target, draft, warm))
    maxima = target.unflatten(1, (5, 4)).amax(-1)
    yield Row("_compute_cumulative_log_p_kernel (drafts without probabilities)", _cumulative, _cumulative_kernel,
        (target, numbers(20, 6)))  # fmt: skip
    yield Row("_compute_local_residual_mass_kernel", _residual, _residual_kernel,
        (-normal(6).abs(), target, draft, numbers(20, 6), warm))  # fmt: skip
    again = (numbers(20, 3, 4).long(), whole(1, 0, 2), numbers(20, 3, 4, seed=1).long(), normal(3, 4), normal(5))
    yield Row("_insert_resampled_kernel", _inserted, _insert_kernel, again, given=_have_a_next)
    yield Row("rejection_sample (temperature zero)", _verified, _verify_kernel, (target, numbers(20, 6)))
    yield Row("_flatten_sampled_kernel", _flat, _flat_kernel, (numbers(20, 3, 3).long(), whole(2, 1, 2)))
    yield Row("gather_draft_sampled", _drawn, _draw_kernel,
        (numbers(90, 9), torch.arange(9).flip(0), torch.tensor([1, 2, 3, 6, 7, 8]), whole(3, 9, 4, 2, 5)))  # fmt: skip
    seen = (normal(4, 3), numbers(3, 4, seed=5), numbers(3, 4, seed=6), normal(5, 3), normal(5, 3).sigmoid())
    yield Row("_accumulate_kernel", _graded, _grade_kernel, (*seen, torch.tensor([4, 0, 2, 3])))
    fit = (normal(1).abs(), normal(3), normal(3, 3).abs() + 1, normal(3, 2), normal(3).abs())
    yield Row("_refit_kernel", _refit, _refit_kernel, fit)
    yield Row("_local_max_sumexp_kernel", _local, _local_kernel, (target, torch.tensor([4, 0, -1, 1, 2, 2]), warm),
        {"logits": "tokens", "states": "tokens"})  # fmt: skip
    parts = (maxima[:4], maxima[:4].exp() + 1, torch.tensor([4, 0, 2, 3]), normal(1).abs(), normal(3))
    yield Row("_predict_kernel", _predicted, _predict_kernel, parts)


def _blocks(x: Tensor) -> tuple[Tensor, Tensor]:
    """Maximum and sum of exponentials in blocks of eight of the last axis."""
    parts = F.pad(x, (0, 4), value=-torch.inf).unflatten(-1, (3, 8))
    top = parts.amax(-1)
    return top, (parts - top[..., None]).exp().sum(-1)


def _stats(target: Tensor, draft: Tensor, warm: Tensor) -> tuple[Tensor, ...]:
    """Of each block of eight tokens; without temperature its likeliest token; the third draft is left out."""
    states = STATES.index_select(0, OWNERS)
    mine = warm.abs().index_select(0, states)[:, None]
    proposed = draft[states, PLACES.clamp(max=1)] / mine
    used, cold = (PLACES < 2)[:, None], mine == 0
    (top, total), (most, mass) = _blocks(target), _blocks(proposed)
    first = F.pad(target, (0, 4), value=-torch.inf).unflatten(-1, (3, 8)).argmax(-1) + torch.arange(3) * 8
    return (
        torch.where(used & cold, first, -1),
        torch.where(used, top, 0.0),
        *(torch.where(used & ~cold, x, 0.0) for x in (total, most, mass)),
    )


def _stats_kernel(target: Tensor, draft: Tensor, warm: Tensor) -> tuple[Tensor, ...]:
    found = torch.full((6, 3), -1), *(torch.zeros(6, 3) for _ in range(4))
    given = [x for one in found for x in (one, 3)]
    vllm(UTILS)._compute_local_logits_stats_kernel[(6, 3)](
        *given, target, 20, draft, 40, 20, STATES.index_select(0, OWNERS), PLACES, warm.abs(), 20, 2, BLOCK_SIZE=8,
        HAS_DRAFT_LOGITS=True,
    )  # fmt: skip
    return found


def _cumulative(target: Tensor, drafts: Tensor) -> Tensor:
    """The logarithm of how likely each draft is with those before it."""
    likely = torch.log_softmax(target, -1)
    each = likely[:5].gather(1, drafts[1:, None].long())[:, 0]
    zero = torch.zeros(1)
    return torch.cat([each[:1], zero, zero, each[3:].cumsum(0), zero])


def _cumulative_kernel(target: Tensor, drafts: Tensor) -> Tensor:
    found = torch.zeros(6)
    top, total = _blocks(target)
    vllm(UTILS)._compute_cumulative_log_p_kernel[(3,)](
        found, target, 20, top, 3, total, 3, drafts, None, 0, 0, None, 0, None, 0, LOGITS, STATES, torch.ones(5), 3,
        PADDED_VOCAB_NUM_BLOCKS=4, HAS_DRAFT_LOGITS=False,
    )  # fmt: skip
    return found


def _residual(ratio: Tensor, target: Tensor, draft: Tensor, drafts: Tensor, warm: Tensor) -> Tensor:
    """What a target's probabilities, times those of what came before, have over a draft's, in blocks of eight."""
    states = STATES.index_select(0, OWNERS)
    temperature = warm.abs().index_select(0, states)[:, None]
    q = torch.softmax(draft[states, PLACES.clamp(max=1)] / temperature, -1)
    p = torch.softmax(target, -1) * ratio.roll(1).exp()[:, None]
    mass = F.pad((p - q).clamp(min=0), (0, 4)).unflatten(-1, (3, 8)).sum(-1)
    used = (PLACES == 1) & (drafts.roll(-1) >= 0) & (torch.arange(6) < 5)
    return torch.where(used[:, None] & (temperature != 0), mass, 0.0)


def _residual_kernel(ratio: Tensor, target: Tensor, draft: Tensor, drafts: Tensor, warm: Tensor) -> Tensor:
    found, states = torch.zeros(6, 3), STATES.index_select(0, OWNERS)
    warm = warm.abs()
    temperature = warm.index_select(0, states)[:, None]
    top, total = _blocks(target)
    most, mass = _blocks(draft[states, PLACES.clamp(max=1)] / temperature)
    vllm(UTILS)._compute_local_residual_mass_kernel[(6, 3)](
        found, 3, ratio, target, 20, top, 3, total, 3, draft, 40, 20, most, 3, mass, 3, drafts, states, PLACES, warm,
        20, 2, 3, BLOCK_SIZE=8, PADDED_VOCAB_NUM_BLOCKS=4,
    )  # fmt: skip
    return found


def _inserted(tokens: Tensor, count: Tensor, drawn: Tensor, best: Tensor, warm: Tensor) -> tuple[Tensor, Tensor]:
    """The token that was drawn again goes behind those that were accepted, where it is not there already."""
    token = drawn.gather(1, best.argmax(1, keepdim=True))
    last = count == torch.tensor([1, 0, 2])
    write = last | (warm.index_select(0, STATES) != 0)
    at = (torch.arange(4) == count[:, None]) & write[:, None]
    return torch.where(at, token, tokens), count + 1


def _have_a_next(tokens: Tensor, count: Tensor, *others: Tensor) -> tuple[Tensor, Tensor]:
    """No request has accepted more tokens than it has drafts."""
    return count >= 0, count < LOGITS.diff()


def _insert_kernel(tokens: Tensor, count: Tensor, drawn: Tensor, best: Tensor, warm: Tensor) -> tuple[Tensor, Tensor]:
    tokens, count, owner = tokens.clone(), count.clone(), STATES.index_select(0, OWNERS)
    vllm(UTILS)._insert_resampled_kernel[(3,)](
        tokens, 4, count, drawn, 4, best, 4, 4, LOGITS, owner, warm, PADDED_RESAMPLE_NUM_BLOCKS=4
    )
    return tokens, count


def _verified(target: Tensor, drafts: Tensor) -> Tensor:
    """How many tokens each request has: its drafts up to the first that is not the likeliest token, and one more."""
    right = F.pad(drafts[1:] == target.argmax(-1)[:-1], (0, 1)).int()
    return torch.stack([right[0], right[0] * 0, right[3] + right[3] * right[4]]) + 1


def _verify_kernel(target: Tensor, drafts: Tensor) -> Tensor:
    zero, owner = torch.zeros(6, dtype=torch.int64), STATES.index_select(0, OWNERS)
    return vllm(UTILS).rejection_sample(
        target, None, drafts, LOGITS, zero, STATES, owner, PLACES, torch.zeros(5), torch.zeros(5).long(), 2
    )[1]


def _flat(tokens: Tensor, count: Tensor) -> Tensor:
    mine = tokens[OWNERS, PLACES]
    return torch.where(count.index_select(0, OWNERS) > PLACES, mine, -1)


def _flat_kernel(tokens: Tensor, count: Tensor) -> Tensor:
    found = torch.full((6,), -1)
    vllm("v1.worker.gpu.spec_decode.rejection_sampler")._flatten_sampled_kernel[(3,)](found, tokens, 3, count, LOGITS)
    return found


def _drawn(ids: Tensor, places: Tensor, logits: Tensor, prompts: Tensor) -> tuple[Tensor, Tensor]:
    """The token and the position of each logit; a draft of a request that still reads its prompt is none."""
    place, prompt = places.index_select(0, logits), prompts.index_select(0, STATES.index_select(0, OWNERS))
    none = (PLACES > 0) & (place - PLACES < prompt)
    return torch.where(none, -1, ids.index_select(0, logits)), place


def _draw_kernel(ids: Tensor, places: Tensor, logits: Tensor, prompts: Tensor) -> tuple[Tensor, Tensor]:
    run = vllm("v1.worker.gpu.spec_decode.rejection_sampler").gather_draft_sampled
    return run(ids, places, logits, STATES.index_select(0, OWNERS), PLACES, prompts)


ESTIMATOR = "v1.worker.gpu.spec_decode.acceptance_estimator"


def _graded(
    info: Tensor, sampled: Tensor, rejected: Tensor, features: Tensor, said: Tensor, states: Tensor
) -> tuple[Tensor, ...]:
    """The sums of a logistic regression on which drafts were accepted, of each step."""
    step, accepted = torch.arange(3)[:, None], (sampled - 1).clamp(min=0)
    seen = (step <= accepted) & (step < accepted + rejected)
    feature, p = features.index_select(0, states).T, said.index_select(0, states).T
    weight = torch.where(seen, p * (1 - p), 0.0)
    error = torch.where(seen, (step < accepted).float() - p, 0.0)
    sums = [(weight * feature**2).sum(1), (weight * feature).sum(1), weight.sum(1)]
    grads = [(error * feature).sum(1), error.sum(1)]
    return info[:3] + torch.stack(sums, 1), info[:3, :2] + torch.stack(grads, 1), info[3] + seen.float().sum(1)


def _grade_kernel(
    info: Tensor, sampled: Tensor, rejected: Tensor, features: Tensor, said: Tensor, states: Tensor
) -> tuple[Tensor, ...]:
    sums, grads, counts = info[:3].clone(), info[:3, :2].clone(memory_format=torch.contiguous_format), info[3].clone()
    vllm(ESTIMATOR)._accumulate_kernel[(3,)](
        sums, grads, states, sampled, rejected, features, 3, said, 3, counts, 4, BLOCK_R=8
    )
    return sums, grads, counts


def _refit(slope: Tensor, bias: Tensor, info: Tensor, grad: Tensor, counts: Tensor) -> tuple[Tensor, ...]:
    """A damped step of Newton's method for a slope of all positions and a bias of each one, by elimination."""
    a, b, c = info[:, 0].sum() + 1e-3, info[:, 1], info[:, 2] + 1e-3
    step = (grad[:, 0].sum() - (b * grad[:, 1] / c).sum()) / (a - (b * b / c).sum())
    step = step * (counts.sum() / (counts.sum() + 50.0))
    step = torch.where(slope[0] + step >= 0.0, step, 0.0)
    move = (grad[:, 1] - b * step) / c * (counts / (counts + 50.0))
    move = torch.where(move == move, move, 0.0)
    return slope + step, bias + move, info * 0, grad * 0, counts * 0


def _refit_kernel(slope: Tensor, bias: Tensor, info: Tensor, grad: Tensor, counts: Tensor) -> tuple[Tensor, ...]:
    found = tuple(x.clone() for x in (slope, bias, info, grad, counts))
    slope, bias, info, grad, counts = found
    vllm(ESTIMATOR)._refit_kernel[(1,)](
        slope, bias, info, 3, grad, 2, counts, NUM_SPECULATIVE_STEPS=3, L2=1e-3, DAMPING=50.0, BLOCK=4
    )
    return found


def _local(logits: Tensor, states: Tensor, warm: Tensor) -> tuple[Tensor, Tensor]:
    mine = warm.index_select(0, states.clamp(min=0))
    top, total = _blocks(logits / torch.where(mine > 0, mine, 1.0)[:, None])
    used = (states >= 0)[:, None]
    return torch.where(used, top, -torch.inf), torch.where(used, total, 0.0)


def _local_kernel(logits: Tensor, states: Tensor, warm: Tensor) -> tuple[Tensor, Tensor]:
    top, total = torch.empty(logits.shape[0], 3), torch.empty(logits.shape[0], 3)
    vllm(ESTIMATOR)._local_max_sumexp_kernel[(logits.shape[0], 3)](
        top, 3, total, 3, logits, 20, states, 1, warm, logits.shape[0], 20, BLOCK_SIZE=8
    )
    return top, total


def _predicted(top: Tensor, total: Tensor, states: Tensor, slope: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
    """The log-odds of the likeliest token of each row, and what a logistic regression makes of it, at step 1."""
    mass = (total * (top - top.amax(1, keepdim=True)).exp()).sum(1)
    feature = (-(mass - 1).clamp(min=0).log()).clamp(-40.0, 40.0)
    said = torch.sigmoid(slope * feature + bias[1])
    none, step = torch.zeros(5, 3), torch.tensor([0.0, 1.0, 0.0])
    scattered = [none.index_copy(0, states, x[:, None] * step) for x in (feature, said)]
    return *scattered, said[:, None] * step


def _predict_kernel(top: Tensor, total: Tensor, states: Tensor, slope: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
    features, said, sure = torch.zeros(5, 3), torch.zeros(5, 3), torch.zeros(4, 3)
    vllm(ESTIMATOR)._predict_kernel[(4,)](
        features, 3, said, 3, sure, 3, slope, bias, top, 5, total, 5, states, 1, torch.ones(1).long(), 4, 5,
        per_token_step=False, NUM_SPECULATIVE_STEPS=3, MAX_LOG_ODDS=40.0, PADDED_VOCAB_NUM_BLOCKS=8,
    )  # fmt: skip
    return features, said, sure
