"""Reading and writing at computed places by torch."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from rewright import ops
from rewright.ir.errors import RewrightError
from rewright.ops.gather import batching_positions

_WIDER = {torch.bfloat16: torch.float32, torch.float16: torch.float32}
"""Many updates of one element are added up in more bits than an element has."""
_REDUCED = {"maximum": "amax", "minimum": "amin", "product": "prod"}


def gather(op: ops.Gather, x: torch.Tensor, places: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """Slices of a tensor at places; raises RewrightError where one is outside."""
    axis = _taken_along(op, x)
    if axis is not None:
        return _taken(x, places, op, axis)
    kept = op.window_axes(x.ndim)
    batch = [a for a in range(len(shape)) if a not in op.offset_dims]
    batching = batching_positions(op.operand_batching_dims, op.start_indices_batching_dims, op.index_vector_dim)
    window = dict(zip(kept, op.offset_dims, strict=True))
    found = _places(x, shape, _columns(places, op.index_vector_dim), batch, window, op.start_index_map, batching)
    if 0 in shape:
        return x.new_zeros(tuple(shape))
    for a, index in enumerate(found):
        if a in op.start_index_map and bool(((index < 0) | (index >= x.shape[a])).any()):
            raise RewrightError(f"gather reads outside of axis {a} of size {x.shape[a]}; the indices are out of range")
    return x[tuple(found)].expand(tuple(shape))


def scatter(op: ops.Scatter, x: torch.Tensor, places: torch.Tensor, updates: torch.Tensor) -> torch.Tensor:
    """A tensor with updates combined into it in the order of their index vectors; those outside are skipped."""
    batch = list(op.batch_axes(updates.ndim))
    batching = batching_positions(op.input_batching_dims, op.scatter_indices_batching_dims, op.index_vector_dim)
    window = dict(zip(op.window_axes(x.ndim), op.update_window_dims, strict=True))
    order = (*batch, *op.update_window_dims)
    columns, starts = _columns(places, op.index_vector_dim), op.scatter_dims_to_operand_dims
    found = _places(x, updates.shape, columns, batch, window, starts, batching)
    flat = torch.zeros((), dtype=torch.int64, device=x.device)
    inside = torch.ones((), dtype=torch.bool, device=x.device)
    for index, size in zip(found, x.shape, strict=True):
        flat = flat * size + index
        inside = inside & (index >= 0) & (index < size)
    # Index vectors are outermost, so that updates that meet are combined in their order.
    flat = flat.expand(updates.shape).permute(order).reshape(-1)
    inside, values = inside.expand(updates.shape).permute(order).reshape(-1), updates.permute(order).reshape(-1)
    if not bool(inside.all()):
        flat, values = flat[inside], values[inside]
    return _combined(op.kind, x.reshape(-1), flat, values).reshape(x.shape)


def _combined(kind: str, x: torch.Tensor, places: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Values combined into a list at places; where several meet in ``replace`` the last one stays."""
    if kind == "replace":
        return _replaced(x, places, values)
    wide = x.to(_WIDER.get(x.dtype, x.dtype), copy=True)
    if kind == "sum":
        return wide.index_add_(0, places, values.to(wide.dtype)).to(x.dtype)
    return wide.scatter_reduce_(0, places, values.to(wide.dtype), _REDUCED[kind]).to(x.dtype)


def _replaced(x: torch.Tensor, places: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """The last of the values that meet: torch says of none which one stays, so their numbers are compared."""
    number = torch.arange(places.numel(), device=x.device)
    last = torch.full((x.numel(),), -1, dtype=torch.int64, device=x.device)
    last.scatter_reduce_(0, places, number, "amax")
    stays = last[places] == number
    found = x.clone()
    found[places[stays]] = values[stays]
    return found


def dynamic_slice(op: ops.DynamicSlice, operands: Sequence[torch.Tensor]) -> torch.Tensor:
    """A block, moved so that it lies inside."""
    x, *starts = operands
    return x[_block(x, [int(str(size)) for size in op.sizes], starts)]


def dynamic_update_slice(operands: Sequence[torch.Tensor]) -> torch.Tensor:
    """A tensor with a block replaced, moved so that it lies inside."""
    x, update, *starts = operands
    found = x.clone()
    found[_block(x, update.shape, starts)] = update
    return found


def _block(x: torch.Tensor, sizes: Sequence[int], starts: Sequence[torch.Tensor]) -> tuple[slice, ...]:
    found: list[slice] = []
    for size, available, start in zip(sizes, x.shape, starts, strict=True):
        first = min(max(int(start.item()), 0), available - size)
        found.append(slice(first, first + size))
    return tuple(found)


def _taken_along(op: ops.Gather, x: torch.Tensor) -> int | None:
    """The one axis along which a gather takes whole slices; None for another gather."""
    axis = op.start_index_map[0] if len(op.start_index_map) == 1 else -1
    batched = op.operand_batching_dims or op.start_indices_batching_dims
    if batched or tuple(op.collapsed_slice_dims) != (axis,):
        return None
    whole = all(size == x.shape[a] for a, size in enumerate(op.slice_sizes) if a != axis)
    return axis if whole and x.shape[axis] else None


def _taken(x: torch.Tensor, places: torch.Tensor, op: ops.Gather, axis: int) -> torch.Tensor:
    """Slices of a tensor at places along one axis."""
    last = op.index_vector_dim
    flat = places.squeeze(last) if last < places.ndim else places
    found = x.index_select(axis, flat.reshape(-1).long())
    found = found.movedim(axis, 0).reshape([*flat.shape, *(s for a, s in enumerate(x.shape) if a != axis)])
    rank = found.ndim
    outer = [a for a in range(rank) if a not in op.offset_dims]
    order = [0] * rank
    for number, a in enumerate([*outer, *op.offset_dims]):
        order[a] = number
    return found.permute(order)


def _columns(places: torch.Tensor, vector: int) -> list[torch.Tensor]:
    """The components of the index vectors."""
    return [places] if vector == places.ndim else list(places.unbind(vector))


def _places(
    x: torch.Tensor,
    shape: Sequence[int],
    columns: Sequence[torch.Tensor],
    batch: Sequence[int],
    window: dict[int, int],
    starts: Sequence[int],
    batching: dict[int, int],
) -> list[torch.Tensor]:
    """For every axis of a tensor the index that an element of ``shape`` is at, which broadcasts to it."""
    rank = len(shape)

    def along(axis: int) -> torch.Tensor:
        return torch.arange(shape[axis], device=x.device).reshape([-1 if a == axis else 1 for a in range(rank)])

    found: list[torch.Tensor] = []
    for axis in range(x.ndim):
        index = torch.zeros((1,) * rank, dtype=torch.int64, device=x.device)
        if axis in starts:
            column = columns[list(starts).index(axis)].long()
            index = index + column.reshape([shape[a] if a in batch else 1 for a in range(rank)])
        if axis in batching:
            index = index + along(batch[batching[axis]])
        if axis in window:
            index = index + along(window[axis])
        found.append(index)
    return found
