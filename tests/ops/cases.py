"""Random applications of every operator: attributes and operands that fit, with empty axes and axes of size one.

Float elements are small multiples of 1/4, so sums and products of a few of them are exact in float64 and two
orders of summation give the same number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from rewright import ops
from rewright.ir.types import DType, TensorType
from rewright.ops.base import TensorOperator, array_dtype

Draw = Callable[[st.SearchStrategy[Any]], Any]
Array = NDArray[Any]

FLOATS = (DType.F64, DType.F32)
INTEGERS = (DType.I64, DType.I32)
NUMBERS = (*FLOATS, *INTEGERS)
ANY = (*NUMBERS, DType.BOOL)


@dataclass(frozen=True)
class Case:
    """An operator with operands that fit."""

    op: TensorOperator
    operands: tuple[Array, ...]
    types: tuple[TensorType, ...]

    def __repr__(self) -> str:
        return f"{self.op} of {', '.join(str(t) for t in self.types)}"


def shapes(low: int = 0, high: int = 3, smallest: int = 0) -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes of rank ``low`` to ``high``; one axis in about five is empty."""
    return st.lists(st.sampled_from([s for s in (2, 3, 1, 4, 0) if s >= smallest]), min_size=low, max_size=high).map(
        tuple
    )


def array(draw: Draw, shape: Sequence[int], dtype: DType, low: int = -8, high: int = 8) -> Array:
    """A random array; floats are multiples of 1/4 between low / 4 and high / 4."""
    generator = np.random.default_rng(draw(st.integers(0, 2**16)))
    if dtype is DType.BOOL:
        return generator.integers(0, 2, size=tuple(shape)).astype(np.bool_)
    values = generator.integers(low, high + 1, size=tuple(shape))
    return (values / 4 if dtype.is_float else values).astype(array_dtype(dtype))


def case(op: TensorOperator, dtypes: Sequence[DType], *operands: Array) -> Case:
    types = tuple(TensorType(a.shape, d) for a, d in zip(operands, dtypes, strict=True))
    return Case(op, operands, types)


def elementwise(
    op: Callable[[], TensorOperator], dtypes: Sequence[DType], count: int, low: int = -8, high: int = 8
) -> st.SearchStrategy[Case]:
    @st.composite
    def build(draw: Draw) -> Case:
        dtype = draw(st.sampled_from(dtypes))
        shape = draw(shapes())
        arrays = [array(draw, shape, dtype, low, high) for _ in range(count)]
        return case(op(), [dtype] * count, *arrays)

    return build()


@st.composite
def nonzero_divisor(draw: Draw, op: TensorOperator) -> Case:
    dtype = draw(st.sampled_from(NUMBERS))
    shape = draw(shapes())
    divisor = array(draw, shape, dtype)
    return case(op, [dtype] * 2, array(draw, shape, dtype), np.where(divisor == 0, 3, divisor).astype(divisor.dtype))


@st.composite
def power(draw: Draw) -> Case:
    dtype = draw(st.sampled_from(NUMBERS))
    shape = draw(shapes())
    base = array(draw, shape, dtype, 1 if dtype.is_float else -5, 8)
    if not dtype.is_float:
        base = np.where(base == 0, 1, base).astype(base.dtype)
    return case(ops.Power(), [dtype] * 2, base, array(draw, shape, dtype))


@st.composite
def comparison(draw: Draw) -> Case:
    dtype = draw(st.sampled_from(ANY))
    shape = draw(shapes())
    direction = draw(st.sampled_from(["EQ", "NE", "LT", "LE", "GT", "GE"]))
    return case(ops.Compare(direction), [dtype] * 2, array(draw, shape, dtype, -2, 2), array(draw, shape, dtype, -2, 2))


@st.composite
def selection(draw: Draw) -> Case:
    dtype = draw(st.sampled_from(ANY))
    shape = draw(shapes())
    predicate = array(draw, shape, DType.BOOL)
    return case(ops.Select(), [DType.BOOL, dtype, dtype], predicate, *(array(draw, shape, dtype) for _ in range(2)))


@st.composite
def conversion(draw: Draw) -> Case:
    dtype, target = draw(st.sampled_from(ANY)), draw(st.sampled_from(ANY))
    return case(ops.Convert(target), [dtype], array(draw, draw(shapes()), dtype))


@st.composite
def iota(draw: Draw) -> Case:
    shape = draw(shapes(1))
    tensor = TensorType(shape, draw(st.sampled_from(NUMBERS)))
    return case(ops.Iota(tensor, draw(st.integers(0, len(shape) - 1))), [])


@st.composite
def constant(draw: Draw) -> Case:
    dtype = draw(st.sampled_from(ANY))
    shape = draw(shapes())
    values = array(draw, shape if draw(st.booleans()) else (1,), dtype).reshape(-1).tolist()
    return case(ops.Constant(TensorType(shape, dtype), tuple(values)), [])


@st.composite
def broadcast(draw: Draw) -> Case:
    shape = draw(shapes())
    order = draw(st.permutations(range(len(shape))))
    dimensions = tuple(order[: draw(st.integers(0, len(shape)))])
    sizes = [draw(st.sampled_from([shape[axis], 1])) for axis in dimensions]
    return case(ops.BroadcastInDim(shape, dimensions), [DType.F64], array(draw, sizes, DType.F64))


@st.composite
def reshape(draw: Draw) -> Case:
    factors = list(draw(shapes(0, 4)))

    def grouped() -> tuple[int, ...]:
        sizes: list[int] = []
        for factor in factors:
            if sizes and draw(st.booleans()):
                sizes[-1] *= factor
            else:
                sizes.append(factor)
            if draw(st.integers(0, 5)) == 0:
                sizes.append(1)
        return tuple(sizes)

    source, target = grouped(), grouped()
    if draw(st.booleans()):
        target = tuple(reversed(target))
    return case(ops.Reshape(target), [DType.F64], array(draw, source, DType.F64))


@st.composite
def transpose(draw: Draw) -> Case:
    shape = draw(shapes())
    return case(
        ops.Transpose(tuple(draw(st.permutations(range(len(shape)))))), [DType.F64], array(draw, shape, DType.F64)
    )


@st.composite
def strided_slice(draw: Draw) -> Case:
    shape = draw(shapes())
    whole = [draw(st.integers(0, 2)) == 0 for _ in shape]
    start = tuple(0 if w else draw(st.integers(0, n)) for n, w in zip(shape, whole, strict=True))
    limit = tuple(n if w else draw(st.integers(s, n)) for n, s, w in zip(shape, start, whole, strict=True))
    stride = tuple(1 if w else draw(st.integers(1, 3)) for w in whole)
    return case(ops.Slice(start, limit, stride), [DType.F64], array(draw, shape, DType.F64))


@st.composite
def pad(draw: Draw) -> Case:
    shape = draw(shapes())
    low, high, interior = [], [], []
    for size in shape:
        between = draw(st.integers(0, 2))
        room = size and (size - 1) * (between + 1) + 1
        low.append(draw(st.integers(-room, 3)))
        high.append(draw(st.integers(-room - min(low[-1], 0) if room else 0, 3)))
        if low[-1] > 0 and draw(st.booleans()):
            high[-1] = -room - low[-1]
        interior.append(between)
    padding = ops.Pad(tuple(low), tuple(high), tuple(interior))
    return case(padding, [DType.F64] * 2, array(draw, shape, DType.F64), array(draw, (), DType.F64))


@st.composite
def concatenate(draw: Draw) -> Case:
    shape = list(draw(shapes(1)))
    axis = draw(st.integers(0, len(shape) - 1))
    arrays: list[Array] = []
    for _ in range(draw(st.integers(1, 3))):
        shape[axis] = draw(st.integers(0, 3))
        arrays.append(array(draw, shape, DType.F64))
    return case(ops.Concatenate(axis), [DType.F64] * len(arrays), *arrays)


@st.composite
def reverse(draw: Draw) -> Case:
    shape = draw(shapes())
    axes = tuple(axis for axis in range(len(shape)) if draw(st.booleans()))
    return case(ops.Reverse(axes), [DType.F64], array(draw, shape, DType.F64))


@st.composite
def dot_general(draw: Draw) -> Case:
    dtype = draw(st.sampled_from(NUMBERS))
    batch, inner = draw(shapes(0, 2)), draw(shapes(0, 2))
    rows, columns = draw(shapes(0, 1)), draw(shapes(0, 1))

    def side(free: tuple[int, ...]) -> tuple[Array, tuple[int, ...], tuple[int, ...]]:
        sizes = batch + inner + free
        order = draw(st.permutations(range(len(sizes))))
        place = [order.index(axis) for axis in range(len(sizes))]
        operand = array(draw, [sizes[axis] for axis in order], dtype)
        return operand, tuple(place[: len(batch)]), tuple(place[len(batch) : len(batch) + len(inner)])

    (left, lhs_batch, lhs_inner), (right, rhs_batch, rhs_inner) = side(rows), side(columns)
    return case(ops.DotGeneral(lhs_batch, rhs_batch, lhs_inner, rhs_inner), [dtype] * 2, left, right)


def reduction_kind(draw: Draw) -> tuple[Any, DType]:
    kind = draw(st.sampled_from(["sum", "maximum", "minimum", "product", "and", "or"]))
    if kind in ("and", "or"):
        return kind, draw(st.sampled_from([DType.BOOL, DType.I64]))
    return kind, draw(st.sampled_from(NUMBERS if kind in ("sum", "product") else ANY))


@st.composite
def reduce(draw: Draw) -> Case:
    kind, dtype = reduction_kind(draw)
    shape = draw(shapes())
    axes = tuple(axis for axis in draw(st.permutations(range(len(shape)))) if draw(st.booleans()))
    return case(ops.Reduce(kind, axes), [dtype], array(draw, shape, dtype))


@st.composite
def reduce_window(draw: Draw) -> Case:
    kind, dtype = reduction_kind(draw)
    shape = draw(shapes())
    if shape and shape[-1] and draw(st.integers(0, 3)) == 0:
        prefix = len(shape) - 1
        cumulative = ops.ReduceWindow(
            kind, (1,) * prefix + (shape[-1],), (1,) * len(shape), ((0, 0),) * prefix + ((shape[-1] - 1, 0),)
        )
        return case(cumulative, [dtype], array(draw, shape, dtype))
    window = tuple(draw(st.integers(1, 3)) for _ in shape)
    strides = tuple(draw(st.integers(1, 3)) for _ in shape)
    padding = tuple((draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in shape)
    return case(ops.ReduceWindow(kind, window, strides, padding), [dtype], array(draw, shape, dtype))


@dataclass(frozen=True)
class Blocks:
    """The indexing that gather and scatter share."""

    operand: tuple[int, ...]
    indices: Array
    window: tuple[int, ...]
    """Sizes of the blocks along every axis of the operand."""
    collapsed: tuple[int, ...]
    batching: tuple[int, ...]
    index_batching: tuple[int, ...]
    index_map: tuple[int, ...]
    vector_axis: int
    offset_dims: tuple[int, ...]
    batch: tuple[int, ...]


@st.composite
def blocks(draw: Draw, overhang: int = 0) -> Blocks:
    """Random block indexing; starts may lie up to ``overhang`` outside."""
    operand = draw(shapes(1, 3, smallest=1))
    rank = len(operand)
    order = list(draw(st.permutations(range(rank))))
    batching = tuple(order[: draw(st.integers(0, min(1, rank - 1)))])
    mapped = tuple(axis for axis in order if axis not in batching and draw(st.booleans()))
    dropped = {axis for axis in mapped if draw(st.booleans())} | {
        axis for axis in range(rank) if operand[axis] == 1 and axis not in batching and draw(st.booleans())
    }
    window = tuple(
        1 if a in batching or a in dropped else draw(st.integers(0, n)) if a in mapped else n
        for a, n in enumerate(operand)
    )
    free = draw(shapes(0, 2))
    at = draw(st.integers(0, len(free)))
    batch = free[:at] + tuple(operand[axis] for axis in batching) + free[at:]
    vector = draw(st.integers(0, len(batch)))
    if len(mapped) == 1 and draw(st.booleans()):
        vector, shape = len(batch), batch
    else:
        shape = (*batch[:vector], len(mapped), *batch[vector:])
    indices = np.zeros(shape, np.int64)
    for component, axis in enumerate(mapped):
        generator = np.random.default_rng(draw(st.integers(0, 999)))
        starts = generator.integers(-overhang, operand[axis] - window[axis] + 1 + overhang, size=batch)
        place = (slice(None),) * vector + ((component,) if len(shape) > len(batch) else ())
        indices[place] = starts
    kept = [axis for axis in range(rank) if axis not in batching and axis not in dropped]
    offsets = sorted(draw(st.permutations(range(len(batch) + len(kept))))[: len(kept)])
    moved = tuple(p + (1 if len(shape) > len(batch) and p >= vector else 0) for p in range(at, at + len(batching)))
    collapsed = tuple(sorted(dropped))
    return Blocks(operand, indices, window, collapsed, batching, moved, mapped, vector, tuple(offsets), batch)


@st.composite
def gather(draw: Draw) -> Case:
    b = draw(blocks())
    op = ops.Gather(b.offset_dims, b.collapsed, b.batching, b.index_batching, b.index_map, b.vector_axis, b.window)
    return case(op, [DType.F64, DType.I64], array(draw, b.operand, DType.F64), b.indices)


@st.composite
def scatter(draw: Draw) -> Case:
    b = draw(blocks(overhang=1))
    kind = draw(st.sampled_from(["sum", "replace", "maximum", "minimum", "product"]))
    kept = iter(size for axis, size in enumerate(b.window) if axis not in b.collapsed and axis not in b.batching)
    batch = iter(b.batch)
    shape = [next(kept) if a in b.offset_dims else next(batch) for a in range(len(b.batch) + len(b.offset_dims))]
    op = ops.Scatter(kind, b.offset_dims, b.collapsed, b.batching, b.index_batching, b.index_map, b.vector_axis)
    operands = (array(draw, b.operand, DType.F64), b.indices, array(draw, shape, DType.F64))
    return case(op, [DType.F64, DType.I64, DType.F64], *operands)


@st.composite
def dynamic(draw: Draw, update: bool) -> Case:
    shape = draw(shapes())
    sizes = tuple(draw(st.sampled_from([n, draw(st.integers(0, n))])) for n in shape)
    starts = [array(draw, (), DType.I64, -3, 5) for _ in shape]
    operand = array(draw, shape, DType.F64)
    dtypes = [DType.I64] * len(shape)
    if update:
        return case(
            ops.DynamicUpdateSlice(), [DType.F64, DType.F64, *dtypes], operand, array(draw, sizes, DType.F64), *starts
        )
    return case(ops.DynamicSlice(sizes), [DType.F64, *dtypes], operand, *starts)


@st.composite
def sort(draw: Draw) -> Case:
    dtype = draw(st.sampled_from(ANY))
    shape = draw(shapes(1))
    axis = draw(st.integers(0, len(shape) - 1))
    result = draw(st.sampled_from(["values", "indices"]))
    return case(ops.Sort(axis, draw(st.booleans()), result), [dtype], array(draw, shape, dtype, -2, 2))


@st.composite
def top_k(draw: Draw) -> Case:
    shape = draw(shapes(1))
    result = draw(st.sampled_from(["values", "indices"]))
    return case(ops.TopK(draw(st.integers(0, shape[-1])), result), [DType.F64], array(draw, shape, DType.F64, -2, 2))


@st.composite
def convolution(draw: Draw) -> Case:
    groups = draw(st.integers(1, 2))
    batch, channels, outputs = (draw(st.integers(0, 2)) for _ in range(3))
    spatial, window = draw(shapes(0, 2)), []
    window = [draw(st.integers(1, 2)) for _ in spatial]
    count = len(spatial)

    def numbers(low: int, high: int) -> tuple[int, ...]:
        return tuple(draw(st.integers(low, high)) for _ in range(count))

    padding = tuple(zip(numbers(0, 2), numbers(0, 2), strict=True))
    op = ops.Convolution(numbers(1, 2), padding, numbers(1, 2), numbers(1, 2), groups)
    operand = array(draw, (batch, channels * groups, *spatial), DType.F64)
    kernel = array(draw, (outputs * groups, channels, *window), DType.F64)
    return case(op, [DType.F64] * 2, operand, kernel)


CASES: dict[str, st.SearchStrategy[Case]] = {
    **{
        op.name: elementwise(op, FLOATS, 1)
        for op in (
            ops.Exponential,
            ops.ExponentialMinusOne,
            ops.Tanh,
            ops.Logistic,
            ops.Sine,
            ops.Cosine,
            ops.Floor,
            ops.Ceil,
            ops.RoundNearestEven,
            ops.RoundToE4M3,
            ops.RoundToE5M2,
            ops.Erf,
            ops.Erfc,
            ops.ErfcScaled,
            ops.LogGamma,
            ops.Digamma,
            ops.BesselI0e,
            ops.BesselI1e,
            ops.IsFinite,
        )
    },
    **{op.name: elementwise(op, FLOATS, 1, 0, 12) for op in (ops.Log, ops.LogPlusOne, ops.Sqrt, ops.Rsqrt)},
    "erf_inverse": elementwise(ops.ErfInverse, FLOATS, 1, -1, 1),
    "atan2": elementwise(ops.Atan2, FLOATS, 2),
    "zeta": elementwise(ops.Zeta, FLOATS, 2, 2, 9),
    "philox": elementwise(ops.Philox, (DType.I64,), 7, 0, 3),
    **{op.name: elementwise(op, NUMBERS, 1) for op in (ops.Negate, ops.Abs, ops.Sign)},
    **{op.name: elementwise(op, NUMBERS, 2) for op in (ops.Add, ops.Subtract, ops.Multiply)},
    **{op.name: elementwise(op, ANY, 2) for op in (ops.Maximum, ops.Minimum)},
    **{op.name: elementwise(op, (DType.BOOL, DType.I64), 2) for op in (ops.And, ops.Or, ops.Xor)},
    "not": elementwise(ops.Not, (DType.BOOL, DType.I64), 1) | elementwise(ops.Not, (DType.U8,), 1, 0, 9),
    "clamp": elementwise(ops.Clamp, NUMBERS, 3),
    "divide": nonzero_divisor(ops.Divide()),
    "remainder": nonzero_divisor(ops.Remainder()),
    "power": power(),
    "compare": comparison(),
    "select": selection(),
    "convert": conversion(),
    "iota": iota(),
    "constant": constant(),
    "broadcast_in_dim": broadcast(),
    "reshape": reshape(),
    "transpose": transpose(),
    "slice": strided_slice(),
    "pad": pad(),
    "concatenate": concatenate(),
    "reverse": reverse(),
    "dot_general": dot_general(),
    "reduce": reduce(),
    "reduce_window": reduce_window(),
    "gather": gather(),
    "scatter": scatter(),
    "dynamic_slice": dynamic(update=False),
    "dynamic_update_slice": dynamic(update=True),
    "sort": sort(),
    "top_k": top_k(),
    "convolution": convolution(),
}
"""A strategy for every operator that one rank computes on its own."""
