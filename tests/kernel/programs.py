"""Triton kernels with their references, right ones and wrong ones."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

Tensor = torch.Tensor


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = place < n
    tl.store(out + place, tl.load(x + place, mask=mask) + tl.load(y + place, mask=mask), mask=mask)


@triton.jit
def unmasked_kernel(x, y, out, n, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = place < n
    tl.store(out + place, tl.load(x + place, mask=mask) + tl.load(y + place, mask=mask))


@triton.jit
def last_tile_kernel(x, y, out, n, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = place < n // BLOCK * BLOCK
    tl.store(out + place, tl.load(x + place, mask=mask) + tl.load(y + place, mask=mask), mask=mask)


def _elementwise(kernel: Any) -> Any:
    def launch(x: Tensor, y: Tensor) -> Tensor:
        out = torch.empty_like(x)
        n = x.numel()
        kernel[(triton.cdiv(n, 128),)](x, y, out, n, BLOCK=128)
        return out

    return launch


add = _elementwise(add_kernel)
unmasked = _elementwise(unmasked_kernel)
last_tile = _elementwise(last_tile_kernel)


@triton.jit
def softmax_kernel(x, out, row_stride, columns, RESCALE: tl.constexpr, BLOCK: tl.constexpr):
    x += tl.program_id(0) * row_stride
    out += tl.program_id(0) * row_stride
    largest = tl.full((), -float("inf"), tl.float32)
    total = tl.zeros((), tl.float32)
    for start in range(0, columns, BLOCK):
        place = start + tl.arange(0, BLOCK)
        tile = tl.load(x + place, mask=place < columns, other=-float("inf"))
        new = tl.maximum(largest, tl.max(tile, axis=0))
        if RESCALE:
            total = total * tl.exp(largest - new)
        total += tl.sum(tl.exp(tile - new), axis=0)
        largest = new
    for start in range(0, columns, BLOCK):
        place = start + tl.arange(0, BLOCK)
        tile = tl.load(x + place, mask=place < columns, other=-float("inf"))
        tl.store(out + place, tl.exp(tile - largest) / total, mask=place < columns)


def softmax(x: Tensor) -> Tensor:
    out = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, out, x.stride(0), x.shape[1], RESCALE=True, BLOCK=32)
    return out


def without_rescaling(x: Tensor) -> Tensor:
    out = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, out, x.stride(0), x.shape[1], RESCALE=False, BLOCK=32)
    return out


@triton.jit
def matmul_kernel(a, b, c, M, N, K, a_row, b_row, c_row, TILES: tl.constexpr, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    k = tl.arange(0, BLOCK)
    left = a + m[:, None] * a_row + k[None, :]
    right = b + k[:, None] * b_row + n[None, :]
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for tile in range(tl.cdiv(K, BLOCK) - TILES):
        rest = K - tile * BLOCK
        x = tl.load(left, mask=(m[:, None] < M) & (k[None, :] < rest), other=0.0)
        y = tl.load(right, mask=(k[:, None] < rest) & (n[None, :] < N), other=0.0)
        total = tl.dot(x, y, total)
        left += BLOCK
        right += BLOCK * b_row
    tl.store(c + m[:, None] * c_row + n[None, :], total, mask=(m[:, None] < M) & (n[None, :] < N))


def _matmul(less: int) -> Any:
    def launch(a: Tensor, b: Tensor) -> Tensor:
        (M, K), N = a.shape, b.shape[1]
        c = torch.empty((M, N), dtype=a.dtype)
        grid = (triton.cdiv(M, 16), triton.cdiv(N, 16))
        matmul_kernel[grid](a, b, c, M, N, K, a.stride(0), b.stride(0), c.stride(0), TILES=less, BLOCK=16)
        return c

    return launch


matmul = _matmul(0)
dropped_tile = _matmul(1)


@triton.jit
def racing_kernel(x, out, rows, columns, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    tl.store(out + place, tl.load(x + row * columns + place, mask=place < columns), mask=place < columns)


def racing(x: Tensor) -> Tensor:
    out = torch.empty(x.shape[1], dtype=x.dtype)
    racing_kernel[(x.shape[0],)](x, out, x.shape[0], x.shape[1], BLOCK=64)
    return out
