"""Kernels in the manner of Triton's tutorials: attention backward, persistent products, dropout, descriptors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import triton
import triton.language as tl

from bench.kernel.rows import Row, Tensor, normal

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportOperatorIssue=false


@triton.jit
def forward_kernel(q, k, v, out, lse, S, scale, CAUSAL: tl.constexpr, D: tl.constexpr, B: tl.constexpr):
    head = tl.program_id(1) * S * D
    rows = tl.program_id(0) * B + tl.arange(0, B)
    d = tl.arange(0, D)
    mine = tl.load(q + head + rows[:, None] * D + d[None, :], mask=rows[:, None] < S, other=0.0)
    best = tl.full((B,), float("-inf"), tl.float32)
    total = tl.zeros((B,), tl.float32)
    acc = tl.zeros((B, D), tl.float32)
    end = tl.minimum((tl.program_id(0) + 1) * B, S) if CAUSAL else S
    for start in range(0, end, B):
        cols = start + tl.arange(0, B)
        keys = tl.load(k + head + cols[:, None] * D + d[None, :], mask=cols[:, None] < S, other=0.0)
        values = tl.load(v + head + cols[:, None] * D + d[None, :], mask=cols[:, None] < S, other=0.0)
        scores = tl.dot(mine, tl.trans(keys)) * scale
        seen = (cols[None, :] < S) & (rows[:, None] >= cols[None, :]) if CAUSAL else cols[None, :] < S
        scores = tl.where(seen, scores, float("-inf"))
        new = tl.maximum(best, tl.max(scores, 1))
        shrink = tl.exp(best - new)
        weights = tl.exp(scores - new[:, None])
        total = total * shrink + tl.sum(weights, 1)
        acc = acc * shrink[:, None] + tl.dot(weights, values)
        best = new
    tl.store(out + head + rows[:, None] * D + d[None, :], acc / total[:, None], mask=rows[:, None] < S)
    tl.store(lse + tl.program_id(1) * S + rows, best + tl.log(total), mask=rows < S)


@triton.jit
def delta_kernel(out, grad, delta, S, D: tl.constexpr, B: tl.constexpr):
    head = tl.program_id(1) * S * D
    rows = tl.program_id(0) * B + tl.arange(0, B)
    d = tl.arange(0, D)
    o = tl.load(out + head + rows[:, None] * D + d[None, :], mask=rows[:, None] < S, other=0.0)
    g = tl.load(grad + head + rows[:, None] * D + d[None, :], mask=rows[:, None] < S, other=0.0)
    tl.store(delta + tl.program_id(1) * S + rows, tl.sum(o * g, 1), mask=rows < S)


@triton.jit
def keys_kernel(q, k, v, grad, lse, delta, dk, dv, S, scale, CAUSAL: tl.constexpr, D: tl.constexpr, B: tl.constexpr):
    head = tl.program_id(1) * S * D
    rows = tl.program_id(1) * S
    cols = tl.program_id(0) * B + tl.arange(0, B)
    d = tl.arange(0, D)
    place = head + cols[:, None] * D + d[None, :]
    inside = cols[:, None] < S
    keys = tl.load(k + place, mask=inside, other=0.0)
    values = tl.load(v + place, mask=inside, other=0.0)
    key_grad = tl.zeros((B, D), tl.float32)
    value_grad = tl.zeros((B, D), tl.float32)
    first = tl.program_id(0) * B if CAUSAL else 0
    for start in range(first, S, B):
        i = start + tl.arange(0, B)
        queries = tl.load(q + head + i[:, None] * D + d[None, :], mask=i[:, None] < S, other=0.0)
        outer = tl.load(grad + head + i[:, None] * D + d[None, :], mask=i[:, None] < S, other=0.0)
        m = tl.load(lse + rows + i, mask=i < S, other=0.0)
        mean = tl.load(delta + rows + i, mask=i < S, other=0.0)
        scores = tl.dot(keys, tl.trans(queries)) * scale
        weights = tl.exp(scores - m[None, :])
        seen = (i[None, :] < S) & (i[None, :] >= cols[:, None]) if CAUSAL else i[None, :] < S
        weights = tl.where(seen, weights, 0.0)
        value_grad += tl.dot(weights, outer)
        slope = weights * (tl.dot(values, tl.trans(outer)) - mean[None, :])
        key_grad += tl.dot(slope, queries) * scale
    tl.store(dk + place, key_grad, mask=inside)
    tl.store(dv + place, value_grad, mask=inside)


@triton.jit
def queries_kernel(q, k, v, grad, lse, delta, dq, S, scale, CAUSAL: tl.constexpr, D: tl.constexpr, B: tl.constexpr):
    head = tl.program_id(1) * S * D
    i = tl.program_id(0) * B + tl.arange(0, B)
    d = tl.arange(0, D)
    place = head + i[:, None] * D + d[None, :]
    inside = i[:, None] < S
    queries = tl.load(q + place, mask=inside, other=0.0)
    outer = tl.load(grad + place, mask=inside, other=0.0)
    m = tl.load(lse + tl.program_id(1) * S + i, mask=i < S, other=0.0)
    mean = tl.load(delta + tl.program_id(1) * S + i, mask=i < S, other=0.0)
    found = tl.zeros((B, D), tl.float32)
    end = tl.minimum((tl.program_id(0) + 1) * B, S) if CAUSAL else S
    for start in range(0, end, B):
        cols = start + tl.arange(0, B)
        keys = tl.load(k + head + cols[:, None] * D + d[None, :], mask=cols[:, None] < S, other=0.0)
        values = tl.load(v + head + cols[:, None] * D + d[None, :], mask=cols[:, None] < S, other=0.0)
        weights = tl.exp(tl.dot(queries, tl.trans(keys)) * scale - m[:, None])
        seen = (cols[None, :] < S) & (i[:, None] >= cols[None, :]) if CAUSAL else cols[None, :] < S
        weights = tl.where(seen, weights, 0.0)
        slope = weights * (tl.dot(outer, tl.trans(values)) - mean[:, None])
        found += tl.dot(slope, keys) * scale
    tl.store(dq + place, found, mask=inside)


class Attention(torch.autograd.Function):
    """Flash attention with its gradients, of (heads, length, width)."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
        heads, length, width = q.shape
        out, lse = torch.empty_like(q), torch.empty(heads, length)
        grid = (triton.cdiv(length, 16), heads)
        forward_kernel[grid](q, k, v, out, lse, length, width**-0.5, causal, width, 16)
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.causal = causal
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, out, lse = ctx.saved_tensors
        heads, length, width = q.shape
        grad, delta = grads[0].contiguous(), torch.empty_like(lse)
        dq, dk, dv = (torch.empty_like(q) for _ in range(3))
        grid = (triton.cdiv(length, 16), heads)
        delta_kernel[grid](out, grad, delta, length, width, 16)
        sizes = (length, width**-0.5, ctx.causal, width, 16)
        keys_kernel[grid](q, k, v, grad, lse, delta, dk, dv, *sizes)
        queries_kernel[grid](q, k, v, grad, lse, delta, dq, *sizes)
        return dq, dk, dv, None


@triton.jit
def persistent_kernel(a, b, c, M, N, K, BLOCK: tl.constexpr):
    across = tl.cdiv(N, BLOCK)
    tiles = tl.cdiv(M, BLOCK) * across
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        rows = tile // across * BLOCK + tl.arange(0, BLOCK)
        cols = tile % across * BLOCK + tl.arange(0, BLOCK)
        acc = tl.zeros((BLOCK, BLOCK), tl.float32)
        for start in range(0, K, BLOCK):
            k = start + tl.arange(0, BLOCK)
            left = tl.load(a + rows[:, None] * K + k[None, :], mask=(rows[:, None] < M) & (k[None, :] < K), other=0.0)
            right = tl.load(b + k[:, None] * N + cols[None, :], mask=(k[:, None] < K) & (cols[None, :] < N), other=0.0)
            acc = tl.dot(left, right, acc)
        tl.store(c + rows[:, None] * N + cols[None, :], acc, mask=(rows[:, None] < M) & (cols[None, :] < N))


def persistent(a: Tensor, b: Tensor) -> Tensor:
    """A product by four instances that take one tile after the other."""
    c = torch.empty(a.shape[0], b.shape[1])
    persistent_kernel[(4,)](a, b, c, a.shape[0], b.shape[1], a.shape[1], 16)
    return c


@triton.jit
def described_kernel(a, b, c, M, N, K, BLOCK: tl.constexpr):
    left = tl.make_tensor_descriptor(a, shape=[M, K], strides=[K, 1], block_shape=[BLOCK, BLOCK])
    right = tl.make_tensor_descriptor(b, shape=[K, N], strides=[N, 1], block_shape=[BLOCK, BLOCK])
    out = tl.make_tensor_descriptor(c, shape=[M, N], strides=[N, 1], block_shape=[BLOCK, BLOCK])
    row, col = tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K, BLOCK):
        acc = tl.dot(left.load([row, k]), right.load([k, col]), acc)
    out.store([row, col], acc)


def described(a: Tensor, b: Tensor) -> Tensor:
    """A product by tensor descriptors."""
    c = torch.empty(a.shape[0], b.shape[1])
    grid = (triton.cdiv(a.shape[0], 16), triton.cdiv(b.shape[1], 16))
    described_kernel[grid](a, b, c, a.shape[0], b.shape[1], a.shape[1], 16)
    return c


@triton.jit
def dropout_kernel(x, keep, out, n, p, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n)
    kept = tl.load(keep + i, mask=i < n)
    tl.store(out + i, tl.where(kept, value / (1 - p), 0.0), mask=i < n)


def dropout(x: Tensor, keep: Tensor) -> Tensor:
    """Dropout by a mask that is given."""
    out = torch.empty_like(x)
    dropout_kernel[(triton.cdiv(x.numel(), 64),)](x, keep, out, x.numel(), 0.5, 64)
    return out


def attend(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
    """Attention in plain PyTorch."""
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    if causal:
        past = torch.ones(q.shape[1], q.shape[1], dtype=torch.bool).tril()
        scores = scores.masked_fill(~past, float("-inf"))
    return torch.softmax(scores, -1) @ v


def rows() -> Iterator[Row]:
    """The functions, in order."""
    from bench.kernel.liger import gradient

    q = normal(2, 40, 16)
    given = (q, q + normal(16), q - 1)
    for causal in (False, True):
        what = "causal attention" if causal else "attention"
        yield Row(
            f"{what}, forward",
            lambda q, k, v, c=causal: attend(q, k, v, c),
            lambda q, k, v, c=causal: Attention.apply(q, k, v, c),
            given,
        )
        yield Row(
            f"{what}, gradients",
            gradient(lambda q, k, v, c=causal: attend(q, k, v, c), 3),
            gradient(lambda q, k, v, c=causal: Attention.apply(q, k, v, c), 3),  # pyright: ignore[reportArgumentType]
            (*given, q + 2),
        )
    a, b = normal(36, 24), normal(24, 40)
    yield Row("persistent matmul", torch.matmul, persistent, (a, b))
    yield Row("matmul by descriptors", lambda a, b: a @ b, described, (a, b), {"a": "rows"})
    kept = normal(100) > 0
    yield Row("dropout by a mask", lambda x, keep: torch.where(keep, x / 0.5, 0.0), dropout, (normal(100), kept))
