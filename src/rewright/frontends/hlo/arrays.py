"""HLO instructions on arrays: elementwise, layout, products, reductions, indexing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from rewright import ops
from rewright.frontends.hlo import bits
from rewright.frontends.hlo.attributes import Window
from rewright.frontends.hlo.bounds import clamp, clamp_starts, drop_outside_blocks, gather_or_nan
from rewright.frontends.hlo.context import Context, registering
from rewright.frontends.hlo.layouts import major_first
from rewright.frontends.hlo.module import Instruction
from rewright.frontends.hlo.operators import DIRECT, ELEMENTWISE, contraction
from rewright.frontends.hlo.reductions import FOLDS, reduction
from rewright.frontends.hlo.shapes import Shape as ModuleShape
from rewright.ir.dims import Shape
from rewright.ir.errors import RewrightError, UnsupportedOperator
from rewright.ir.operator import Operator
from rewright.ir.types import DType
from rewright.ops.base import ReductionKind, identity_value, integer_limits, wrap_integer
from rewright.ops.functions.record import Direction
from rewright.ops.reference import building as rb
from rewright.ops.scatter import ScatterKind

Function = Callable[[Context, Instruction, Sequence[int]], int]
TABLE: dict[str, Function] = {}
"""By opcode, the lowering of instructions with one array as result."""
_register = registering(TABLE)
_RANDOM = "rng rng-bit-generator rng-get-and-update-state fft triangular-solve cholesky"
REFUSED: dict[str, str] = {
    **dict.fromkeys(
        ("popcnt", "count-leading-zeros"), "the IR has no such function of numbers; rewrite it with others"
    ),
    **dict.fromkeys(("complex", "real", "imag"), "complex numbers are not supported; compute with their parts"),
    **dict.fromkeys(
        _RANDOM.split(), "it has no meaning over the reals, or none that is written out; compute it outside"
    ),
}
"""By opcode, what to say of instructions that have no lowering."""

_ON_BOOLEANS = {"add": "or", "multiply": "and", "maximum": "or", "minimum": "and"}


@_register(*DIRECT)
def _direct(c: Context, i: Instruction, operands: Sequence[int]) -> int:
    return c.b.add(DIRECT[i.opcode](i), *operands)


@_register(*ELEMENTWISE)
def _elementwise(c: Context, i: Instruction, operands: Sequence[int]) -> int:
    name = i.opcode
    if operands and c.b.type(operands[0]).dtype is DType.BOOL:
        name = _ON_BOOLEANS.get(name, name)
    if name == "select" and c.b.type(operands[0]).rank == 0:
        operands = [rb.broadcast(c.b, operands[0], c.b.type(operands[1]).shape), *operands[1:]]
    if name == "select":
        return _select(c, operands)
    dtype = c.b.type(operands[0]).dtype if operands else DType.BOOL
    if name == "not" and dtype.is_unsigned:
        return rb.subtract(c.b, rb.splat_like(c.b, integer_limits(dtype)[1], operands[0]), operands[0])
    if name in ("add", "subtract", "multiply") and dtype is DType.U32 and c.wraps:
        return bits.wrapping(c, ELEMENTWISE[name], operands)
    return c.b.add(ELEMENTWISE[name], *operands)


def _select(c: Context, operands: Sequence[int]) -> int:
    """A choice; a gather that is not a number where it is out of range is the gather, which is not defined there."""
    found = gather_or_nan(c, *operands)
    return c.b.add(ops.Select(), *operands) if found is None else found


@_register("cbrt")
def _cube_root(c: Context, i: Instruction, operands: Sequence[int]) -> int:
    (x,) = operands
    root = c.b.add(ops.Power(), c.b.add(ops.Abs(), x), rb.splat_like(c.b, 1 / 3, x))
    return rb.multiply(c.b, c.b.add(ops.Sign(), x), root)


@_register("tan")
def _tangent(c: Context, i: Instruction, operands: Sequence[int]) -> int:
    return rb.divide(c.b, c.b.add(ops.Sine(), *operands), c.b.add(ops.Cosine(), *operands))


@_register("round-nearest-afz")
def _round_half_up(c: Context, i: Instruction, operands: Sequence[int]) -> int:
    (x,) = operands
    return rb.multiply(c.b, c.b.add(ops.Sign(), x), c.b.add(ops.Floor(), rb.shift_by(c.b, c.b.add(ops.Abs(), x), 0.5)))


@_register("reduce-precision")
def _round(c: Context, i: Instruction, operands: Sequence[int]) -> int:
    """Nothing for a format that holds every number of the dtype; rounding to another one has no operator."""
    exponent, mantissa = _FORMATS[c.b.type(operands[0]).dtype]
    if i.integer("exponent_bits") >= exponent and i.integer("mantissa_bits", 0) >= mantissa:
        return operands[0]
    raise UnsupportedOperator("rounding to fewer digits has no meaning over the reals; cast to a float type instead")


_FORMATS = {DType.F64: (11, 52), DType.F32: (8, 23), DType.F16: (5, 10), DType.BF16: (8, 7)}
"""Bits of exponent and mantissa."""


@_register("copy", "optimization-barrier", "copy-start", "copy-done", "domain")
def _identity(c: Context, i: Instruction, operands: Sequence[int]) -> int:
    return operands[0]


@_register("clamp")
def _clamp(c: Context, i: Instruction, operands: Sequence[int]) -> int:
    kind = c.b.type(operands[1])
    low, x, high = (rb.broadcast(c.b, operand, kind.shape) for operand in operands)
    if kind.dtype.is_integer:
        return clamp(c, low, x, high)
    return c.b.add(ops.Clamp(), low, x, high)


@_register("compare")
def _compare(c: Context, i: Instruction, operands: Sequence[int]) -> int:
    directions: dict[str, Direction] = {"EQ": "EQ", "NE": "NE", "LT": "LT", "LE": "LE", "GT": "GT", "GE": "GE"}
    direction = directions.get(i.word("direction"))
    if direction is None:
        raise RewrightError(f"direction {i.word('direction')!r:.20} is none of {', '.join(directions)}")
    return rb.compare(c.b, direction, *operands)


@_register("convert")
def _convert(c: Context, i: Instruction, operands: Sequence[int]) -> int:
    dtype = c.type(i).dtype
    if dtype.is_integer and c.b.type(operands[0]).dtype.is_float:
        return bits.saturate_cast(c, operands[0], dtype)
    return rb.convert(c.b, operands[0], dtype)


@_register("reshape")
def _reshape(c: Context, i: Instruction, operands: Sequence[int]) -> int:
    kind = c.type(i)
    return rb.reshape(c.b, _without_places(c, operands[0], kind.shape), kind.shape)


def bitcast(c: Context, i: Instruction, source: ModuleShape, operand: int) -> int:
    """The elements as they lie in memory, read by another layout: transposed, reshaped, and transposed again."""
    kind = c.type(i)
    if kind.dtype is not c.b.type(operand).dtype:
        raise UnsupportedOperator("reading the bits of a tensor as another dtype has no meaning over the reals")
    last = major_first(i.shape.sizes, i.shape.layout)
    lying = rb.transpose(c.b, operand, major_first(source.sizes, source.layout))
    shape = tuple(kind.shape[axis] for axis in last)
    found = rb.reshape(c.b, _without_places(c, lying, shape), shape)
    return rb.transpose(c.b, found, [last.index(axis) for axis in range(len(last))])


def _without_places(c: Context, x: int, shape: Shape) -> int:
    """The operand without axes on which it is one place of a longer axis, where the reshape drops them.

    It is a sum and not a reshape, so that the place of an element is told from a share of size one of another axis.
    """
    node = c.b.node(x)
    if not isinstance(node.op, ops.Slice):
        return x
    whole = c.b.type(node.operands[0]).shape
    places = [axis for axis, size in enumerate(node.type.shape) if size == 1 and whole[axis] != 1]
    kept = [size for axis, size in enumerate(node.type.shape) if axis not in places]
    if [size for size in kept if size != 1] != [size for size in shape if size != 1] or len(kept) != len(shape):
        return x
    return rb.reduce(c.b, "sum", x, places) if places and node.type.dtype is not DType.BOOL else x


@_register("transpose")
def _transpose(c: Context, i: Instruction, operands: Sequence[int]) -> int:
    return rb.transpose(c.b, operands[0], i.integers("dimensions"))


@_register("concatenate")
def _concatenate(c: Context, i: Instruction, operands: Sequence[int]) -> int:
    (axis,) = i.integers("dimensions")
    return rb.concatenate(c.b, operands, axis)


@_register("constant")
def _constant(c: Context, i: Instruction, operands: Sequence[int]) -> int:
    kind = c.type(i)
    given = i.literal
    if given is None and kind.size() != 0:
        return c.unknowns.make("constant", i.name, kind)
    values: tuple[float, ...] = given if given and kind.size() != 0 else (0,)
    if len(values) not in (1, kind.size()):
        raise RewrightError(f"{len(values)} values for a constant of {kind}; print the module again")
    cast = tuple(_as_held(value, kind.dtype) for value in values)
    return c.b.add(ops.Constant(kind, cast[:1] if len(set(cast)) == 1 else cast))


def _as_held(value: float, dtype: DType) -> float | int | bool:
    if dtype.is_integer:
        return wrap_integer(dtype, int(value))
    return math.nan if value != value else rb.cast(value, dtype)  # one object, which equals itself


@_register("dot")
def _dot(c: Context, i: Instruction, operands: Sequence[int]) -> int:
    op = contraction(i)
    dtype = c.type(i).dtype
    types = [c.b.type(operand).dtype for operand in operands]
    is_plain = types[0] is types[1] and dtype.is_float
    wide = types[0] if is_plain else dtype  # integers wrap around in the dtype of the result
    return rb.convert(c.b, c.b.add(op, *(rb.convert(c.b, operand, wide) for operand in operands)), dtype)


@_register("reduce")
def _reduce(c: Context, i: Instruction, operands: Sequence[int]) -> int:
    kind = reduction(c.module, i)
    axes = i.integers("dimensions")
    source = c.b.type(operands[0])
    if kind in ("and", "or") and all(source.shape[axis] == 1 for axis in axes):
        result = rb.reshape(c.b, operands[0], [n for axis, n in enumerate(source.shape) if axis not in axes])
    else:
        result = rb.reduce(c.b, kind, operands[0], axes)
    return _with_start(c, kind, result, operands[1])


def _with_start(c: Context, kind: ReductionKind, result: int, start: int) -> int:
    """A reduction that starts with a value other than the identity."""
    value = c.b.uniform(start)
    dtype = c.b.type(start).dtype
    if value is not None and _is_identity(kind, value, dtype):
        return result
    folding: dict[str, Operator] = {kind_: ELEMENTWISE[name] for name, kind_ in FOLDS.items()}
    return rb.binary(c.b, folding[kind], result, rb.broadcast(c.b, start, c.b.type(result).shape))


def _is_identity(kind: ReductionKind, value: float, dtype: DType) -> bool:
    if kind in ("maximum", "minimum"):
        lowest = {DType.F16: -65504.0, DType.BF16: -3.3895313892515355e38, DType.F32: -3.4028234663852886e38}
        sign = 1 if kind == "maximum" else -1
        if dtype.is_float:
            return sign * value == float("-inf") or sign * value == lowest.get(dtype)
        return dtype.is_integer and value == integer_limits(dtype)[0 if sign == 1 else 1]
    return value == identity_value(kind, dtype)


@_register("reduce-window")
def _reduce_window(c: Context, i: Instruction, operands: Sequence[int]) -> int:
    window: Sequence[Window] = i.attribute("window") or ()
    kind = reduction(c.module, i)
    if len(operands) != 2 or any(w.lhs_dilate != 1 or w.rhs_dilate != 1 for w in window):
        raise UnsupportedOperator("a window reduction with dilation or of several arrays; write it with slices")
    start = c.b.uniform(operands[1])
    if start is None or not _is_identity(kind, start, c.b.type(operands[1]).dtype):
        raise UnsupportedOperator("a window reduction that starts with another value than the identity")
    sizes, strides = tuple(w.size for w in window), tuple(w.stride for w in window)
    return c.b.add(ops.ReduceWindow(kind, sizes, strides, tuple((w.low, w.high) for w in window)), operands[0])


@_register("gather")
def _gather(c: Context, i: Instruction, operands: Sequence[int]) -> int:
    op = ops.Gather(
        i.integers("offset_dims"),
        i.integers("collapsed_slice_dims"),
        i.integers("operand_batching_dims"),
        i.integers("start_indices_batching_dims"),
        i.integers("start_index_map"),
        i.integer("index_vector_dim", 0),
        i.integers("slice_sizes"),
    )
    x, indices = operands
    found = c.b.add(op, x, clamp_starts(c, op, c.b.type(x).shape, indices))
    c.unmoved[found] = indices
    return found


@_register("scatter")
def _scatter(c: Context, i: Instruction, operands: Sequence[int]) -> int:
    if len(operands) != 3:
        raise UnsupportedOperator("a scatter into several arrays at once; scatter into them one by one")
    op = ops.Scatter(
        _scatter_kind(c, i),
        i.integers("update_window_dims"),
        i.integers("inserted_window_dims"),
        i.integers("input_batching_dims"),
        i.integers("scatter_indices_batching_dims"),
        i.integers("scatter_dims_to_operand_dims"),
        i.integer("scatter_index_vector_dim", 0),
    )
    x, indices, updates = operands
    return c.b.add(op, x, *drop_outside_blocks(c, op, c.b.type(x).shape, indices, updates))


def _scatter_kind(c: Context, i: Instruction) -> ScatterKind:
    computation = c.module.callee(i)
    if computation.root == computation.parameters()[-1].name:
        return "replace"
    kinds: dict[str, ScatterKind] = {"sum": "sum", "product": "product", "maximum": "maximum", "minimum": "minimum"}
    kind = kinds.get(reduction(c.module, i))
    if kind is None:
        raise UnsupportedOperator("a scatter that folds with and, or; convert to integers")
    return kind


@_register("dynamic-slice")
def _dynamic_slice(c: Context, i: Instruction, operands: Sequence[int]) -> int:
    sizes = i.integers("dynamic_slice_sizes")
    starts = _places(c, operands[0], sizes, operands[1:])
    if starts is None:
        return c.b.add(ops.DynamicSlice(sizes), *operands)
    result = operands[0]
    for axis, (low, size) in enumerate(zip(starts, sizes, strict=True)):
        result = rb.slice_axis(c.b, result, axis, low, low + size)
    return result


@_register("dynamic-update-slice")
def _dynamic_update_slice(c: Context, i: Instruction, operands: Sequence[int]) -> int:
    sizes = [int(str(size)) for size in c.b.type(operands[1]).shape]
    starts = _places(c, operands[0], sizes, operands[2:])
    if starts is None:
        return c.b.add(ops.DynamicUpdateSlice(), *operands)
    return _replace(c, operands[0], operands[1], list(zip(starts, sizes, strict=True)), 0)


def _places(c: Context, x: int, sizes: Sequence[int], operands: Sequence[int]) -> list[int] | None:
    """Where a block starts on every axis, moved inside as HLO does; None where that depends on data."""
    shape = c.b.type(x).shape
    starts = [c.b.uniform(operand) for operand in operands]
    if len(starts) != len(sizes) or len(sizes) != len(shape) or any(start is None for start in starts):
        return None
    return [
        min(max(int(start or 0), 0), max(int(str(whole)) - size, 0))
        for start, size, whole in zip(starts, sizes, shape, strict=True)
    ]


def _replace(c: Context, x: int, update: int, blocks: Sequence[tuple[int, int]], axis: int) -> int:
    """The operand with a block of it replaced: what stands before, the block, and what stands after, axis by axis."""
    if axis == len(blocks):
        return update
    start, size = blocks[axis]
    whole = int(str(c.b.type(x).shape[axis]))
    inner = _replace(c, rb.slice_axis(c.b, x, axis, start, start + size), update, blocks, axis + 1)
    before = [rb.slice_axis(c.b, x, axis, 0, start)] if start else []
    after = [rb.slice_axis(c.b, x, axis, start + size, whole)] if start + size < whole else []
    return rb.concatenate(c.b, [*before, inner, *after], axis)


@_register("convolution")
def _convolution(c: Context, i: Instruction, operands: Sequence[int]) -> int:
    window: Sequence[Window] = i.attribute("window") or ()
    labels: Any = i.attribute("dim_labels") or ()
    if i.integer("batch_group_count", 1) != 1 or len(labels) != 3 or any(w.rhs_reversal for w in window):
        raise UnsupportedOperator("a convolution with batch groups or a reversed window; write it with products")
    data, kernel = (rb.transpose(c.b, operand, axes) for operand, axes in zip(operands, labels, strict=False))
    left, right = tuple(w.lhs_dilate for w in window), tuple(w.rhs_dilate for w in window)
    padding = tuple((w.low, w.high) for w in window)
    strides = tuple(w.stride for w in window)
    op = ops.Convolution(strides, padding, left, right, i.integer("feature_group_count", 1))
    found = c.b.add(op, data, kernel)
    back = sorted(range(len(labels[2])), key=lambda axis: labels[2][axis])
    return rb.convert(c.b, rb.transpose(c.b, found, back), c.type(i).dtype)
