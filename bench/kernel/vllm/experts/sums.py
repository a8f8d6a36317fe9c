"""vLLM's kernels of mixtures of experts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from bench.kernel.rows import Row, Tensor, normal
from bench.kernel.vllm import vllm


def rows() -> Iterator[Row]:
    """The functions, in order."""
    layers = "model_executor.layers.fused_moe"
    sums = vllm(f"{layers}.moe_fused_mul_sum").moe_fused_mul_sum_kernel
    yield Row(
        "moe_fused_mul_sum",
        lambda x, w: (x * w[..., None]).sum(1),
        lambda x, w: _weighted(sums, x, w),
        (normal(6, 2, 40), normal(6, 2)),
        {"x": "tokens", "w": "tokens"},
    )
    chosen, table = torch.tensor([[0, 3], [1, -1], [5, 2], [3, 3]]), torch.tensor([-1, 0, 1, -1, 2, -1])
    utils = vllm(f"{layers}.utils")
    yield Row(
        "remap_topk_to_local",
        lambda ids, table: torch.where(ids >= 0, table[ids.clamp(min=0)], -1),
        lambda ids, table: utils.remap_topk_to_local(ids, table),
        (chosen, table),
    )
    yield Row(
        "count_expert_num_tokens",
        lambda ids: (ids.flatten()[None] == torch.arange(6)[:, None]).sum(1).int(),
        lambda ids: utils.count_expert_num_tokens(ids, 6, None),
        (chosen,),
    )
    yield Row(
        "count_expert_num_tokens (experts of a rank)",
        _counted,
        lambda ids, table: utils.count_expert_num_tokens(ids, 3, table),
        (chosen, table),
    )


def _counted(ids: Tensor, table: Tensor) -> Tensor:
    mine = torch.where(ids >= 0, table[ids.clamp(min=0)], -1).flatten()
    return (mine[None] == torch.arange(3)[:, None]).sum(1).int()


def _weighted(kernel: Any, x: Tensor, w: Tensor) -> Tensor:
    tokens, count, width = x.shape
    out = torch.empty(tokens, width)
    kernel[(tokens,)](x, w, out, None, None, None, count * width, False, False, False, count, width, 128)
    return out
