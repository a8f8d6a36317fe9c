"""ATen operators whose result shows the elements of an operand: views, identities and splits.

Each function gives the view steps from its first operand to its result, or one chain of steps for each result.
"""

from __future__ import annotations

from collections.abc import Sequence

from rewright.frontends.aten.call import Layout
from rewright.frontends.aten.context import Context, Table, Value
from rewright.frontends.aten.views import (
    BroadcastStep,
    DiagonalStep,
    MemoryStep,
    ReshapeStep,
    SliceStep,
    TransposeStep,
    UnsqueezeStep,
    ViewStep,
    WindowStep,
)
from rewright.ir.dims import Dim, Shape, at_most, divide
from rewright.ir.errors import UnsupportedOperator

TABLE = Table()
Steps = tuple[ViewStep, ...]
_MOST_PIECES = 65_536


def _to_shape(x: Value, shape: Shape) -> Steps:
    return () if x.shape == shape else (ReshapeStep(shape),)


@TABLE.register(
    "aten.view.default",
    "aten._unsafe_view.default",
    "aten.reshape.default",
    "aten._reshape_alias.default",
    "aten.view_as.default",
    "aten.flatten.using_ints",
    "aten.unflatten.int",
    "aten.ravel.default",
    "aten.squeeze.default",
    "aten.squeeze.dim",
    "aten.squeeze.dims",
    "aten.view_copy.default",
    "aten.squeeze_copy.dim",
    "aten.squeeze_copy.dims",
    "aten.squeeze_.default",
    "aten.squeeze_.dim",
    "aten.squeeze_.dims",
)
def reshape(c: Context, x: Value, *_: object, **__: object) -> Steps:
    return _to_shape(x, c.result().shape)


@TABLE.register("aten.unsqueeze.default", "aten.unsqueeze_copy.default", "aten.unsqueeze_.default")
def unsqueeze(c: Context, x: Value, dim: int) -> Steps:
    shape = c.result().shape
    return (UnsqueezeStep(shape, dim % len(shape)),)


@TABLE.register("aten.view.dtype")
def view_dtype(c: Context, x: Value, dtype: object) -> Steps:
    if c.result().dtype is x.dtype:
        return ()
    raise UnsupportedOperator("reading the bits of a tensor as another dtype has no meaning over the reals; convert it")


@TABLE.register(
    "aten.alias.default",
    "aten.alias_copy.default",
    "aten.detach.default",
    "aten.detach_copy.default",
    "aten.contiguous.default",
    "aten.clone.default",
    "aten.lift_fresh.default",
    "aten.lift_fresh_copy.default",
    "aten.lift.default",
    "aten.positive.default",
    "aten._conj.default",
    "aten.conj.default",
    "aten.resolve_conj.default",
    "aten.resolve_neg.default",
    "aten.requires_grad_.default",
    "aten.detach_.default",
    "_c10d_functional.wait_tensor.default",
    "_c10d_functional._wrap_tensor_autograd.default",
    "aten.real.default",
    "tg.log_tensor.default",
)
def identity(c: Context, x: Value, *_: object, **__: object) -> Steps | None:
    """No step, but a new tensor where a capture writes a conversion in this way."""
    kind = c.call.result(0)
    return () if kind is None or kind.dtype is x.dtype else None


@TABLE.register("aten.t.default", "aten.t_copy.default", "aten.numpy_T.default", "aten.mT.default")
def t(c: Context, x: Value) -> Steps:
    return transpose_int(c, x, -2, -1) if x.rank >= 2 else ()


@TABLE.register("aten.transpose.int", "aten.transpose_copy.int", "aten.swapaxes.default", "aten.swapdims.default")
def transpose_int(c: Context, x: Value, first: int, second: int) -> Steps:
    order = list(range(x.rank))
    if order:
        first, second = first % x.rank, second % x.rank
        order[first], order[second] = order[second], order[first]
    return _permute(order)


@TABLE.register("aten.permute.default", "aten.permute_copy.default")
def permute(c: Context, x: Value, dims: Sequence[int]) -> Steps:
    return _permute([axis % x.rank for axis in dims])


@TABLE.register("aten.movedim.int")
def movedim(c: Context, x: Value, source: int, destination: int) -> Steps:
    order = [axis for axis in range(x.rank) if axis != source % x.rank]
    order.insert(destination % x.rank, source % x.rank)
    return _permute(order)


def _permute(order: Sequence[int]) -> Steps:
    return () if list(order) == sorted(order) else (TransposeStep(tuple(order)),)


@TABLE.register(
    "aten.expand.default",
    "aten.expand_copy.default",
    "aten.expand_as.default",
    "aten.broadcast_to.default",
)
def expand(c: Context, x: Value, *_: object, **__: object) -> Steps:
    shape = c.result().shape
    if shape == x.shape:
        return ()
    return (BroadcastStep(shape, tuple(range(len(shape) - x.rank, len(shape)))),)


@TABLE.register("aten.slice.Tensor", "aten.slice_copy.Tensor")
def slice_(
    c: Context, x: Value, dim: int = 0, start: Dim | None = None, end: Dim | None = None, step: int = 1
) -> Steps:
    axis = x.axis(dim)
    low, high = slice_bounds(x.shape[axis], start, end)
    if low == 0 and high == x.shape[axis] and step == 1:
        return ()
    return (SliceStep(axis, low, high, step),)


def slice_bounds(size: Dim, start: Dim | None, end: Dim | None) -> tuple[Dim, Dim]:
    """Start and limit counted from the front and cut to the axis, as Python slices do."""
    low = _bound(size, 0 if start is None else start)
    high = _bound(size, size if end is None else end)
    return (low, low) if at_most(low, high) is False else (low, high)


def _bound(size: Dim, position: Dim) -> Dim:
    if isinstance(position, int) and position < 0:
        position = size + position
        if at_most(0, position) is False:
            return 0
    if isinstance(position, int) and position >= 2**62:
        return size
    return size if at_most(position, size) is False else position


@TABLE.register("aten.narrow.default", "aten.narrow_copy.default")
def narrow(c: Context, x: Value, dim: int, start: Dim, length: Dim) -> Steps:
    low = _bound(x.shape[x.axis(dim)], start)
    return (SliceStep(x.axis(dim), low, low + length),)


@TABLE.register("aten.select.int", "aten.select_copy.int")
def select(c: Context, x: Value, dim: int, index: Dim) -> Steps:
    axis = x.axis(dim)
    start = x.shape[axis] + index if isinstance(index, int) and index < 0 else index
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    return (SliceStep(axis, start, start + 1), ReshapeStep(shape))


@TABLE.register("aten.diagonal.default", "aten.diagonal_copy.default")
def diagonal(c: Context, x: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Steps:
    return (DiagonalStep(x.axis(dim1), x.axis(dim2), offset),)


@TABLE.register("aten.as_strided.default", "aten.as_strided_copy.default")
def as_strided(
    c: Context, x: Value, size: Sequence[Dim], stride: Sequence[Dim], storage_offset: Dim | None = None
) -> Steps:
    return strided_steps(x, c.call.first_operand(), tuple(size), tuple(stride), storage_offset)


def strided_steps(x: Value, memory: Layout | None, size: Shape, stride: Shape, offset: Dim | None) -> Steps:
    """Steps to a strided window on the memory of a contiguous tensor that is a slice and a permutation of it."""
    if memory is None or memory.offset is None:
        raise UnsupportedOperator("as_strided of a tensor whose place in memory was not captured; use slices instead")
    start = offset if offset is not None else memory.offset
    if (memory.shape, memory.stride, memory.offset) == (size, stride, start):
        return ()
    if not memory.is_contiguous or memory.offset != 0:
        raise UnsupportedOperator("as_strided of a tensor that is not contiguous; use slices and transposes instead")
    order = sorted(range(len(size)), key=lambda axis: (-_number(stride[axis]), axis))
    inner: Dim = 1
    for axis in reversed(order):
        if stride[axis] != inner and size[axis] != 1:
            return (MemoryStep(_numbers(size), _numbers(stride), _number(start)),)
        inner = inner * size[axis]
    flat = x.type.size()
    packed = tuple(size[axis] for axis in order)
    back = tuple(order.index(axis) for axis in range(len(order)))
    return (ReshapeStep((flat,)), SliceStep(0, start, start + inner), ReshapeStep(packed), *_permute(back))


def _numbers(sizes: Shape) -> tuple[int, ...]:
    return tuple(_number(size) for size in sizes)


def _number(size: Dim) -> int:
    if not isinstance(size, int):
        raise UnsupportedOperator("as_strided with symbolic strides; use slices and transposes instead")
    return size


@TABLE.register("aten.split.Tensor", "aten.split_copy.Tensor", "aten.tensor_split.sections", "aten.chunk.default")
def split(c: Context, x: Value, parts: Dim = 1, dim: int = 0, **__: object) -> tuple[Steps, ...]:
    """``parts`` is the size of a piece or the number of pieces; captured results say both."""
    axis = x.axis(dim)
    known = [c.call.result(index) for index in range(c.call.count)]
    sizes = [kind.shape[axis] for kind in known if kind is not None]
    if len(sizes) < len(known):
        sizes = _equal_sizes(x.shape[axis], parts, c.call.operator)
    return _pieces(axis, sizes)


def _equal_sizes(size: Dim, parts: Dim, operator: str) -> list[Dim]:
    """The sizes of all pieces, where a capture has only those that are read."""
    if not isinstance(size, int) or not isinstance(parts, int) or parts < 1 or "tensor_split" in operator:
        raise UnsupportedOperator("a split whose results were not captured; split with sizes instead")
    step = max(parts if ".split" in operator else -(-size // parts), 1)
    if size > step * _MOST_PIECES:
        raise UnsupportedOperator(f"a split of {size} into pieces of {step} has too many results; reshape instead")
    return [min(step, size - start) for start in range(0, size, step)]


@TABLE.register(
    "aten.split_with_sizes.default", "aten.split_with_sizes_copy.default", "aten.split.sizes", "aten.split.default"
)
def split_with_sizes(c: Context, x: Value, split_sizes: Sequence[Dim], dim: int = 0) -> tuple[Steps, ...]:
    return _pieces(x.axis(dim), split_sizes)


def _pieces(axis: int, sizes: Sequence[Dim]) -> tuple[Steps, ...]:
    found: list[Steps] = []
    offset: Dim = 0
    for size in sizes:
        found.append((SliceStep(axis, offset, offset + size),))
        offset = offset + size
    return tuple(found)


@TABLE.register("aten.unbind.int", "aten.unbind_copy.int")
def unbind(c: Context, x: Value, dim: int = 0) -> tuple[Steps, ...]:
    size = x.shape[x.axis(dim)]
    if not isinstance(size, int):
        raise UnsupportedOperator(f"unbind of an axis of symbolic size {size}; give it a number")
    return tuple(select(c, x, dim, index) for index in range(size))


_WIDEST = 256
"""Windows that overlap are written out place by place up to this width."""


@TABLE.register("aten.unfold.default")
def unfold(c: Context, x: Value, dimension: int, size: int, step: int) -> Steps:
    axis = x.axis(dimension)
    if not x.rank:
        return () if c.result().shape == () else (ReshapeStep(c.result().shape),)
    whole = x.shape[axis]
    count = divide(whole, size)
    if isinstance(whole, int) and 0 < size <= _WIDEST and (step != size or count is None):
        return (WindowStep(axis, size, step),)
    if step != size or count is None:
        raise UnsupportedOperator("unfold with wide windows that overlap or leave a rest; use a convolution or slices")
    shape = (*x.shape[:axis], count, size, *x.shape[axis + 1 :])
    order = [*(i for i in range(x.rank + 1) if i != axis + 1), axis + 1]
    return (ReshapeStep(shape), *_permute(order))


@TABLE.register(
    "aten.to.dtype",
    "aten.to.dtype_layout",
    "aten.to.device",
    "aten.to.other",
    "aten.type_as.default",
)
def to(c: Context, x: Value, *_: object, **__: object) -> Steps | None:
    """No step where the dtype stays; None where it changes, which makes a new tensor."""
    return () if c.result().dtype is x.dtype else None
