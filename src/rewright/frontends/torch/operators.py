"""Operators of the IR by torch, on its tensors: those of no kernel, and views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, cast

import numpy as np
import torch

from rewright import ops
from rewright.frontends.torch.lower import foreign
from rewright.frontends.torch.lower.sizes import TORCH
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Node
from rewright.ir.types import DType
from rewright.ops.base import Array, TensorOperator

_TORCH: Any = torch  # whose functions of a name have no types
_REDUCED = {"sum": "sum", "maximum": "amax", "minimum": "amin", "or": "any", "and": "all"}


def library(node: Node, operands: Sequence[torch.Tensor]) -> torch.Tensor:
    """An operator by torch, or where torch has no call for it by the operator's own execution on numpy arrays."""
    op = node.op
    if isinstance(op, ops.Transpose):
        return operands[0].permute(op.permutation)
    if isinstance(op, ops.Reshape):
        return operands[0].reshape(numbers(op.shape))
    if isinstance(op, ops.BroadcastInDim):
        return _broadcast(op, operands[0])
    if isinstance(op, ops.Reverse):
        return operands[0].flip(op.dimensions)
    if isinstance(op, ops.Slice):
        low, high = numbers(op.start), numbers(op.limit)
        return operands[0][tuple(slice(a, b, s) for a, b, s in zip(low, high, op.stride, strict=True))]
    if isinstance(op, ops.CustomCall) and op.target == foreign.TARGET:
        return foreign.run(op, operands).to(TORCH[node.type.dtype])
    if isinstance(op, ops.Gather) and (axis := _taken_along(op, operands[0])) is not None:
        return _taken(operands[0], operands[1], op, axis)
    if isinstance(op, ops.DotGeneral):
        kind = TORCH[node.type.dtype]
        exact = not any(x.is_cuda for x in operands)  # a GPU's products of 16 bits are summed in float32 anyway
        given = [x.to(kind) if exact and x.is_floating_point() else x for x in operands]
        return _dot(op, *given).to(kind)
    if isinstance(op, ops.TopK):
        return _top_k(operands[0], numbers((op.k,))[0], op.result).to(TORCH[node.type.dtype])
    if isinstance(op, ops.Sort):
        ordered = torch.sort(operands[0], dim=op.dimension, descending=op.descending, stable=True)
        return ordered.values if op.result == "values" else ordered.indices.to(TORCH[node.type.dtype])
    if isinstance(op, ops.ReduceWindow) and op.is_cumulative(node.type.shape) and operands[0].is_floating_point():
        axis = next((a for a, size in enumerate(op.window) if size != 1), 0)
        scan = {"sum": _cumulative_sum, "maximum": torch.cummax, "minimum": torch.cummin}.get(op.kind)
        if scan is not None:
            found = scan(operands[0], axis)
            return found if isinstance(found, torch.Tensor) else found.values
    function = _function(op, node.type.dtype, TORCH[node.type.dtype])
    return _by_numpy(node, operands) if function is None else function(operands)


def _taken_along(op: ops.Gather, x: torch.Tensor) -> int | None:
    """The one axis along which a gather takes whole slices; None for another gather."""
    axis = op.start_index_map[0] if len(op.start_index_map) == 1 else -1
    batched = op.operand_batching_dims or op.start_indices_batching_dims
    if batched or tuple(op.collapsed_slice_dims) != (axis,):
        return None
    whole = all(size == x.shape[a] for a, size in enumerate(op.slice_sizes) if a != axis)
    return axis if whole and x.shape[axis] else None


def _taken(x: torch.Tensor, places: torch.Tensor, op: ops.Gather, axis: int) -> torch.Tensor:
    """Slices of a tensor at places."""
    last = op.index_vector_dim
    flat = places.squeeze(last) if last < places.ndim else places
    found = x.index_select(axis, flat.reshape(-1).long())
    found = found.movedim(axis, 0).reshape(*flat.shape, *(s for a, s in enumerate(x.shape) if a != axis))
    rank = found.ndim
    outer = [a for a in range(rank) if a not in op.offset_dims]
    order = [0] * rank
    for number, a in enumerate([*outer, *op.offset_dims]):
        order[a] = number
    return found.permute(order)


def _top_k(x: torch.Tensor, k: int, result: str) -> torch.Tensor:
    """The k largest elements of every row, or their places, of equal ones the first first: torch's own takes any."""
    if result == "values":
        return torch.topk(x, k, dim=-1).values
    if k == 1 and x.shape[-1]:
        return torch.argmax(x, -1, keepdim=True)
    return torch.sort(x, dim=-1, descending=True, stable=True).indices[..., :k]


def _cumulative_sum(x: torch.Tensor, axis: int) -> torch.Tensor:
    """Totals in float32 at least, whatever is stored."""
    return torch.cumsum(x, axis, dtype=torch.promote_types(x.dtype, torch.float32)).to(x.dtype)


def _by_numpy(node: Node, operands: Sequence[torch.Tensor]) -> torch.Tensor:
    if not isinstance(node.op, TensorOperator):
        raise RewrightError(f"{node.op.name} at {node.span} has no execution; leave it out of the program")
    arrays = [(t.double() if t.is_floating_point() else t).detach().cpu().numpy() for t in operands]
    device = operands[0].device if operands else torch.device("cpu")
    return tensor_of(node.op.execute(arrays)).to(device=device, dtype=TORCH[node.type.dtype])


def tensor_of(array: Array) -> torch.Tensor:
    """An array as a tensor of the same shape; NumPy's own contiguous copy of a number would be a list of one."""
    return torch.as_tensor(np.require(array, requirements=["C", "W"]).reshape(np.shape(array)))


def _broadcast(op: ops.BroadcastInDim, x: torch.Tensor) -> torch.Tensor:
    shape = [1] * len(op.shape)
    for axis, place in enumerate(op.dimensions):
        shape[place] = x.shape[axis]
    return x.reshape(shape).expand(numbers(op.shape))


def _dot(op: ops.DotGeneral, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    letters = iter("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    left = [next(letters) for _ in range(x.ndim)]
    right = [next(letters) for _ in range(y.ndim)]
    pairs = [*zip(op.lhs_batch, op.rhs_batch, strict=True), *zip(op.lhs_contracting, op.rhs_contracting, strict=True)]
    for a, b in pairs:
        right[b] = left[a]
    lhs_free, rhs_free = op.free_axes(x.ndim, y.ndim)
    out = [left[a] for a in op.lhs_batch] + [left[a] for a in lhs_free] + [right[b] for b in rhs_free]
    if not x.is_floating_point():
        found = torch.einsum(f"{''.join(left)},{''.join(right)}->{''.join(out)}", x.double(), y.double())
        return found.to(x.dtype)
    return torch.einsum(f"{''.join(left)},{''.join(right)}->{''.join(out)}", x, y)


def _function(op: object, dtype: DType, kind: torch.dtype) -> Callable[[Sequence[torch.Tensor]], torch.Tensor] | None:
    """The function of an operator on its operands, with results of a dtype; None where torch has none of it."""
    record = op.record(dtype) if isinstance(op, ops.Elementwise) else None
    if record is not None and record.code.torch is not None:
        function = attrgetter(record.code.torch)(_TORCH)
        return lambda x: function(*x)
    if isinstance(op, ops.Clamp):
        return lambda x: torch.minimum(torch.maximum(x[1], x[0]), x[2])
    if isinstance(op, ops.Convert):
        return lambda x: x[0].to(kind) if op.dtype is not DType.BOOL else x[0] != 0
    if isinstance(op, ops.Concatenate):
        return partial(_concatenated, axis=op.dimension)
    if isinstance(op, ops.Reduce) and op.kind in _REDUCED and op.dimensions:
        return lambda x: getattr(_TORCH, _REDUCED[op.kind])(x[0], dim=tuple(op.dimensions)).to(kind)
    return None


def _concatenated(parts: Sequence[torch.Tensor], axis: int) -> torch.Tensor:
    return torch.cat(list(parts), axis)


def numbers(shape: Sequence[object]) -> tuple[int, ...]:
    """Sizes that are numbers, as those of programs that run are."""
    return tuple(cast("int", size) for size in shape)


def constant(node: Node) -> torch.Tensor:
    """The values of a constant."""
    assert isinstance(node.op, ops.Constant)
    found = torch.tensor(node.op.values, dtype=TORCH[node.type.dtype])
    shape = numbers(node.type.shape)
    return found.reshape(shape) if ops.is_table(node.op) else found.expand(shape)
