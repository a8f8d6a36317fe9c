"""Kernels that a careless reading would prove: values of other iterations, races, memory that nothing wrote."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from rewright.kernel import random

Tensor = torch.Tensor
IDS = torch.tensor([2, -1, 0, 2])


@triton.jit
def factor_kernel(x, out, columns, BLOCK: tl.constexpr):
    """The factor of what was there holds an element of this iteration, and cancels that of the same one alone."""
    row = tl.program_id(0)
    largest = tl.full((), -float("inf"), tl.float32)
    total = tl.zeros((), tl.float32)
    for start in range(0, columns, BLOCK):
        tile = tl.load(x + row * columns + start + tl.arange(0, BLOCK))
        first = tl.load(x + row * columns + start)
        new = tl.maximum(largest, tl.max(tile))
        total = total * tl.exp(first * (largest - new)) + tl.exp(-first * new)
        largest = new
    tl.store(out + row, total)


def factor(x: Tensor) -> Tensor:
    out = torch.empty(x.shape[0])
    factor_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=16)
    return out


def factor_reference(x: Tensor) -> Tensor:
    return torch.exp(-x[:, ::16] * x.amax(1, keepdim=True)).sum(1)


@triton.jit
def prefix_kernel(x, out, columns, BLOCK: tl.constexpr):
    """Stores what the maximum is so far, and not what it is in the end."""
    row = tl.program_id(0)
    largest = tl.full((), -float("inf"), tl.float32)
    for start in range(0, columns, BLOCK):
        place = row * columns + start + tl.arange(0, BLOCK)
        tile = tl.load(x + place)
        largest = tl.maximum(largest, tl.max(tile))
        tl.store(out + place, tile - largest)


def prefix(x: Tensor) -> Tensor:
    out = torch.empty_like(x)
    prefix_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=16)
    return out


def prefix_reference(x: Tensor) -> Tensor:
    return x - x.amax(1, keepdim=True)


@triton.jit
def in_place_kernel(x, n, BLOCK: tl.constexpr):
    """Two instances add one to the same elements."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + place, tl.load(x + place, mask=place < n) + 1, mask=place < n)


def in_place(x: Tensor) -> Tensor:
    out = x.clone()
    in_place_kernel[(triton.cdiv(x.numel(), 16), 2)](out, x.numel(), BLOCK=16)
    return out


def one_more(x: Tensor) -> Tensor:
    return x + 1


@triton.jit
def again_kernel(x, n, BLOCK: tl.constexpr):
    """Each iteration reads what the one before it wrote."""
    place = tl.arange(0, BLOCK)
    for _ in range(3):
        tl.store(x + place, tl.load(x + place, mask=place < n) * 2, mask=place < n)


def again(x: Tensor) -> Tensor:
    out = x.clone()
    again_kernel[(1,)](out, x.numel(), BLOCK=64)
    return out


def doubled(x: Tensor) -> Tensor:
    return x * 2


@triton.jit
def unsaid_kernel(x, out, n, BLOCK: tl.constexpr):
    """What a masked load gives without ``other`` is added up."""
    place = tl.arange(0, BLOCK)
    tl.store(out, tl.sum(tl.load(x + place, mask=place < n)))


def unsaid(x: Tensor) -> Tensor:
    out = torch.empty(())
    unsaid_kernel[(1,)](x, out, x.numel(), BLOCK=64)
    return out


def total(x: Tensor) -> Tensor:
    return x.sum()


@triton.jit
def start_kernel(x, out, n, BLOCK: tl.constexpr):
    """The sum that follows the maximum does not begin at zero."""
    largest = tl.full((), -float("inf"), tl.float32)
    total = tl.full((), 1.0, tl.float32)
    for begin in range(0, n, BLOCK):
        place = begin + tl.arange(0, BLOCK)
        tile = tl.load(x + place, mask=place < n, other=-float("inf"))
        new = tl.maximum(largest, tl.max(tile))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(tile - new))
        largest = new
    tl.store(out, total * tl.exp(largest))


def start(x: Tensor) -> Tensor:
    out = torch.empty(())
    start_kernel[(1,)](x, out, x.numel(), BLOCK=16)
    return out


def start_reference(x: Tensor) -> Tensor:
    return torch.exp(x).sum() + 1


@triton.jit
def filled_kernel(x, out, n, BLOCK: tl.constexpr):
    """What stands for elements that are not there is computed, and added up."""
    place = tl.arange(0, BLOCK)
    first = tl.load(x)
    tl.store(out, tl.sum(tl.load(x + place, mask=place < n, other=first)))


def filled(x: Tensor) -> Tensor:
    out = torch.empty(())
    filled_kernel[(1,)](x, out, x.numel(), BLOCK=64)
    return out


def filled_reference(x: Tensor) -> Tensor:
    return x.sum() + (64 - x.numel()) * x[0]


@triton.jit
def emptying_kernel(x, out, n, BLOCK: tl.constexpr):
    """Leaves zeros in what it was given."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = place < n
    tile = tl.load(x + place, mask=mask)
    tl.store(out + place, tile + 1, mask=mask)
    tl.store(x + place, tile * 0, mask=mask)


def emptying(x: Tensor) -> Tensor:
    out = torch.empty_like(x)
    emptying_kernel[(triton.cdiv(x.numel(), 16),)](x, out, x.numel(), BLOCK=16)
    return out


@triton.jit
def one_more_kernel(x, out, n, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + place, tl.load(x + place, mask=place < n) + 1, mask=place < n)


class Cached:
    """Gives what it computed first again and again."""

    def __init__(self) -> None:
        self._kept: Tensor | None = None

    def __call__(self, x: Tensor) -> Tensor:
        if self._kept is None:
            self._kept = torch.empty_like(x)
            one_more_kernel[(triton.cdiv(x.numel(), 16),)](x, self._kept, x.numel(), BLOCK=16)
        return self._kept


@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 32})], key=["n"])
@triton.jit
def tuned_kernel(x, out, n, BLOCK: tl.constexpr):
    """One block, whatever its size is."""
    place = tl.arange(0, BLOCK)
    tl.store(out + place, tl.load(x + place, mask=place < n) + 1, mask=place < n)


def tuned(x: Tensor) -> Tensor:
    out = torch.zeros_like(x)
    tuned_kernel[(1,)](x, out, x.numel())
    return out


@triton.jit
def exchanged_kernel(x, y, out, n, SWAPS: tl.constexpr, BLOCK: tl.constexpr):
    """Gives its arguments each other's names."""
    place = tl.arange(0, BLOCK)
    if SWAPS:
        other = x
        x = y
        y = other
    inside = place < n
    tl.store(out + place, tl.load(x + place, inside) - tl.load(y + place, inside), inside)


def exchanged(x: Tensor, y: Tensor, swaps: bool = True) -> Tensor:
    out = torch.empty_like(x)
    exchanged_kernel[(1,)](x, y, out, x.numel(), swaps, BLOCK=64)
    return out


def difference(x: Tensor, y: Tensor, swaps: bool = True) -> Tensor:
    return y - x


@triton.jit
def chosen_kernel(x, y, out, n, step, BLOCK: tl.constexpr):
    """Reads one of two tensors by the number of the instance."""
    which = tl.program_id(0)
    if which == 0:
        source = x
    else:
        source = y
    place = tl.arange(0, BLOCK)
    tl.store(out + which * step + place, tl.load(source + place, place < n), place < n)


def chosen(x: Tensor, y: Tensor) -> Tensor:
    out = torch.empty(2, x.numel())
    chosen_kernel[(2,)](x, y, out, x.numel(), x.numel(), BLOCK=64)
    return out


def chosen_in_one_place(x: Tensor, y: Tensor) -> Tensor:
    out = torch.empty(2, x.numel())
    chosen_kernel[(2,)](x, y, out, x.numel(), 0, BLOCK=64)
    out[1] = y
    return out


def stacked(x: Tensor, y: Tensor) -> Tensor:
    return torch.stack([x, y])


@triton.jit
def halves_kernel(x, y, stride, BLOCK: tl.constexpr):
    """Adds to one half of each row the other one, and doubles that."""
    row, place = tl.program_id(0), tl.arange(0, BLOCK)
    one, other = tl.load(x + row * stride + place), tl.load(y + row * stride + place)
    tl.store(x + row * stride + place, one + other)
    tl.store(y + row * stride + place, 2 * other)


def halves(x: Tensor) -> Tensor:
    one, other = x.chunk(2, -1)
    halves_kernel[(x.shape[0],)](one, other, x.stride(0), BLOCK=16)
    return x


def halves_reference(x: Tensor) -> Tensor:
    one, other = x.chunk(2, -1)
    one.add_(other)
    other.mul_(2)
    return x


@triton.jit
def counted_kernel(x, out, n, stride, LAST: tl.constexpr, BLOCK: tl.constexpr):
    """The sum of a row by a while loop, with its last block or without."""
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    start = 0
    while start < (n if LAST else n - BLOCK):
        place = start + tl.arange(0, BLOCK)
        total += tl.load(x + row * stride + place, place < n, other=0.0)
        start += BLOCK
    tl.store(out + row, tl.sum(total))


def counted(x: Tensor, last: bool = True) -> Tensor:
    out = torch.empty(x.shape[0])
    counted_kernel[(x.shape[0],)](x, out, x.shape[1], x.stride(0), last, BLOCK=16)
    return out


def row_sums(x: Tensor, last: bool = True) -> Tensor:
    return x.sum(1)


@triton.jit
def spread_kernel(x, out, n, stride, BLOCK: tl.constexpr):
    """The variance of a row by Welford's merge over blocks."""
    row = tl.program_id(0)
    mean = tl.zeros((BLOCK,), tl.float32)
    m2 = tl.zeros((BLOCK,), tl.float32)
    count = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        place = start + tl.arange(0, BLOCK)
        inside = place < n
        value = tl.load(x + row * stride + place, inside, other=0.0)
        more = count + inside
        gap = value - mean
        after = mean + gap * inside / tl.maximum(more, 1.0)
        m2 += gap * (value - after) * inside
        mean, count = after, more
    _, squares, whole = tl.reduce((mean, m2, count), 0, merge)
    tl.store(out + row, squares / whole)


@triton.jit
def merge(mean, m2, count, other_mean, other_m2, other_count):
    whole = count + other_count
    part = tl.where(whole == 0.0, 0.0, other_count / whole)
    gap = other_mean - mean
    return mean + gap * part, m2 + other_m2 + gap * gap * count * part, whole


def spread(x: Tensor) -> Tensor:
    out = torch.empty(x.shape[0])
    spread_kernel[(x.shape[0],)](x, out, x.shape[1], x.stride(0), BLOCK=16)
    return out


def spread_reference(x: Tensor) -> Tensor:
    return x.var(1, correction=0)


def spread_of_samples(x: Tensor) -> Tensor:
    return x.var(1)


@triton.jit
def ordered_kernel(x, out, n, stride, DESCENDING: tl.constexpr, BLOCK: tl.constexpr):
    row, place = tl.program_id(0), tl.arange(0, BLOCK)
    filling = float("-inf") if DESCENDING else float("inf")
    value = tl.load(x + row * stride + place, place < n, other=filling)
    tl.store(out + row * n + place, tl.sort(value, descending=DESCENDING), place < n)


def ordered(x: Tensor, descending: bool) -> Tensor:
    out = torch.empty_like(x)
    ordered_kernel[(x.shape[0],)](x, out, x.shape[1], x.stride(0), descending, BLOCK=32)
    return out


def ordered_reference(x: Tensor, descending: bool) -> Tensor:
    return x.sort(1, descending).values


@triton.jit
def dropped_kernel(x, out, n, p, seed, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + place, place < n)
    tl.store(out + place, tl.where(tl.rand(seed, place) > p, value / (1 - p), 0.0), place < n)


def dropped(x: Tensor, seed: int = 7) -> Tensor:
    out = torch.empty_like(x)
    dropped_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), 0.25, 7, BLOCK=64)
    return out


def dropped_reference(x: Tensor, seed: int = 7) -> Tensor:
    kept = random.rand(seed, torch.arange(x.numel(), dtype=torch.int32)) > 0.25
    return torch.where(kept, x / 0.75, 0.0)


@triton.jit
def first_by_lanes_kernel(x, out, n, stride, BLOCK: tl.constexpr):
    """The place of the largest element, of equal ones the one in the first lane, which may not be the first."""
    row, lane = tl.program_id(0), tl.arange(0, BLOCK)
    best = tl.full((BLOCK,), -float("inf"), tl.float32)
    found = tl.full((BLOCK,), 0, tl.int32)
    for start in range(0, n, BLOCK):
        value = tl.load(x + row * stride + start + lane, start + lane < n, other=-float("inf"))
        found = tl.where(value > best, start + lane, found)
        best = tl.maximum(best, value)
    first = tl.argmax(best, 0)
    tl.store(out + row, tl.sum(tl.where(lane == first, found, 0)))


def first_by_lanes(x: Tensor) -> Tensor:
    out = torch.empty(x.shape[0], dtype=torch.int64)
    first_by_lanes_kernel[(x.shape[0],)](x, out, x.shape[1], x.stride(0), BLOCK=16)
    return out


def first_of_rows(x: Tensor) -> Tensor:
    return x.argmax(1)


def _emptied(given: dict[str, Tensor]) -> None:
    given["out"].zero_()


@triton.autotune(configs=[triton.Config({"BLOCK": 32}, pre_hook=_emptied)], key=["n"])
@triton.jit
def added_up_kernel(x, out, n, BLOCK: tl.constexpr):
    """Adds to what its configuration sets to zero before."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + place, place < n, other=0.0)))


def added_up(x: Tensor) -> Tensor:
    out = torch.ones(())
    added_up_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
    return out


@triton.jit
def rounded_means_kernel(x, out, BLOCK: tl.constexpr):
    """The sum of quotients of integers, each of which is rounded."""
    rows = tl.arange(0, 4)[:, None]
    value = tl.load(x + rows * BLOCK + tl.arange(0, BLOCK)[None, :])
    tl.store(out, tl.sum(tl.sum(value, 1) // 3, 0))


def rounded_means(x: Tensor) -> Tensor:
    out = torch.empty((), dtype=torch.int32)
    rounded_means_kernel[(1,)](x, out, BLOCK=8)
    return out


def remainders() -> Tensor:
    return torch.arange(32, dtype=torch.int32).view(4, 8) % 5


def rounded_mean(x: Tensor) -> Tensor:
    return (x.sum() // 3).int()


def rounded_means_reference(x: Tensor) -> Tensor:
    return (x.sum(1, dtype=torch.int32) // 3).sum(0).int()


@triton.jit
def looked_up_kernel(ids, table, out, n, BLOCK: tl.constexpr):
    """Rows whose id is negative are zero, and the table is not read for them."""
    row, place = tl.program_id(0), tl.arange(0, BLOCK)
    id = tl.load(ids + row)
    tl.store(out + row * n + place, tl.load(table + id * n + place, (id >= 0) & (place < n), other=0.0), place < n)


def looked_up(ids: Tensor, table: Tensor) -> Tensor:
    out = torch.empty(ids.shape[0], table.shape[1])
    looked_up_kernel[(ids.shape[0],)](ids, table, out, table.shape[1], triton.next_power_of_2(table.shape[1]))
    return out


def looked_up_reference(ids: Tensor, table: Tensor) -> Tensor:
    return torch.where((ids >= 0)[:, None], table[ids.clamp(min=0)], 0.0)


def looked_up_carelessly(ids: Tensor, table: Tensor) -> Tensor:
    return table[ids.clamp(min=0)]


@triton.jit
def gathered_and_added_kernel(rows, x, out, n, BLOCK: tl.constexpr):
    """Reads a row that another instance adds to, where two ids are the same."""
    row, place = tl.program_id(0), tl.arange(0, BLOCK)
    there = out + tl.load(rows + row) * n + place
    value = tl.load(there, place < n, other=0.0) * 0.0 + tl.load(x + row * n + place, place < n, other=0.0)
    tl.atomic_add(there, value + tl.load(there, place < n, other=0.0), place < n)


def gathered_and_added(rows: Tensor, x: Tensor, table: Tensor) -> Tensor:
    out = table.clone()
    gathered_and_added_kernel[(rows.shape[0],)](rows, x, out, x.shape[1], triton.next_power_of_2(x.shape[1]))
    return out


def gathered_and_added_reference(rows: Tensor, x: Tensor, table: Tensor) -> Tensor:
    return table.index_add(0, rows, x + table[rows])


@triton.jit
def before_kernel(x, starts, out):
    """The row before this one, where no new sequence starts: of the first row there is none before."""
    row, lane = tl.program_id(0), tl.arange(0, 16)
    if tl.load(starts + row) > 0:
        found = tl.zeros((16,), tl.float32)
    else:
        found = tl.load(x + (row - 1) * 16 + lane)
    tl.store(out + row * 16 + lane, found)


def before(x: Tensor, starts: Tensor) -> Tensor:
    out = torch.empty_like(x)
    before_kernel[(x.shape[0],)](x, starts, out)
    return out


def before_reference(x: Tensor, starts: Tensor) -> Tensor:
    return torch.where(starts[:, None] > 0, 0.0, torch.nn.functional.pad(x, (0, 0, 1, 0))[:-1])


@triton.jit
def after_kernel(x, ends, out):
    """The row after this one, where no sequence ends; in place another instance may have written to it."""
    row, lane = tl.program_id(0), tl.arange(0, 16)
    if tl.load(ends + row) > 0:
        found = tl.zeros((16,), tl.float32)
    else:
        found = tl.load(x + (row + 1) * 16 + lane)
    tl.store(out + row * 16 + lane, found)


def after(x: Tensor, ends: Tensor, *, in_place: bool = False) -> Tensor:
    x = x.clone()
    out = x if in_place else torch.empty_like(x)
    after_kernel[(x.shape[0],)](x, ends, out)
    return out


def after_reference(x: Tensor, ends: Tensor) -> Tensor:
    return torch.where(ends[:, None] > 0, 0.0, torch.nn.functional.pad(x, (0, 0, 0, 1))[1:])
