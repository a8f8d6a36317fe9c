"""Operators of the IR by torch, on its tensors: those of no kernel, and views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, cast

import numpy as np
import torch

from rewright import ops
from rewright.frontends.torch.eager import contraction, indexed, windows
from rewright.frontends.torch.lower import foreign
from rewright.frontends.torch.lower.sizes import TORCH
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Node
from rewright.ir.types import DType
from rewright.ops.base import Array, TensorOperator

_TORCH: Any = torch  # whose functions of a name have no types
Call = Callable[[Sequence[torch.Tensor]], torch.Tensor]
"""An operator on its operands."""


def library(node: Node, operands: Sequence[torch.Tensor]) -> torch.Tensor:
    """An operator by torch, or where torch has no call for it by the operator's own execution on numpy arrays."""
    return bind(node)(operands)


def bind(node: Node) -> Call:
    """What computes a node, found once for many calls."""
    op, kind = node.op, TORCH[node.type.dtype]
    for family, made in _FAMILIES:
        if isinstance(op, family):
            return partial(made, node, op, kind)
    if isinstance(op, ops.CustomCall) and op.target == foreign.TARGET:
        return lambda x: foreign.run(op, x).to(kind)
    record = op.record(node.type.dtype) if isinstance(op, ops.Elementwise) else None
    if record is not None and record.code.torch is not None:
        function = attrgetter(record.code.torch)(_TORCH)
        return lambda x: function(*x)
    return partial(_by_numpy, node)


# --- by family of operators: of a node, its operator, the dtype of its result, and the operands


def _view(node: Node, op: Any, kind: torch.dtype, x: Sequence[torch.Tensor]) -> torch.Tensor:
    if isinstance(op, ops.Transpose):
        return x[0].permute(op.permutation)
    if isinstance(op, ops.Reshape):
        return x[0].reshape(numbers(op.shape))
    if isinstance(op, ops.BroadcastInDim):
        return _broadcast(op, x[0])
    if isinstance(op, ops.Reverse):
        return x[0].flip(op.dimensions)
    low, high = numbers(op.start), numbers(op.limit)
    return x[0][tuple(slice(a, b, s) for a, b, s in zip(low, high, op.stride, strict=True))]


def _dot(node: Node, op: ops.DotGeneral, kind: torch.dtype, x: Sequence[torch.Tensor]) -> torch.Tensor:
    # A GPU's products of 16 bits are summed in float32 anyway.
    is_exact = not any(t.is_cuda for t in x)
    left, right = (t.to(kind) if is_exact and t.is_floating_point() else t for t in x)
    return contraction.multiply(op, left, right).to(kind)


def _convolution(node: Node, op: ops.Convolution, kind: torch.dtype, x: Sequence[torch.Tensor]) -> torch.Tensor:
    found = contraction.convolve(op, *x)
    return _by_numpy(node, x) if found is None else found


def _gather(node: Node, op: ops.Gather, kind: torch.dtype, x: Sequence[torch.Tensor]) -> torch.Tensor:
    return indexed.gather(op, x[0], x[1], numbers(node.type.shape))


def _scatter(node: Node, op: ops.Scatter, kind: torch.dtype, x: Sequence[torch.Tensor]) -> torch.Tensor:
    return indexed.scatter(op, *x)


def _top_k(node: Node, op: ops.TopK, kind: torch.dtype, x: Sequence[torch.Tensor]) -> torch.Tensor:
    """The k largest elements of every row, or their places, of equal ones the first first: torch's own takes any."""
    (count,) = numbers((op.k,))
    if op.result == "values":
        return torch.topk(x[0], count, dim=-1).values
    if count == 1 and x[0].shape[-1]:
        return torch.argmax(x[0], -1, keepdim=True).to(kind)
    return torch.sort(x[0], dim=-1, descending=True, stable=True).indices[..., :count].to(kind)


def _sort(node: Node, op: ops.Sort, kind: torch.dtype, x: Sequence[torch.Tensor]) -> torch.Tensor:
    ordered = torch.sort(x[0], dim=op.dimension, descending=op.descending, stable=True)
    return ordered.values if op.result == "values" else ordered.indices.to(kind)


def _window(node: Node, op: ops.ReduceWindow, kind: torch.dtype, x: Sequence[torch.Tensor]) -> torch.Tensor:
    found = windows.reduce_window(op, x[0])
    return _by_numpy(node, x) if found is None else found


def _reduce(node: Node, op: ops.Reduce, kind: torch.dtype, x: Sequence[torch.Tensor]) -> torch.Tensor:
    found = windows.reduce(op, x[0], kind)
    return _by_numpy(node, x) if found is None else found


def _pad(node: Node, op: ops.Pad, kind: torch.dtype, x: Sequence[torch.Tensor]) -> torch.Tensor:
    shape = numbers(node.type.shape)
    inner, outer = list[slice](), list[slice]()
    for size, low, between, room in zip(x[0].shape, numbers(op.low), op.interior, shape, strict=True):
        step = between + 1
        first = max(0, -(low // step))  # the first element that is not cut off
        last = min(size - 1, (room - 1 - low) // step)
        inner.append(slice(first, max(last + 1, first)))
        outer.append(slice(low + first * step, max(low + last * step + 1, low + first * step), step))
    found = x[1].expand(shape).clone()
    found[tuple(outer)] = x[0][tuple(inner)]
    return found


def _convert(node: Node, op: ops.Convert, kind: torch.dtype, x: Sequence[torch.Tensor]) -> torch.Tensor:
    return x[0] != 0 if op.dtype is DType.BOOL else x[0].to(kind)


def _concatenate(node: Node, op: ops.Concatenate, kind: torch.dtype, x: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.cat(list(x), op.dimension)


def _clamp(node: Node, op: ops.Clamp, kind: torch.dtype, x: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.minimum(torch.maximum(x[1], x[0]), x[2])


def _dynamic_slice(node: Node, op: ops.DynamicSlice, kind: torch.dtype, x: Sequence[torch.Tensor]) -> torch.Tensor:
    return indexed.dynamic_slice(op, x)


def _dynamic_update(node: Node, op: object, kind: torch.dtype, x: Sequence[torch.Tensor]) -> torch.Tensor:
    return indexed.dynamic_update_slice(x)


_FAMILIES: tuple[tuple[Any, Callable[..., torch.Tensor]], ...] = (
    ((ops.Transpose, ops.Reshape, ops.BroadcastInDim, ops.Reverse, ops.Slice), _view),
    (ops.DotGeneral, _dot),
    (ops.Convolution, _convolution),
    (ops.Gather, _gather),
    (ops.Scatter, _scatter),
    (ops.DynamicSlice, _dynamic_slice),
    (ops.DynamicUpdateSlice, _dynamic_update),
    (ops.TopK, _top_k),
    (ops.Sort, _sort),
    (ops.ReduceWindow, _window),
    (ops.Reduce, _reduce),
    (ops.Pad, _pad),
    (ops.Concatenate, _concatenate),
    (ops.Clamp, _clamp),
    (ops.Convert, _convert),
)


def _by_numpy(node: Node, operands: Sequence[torch.Tensor]) -> torch.Tensor:
    """What torch has no call for: reductions of bits, convolutions of integers, and special functions."""
    if not isinstance(node.op, TensorOperator):
        raise RewrightError(f"{node.op.name} at {node.span} has no execution; leave it out of the program")
    arrays = [(t.double() if t.is_floating_point() else t).detach().cpu().numpy() for t in operands]
    device = operands[0].device if operands else torch.device("cpu")
    return tensor_of(node.op.execute(arrays)).to(device=device, dtype=TORCH[node.type.dtype])


def tensor_of(array: Array) -> torch.Tensor:
    """An array as a tensor of the same shape; NumPy's own contiguous copy of a number would be a list of one."""
    return torch.as_tensor(np.require(array, requirements=["C", "W"]).reshape(np.shape(array)))


def _broadcast(op: ops.BroadcastInDim, x: torch.Tensor) -> torch.Tensor:
    order = sorted(range(x.ndim), key=lambda axis: op.dimensions[axis])
    shape = [1] * len(op.shape)
    for axis, place in enumerate(op.dimensions):
        shape[place] = x.shape[axis]
    return x.permute(order).reshape(shape).expand(numbers(op.shape))


def numbers(shape: Sequence[object]) -> tuple[int, ...]:
    """Sizes that are numbers, as those of programs that run are."""
    return tuple(cast("int", size) for size in shape)


def constant(node: Node) -> torch.Tensor:
    """The values of a constant."""
    assert isinstance(node.op, ops.Constant)
    found = torch.tensor(node.op.values, dtype=TORCH[node.type.dtype])
    shape = numbers(node.type.shape)
    return found.reshape(shape) if ops.is_table(node.op) else found.expand(shape)
