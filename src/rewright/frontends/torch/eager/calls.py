"""PyTorch's calls for operators, with arguments that are numbers, names and lists: nothing of rewright is needed here.

So what a plan leaves to a library can be written down, and run where there is only PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import torch
import torch.nn.functional as functional

Axes = Sequence[int]
_torch: Any = torch
_CONVOLUTIONS: dict[int, Callable[..., torch.Tensor]] = {
    1: functional.conv1d,
    2: functional.conv2d,
    3: functional.conv3d,
}
_WIDER = {torch.bfloat16: torch.float32, torch.float16: torch.float32}
"""What many numbers of 16 bits are added up in."""
_REDUCED = {"maximum": "amax", "minimum": "amin", "product": "prod"}


def kind_of(name: str) -> torch.dtype:
    """A dtype by its name."""
    found = getattr(torch, name)
    assert isinstance(found, torch.dtype)
    return found


# --- leaves


def fill(shape: Axes, value: float, kind: str) -> torch.Tensor:
    """The same value everywhere."""
    return torch.full((), value, dtype=kind_of(kind)).expand(tuple(shape))


def count(shape: Axes, axis: int, kind: str) -> torch.Tensor:
    """The index along an axis."""
    along = torch.arange(shape[axis]).to(kind_of(kind))
    return along.reshape([-1 if a == axis else 1 for a in range(len(shape))]).expand(tuple(shape))


# --- views


def permute(x: torch.Tensor, order: Axes) -> torch.Tensor:
    """The axes in another order."""
    return x.permute(tuple(order))


def reshape(x: torch.Tensor, shape: Axes) -> torch.Tensor:
    """Other axes over the same elements."""
    return x.reshape(tuple(shape))


def spread(x: torch.Tensor, shape: Axes, places: Axes) -> torch.Tensor:
    """The axes at some places of a shape, and the same for every index of the others."""
    order = sorted(range(x.ndim), key=lambda axis: places[axis])
    found = [1] * len(shape)
    for axis, place in enumerate(places):
        found[place] = x.shape[axis]
    return x.permute(order).reshape(found).expand(tuple(shape))


def flip(x: torch.Tensor, axes: Axes) -> torch.Tensor:
    """The elements along some axes from the last to the first."""
    return x.flip(tuple(axes))


def cut(x: torch.Tensor, low: Axes, high: Axes, steps: Axes) -> torch.Tensor:
    """A slice."""
    return x[tuple(slice(a, b, s) for a, b, s in zip(low, high, steps, strict=True))]


# --- elements


def apply(*x: torch.Tensor, function: str) -> torch.Tensor:
    """A function of torch, by name, on elements."""
    return attrgetter(function)(_torch)(*x)


def convert(x: torch.Tensor, kind: str) -> torch.Tensor:
    """The elements in another dtype; every number but zero is true."""
    return x != 0 if kind == "bool" else x.to(kind_of(kind))


def clamp(low: torch.Tensor, x: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
    """At least one bound, and then at most the other."""
    return torch.minimum(torch.maximum(x, low), high)


def concatenate(*x: torch.Tensor, axis: int) -> torch.Tensor:
    """One after the other along an axis."""
    return torch.cat(x, axis)


def pad(x: torch.Tensor, value: torch.Tensor, shape: Axes, low: Axes, between: Axes) -> torch.Tensor:
    """An element of a value around, and between, those of a tensor; a negative ``low`` leaves elements out."""
    inner, outer = list[slice](), list[slice]()
    for size, first_at, gap, room in zip(x.shape, low, between, shape, strict=True):
        step = gap + 1
        first = max(0, -(first_at // step))  # the first element that is not left out
        last = min(size - 1, (room - 1 - first_at) // step)
        start = first_at + first * step
        inner.append(slice(first, max(last + 1, first)))
        outer.append(slice(start, max(first_at + last * step + 1, start), step))
    found = value.expand(tuple(shape)).clone()
    found[tuple(outer)] = x[tuple(inner)]
    return found


# --- products


def multiply(
    x: torch.Tensor, y: torch.Tensor, left: Axes, right: Axes, batch: int, depth: int, kind: str
) -> torch.Tensor:
    """Sums of products, as ``torch.matmul`` has them, in a dtype.

    ``left`` are the axes of x: ``batch`` of them, the rows, and ``depth`` that are summed over; ``right`` those of y:
    the batch, what is summed over, and the columns. A GPU sums products of 16 bits in float32 anyway.
    """
    if x.is_floating_point() and not x.is_cuda:
        x, y = x.to(kind_of(kind)), y.to(kind_of(kind))
    x, y = x.permute(tuple(left)), y.permute(tuple(right))
    many, rows, columns = x.shape[:batch], x.shape[batch : x.ndim - depth], y.shape[batch + depth :]
    inner = math.prod(x.shape[x.ndim - depth :])
    head = [math.prod(many)] if batch else []
    found = _product(x.reshape([*head, math.prod(rows), inner]), y.reshape([*head, inner, math.prod(columns)]))
    return found.reshape([*many, *rows, *columns]).to(kind_of(kind))


def _product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if x.is_floating_point() or not x.is_cuda:
        return torch.matmul(x, y)
    # cuBLAS has no integers, and floats would round them: products one by one, summed in the dtype, which wraps.
    return (x.unsqueeze(-1) * y.unsqueeze(-3)).sum(-2, dtype=x.dtype)


def linear(
    bias: torch.Tensor, x: torch.Tensor, y: torch.Tensor, left: Axes, right: Axes, shape: Axes, kind: str
) -> torch.Tensor:
    """A product of matrices with a bias; ``left`` ends, and ``right`` begins, with the axis that is summed over."""
    bias, x, y = (t.to(kind_of(kind)) for t in (bias, x, y))
    x, y = x.permute(tuple(left)), y.permute(tuple(right))
    x, y = x.reshape(-1, x.shape[-1]), y.reshape(y.shape[0], -1)
    if y.shape[1] != bias.shape[0]:
        bias = bias.repeat(y.shape[1] // bias.shape[0])
    return torch.addmm(bias, x, y).reshape(tuple(shape))


def convolve(
    x: torch.Tensor,
    kernel: torch.Tensor,
    strides: Axes,
    padding: Sequence[Axes],
    apart: Axes,
    kernel_apart: Axes,
    groups: int,
) -> torch.Tensor:
    """A convolution of floats over one to three axes, of an input whose elements are so far ``apart``."""
    if any(step != 1 for step in apart):
        sizes = [(size - 1) * step + 1 for size, step in zip(x.shape[2:], apart, strict=True)]
        wide = x.new_zeros((*x.shape[:2], *sizes))
        wide[(..., *(slice(None, None, step) for step in apart))] = x
        x = wide
    around: Any = tuple(low for low, _ in padding)
    if any(low != high for low, high in padding):
        x = functional.pad(x, [side for pair in reversed(padding) for side in pair])
        around = 0
    return _CONVOLUTIONS[x.ndim - 2](x, kernel, None, tuple(strides), around, tuple(kernel_apart), groups)


# --- reductions


def reduce(x: torch.Tensor, how: str, axes: Axes, identity: float, kind: str) -> torch.Tensor:
    """The reduction over axes, which disappear; of no element the identity."""
    found = tuple(axes)
    if not found:
        return x
    if how == "sum":
        return torch.sum(x, found, dtype=kind_of(kind))
    if 0 in (x.shape[a] for a in found):
        return x.new_full([size for a, size in enumerate(x.shape) if a not in found], identity)
    if how == "product":
        for axis in sorted(found, reverse=True):
            x = torch.prod(x, axis, dtype=x.dtype)
        return x
    if how in ("maximum", "minimum"):
        return torch.amax(x, found) if how == "maximum" else torch.amin(x, found)
    return torch.any(x, found) if how == "or" else torch.all(x, found)


def windows(
    x: torch.Tensor, how: str, sizes: Axes, strides: Axes, padding: Sequence[Axes], identity: float
) -> torch.Tensor:
    """The sums or extrema of sliding windows."""
    padded = functional.pad(x, [side for pair in reversed(padding) for side in pair], value=identity)
    for axis, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
        padded = padded.unfold(axis, size, stride)
    axes = tuple(range(x.ndim, 2 * x.ndim))
    if how == "sum":
        return padded.sum(axes, dtype=_WIDER.get(x.dtype, x.dtype)).to(x.dtype)
    return padded.amax(axes) if how == "maximum" else padded.amin(axes)


def running(x: torch.Tensor, how: str, axis: int) -> torch.Tensor:
    """Totals, in float32 at least whatever is stored, or extrema so far."""
    if how == "sum":
        return torch.cumsum(x, axis, dtype=_WIDER.get(x.dtype, x.dtype)).to(x.dtype)
    return (torch.cummax if how == "maximum" else torch.cummin)(x, axis).values


# --- order


def sort(x: torch.Tensor, axis: int, descending: bool, result: str, kind: str) -> torch.Tensor:
    """The values in order, or where they were; equal ones stay in theirs."""
    ordered = torch.sort(x, dim=axis, descending=descending, stable=True)
    return ordered.values if result == "values" else ordered.indices.to(kind_of(kind))


def top_k(x: torch.Tensor, count: int, result: str, kind: str) -> torch.Tensor:
    """The largest elements of every row, or their places, of equal ones the first first: torch's own takes any."""
    if result == "values":
        return torch.topk(x, count, dim=-1).values
    if count == 1 and x.shape[-1]:
        return torch.argmax(x, -1, keepdim=True).to(kind_of(kind))
    if type(x) is torch.Tensor:  # what is traced has no values to compare
        found = torch.topk(x, min(count + 1, x.shape[-1]), dim=-1)
        above, below = found.values[..., :-1], found.values[..., 1:]
        if bool((above > below).all()):  # no two are equal, and none is NaN
            return found.indices[..., :count].to(kind_of(kind))
    return torch.sort(x, dim=-1, descending=True, stable=True).indices[..., :count].to(kind_of(kind))


# --- computed places


def take(x: torch.Tensor, places: torch.Tensor, axis: int, vector: int, offsets: Axes) -> torch.Tensor:
    """Slices of a tensor at places along one axis; ``offsets`` are the axes of slices in the result."""
    flat = places.squeeze(vector) if vector < places.ndim else places
    found = x.index_select(axis, flat.reshape(-1).long())
    found = found.movedim(axis, 0).reshape([*flat.shape, *(s for a, s in enumerate(x.shape) if a != axis)])
    outer = [a for a in range(found.ndim) if a not in offsets]
    order = [0] * found.ndim
    for number, a in enumerate([*outer, *offsets]):
        order[a] = number
    return found.permute(order)


def gather(
    x: torch.Tensor, places: torch.Tensor, shape: Axes, starts: Axes, vector: int, follow: Sequence[Axes]
) -> torch.Tensor:
    """Slices of a tensor at index vectors; raises IndexError where one is outside.

    ``starts`` are the axes that the vectors index. ``follow`` says by axis of the result which axis of x has its index
    too, or none, and whether it is one of the batch of vectors: pairs, -1 for none.
    """
    found = _places(x, shape, _columns(places, vector), starts, follow)
    if 0 in shape:
        return x.new_zeros(tuple(shape))
    for axis in starts:
        if bool(((found[axis] < 0) | (found[axis] >= x.shape[axis])).any()):
            raise IndexError(f"an index is outside of axis {axis} of size {x.shape[axis]}")
    return x[tuple(found)].expand(tuple(shape))


def scatter(
    x: torch.Tensor,
    places: torch.Tensor,
    updates: torch.Tensor,
    how: str,
    starts: Axes,
    vector: int,
    follow: Sequence[Axes],
) -> torch.Tensor:
    """A tensor with updates combined into it in the order of their index vectors; those outside are skipped."""
    found = _places(x, updates.shape, _columns(places, vector), starts, follow)
    flat = torch.zeros((), dtype=torch.int64, device=x.device)
    inside = torch.ones((), dtype=torch.bool, device=x.device)
    for index, size in zip(found, x.shape, strict=True):
        flat = flat * size + index
        inside = inside & (index >= 0) & (index < size)
    # Index vectors are outermost, so that updates that meet are combined in their order.
    order = sorted(range(updates.ndim), key=lambda axis: not follow[axis][1])
    flat = flat.expand(updates.shape).permute(order).reshape(-1)
    inside, values = inside.expand(updates.shape).permute(order).reshape(-1), updates.permute(order).reshape(-1)
    if not bool(inside.all()):
        flat, values = flat[inside], values[inside]
    return _combined(how, x.reshape(-1), flat, values).reshape(x.shape)


def _combined(how: str, x: torch.Tensor, places: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Values combined into a list at places; where several meet in ``replace`` the last one stays."""
    if how == "replace":
        return _replaced(x, places, values)
    wide = x.to(_WIDER.get(x.dtype, x.dtype), copy=True)
    if how == "sum":
        return wide.index_add_(0, places, values.to(wide.dtype)).to(x.dtype)
    return wide.scatter_reduce_(0, places, values.to(wide.dtype), _REDUCED[how]).to(x.dtype)


def _replaced(x: torch.Tensor, places: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """The last of the values that meet: torch does not say which one stays, so their numbers are compared."""
    number = torch.arange(places.numel(), device=x.device)
    last = torch.full((x.numel(),), -1, dtype=torch.int64, device=x.device)
    last.scatter_reduce_(0, places, number, "amax")
    stays = last[places] == number
    found = x.clone()
    found[places[stays]] = values[stays]
    return found


def block(x: torch.Tensor, *starts: torch.Tensor, sizes: Axes) -> torch.Tensor:
    """A block, moved so that it lies inside."""
    return x[_inside(x, sizes, starts)]


def update_block(x: torch.Tensor, update: torch.Tensor, *starts: torch.Tensor) -> torch.Tensor:
    """A tensor with a block replaced, moved so that it lies inside."""
    found = x.clone()
    found[_inside(x, update.shape, starts)] = update
    return found


def _inside(x: torch.Tensor, sizes: Axes, starts: Sequence[torch.Tensor]) -> tuple[slice, ...]:
    found: list[slice] = []
    for size, available, start in zip(sizes, x.shape, starts, strict=True):
        first = min(max(int(start.item()), 0), available - size)
        found.append(slice(first, first + size))
    return tuple(found)


def _columns(places: torch.Tensor, vector: int) -> list[torch.Tensor]:
    """The components of the index vectors."""
    return [places] if vector == places.ndim else list(places.unbind(vector))


def _places(
    x: torch.Tensor, shape: Axes, columns: Sequence[torch.Tensor], starts: Axes, follow: Sequence[Axes]
) -> list[torch.Tensor]:
    """For every axis of a tensor the index that an element of ``shape`` is at, which broadcasts to it."""
    rank = len(shape)
    batch = [shape[a] if follow[a][1] else 1 for a in range(rank)]
    found = [torch.zeros((1,) * rank, dtype=torch.int64, device=x.device) for _ in range(x.ndim)]
    for number, axis in enumerate(starts):
        found[axis] = found[axis] + columns[number].long().reshape(batch)
    for a, (axis, _) in enumerate(follow):
        if axis >= 0:
            along = torch.arange(shape[a], device=x.device)
            found[axis] = found[axis] + along.reshape([-1 if b == a else 1 for b in range(rank)])
    return found
