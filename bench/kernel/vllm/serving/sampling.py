"""vLLM's kernels over logits: temperature, minimal probability, penalties, log-probabilities, accepted tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from bench.kernel.rows import Row, Tensor, normal
from bench.kernel.vllm import vllm

TOKENS, REQUESTS, VOCABULARY = 5, 4, 40


def rows() -> Iterator[Row]:
    """The functions, in order."""
    logits, owner = normal(TOKENS, VOCABULARY), torch.tensor([0, 2, 2, 1, 3])
    symbols = {"logits": "tokens", "owner": "tokens"}
    sample = "v1.worker.gpu.sample"
    yield Row(
        "apply_temperature",
        _tempered,
        in_place(vllm(f"{sample}.gumbel").apply_temperature),
        (logits, owner, torch.tensor([0.0, 1.0, 0.7, 2.0])),
        symbols,
    )
    yield Row(
        "apply_min_p",
        _likely,
        in_place(vllm(f"{sample}.min_p").apply_min_p),
        (logits, owner, torch.tensor([0.0, 0.1, 0.5, 0.9])),
        symbols,
    )
    yield Row(
        "compute_token_logprobs",
        lambda logits, tokens: torch.log_softmax(logits, -1).gather(1, tokens),
        lambda logits, tokens: vllm(f"{sample}.logprob").compute_token_logprobs(logits, tokens),
        (logits, torch.tensor([[1, 2, 7], [0, 39, 3], [4, 4, 4], [5, 6, 1], [9, 8, 2]])),
    )
    yield Row("token ranks", _ranks, _ranks_kernel, (logits, torch.tensor([3, 0, 39, 7, 7])))
    yield Row(
        "get_num_nans",
        lambda logits: logits.isnan().sum(1).int(),
        lambda logits: vllm("v1.worker.gpu.metrics.logits").get_num_nans(logits),
        (logits,),
    )
    yield Row("apply_penalties (no drafts)", _penalised, _penalties_kernel, _penalties())


def in_place(function: Callable[..., Any]) -> Callable[..., Tensor]:
    """What a function writes into its first argument."""

    def run(logits: Tensor, owner: Tensor, numbers: Tensor) -> Tensor:
        found = logits.clone()
        function(found, owner, numbers)
        return found

    return run


def _tempered(logits: Tensor, owner: Tensor, temperature: Tensor) -> Tensor:
    mine = temperature.gather(0, owner)[:, None]
    return torch.where((mine == 0) | (mine == 1), logits, logits / mine)


def _likely(logits: Tensor, owner: Tensor, least: Tensor) -> Tensor:
    mine = least.gather(0, owner)[:, None]
    bound = logits.amax(-1, keepdim=True) + mine.log()
    return torch.where((mine != 0) & (logits < bound), -torch.inf, logits)


def _ranks(logits: Tensor, tokens: Tensor) -> Tensor:
    return (logits >= logits.gather(1, tokens[:, None])).sum(1)


def _ranks_kernel(logits: Tensor, tokens: Tensor) -> Tensor:
    found = torch.empty(logits.shape[0], dtype=torch.int64)
    kernel = vllm("v1.worker.gpu.sample.logprob")._ranks_kernel
    kernel[(logits.shape[0],)](found, logits, logits.stride(0), tokens, logits.shape[1], BLOCK_SIZE=8192)
    return found


def _penalties() -> tuple[Tensor, ...]:
    random = torch.Generator().manual_seed(0)
    prompt = torch.randint(-(2**31), 2**31 - 1, (REQUESTS, VOCABULARY // 32 + 1), generator=random, dtype=torch.int32)
    counts = torch.randint(0, 3, (REQUESTS, VOCABULARY), generator=random).int()
    return (
        normal(TOKENS, VOCABULARY),
        torch.tensor([0, 2, 2, 1, 3]),
        torch.tensor([1.0, 1.2, 2.0, 0.5]),
        torch.tensor([0.0, 0.1, 0.0, 0.3]),
        torch.tensor([0.0, 0.0, 0.2, 0.1]),
        prompt,
        counts,
    )


def _penalised(
    logits: Tensor, owner: Tensor, again: Tensor, often: Tensor, seen: Tensor, prompt: Tensor, counts: Tensor
) -> Tensor:
    again, often, seen = (x.gather(0, owner)[:, None] for x in (again, often, seen))
    bits = (prompt[..., None] >> torch.arange(32, dtype=torch.int32)).flatten(1)[:, : logits.shape[1]]
    told, said = (bits & 1).index_select(0, owner) != 0, counts.index_select(0, owner)
    scale = torch.where(told | (said > 0), again, 1.0)
    scaled = logits * torch.where(logits > 0, 1.0 / scale, scale)
    return scaled - often * said - seen * (said > 0)


def _penalties_kernel(
    logits: Tensor, owner: Tensor, again: Tensor, often: Tensor, seen: Tensor, prompt: Tensor, counts: Tensor
) -> Tensor:
    found = logits.clone()
    none = torch.zeros(logits.shape[0], dtype=torch.int32)
    vllm("v1.worker.gpu.sample.penalties").apply_penalties(found, owner, none, none, again, often, seen, prompt, counts)
    return found
