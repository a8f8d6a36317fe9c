"""What programs of attention share: heads, masks, and the same attention by PyTorch's own kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from bench.optimize.program import Draw, Function

Tensors = tuple[torch.Tensor, ...]


def heads(draw: Draw, length: int = 1024, kv_heads: int | None = None) -> Tensors:
    """Queries, keys and values of eight heads of 64, ``[1, heads, length, width]``."""
    rows, width, count = draw.pick(length, 32), draw.pick(64, 8), draw.pick(8, 4)
    kv = count if kv_heads is None else draw.pick(kv_heads, 2)
    return draw.normal(1, count, rows, width), draw.normal(1, kv, rows, width), draw.normal(1, kv, rows, width)


def scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Products of queries and keys over the root of their width."""
    return q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])


def places(rows: int, columns: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Numbers of rows, as a column, and of columns, as a row."""
    return torch.arange(rows)[:, None], torch.arange(rows if columns is None else columns)[None]


def triangle(s: torch.Tensor) -> torch.Tensor:
    """Where a key is not behind its query."""
    i, j = places(s.shape[-2], s.shape[-1])
    return j <= i


def masked(s: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    """Scores of what is kept, and minus infinity elsewhere."""
    return s.masked_fill(~kept, float("-inf"))


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotary positions, in halves."""
    left, right = x.chunk(2, -1)
    return x * cos + torch.cat((-right, left), -1) * sin


def angles(rows: int, width: int, dtype: torch.dtype) -> Tensors:
    """Cosines and sines of rotary positions."""
    turns = torch.arange(rows)[:, None] * 10000.0 ** (-torch.arange(0, width, 2) / width)
    both = torch.cat((turns, turns), -1)
    return both.cos().to(dtype), both.sin().to(dtype)


def by_sdpa(**options: Any) -> Callable[[], Function]:
    """Attention of the first three arguments by ``scaled_dot_product_attention``; a fourth is its mask."""

    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, **options)

    return lambda: run


def by_flex(
    q: torch.Tensor, k: torch.Tensor, keep: Function | None = None, change: Function | None = None, **options: Any
) -> Callable[[], Function]:
    """Attention of the first three arguments by FlexAttention, with its mask and change of scores."""

    def make() -> Function:
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        blocks = None if keep is None else create_block_mask(keep, None, None, q.shape[-2], k.shape[-2], device="cpu")
        compiled: Any = torch.compile(flex_attention, dynamic=False)
        return lambda q, k, v, *_: compiled(q, k, v, score_mod=change, block_mask=blocks, **options)

    return make


def is_causal(b: Any, h: Any, i: Any, j: Any) -> Any:
    """FlexAttention's form of a causal mask."""
    return i >= j
