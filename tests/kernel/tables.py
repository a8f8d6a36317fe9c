"""Small kernels that read tables of numbers and take bits apart, each with an option that makes it wrong."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

Tensor = torch.Tensor
STARTS = (0, 3, 4, 9)
"""Where the rows of three segments start."""


@triton.jit
def pack_kernel(x, starts, out, width, MOST: tl.constexpr, FIRST: tl.constexpr, BLOCK: tl.constexpr):
    segment, i = tl.program_id(0), tl.arange(0, BLOCK)
    start, end = tl.load(starts + segment), tl.load(starts + segment + 1)
    for row in range(MOST):
        is_in = start + row < end
        value = tl.load(x + (start + row + FIRST) * width + i, mask=(i < width) & is_in, other=0.0)
        tl.store(out + (segment * MOST + row) * width + i, value, mask=i < width)


def pack(x: Tensor, first: int = 0) -> Tensor:
    out = torch.empty(3, 5, x.shape[1])
    pack_kernel[(3,)](x, torch.tensor(STARTS), out, x.shape[1], 5, first, 16)
    return out


@triton.jit
def owner_kernel(starts, out, count, IS_BELOW: tl.constexpr):
    row = tl.program_id(0)
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        start = tl.load(starts + middle)
        is_left = start < row if IS_BELOW else start <= row
        if is_left:
            low = middle + 1
        else:
            high = middle
    tl.store(out + row, low - 1)


def owner(x: Tensor, below: bool = False) -> Tensor:
    out = torch.empty(x.shape[0], dtype=torch.int64)
    owner_kernel[(9,)](torch.tensor(STARTS), out, 4, below)
    return out + x.long()


@triton.jit
def spread_kernel(x, rows, out, count, width, BLOCK: tl.constexpr):
    i, j = tl.program_id(0) * 4 + tl.arange(0, 4), tl.arange(0, BLOCK)
    row = tl.load(rows + i)
    value = tl.load(x + i[:, None] * width + j[None, :], mask=j[None, :] < width, other=0.0)
    tl.store(out + row[:, None] * width + j[None, :], value, mask=(row[:, None] < count) & (j[None, :] < width))


def spread(x: Tensor, rows: tuple[int, ...] = (2, 0, 9, 5, 1, 4, 3, 9)) -> Tensor:
    out = torch.zeros(6, x.shape[1])
    spread_kernel[(2,)](x, torch.tensor(rows), out, 6, x.shape[1], 16)
    return out


@triton.jit
def nibbles_kernel(words, out, count, STEP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    word = tl.load(words + i // 8, mask=i < count, other=0)
    tl.store(out + i, (word >> ((i % 8) * STEP)) & 15, mask=i < count)


def nibbles(words: Tensor, step: int = 4) -> Tensor:
    out = torch.empty(words.shape[0] * 8, dtype=torch.int32)
    nibbles_kernel[(triton.cdiv(out.shape[0], 16),)](words, out, out.shape[0], step, 16)
    return out


@triton.jit
def counted_kernel(x, out, count, EXTRA: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    is_in = tl.where(i < count + EXTRA, 1, 0).to(tl.int1)
    tl.store(out + i, tl.load(x + i, mask=is_in, other=0.0) * 2, mask=is_in)


def counted(x: Tensor, extra: int = 0) -> Tensor:
    out = torch.empty_like(x)
    counted_kernel[(triton.cdiv(x.shape[0], 16),)](x, out, x.shape[0], extra, 16)
    return out


@triton.jit
def alone_kernel(x, out, count, width, OTHER: tl.constexpr, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    place = tl.where(i == 0, row, count + OTHER)
    value = tl.load(x + place, mask=place < count, other=0.0)
    tl.store(out + place, value * 3, mask=place < count)


def alone(x: Tensor, other: int = 0) -> Tensor:
    out = torch.empty_like(x)
    alone_kernel[(x.shape[0],)](x, out, x.shape[0], 1, other, 8)
    return out


@triton.jit
def first_or_zero_kernel(x, tokens, out, width, IS_KEPT: tl.constexpr, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    if tl.load(tokens + row) < 0:
        if IS_KEPT:
            tl.store(out + row * width + i, 1.0, mask=i < width)
            return
        tl.store(out + row * width + i, 0.0, mask=i < width)
        return
    tl.store(out + row * width + i, tl.load(x + row * width + i, mask=i < width), mask=i < width)


def first_or_zero(x: Tensor, tokens: Tensor, kept: bool = False) -> Tensor:
    out = torch.empty_like(x)
    first_or_zero_kernel[(x.shape[0],)](x, tokens, out, x.shape[1], kept, 16)
    return out


@triton.jit
def rounded_kernel(x, out, count, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < count, other=0.0).to(tl.bfloat16).to(tl.float32), mask=i < count)


@triton.jit
def steps_kernel(x, out, COUNT: tl.constexpr):
    for step in range(COUNT):
        tl.store(out + step.to(tl.int64), tl.load(x + step.to(tl.int64)))


@triton.jit
def addressed_kernel(addresses, out):
    tl.store(out, tl.load(tl.load(addresses).to(tl.pointer_type(tl.float32))))


@triton.jit
def overwrite_kernel(x, y, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    left, right = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, left + right)
    tl.store(x + i, right)
