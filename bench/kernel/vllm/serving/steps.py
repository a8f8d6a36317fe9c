"""vLLM's bookkeeping between steps: accepted tokens, blocks of states, tables of several groups, who reasons on."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F

from bench.kernel.rows import Row, Tensor, normal
from bench.kernel.vllm import vllm
from bench.kernel.vllm.serving.batches import STARTS, numbers, whole

STATES = "v1.worker.gpu.model_states"


def rows() -> Iterator[Row]:
    """The functions, in order."""
    states, known = whole(4, 0, 2), whole(7, 8, 9, 10, 11)
    yield Row("_scatter_num_accepted_kernel", _scattered, _scatter_kernel, (states, whole(0, 3, 1), known))
    yield Row("_fill_num_accepted_kernel", _filled, _fill_kernel, (states, known))
    yield Row("_postprocess_recoverssm_align_kernel", _recovered, _recover_kernel,
        (states, whole(1, 3, 2), whole(9, 0, 30), known, known + 1))  # fmt: skip
    align = (states.long(), whole(0, 1, -1, 2, 0), whole(3, 9, 4, 0, 7), whole(1, 2, 0, 3, 1))
    yield Row("preprocess_mamba_align_fused_kernel", _aligned, _align_kernel, align)
    yield Row("_gather_block_tables_kernel (a table of pointers)", _tables, _table_kernel,
        (states, numbers(90, 5, 8), whole(3, 0, 8, 2, 5)))  # fmt: skip
    yield Row(
        "_zero_kv_blocks_kernel (a table of pointers)", _zeroed, _zero_kernel, (numbers(9, 6, 16), whole(3, 0, 5))
    )
    thought = (normal(3, 40), numbers(40, 3, 20), whole(3, -1, 9), whole(5, 5, 5), whole(-1, 2, 9))
    yield Row("_thinking_budget_kernel (no drafts, marks of one token)", _forced, _force_kernel, thought)
    marks = (numbers(3, 3, 20), whole(3, -1, 9), whole(12, 9, 20))
    yield Row("_update_committed_marker_cache_kernel (marks of one token)", _marked, _mark_kernel, marks)
    drawn = (numbers(3, 3, 20), numbers(3, 3, 2))
    yield Row("_repeated_context_mask_kernel", _again, _again_kernel, drawn)
    logits = torch.where(normal(3, 40) > -1, normal(3, 40), -torch.inf)
    yield Row("_topp_sb_stats_kernel", _stats, _stats_kernel, (logits, torch.tensor([0.5, 0.9, 1.0])))
    yield Row("_topk_topp_kernel (top-k)", _largest, _largest_kernel, (normal(3, 40), whole(3, 40, 1)))


def _scattered(states: Tensor, sampled: Tensor, known: Tensor) -> Tensor:
    return known.index_copy(0, states.long(), sampled.clamp(min=1))


def _scatter_kernel(states: Tensor, sampled: Tensor, known: Tensor) -> Tensor:
    found = known.clone()
    vllm(f"{STATES}.mamba_hybrid")._scatter_num_accepted_kernel[(3,)](states, sampled, found)
    return found


def _filled(states: Tensor, known: Tensor) -> Tensor:
    return known.index_fill(0, states.long(), 3)


def _fill_kernel(states: Tensor, known: Tensor) -> Tensor:
    found = known.clone()
    vllm(f"{STATES}.mamba_hybrid")._fill_num_accepted_kernel[(3,)](states, found, 3)
    return found


def _recovered(
    states: Tensor, sampled: Tensor, computed: Tensor, known: Tensor, accepted: Tensor
) -> tuple[Tensor, Tensor]:
    """In which block of eight tokens the state of a request is, of four at most."""
    block = ((computed + sampled - 1).clamp(min=0) // 8).clamp(max=3)
    return known.index_copy(0, states.long(), block), accepted.index_fill(0, states.long(), 1)


def _recover_kernel(
    states: Tensor, sampled: Tensor, computed: Tensor, known: Tensor, accepted: Tensor
) -> tuple[Tensor, Tensor]:
    known, accepted = known.clone(), accepted.clone()
    vllm(f"{STATES}.recoverssm")._postprocess_recoverssm_align_kernel[(3,)](
        states, sampled, None, computed, known, accepted, MAMBA_BLOCK_SIZE=8, BLOCK_TABLE_WIDTH=4
    )
    return known, accepted


def _aligned(states: Tensor, block: Tensor, computed: Tensor, accepted: Tensor) -> tuple[Tensor, ...]:
    """From where a state is copied, and the block of four tokens that is then written."""
    mine, many = block.index_select(0, states), accepted.index_select(0, states)
    after = computed.index_select(0, states) + STARTS.diff()
    new = (after + 3) // 4 - 1
    zero = torch.zeros_like(block)
    return (
        zero.index_copy(0, states, mine),
        zero.index_copy(0, states, (many - 1).clamp(min=0)),
        block.index_copy(0, states, new),
        accepted.index_copy(0, states, torch.where((mine >= 0) & (mine != new), 1, many)),
    )


def _align_kernel(states: Tensor, block: Tensor, computed: Tensor, accepted: Tensor) -> tuple[Tensor, ...]:
    block, accepted = block.clone(), accepted.clone()
    column, offset = torch.zeros_like(block), torch.zeros_like(block)
    vllm("v1.worker.mamba_utils").preprocess_mamba_align_fused_kernel[(2,)](
        states, block, computed, STARTS, accepted, column, offset, 3, BLOCK_SIZE=2, MAMBA_BLOCK_SIZE=4
    )
    return column, offset, block, accepted


def _tables(states: Tensor, table: Tensor, many: Tensor) -> Tensor:
    """The blocks of the requests of a batch; what a row does not have stays -1; a fourth row is zero."""
    rows = torch.where(torch.arange(8) < many.index_select(0, states)[:, None], table.index_select(0, states), -1)
    return F.pad(rows, (0, 0, 0, 1))


def _table_kernel(states: Tensor, table: Tensor, many: Tensor) -> Tensor:
    found = torch.full((4, 8), -1, dtype=torch.int32)
    places = (torch.tensor([x.data_ptr()], dtype=torch.uint64) for x in (table, found))
    vllm("v1.worker.gpu.block_table")._gather_block_tables_kernel[(1, 4)](
        states, *places, whole(8), many, 5, 3, BLOCK_SIZE=1024
    )
    return found


def _zeroed(cache: Tensor, blocks: Tensor) -> Tensor:
    return cache.index_fill(0, blocks.long(), 0)


def _zero_kernel(cache: Tensor, blocks: Tensor) -> Tensor:
    found = cache.clone()
    vllm("v1.worker.utils")._zero_kv_blocks_kernel[(3, 1, 2)](
        torch.tensor([found.data_ptr()]), torch.tensor([16]), torch.tensor([16]), blocks, BLOCK_SIZE=8
    )
    return found


def _forced(logits: Tensor, tokens: Tensor, budget: Tensor, starts: Tensor, ends: Tensor) -> Tensor:
    """Who has reasoned for too long, of twelve tokens, has to say token 7; 5 starts and 6 ends reasoning."""
    del tokens
    over = (budget >= 0) & (starts >= 0) & (starts > ends) & (12 - starts - 1 >= budget)
    return torch.where((torch.arange(40) == 7) & over[:, None], 1.0e9, logits)


def _force_kernel(logits: Tensor, tokens: Tensor, budget: Tensor, starts: Tensor, ends: Tensor) -> Tensor:
    found, each = logits.clone(), torch.arange(3, dtype=torch.int32)
    zero, total = torch.zeros(3, dtype=torch.int32), torch.full((3,), 12, dtype=torch.int32)
    vllm("v1.worker.gpu.sample.thinking_budget")._thinking_budget_kernel[(3,)](
        found, 40, each, budget, tokens, 20, total, zero, zero, starts, ends, whole(5), whole(6), whole(7),
        START_LEN=1, NATURAL_END_LEN=1, END_LEN=1,
    )  # fmt: skip
    return found


def _marked(tokens: Tensor, budget: Tensor, total: Tensor) -> tuple[Tensor, ...]:
    """Where the last 1, and where the last 2 of each request is, in one block of sixty-four tokens."""
    place, used = torch.arange(20), budget >= 0
    found = [torch.where((tokens == x) & (place < total[:, None]), place, -1).amax(1).int() for x in (1, 2)]
    return *(torch.where(used, x, -1) for x in found), torch.where(used, total.clamp(min=0), 0)


def _mark_kernel(tokens: Tensor, budget: Tensor, total: Tensor) -> tuple[Tensor, ...]:
    starts, ends, seen = whole(-1, -1, -1), whole(-1, -1, -1), whole(0, 0, 0)
    vllm("v1.worker.gpu.sample.thinking_budget")._update_committed_marker_cache_kernel[(3,)](
        torch.arange(3, dtype=torch.int32), budget, tokens, 20, total, starts, ends, seen, whole(1), whole(2),
        START_LEN=1, NATURAL_END_LEN=1, MAX_LEN=1, BLOCK=64,
    )  # fmt: skip
    return starts, ends, seen


def _again(tokens: Tensor, context: Tensor) -> Tensor:
    """Whether two tokens were said before, one after the other, in the twelve tokens behind a prompt of four."""
    padded = F.pad(tokens[:, 4:16], (2, 0), value=-1)
    both = (padded[:, :12] == context[:, :1]) & (padded[:, 1:13] == context[:, 1:])
    return both.any(1)


def _again_kernel(tokens: Tensor, context: Tensor) -> Tensor:
    found = torch.empty(3, dtype=torch.bool)
    vllm("v1.worker.gpu.sample.watermark")._repeated_context_mask_kernel[(3,)](
        found, tokens, 20, torch.arange(3), whole(4, 4, 4), whole(16, 16, 16), None, 0, context, 2, None, None, 0, 0,
        None, 0, None, CONTEXT_WIDTH=2, NUM_SPECULATIVE_STEPS=0, MAX_HISTORY=0, INCLUDE_PROMPT=False,
        SKIP_PARTIAL_CONTEXT=False, HAS_HISTORY_OFFSETS=False, SPECULATIVE_CONTEXTS=False, DRAFT_CONTEXTS=False,
        BLOCK=8,
    )  # fmt: skip
    return found


def _stats(logits: Tensor, p: Tensor) -> Tensor:
    """Of each of four parts of a row: the largest logit, the sum of exponentials, the least, how many are finite."""
    parts = logits.unflatten(1, (4, 10))
    finite = parts > -torch.inf
    top = parts.amax(-1)
    total = torch.where(finite, (parts - top[..., None]).exp(), 0.0).sum(-1)
    least = torch.where(finite, parts, torch.inf).amin(-1)
    found = torch.stack([top, total, least, finite.float().sum(-1)], -1)
    return torch.where((p >= 1)[:, None, None], 0.0, found)


def _stats_kernel(logits: Tensor, p: Tensor) -> Tensor:
    found = torch.zeros(3, 4, 4)
    vllm("v1.sample.ops.topk_topp_triton")._topp_sb_stats_kernel[(12,)](
        logits, 40, found, logits, p, HAS_K=False, VOCAB_SIZE=40, S=4, BLOCK=4
    )
    return found


def _largest(logits: Tensor, k: Tensor) -> Tensor:
    """The k largest logits of each row."""
    least = logits.sort(descending=True).values.gather(1, (k - 1).long()[:, None])
    return torch.where(logits >= least, logits, -torch.inf)


def _largest_kernel(logits: Tensor, k: Tensor) -> Tensor:
    return vllm("v1.sample.ops.topk_topp_triton").apply_top_k_top_p_triton(logits.clone(), k, None)
