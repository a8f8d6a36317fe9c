"""Operators of the IR as calls of torch: those of no kernel, and views."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch

from rewright import ops
from rewright.frontends.torch.eager import calls
from rewright.frontends.torch.lower import foreign
from rewright.frontends.torch.lower.sizes import TORCH
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, Node
from rewright.ir.types import DType
from rewright.ops.base import Array, TensorOperator, identity_value, wrap_integer
from rewright.ops.gather import batching_positions

Shapes = Sequence[Sequence[int]]
FOREIGN = "foreign"
"""The name of a call that ``lower.foreign`` has written down."""


@dataclass(frozen=True)
class Call:
    """An operator as a call: a function of ``calls`` by name, and its arguments, which JSON can hold."""

    name: str
    """Empty for what runs in NumPy, and cannot be written down."""
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    node: Node | None = None
    """The operator, where it runs in NumPy."""

    def __call__(self, operands: Sequence[torch.Tensor]) -> torch.Tensor:
        """The result; raises RewrightError where a read is outside of its tensor."""
        try:
            return self.function(*operands, **self.arguments)
        except IndexError as error:
            raise RewrightError(f"a gather reads out of range: {error}; give indices within the tensor") from None

    @cached_property
    def function(self) -> Callable[..., torch.Tensor]:
        """The function."""
        if self.node is not None:
            node = self.node
            return lambda *operands: _by_numpy(node, operands)
        return _foreign if self.name == FOREIGN else getattr(calls, self.name)


def library(node: Node, operands: Sequence[torch.Tensor]) -> torch.Tensor:
    """An operator by torch, or where torch has no call for it by the operator's own execution on numpy arrays."""
    call = bind(node, [t.shape for t in operands])
    if operands:
        return call(operands)
    with torch.device("cpu"):  # whatever the default is
        return call(operands)


def bind_at(graph: Graph, position: int) -> Call:
    """The call for a node of a graph whose sizes are numbers."""
    node = graph.nodes[position]
    return bind(node, [numbers(graph.nodes[p].type.shape) for p in node.operands])


def bind(node: Node, shapes: Shapes) -> Call:
    """The call for a node whose operands have these shapes."""
    op = node.op
    made = next((make(node, op, shapes) for family, make in _FAMILIES if isinstance(op, family)), None)
    if made is not None:
        return made
    if isinstance(op, ops.CustomCall) and op.target == foreign.TARGET:
        arguments = {"attributes": [list(a) for a in op.attributes], "result": op.result}
        return Call(FOREIGN, {**arguments, "kind": _name(node)})
    record = op.record(node.type.dtype) if isinstance(op, ops.Elementwise) else None
    if record is not None and record.code.torch is not None:
        return Call("apply", {"function": record.code.torch})
    return Call("", node=node)


# --- by family: of a node, its operator, and the shapes of its operands


def _view(node: Node, op: Any, shapes: Shapes) -> Call:
    if isinstance(op, ops.Transpose):
        return Call("permute", {"order": list(op.permutation)})
    if isinstance(op, ops.Reshape):
        return Call("reshape", {"shape": numbers(op.shape)})
    if isinstance(op, ops.BroadcastInDim):
        return Call("spread", {"shape": numbers(op.shape), "places": list(op.dimensions)})
    if isinstance(op, ops.Reverse):
        return Call("flip", {"axes": list(op.dimensions)})
    return Call("cut", {"low": numbers(op.start), "high": numbers(op.limit), "steps": list(op.stride)})


def _constant(node: Node, op: ops.Constant, shapes: Shapes) -> Call | None:
    if ops.is_table(op) or not op.values:
        return None
    kind, value = node.type.dtype, op.values[0]
    found = wrap_integer(kind, int(value)) if kind.is_integer else value
    return Call("fill", {"shape": numbers(node.type.shape), "value": found, "kind": _name(node)})


def _iota(node: Node, op: ops.Iota, shapes: Shapes) -> Call:
    return Call("count", {"shape": numbers(node.type.shape), "axis": op.dimension, "kind": _name(node)})


def _dot(node: Node, op: ops.DotGeneral, shapes: Shapes) -> Call:
    rows, columns = op.free_axes(*map(len, shapes))
    left, right = [*op.lhs_batch, *rows, *op.lhs_contracting], [*op.rhs_batch, *op.rhs_contracting, *columns]
    sizes = {"batch": len(op.lhs_batch), "depth": len(op.lhs_contracting)}
    return Call("multiply", {"left": left, "right": right, **sizes, "kind": _name(node)})


def _convolution(node: Node, op: ops.Convolution, shapes: Shapes) -> Call | None:
    if len(shapes[0]) not in (3, 4, 5) or not node.type.dtype.is_float or 0 in (*shapes[0], *shapes[1]):
        return None  # of integers, and over more axes, torch has none
    padding = [numbers(pair) for pair in op.padding]
    steps = {"strides": list(op.strides), "apart": list(op.lhs_dilation), "kernel_apart": list(op.rhs_dilation)}
    return Call("convolve", {**steps, "padding": padding, "groups": op.feature_groups})


def _gather(node: Node, op: ops.Gather, shapes: Shapes) -> Call:
    shape, (axis, *more) = numbers(node.type.shape), (*op.start_index_map, -1)
    batched = op.operand_batching_dims or op.start_indices_batching_dims
    vector = {"vector": op.index_vector_dim}
    kept = op.window_axes(len(shapes[0]))
    places = dict(zip(op.offset_dims, kept, strict=True))
    whole = 0 not in shape and len(more) == 1 and not batched and tuple(op.collapsed_slice_dims) == (axis,)
    if whole and all(op.slice_sizes[a] == shapes[0][a] for a in kept):
        return Call("take", {"axis": axis, "offsets": list(op.offset_dims), **vector})
    batching = batching_positions(op.operand_batching_dims, op.start_indices_batching_dims, op.index_vector_dim)
    follow = _following(len(shape), places, batching)
    return Call("gather", {"shape": shape, "starts": list(op.start_index_map), **vector, "follow": follow})


def _scatter(node: Node, op: ops.Scatter, shapes: Shapes) -> Call:
    batching = batching_positions(op.input_batching_dims, op.scatter_indices_batching_dims, op.index_vector_dim)
    places = dict(zip(op.update_window_dims, op.window_axes(len(shapes[0])), strict=True))
    follow = _following(len(shapes[2]), places, batching)
    starts = {"starts": list(op.scatter_dims_to_operand_dims), "vector": op.index_vector_dim}
    return Call("scatter", {"how": op.kind, **starts, "follow": follow})


def _following(rank: int, places: Mapping[int, int], batching: Mapping[int, int]) -> list[list[int]]:
    """By axis of what is read or written, the axis of the tensor that has its index too, and whether it is a batch."""
    batch = [a for a in range(rank) if a not in places]
    shared = {batch[number]: axis for axis, number in batching.items()}
    return [[places.get(a, shared.get(a, -1)), int(a in batch)] for a in range(rank)]


def _dynamic_slice(node: Node, op: ops.DynamicSlice, shapes: Shapes) -> Call:
    return Call("block", {"sizes": numbers(op.sizes)})


def _dynamic_update(node: Node, op: object, shapes: Shapes) -> Call:
    return Call("update_block")


def _top_k(node: Node, op: ops.TopK, shapes: Shapes) -> Call:
    return Call("top_k", {"count": numbers((op.k,))[0], "result": op.result, "kind": _name(node)})


def _sort(node: Node, op: ops.Sort, shapes: Shapes) -> Call:
    order = {"axis": op.dimension, "descending": op.descending}
    return Call("sort", {**order, "result": op.result, "kind": _name(node)})


def _window(node: Node, op: ops.ReduceWindow, shapes: Shapes) -> Call | None:
    dtype = node.type.dtype
    if op.kind not in ("sum", "maximum", "minimum") or dtype is DType.BOOL or not shapes[0]:
        return None
    if op.is_cumulative(node.type.shape):
        return Call("running", {"how": op.kind, "axis": next((a for a, s in enumerate(op.window) if s != 1), 0)})
    padding = [numbers(pair) for pair in op.padding]
    sizes = {"sizes": numbers(op.window), "strides": list(op.strides), "padding": padding}
    return Call("windows", {"how": op.kind, **sizes, "identity": identity_value(op.kind, dtype)})


def _reduce(node: Node, op: ops.Reduce, shapes: Shapes) -> Call | None:
    if op.kind in ("and", "or") and node.type.dtype is not DType.BOOL:
        return None  # of bits, torch has none
    identity = identity_value(op.kind, node.type.dtype)
    return Call("reduce", {"how": op.kind, "axes": list(op.dimensions), "identity": identity, "kind": _name(node)})


def _pad(node: Node, op: ops.Pad, shapes: Shapes) -> Call:
    return Call("pad", {"shape": numbers(node.type.shape), "low": numbers(op.low), "between": list(op.interior)})


def _convert(node: Node, op: ops.Convert, shapes: Shapes) -> Call:
    return Call("convert", {"kind": _name(node)})


def _concatenate(node: Node, op: ops.Concatenate, shapes: Shapes) -> Call:
    return Call("concatenate", {"axis": op.dimension})


def _clamp(node: Node, op: ops.Clamp, shapes: Shapes) -> Call:
    return Call("clamp")


_FAMILIES: tuple[tuple[Any, Callable[..., Call | None]], ...] = (
    ((ops.Transpose, ops.Reshape, ops.BroadcastInDim, ops.Reverse, ops.Slice), _view),
    (ops.Constant, _constant),
    (ops.Iota, _iota),
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


def _name(node: Node) -> str:
    return str(TORCH[node.type.dtype]).removeprefix("torch.")


def _foreign(*operands: torch.Tensor, attributes: Sequence[Sequence[Any]], result: int, kind: str) -> torch.Tensor:
    op = ops.CustomCall(foreign.TARGET, tuple((str(k), v) for k, v in attributes), (), result)
    return foreign.run(op, operands).to(calls.kind_of(kind))


def _by_numpy(node: Node, operands: Sequence[torch.Tensor]) -> torch.Tensor:
    """What torch has no call for: reductions of bits, convolutions of integers, and special functions."""
    if not isinstance(node.op, TensorOperator):
        raise RewrightError(f"{node.op.name} at {node.span} has no execution; leave it out of the program")
    arrays = [(t.double() if t.is_floating_point() else t).detach().cpu().numpy() for t in operands]
    device = operands[0].device if operands else torch.device("cpu")
    return tensor_of(node.op.execute(arrays)).to(device=device, dtype=TORCH[node.type.dtype])


def tensor_of(array: Array) -> torch.Tensor:
    """An array as a tensor of the same shape; NumPy's own contiguous copy of a number would be a list of one."""
    return torch.as_tensor(np.require(array, requirements=["C", "W"]).reshape(np.shape(array)), device="cpu")


def numbers(shape: Sequence[object]) -> tuple[int, ...]:
    """Sizes that are numbers, as those of programs that run are."""
    return tuple(cast("int", size) for size in shape)


def constant(node: Node) -> torch.Tensor:
    """The values of a constant."""
    assert isinstance(node.op, ops.Constant)
    found = torch.tensor(node.op.values, dtype=TORCH[node.type.dtype], device="cpu")
    shape = numbers(node.type.shape)
    return found.reshape(shape) if ops.is_table(node.op) else found.reshape(()).expand(shape)
