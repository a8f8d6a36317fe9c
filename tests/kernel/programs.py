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


@triton.jit
def attention_kernel(q, k, v, out, S, scale, D: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    first = tl.program_id(0) * ROWS
    head = tl.program_id(1) * S * D
    row = first + tl.arange(0, ROWS)
    width = tl.arange(0, D)
    queries = tl.load(q + head + row[:, None] * D + width[None, :], mask=row[:, None] < S, other=0.0)
    total = tl.zeros((ROWS, D), tl.float32)
    weight = tl.zeros((ROWS,), tl.float32)
    largest = tl.full((ROWS,), -float("inf"), tl.float32)
    for start in range(0, tl.minimum(first + ROWS, S), COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        place = head + column[:, None] * D + width[None, :]
        keys = tl.load(k + place, mask=column[:, None] < S, other=0.0)
        values = tl.load(v + place, mask=column[:, None] < S, other=0.0)
        scores = tl.dot(queries, tl.trans(keys)) * scale
        scores = tl.where((row[:, None] >= column[None, :]) & (column[None, :] < S), scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, 1))
        weights = tl.exp(scores - new[:, None])
        rescale = tl.exp(largest - new)
        weight = weight * rescale + tl.sum(weights, 1)
        total = total * rescale[:, None] + tl.dot(weights, values)
        largest = new
    tl.store(out + head + row[:, None] * D + width[None, :], total / weight[:, None], mask=row[:, None] < S)


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    out = torch.empty_like(q)
    heads, length, width = q.shape
    grid = (triton.cdiv(length, 32), heads)
    attention_kernel[grid](q, k, v, out, length, 0.25, D=width, ROWS=32, COLUMNS=16)
    return out


@triton.jit
def loss_kernel(x, labels, out, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    label = tl.load(labels + row)
    if label == -100:
        tl.store(out + row, 0.0)
        return
    chosen = tl.load(x + row * classes + label)
    largest = tl.full((), -float("inf"), tl.float32)
    total = tl.zeros((), tl.float32)
    for start in range(0, classes, BLOCK):
        place = start + tl.arange(0, BLOCK)
        tile = tl.load(x + row * classes + place, mask=place < classes, other=-float("inf"))
        new = tl.maximum(largest, tl.max(tile))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(tile - new))
        largest = new
    tl.store(out + row, tl.log(total) + largest - chosen)


def loss(x: Tensor, labels: Tensor) -> Tensor:
    out = torch.empty(x.shape[0], dtype=x.dtype)
    loss_kernel[(x.shape[0],)](x, labels, out, x.shape[1], BLOCK=32)
    return out


@triton.jit
def sums_kernel(x, out, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mask = (row[:, None] < rows) & (column[None, :] < columns)
    tile = tl.load(x + row[:, None] * columns + column[None, :], mask=mask, other=0.0)
    tl.atomic_add(out + column, tl.sum(tile, 0), mask=column < columns)


def sums(x: Tensor) -> Tensor:
    rows, columns = x.shape
    out = torch.zeros(columns, dtype=x.dtype)
    sums_kernel[(triton.cdiv(rows, 8), triton.cdiv(columns, 16))](x, out, rows, columns, ROWS=8, COLUMNS=16)
    return out


@triton.jit
def norm_kernel(x, weight, out, stride, columns, eps, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    mask = place < columns
    row = tl.load(x + tl.program_id(0) * stride + place, mask=mask, other=0.0)
    scale = tl.rsqrt(tl.sum(row * row) / columns + eps)
    tl.store(out + tl.program_id(0) * stride + place, row * scale * tl.load(weight + place, mask=mask), mask=mask)


def norm(x: Tensor, weight: Tensor) -> Tensor:
    out = torch.empty_like(x)
    norm_kernel[(x.shape[0],)](x, weight, out, x.stride(0), x.shape[1], 1e-5, BLOCK=64)
    return out


@triton.jit
def grouped_kernel(a, b, c, M, N, K, a_row, b_row, c_row, BLOCK: tl.constexpr, GROUP: tl.constexpr):
    instance = tl.program_id(0)
    rows, columns = tl.cdiv(M, BLOCK), tl.cdiv(N, BLOCK)
    group = instance // (GROUP * columns)
    first = group * GROUP
    size = min(rows - first, GROUP)
    row = first + (instance % (GROUP * columns)) % size
    column = (instance % (GROUP * columns)) // size
    m = (row * BLOCK + tl.arange(0, BLOCK)) % M
    n = (column * BLOCK + tl.arange(0, BLOCK)) % N
    k = tl.arange(0, BLOCK)
    left = a + m[:, None] * a_row + k[None, :]
    right = b + k[:, None] * b_row + n[None, :]
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for tile in range(tl.cdiv(K, BLOCK)):
        rest = K - tile * BLOCK
        x = tl.load(left, mask=k[None, :] < rest, other=0.0)
        y = tl.load(right, mask=k[:, None] < rest, other=0.0)
        total = tl.dot(x, y, total)
        left += BLOCK
        right += BLOCK * b_row
    m = row * BLOCK + tl.arange(0, BLOCK)
    n = column * BLOCK + tl.arange(0, BLOCK)
    tl.store(c + m[:, None] * c_row + n[None, :], total, mask=(m[:, None] < M) & (n[None, :] < N))


def grouped(a: Tensor, b: Tensor) -> Tensor:
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype)
    grid = (triton.cdiv(M, 16) * triton.cdiv(N, 16),)
    grouped_kernel[grid](a, b, c, M, N, K, a.stride(0), b.stride(0), c.stride(0), BLOCK=16, GROUP=2)
    return c


@triton.jit
def rows_kernel(table, ids, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    place = tl.arange(0, BLOCK)
    mask = place < width
    found = tl.load(table + tl.load(ids + row) * width + place, mask=mask, other=0.0)
    tl.store(out + row * width + place, found, mask=mask)


def rows(ids: Tensor, table: Tensor) -> Tensor:
    out = torch.empty((ids.shape[0], table.shape[1]), dtype=table.dtype)
    rows_kernel[(ids.shape[0],)](table, ids, out, table.shape[1], BLOCK=32)
    return out


@triton.jit
def layer_norm_kernel(x, weight, bias, out, stride, columns, eps, BLOCK: tl.constexpr):
    """Each lane adds up its own elements of all tiles; lanes are added up behind the loop."""
    row = tl.program_id(0) * stride
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        place = start + tl.arange(0, BLOCK)
        total += tl.load(x + row + place, mask=place < columns, other=0.0)
    mean = tl.sum(total, 0) / columns
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        place = start + tl.arange(0, BLOCK)
        tile = tl.load(x + row + place, mask=place < columns, other=0.0)
        tile = tl.where(place < columns, tile - mean, 0.0)
        squares += tile * tile
    scale = 1 / tl.sqrt(tl.sum(squares, 0) / columns + eps)
    for start in range(0, columns, BLOCK):
        place = start + tl.arange(0, BLOCK)
        mask = place < columns
        tile = tl.load(x + row + place, mask=mask, other=0.0)
        tile = (tile - mean) * scale * tl.load(weight + place, mask=mask) + tl.load(bias + place, mask=mask)
        tl.store(out + row + place, tile, mask=mask)


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    out = torch.empty_like(x)
    layer_norm_kernel[(x.shape[0],)](x, weight, bias, out, x.stride(0), x.shape[1], 1e-5, BLOCK=32)
    return out


@triton.jit
def recurrence_kernel(a, x, out, steps, WIDTH: tl.constexpr):
    """No fold: what is carried is multiplied by what is read."""
    lane = tl.arange(0, WIDTH)
    state = tl.zeros((WIDTH,), tl.float32)
    for step in range(steps):
        state = state * tl.load(a + step * WIDTH + lane) + tl.load(x + step * WIDTH + lane)
        tl.store(out + step * WIDTH + lane, state)


def recurrence(a: Tensor, x: Tensor) -> Tensor:
    out = torch.empty_like(x)
    recurrence_kernel[(1,)](a, x, out, x.shape[0], WIDTH=16)
    return out


@triton.jit
def attention_by_pointers_kernel(
    q, k, v, out, length, scale, head, D: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    """Pointers go from tile to tile, as far as each instance needs; exponentials are to the base of two."""
    first = tl.program_id(0) * ROWS
    row, column, width = first + tl.arange(0, ROWS), tl.arange(0, COLUMNS), tl.arange(0, D)
    q += tl.program_id(1) * head
    k += tl.program_id(1) * head
    v += tl.program_id(1) * head
    out += tl.program_id(1) * head
    queries = tl.load(q + row[:, None] * D + width[None, :], mask=row[:, None] < length, other=0.0) * scale
    keys = k + column[None, :] * D + width[:, None]
    values = v + column[:, None] * D + width[None, :]
    total = tl.zeros((ROWS, D), tl.float32)
    weight = tl.zeros((ROWS,), tl.float32)
    largest = tl.full((ROWS,), -float("inf"), tl.float32)
    for start in range(0, first + ROWS, COLUMNS):
        place = start + column
        scores = tl.dot(queries, tl.load(keys, mask=place[None, :] < length, other=0.0))
        scores = tl.where(row[:, None] >= place[None, :], scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, 1))
        weights = tl.exp2(scores - new[:, None])
        rescale = tl.exp2(largest - new)
        weight = weight * rescale + tl.sum(weights, 1)
        total = total * rescale[:, None] + tl.dot(weights, tl.load(values, mask=place[:, None] < length, other=0.0))
        largest = new
        keys += COLUMNS * D
        values += COLUMNS * D
    tl.store(out + row[:, None] * D + width[None, :], total / weight[:, None], mask=row[:, None] < length)


def attention_by_pointers(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    out = torch.empty_like(q)
    heads, length, width = q.shape
    grid, scale = (triton.cdiv(length, 32), heads), 0.25 * 1.44269504
    attention_by_pointers_kernel[grid](q, k, v, out, length, scale, q.stride(0), D=width, ROWS=32, COLUMNS=16)
    return out
