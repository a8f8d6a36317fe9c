"""vLLM's attention over prompts, and of new tokens over cached ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from bench.kernel.rows import Row, Tensor, normal
from bench.kernel.vllm import vllm

OPS = "v1.attention.ops"
STARTS, LENGTHS, PAGE, WIDTH = (0, 3, 40), (21, 50), 16, 16
"""Where the queries of each sequence start, how many keys it has, the tokens of a page, the width of a head."""


def rows() -> Iterator[Row]:
    """The functions, in order."""
    given = (normal(50, 4, WIDTH), normal(50, 2, WIDTH), normal(50, 2, WIDTH) + 1)
    options: dict[str, dict[str, Any]] = {
        "no mask, one sequence": {"causal": False, "parts": ((0, 50),)},
        "causal, one sequence": {"parts": ((0, 50),)},
        "window, one sequence": {"parts": ((0, 50),), "back": 9},
        "window of both sides, one sequence": {"parts": ((0, 50),), "back": 9, "ahead": 5, "causal": False},
        "no mask, two sequences": {"causal": False, "parts": ((0, 17), (17, 50))},
    }
    for name, option in options.items():
        yield Row(
            f"context_attention_fwd ({name})",
            lambda q, k, v, o=option: _prompts(q, k, v, **o),
            lambda q, k, v, o=option: _prompt_kernel(q, k, v, **o),
            given,
        )
    for first in (False, True):
        yield Row(
            f"context_attention_fwd (sinks{' added to the first key' if first else ''})",
            lambda q, k, v, s, f=first: _prompts(q, k, v, ((0, 50),), sinks=s, first=f),
            lambda q, k, v, s, f=first: _prompt_kernel(q, k, v, ((0, 50),), sinks=s, sinks_bias_key0=f),
            (*given, normal(4)),
        )
    paged = (normal(40, 4, WIDTH), normal(40, 2, WIDTH), normal(40, 2, WIDTH) + 1, *_cache())
    for name, option in (("causal", {}), ("window", {"window": 7}), ("no mask", {"causal": False})):
        yield Row(
            f"prefix_prefill.context_attention_fwd ({name})",
            lambda q, k, v, keys, values, pages, o=option: _prefixed(q, k, v, keys, values, pages, **o),
            lambda q, k, v, keys, values, pages, o=option: _prefix_kernel(q, k, v, keys, values, pages, **o),
            paged,
        )
    yield Row(
        "prefix_prefill.context_attention_fwd (ALiBi)",
        lambda q, k, v, keys, values, pages, slopes: _prefixed(q, k, v, keys, values, pages, slopes=slopes.exp()),
        lambda q, k, v, keys, values, pages, slopes: _prefix_kernel(
            q, k, v, keys, values, pages, alibi_slopes=slopes.exp()
        ),
        (*paged, normal(4)),
    )
    for window in (0, 7):
        yield Row(
            f"kernel_paged_attention_2d{' (window)' if window else ''}",
            lambda q, keys, values, pages, w=window: _decoded(q, keys, values, pages, w),
            lambda q, keys, values, pages, w=window: _decode_kernel(q, keys, values, pages, w),
            (normal(2, 4, WIDTH), *_cache()),
        )
    shared = (normal(40, 4, WIDTH), normal(12, PAGE, 2, WIDTH), normal(12, PAGE, 2, WIDTH) + 1, _pages())
    for splits, window in ((1, 0), (2, 0), (2, 7)):
        yield Row(
            f"segmented_attention ({splits} splits{', window' if window else ''})",
            lambda q, k, v, pages, w=window: _shared(q, k, v, pages, w),
            lambda q, k, v, pages, s=splits, w=window: _segment_kernel(q, k, v, pages, s, w),
            shared,
        )


def _masked(q: Tensor, k: Tensor, v: Tensor, seen: Tensor, bias: Tensor | None = None, *, added: float = 0.0) -> Tensor:
    """Attention under a mask; ``added`` is what a kernel adds to the sum of a row's exponentials."""
    group = q.shape[1] // k.shape[1]
    scores = torch.einsum("qhd,khd->hqk", q, k.repeat_interleave(group, 1)) * 0.25
    if bias is not None:
        scores = scores + bias
    scores = torch.where(seen, scores, -torch.inf)
    weights = torch.softmax(scores, -1)
    if added:
        powers = torch.exp(scores - scores.amax(-1, keepdim=True))
        weights = powers / (powers.sum(-1, keepdim=True) + added)
    return torch.einsum("hqk,khd->qhd", weights, v.repeat_interleave(group, 1))


def _prompts(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    parts: tuple[tuple[int, int], ...],
    *,
    causal: bool = True,
    back: int = 0,
    ahead: int = 0,
    sinks: Tensor | None = None,
    first: bool = False,
) -> Tensor:
    found = []
    for start, end in parts:
        places, others = torch.arange(end - start)[:, None], torch.arange(end - start)
        seen = others <= places if causal else others < end
        if back:
            seen = seen & (places - others <= back)
        if ahead:
            seen = seen & (others - places <= ahead)
        mine = (q[start:end], k[start:end], v[start:end])
        if sinks is None:
            found.append(_masked(*mine, seen))
        elif first:
            found.append(_masked(*mine, seen, torch.where(others == 0, sinks[:, None, None], 0.0)))
        else:  # a key that has no value
            keys, values = (torch.cat([x, torch.zeros(1, *x.shape[1:])]) for x in mine[1:])
            seen = torch.nn.functional.pad(seen, (0, 1), value=True)
            bias = torch.nn.functional.pad(sinks[:, None, None], (end - start, 0))
            found.append(_masked(mine[0], keys, values, seen, bias))
    return torch.cat(found)


def _prompt_kernel(
    q: Tensor, k: Tensor, v: Tensor, parts: tuple[tuple[int, int], ...], *, causal: bool = True, back: int = 0,
    ahead: int = 0, **more: Any,
) -> Tensor:  # fmt: skip
    out = torch.empty_like(q)
    starts = torch.tensor([a for a, _ in parts], dtype=torch.int32)
    lengths = torch.tensor([b - a for a, b in parts], dtype=torch.int32)
    run = vllm(f"{OPS}.triton_prefill_attention").context_attention_fwd
    most = max(b - a for a, b in parts)
    run(q, k, v, out, starts, lengths, most, causal, None, back, ahead, **more)
    return out


def _pages() -> Tensor:
    return torch.tensor([[3, 1, 7, 8], [0, 2, 11, 6]], dtype=torch.int32)


def _cache() -> tuple[Tensor, ...]:
    """Keys in parts of 4 numbers, values token by token, and each sequence's pages."""
    return normal(12, 2, WIDTH // 4, PAGE, 4), normal(12, 2, WIDTH, PAGE) + 1, _pages()


def _tokens(keys: Tensor, values: Tensor, pages: Tensor) -> tuple[Tensor, Tensor]:
    """The cached keys and values of one sequence."""
    k = keys[pages.long()].permute(0, 3, 1, 2, 4).flatten(3).flatten(0, 1)
    return k, values[pages.long()].permute(0, 3, 1, 2).flatten(0, 1)


def _prefixed(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    keys: Tensor,
    values: Tensor,
    pages: Tensor,
    *,
    causal: bool = True,
    window: int = 0,
    slopes: Tensor | None = None,
) -> Tensor:
    found = []
    for number, length in enumerate(LENGTHS):
        mine = slice(STARTS[number], STARTS[number + 1])
        before = length - (STARTS[number + 1] - STARTS[number])
        old = _tokens(keys, values, pages[number])
        now, others = torch.arange(before, length)[:, None], torch.arange(length)
        seen = others <= now if causal else others < length
        if window:
            seen = seen & (now - others < window)
        bias = None if slopes is None else slopes[:, None, None] * (others - now)
        both = (torch.cat([x[:before], y[mine]]) for x, y in zip(old, (k, v), strict=True))
        found.append(_masked(q[mine], *both, seen, bias, added=1e-10))
    return torch.cat(found)


def _prefix_kernel(
    q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor, pages: Tensor, *, window: int = 0, **more: Any
) -> Tensor:
    out, one = torch.empty_like(q), torch.ones(1)
    starts, lengths = torch.tensor(STARTS, dtype=torch.int32), torch.tensor(LENGTHS, dtype=torch.int32)
    run = vllm(f"{OPS}.prefix_prefill").context_attention_fwd
    run(q, k, v, out, "auto", keys, values, pages, starts, lengths, 50, 37, one, one, sliding_window=window, **more)
    return out


def _decoded(q: Tensor, keys: Tensor, values: Tensor, pages: Tensor, window: int) -> Tensor:
    """The kernel's own numbers: scores of -10000 outside of the window, and 1e-10 that is added to the sum."""
    found = []
    for number, length in enumerate(LENGTHS):
        k, v = (x[:length].repeat_interleave(2, 1) for x in _tokens(keys, values, pages[number]))
        scores = torch.einsum("hd,khd->hk", q[number], k) * 0.25
        if window:
            scores = torch.where(torch.arange(length) >= length - window, scores, -10000.0)
        weights = torch.exp(scores - scores.amax(-1, keepdim=True))
        found.append(torch.einsum("hk,khd->hd", weights / (weights.sum(-1, keepdim=True) + 1e-10), v))
    return torch.stack(found)


def _decode_kernel(q: Tensor, keys: Tensor, values: Tensor, pages: Tensor, window: int) -> Tensor:
    out, one = torch.empty_like(q), torch.ones(1)
    lengths = torch.tensor(LENGTHS, dtype=torch.int32)
    vllm(f"{OPS}.chunked_prefill_paged_decode").kernel_paged_attention_2d[(2, 2)](
        out, q, keys, values, None, pages, lengths, None, 0.25, one, one, 1.0, 4, 2, 16, pages.stride(0),
        q.stride(0), q.stride(1), out.stride(0), out.stride(1), BLOCK_SIZE=PAGE, PHYSICAL_BLOCK_SIZE=PAGE,
        HEAD_SIZE=WIDTH, HEAD_SIZE_PADDED=WIDTH, USE_ALIBI_SLOPES=False, SLIDING_WINDOW=window, x=4,
        **{f"stride_k_cache_{i}": n for i, n in enumerate(keys.stride())},
        **{f"stride_v_cache_{i}": n for i, n in enumerate(values.stride())},
        filter_by_query_len=False, query_start_len_ptr=None, USE_SINKS=False, USE_FP8=False,
    )  # fmt: skip
    return out


def _shared(q: Tensor, k: Tensor, v: Tensor, pages: Tensor, window: int) -> Tensor:
    found = []
    for number, length in enumerate(LENGTHS):
        mine = slice(STARTS[number], STARTS[number + 1])
        keys, values = (x[pages[number].long()].flatten(0, 1)[:length] for x in (k, v))
        now = torch.arange(length - (STARTS[number + 1] - STARTS[number]), length)[:, None]
        others = torch.arange(length)
        seen = others <= now
        if window:
            seen = seen & (now - others <= window)
        found.append(_masked(q[mine], keys, values, seen))
    return torch.cat(found)


def _segment_kernel(q: Tensor, k: Tensor, v: Tensor, pages: Tensor, splits: int, window: int) -> Tensor:
    out, one = torch.empty_like(q), torch.ones(1)
    starts, lengths = torch.tensor(STARTS, dtype=torch.int32), torch.tensor(LENGTHS, dtype=torch.int32)
    most = 64
    module = vllm(f"{OPS}.segmented_attention")
    stage, reduce = module._segmented_attention_stage, module._segmented_attention_reduce
    parts, lse = torch.empty(2 * 2 * most * 2 * splits * WIDTH), torch.empty(2 * 2 * most * 2 * splits)
    stage[(4, 4, splits)](
        q, k, v, pages, starts, lengths, one, one, None, parts, lse, out, q.stride(0), q.stride(1), out.stride(0),
        out.stride(1), *k.stride(), *v.stride(), *pages.stride(), PAGE, 4, 2, WIDTH, most, 8192, 0.25, False,
        32, 16, 16, splits, window or -1, True, False, False, False, None,
    )  # fmt: skip
    if splits > 1:
        reduce[(most * 2, 4, 1)](
            parts, lse, out, starts, out.stride(0), out.stride(1), 4, 2, WIDTH, most, 8192, splits, WIDTH
        )
    return out
