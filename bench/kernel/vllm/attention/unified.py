"""vLLM's unified attention: queries of several sequences, and keys and values in pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from bench.kernel.rows import Row, Tensor, normal
from bench.kernel.vllm import vllm

STARTS, LENGTHS, PAGE, WIDTH = (0, 5, 6, 15), (40, 33, 9), 16, 16
"""Where the queries of each sequence start, how many keys it has, the tokens of a page, the width of a head."""


def rows() -> Iterator[Row]:
    """The functions, in order."""
    given = (normal(15, 4, WIDTH), normal(12, PAGE, 2, WIDTH), normal(12, PAGE, 2, WIDTH) + 1, _pages())
    options: dict[str, dict[str, Any]] = {
        "causal": {},
        "no mask": {"causal": False},
        "window": {"window": 7},
        "window, no causal mask": {"window": 7, "causal": False},
        "soft-cap": {"cap": 5.0},
        "chunks": {"window": 16, "back": 1},
    }
    for name, option in options.items():
        yield Row(
            f"unified_attention ({name})",
            lambda q, k, v, pages, o=option: attention(q, k, v, pages, STARTS, LENGTHS, **o),
            lambda q, k, v, pages, o=option: kernel(q, k, v, pages, STARTS, LENGTHS, **o),
            given,
        )
    yield Row(
        "unified_attention (sinks)",
        lambda q, k, v, pages, sinks: attention(q, k, v, pages, STARTS, LENGTHS, sinks=sinks),
        lambda q, k, v, pages, sinks: kernel(q, k, v, pages, STARTS, LENGTHS, sinks=sinks),
        (*given, normal(4)),
    )
    yield Row(
        "unified_attention (ALiBi)",
        lambda q, k, v, pages, slopes: attention(q, k, v, pages, STARTS, LENGTHS, slopes=slopes),
        lambda q, k, v, pages, slopes: kernel(q, k, v, pages, STARTS, LENGTHS, alibi_slopes=slopes),
        (*given, normal(4)),
    )
    yield Row(
        "unified_attention (causal, one sequence)",
        lambda q, k, v, pages: attention(q, k, v, pages, (0, 15), (40,)),
        lambda q, k, v, pages: kernel(q, k, v, pages, (0, 15), (40,)),
        (*given[:3], _pages()[:1].contiguous()),
    )
    ranges = ((2, 30), (8, 12))
    for clamp in (False, True):
        yield Row(
            f"unified_attention (window, images see all of themselves{' in the window' if clamp else ''})",
            lambda q, k, v, pages, c=clamp: attention(
                q, k, v, pages, (0, 15), (40,), window=7, ranges=ranges, clamp=c
            ),
            lambda q, k, v, pages, c=clamp: kernel(
                q, k, v, pages, (0, 15), (40,), window=7, mm_prefix_range=torch.tensor([ranges], dtype=torch.int32),
                mm_prefix_clamp_sliding_window=c,
            ),
            (*given[:3], _pages()[:1].contiguous()),
        )  # fmt: skip
    decode = (normal(3, 4, WIDTH), *given[1:])
    for name, option in (("causal", {}), ("window", {"window": 7}), ("soft-cap", {"cap": 5.0})):
        yield Row(
            f"unified_attention (segments, {name})",
            lambda q, k, v, pages, o=option: attention(q, k, v, pages, (0, 1, 2, 3), LENGTHS, **o),
            lambda q, k, v, pages, o=option: kernel(q, k, v, pages, (0, 1, 2, 3), LENGTHS, segments=2, **o),
            decode,
        )
    yield Row(
        "unified_attention (segments, sinks)",
        lambda q, k, v, pages, sinks: attention(q, k, v, pages, (0, 1, 2, 3), LENGTHS, sinks=sinks),
        lambda q, k, v, pages, sinks: kernel(q, k, v, pages, (0, 1, 2, 3), LENGTHS, segments=2, sinks=sinks),
        (*decode, normal(4)),
    )


def _pages() -> Tensor:
    return torch.tensor([[3, 1, 7, 8], [0, 2, 11, 6], [9, 4, 5, 10]], dtype=torch.int32)


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    pages: Tensor,
    starts: tuple[int, ...],
    lengths: tuple[int, ...],
    *,
    causal: bool = True,
    window: int = 0,
    cap: float = 0.0,
    back: int = -1,
    sinks: Tensor | None = None,
    slopes: Tensor | None = None,
    ranges: tuple[tuple[int, int], ...] = (),
    clamp: bool = False,
) -> Tensor:
    found = []
    for number, length in enumerate(lengths):
        mine = q[starts[number] : starts[number + 1]]
        keys, values = (x[pages[number].long()].flatten(0, 1)[:length].repeat_interleave(2, 1) for x in (k, v))
        scores = torch.einsum("qhd,khd->hqk", mine, keys) * 0.25
        if cap:
            scores = cap * torch.tanh(scores / cap)
        places = length - mine.shape[0] + torch.arange(mine.shape[0])[:, None]
        others = torch.arange(length)
        seen = (others <= places) if causal else (others < length)
        if back >= 0:
            chunk = window // (back + 1)
            seen = seen & (places // chunk - others // chunk <= back)
        elif window:
            near = (places - others < window) if causal else ((places - others).abs() < window)
            seen = seen & near
        for first, last in ranges:
            image = (places >= first) & (places <= last) & (others >= first) & (others <= last)
            seen = seen | (image & (places - others < window) if clamp else image)
        if slopes is not None:
            scores = scores + slopes[:, None, None] * (others - (length - mine.shape[0]))
        scores = torch.where(seen, scores, -torch.inf)
        if sinks is not None:
            scores = torch.cat([scores, sinks[:, None, None].expand(-1, mine.shape[0], 1)], -1)
        weights = torch.softmax(scores, -1)[..., :length]
        found.append(torch.einsum("hqk,khd->qhd", weights, values))
    return torch.cat(found)


def kernel(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    pages: Tensor,
    starts: tuple[int, ...],
    lengths: tuple[int, ...],
    *,
    causal: bool = True,
    window: int = 0,
    cap: float = 0.0,
    back: int = -1,
    segments: int = 0,
    **more: Any,
) -> Tensor:
    out = torch.zeros_like(q)
    if segments:
        parts = {
            "seq_threshold_3D": 8,
            "num_par_softmax_segments": segments,
            "softmax_segm_output": torch.empty(q.shape[0], 4, segments, WIDTH),
            "softmax_segm_max": torch.empty(q.shape[0], 4, segments),
            "softmax_segm_expsum": torch.empty(q.shape[0], 4, segments),
        }
        more = more | parts
    most = max(b - a for a, b in zip(starts, starts[1:], strict=False))
    vllm("v1.attention.ops.triton_unified_attention").unified_attention(
        q, k, v, out, torch.tensor(starts, dtype=torch.int32), most, torch.tensor(lengths, dtype=torch.int32),
        max(lengths), 0.25, causal, (window - 1, window - 1 if not causal else 0), pages, cap, None, None, None,
        chunk_lookback=back, **more,
    )  # fmt: skip
    return out
