"""Constants and views of tensors: the building blocks that need no others, which proofs use too."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rewright import ops
from rewright.ir.dims import Dim, Shape
from rewright.ir.graph import GraphBuilder
from rewright.ir.types import DType, TensorType
from rewright.ops.functions.bytes import round_to_byte

Scalar = float | int | bool


def splat(builder: GraphBuilder, value: Scalar, shape: Shape, dtype: DType) -> int:
    """A constant tensor with the same value everywhere; symbolic shapes are fine."""
    return builder.add(ops.Constant(TensorType(shape, dtype), (cast(value, dtype),)))


def cast(value: Scalar, dtype: DType) -> Scalar:
    """A Python number of the kind that the dtype holds."""
    if dtype is DType.BOOL:
        return bool(value)
    if dtype.is_byte_float:
        return float(round_to_byte(dtype, np.array(float(value))))
    return float(value) if dtype.is_float else int(value)


def reshape(builder: GraphBuilder, x: int, shape: Sequence[Dim]) -> int:
    """The same elements in row-major order."""
    wanted = tuple(shape)
    return x if builder.type(x).shape == wanted else builder.add(ops.Reshape(wanted), x)


def transpose(builder: GraphBuilder, x: int, permutation: Sequence[int]) -> int:
    """Result axis i is axis ``permutation[i]`` of ``x``."""
    order = tuple(permutation)
    return x if order == tuple(range(len(order))) else builder.add(ops.Transpose(order), x)


def swap(builder: GraphBuilder, x: int, first: int, second: int) -> int:
    """Two axes exchanged."""
    rank = builder.type(x).rank
    order = list(range(rank))
    first, second = first % rank, second % rank
    order[first], order[second] = order[second], order[first]
    return transpose(builder, x, order)


def slice_axis(builder: GraphBuilder, x: int, axis: int, start: Dim, limit: Dim, stride: int = 1) -> int:
    """Elements ``start, start + stride, ...`` below ``limit`` along one axis."""
    shape = builder.type(x).shape
    if start == 0 and limit == shape[axis] and stride == 1:
        return x
    starts: list[Dim] = [0] * len(shape)
    limits: list[Dim] = list(shape)
    strides = [1] * len(shape)
    starts[axis], limits[axis], strides[axis] = start, limit, stride
    return builder.add(ops.Slice(tuple(starts), tuple(limits), tuple(strides)), x)


def pad(builder: GraphBuilder, x: int, low: Sequence[Dim], high: Sequence[Dim], value: Scalar = 0) -> int:
    """Grow every axis at both ends with a constant."""
    if all(size == 0 for size in [*low, *high]):
        return x
    filler = splat(builder, value, (), builder.type(x).dtype)
    return builder.add(ops.Pad(tuple(low), tuple(high), (0,) * len(tuple(low))), x, filler)
