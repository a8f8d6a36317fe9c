"""Integer and boolean tensors whose elements are affine in their index: positions, diagonals, causal masks.

``Affine(constant, coefficients)`` says that element ``i`` is ``constant + sum(coefficients[d] * i[d])``. Masks and
position tables of transformers are made of these, so they reduce to comparisons of index ramps and never have to be
stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import add as plus
from operator import sub as minus

from rewright import ops
from rewright.ir.dims import Shape, is_nonnegative
from rewright.ir.operator import Operator
from rewright.ir.types import DType, TensorType
from rewright.ops.base import integer_limits
from rewright.ops.reference.groups import merged_axes


@dataclass(frozen=True, slots=True)
class Affine:
    """Element ``i`` is ``constant + sum(coefficients[d] * i[d])``; axes of size one have coefficient zero."""

    constant: int
    coefficients: tuple[int, ...]

    @property
    def is_uniform(self) -> bool:
        """Whether all elements are equal."""
        return not any(self.coefficients)


def of_node(
    op: Operator, operands: Sequence[Affine | None], types: Sequence[TensorType], result: TensorType
) -> Affine | None:
    """The affine form of a node from those of its operands, or None where it has none or its integers overflow."""
    if result.dtype.is_float:
        return None
    form = _exact(op, operands, types, result)
    return form if form is not None and _fits(form, result) else None


def _fits(form: Affine, kind: TensorType) -> bool:
    """Whether no element leaves the range of the dtype; a symbolic axis is taken to be shorter than 2^31."""
    if kind.dtype is DType.BOOL:
        return True
    sizes = [size if isinstance(size, int) else 2**31 for size in kind.shape]
    reach = [c * max(size - 1, 0) for c, size in zip(form.coefficients, sizes, strict=True)]
    low, high = integer_limits(kind.dtype)
    return (
        low <= form.constant + sum(min(r, 0) for r in reach) and form.constant + sum(max(r, 0) for r in reach) <= high
    )


def _exact(
    op: Operator, operands: Sequence[Affine | None], types: Sequence[TensorType], result: TensorType
) -> Affine | None:
    if isinstance(op, ops.Constant):
        value = ops.splat(op)
        return None if value is None else Affine(int(value), (0,) * result.rank)
    if isinstance(op, ops.Iota):
        return _clean(0, [int(axis == op.dimension) for axis in range(result.rank)], result.shape)
    known = [form for form in operands if form is not None]
    if not known or len(known) != len(operands):
        return None
    if isinstance(op, (ops.Add, ops.Subtract, ops.Multiply, ops.Negate, ops.Not, ops.And, ops.Or, ops.Compare)):
        return _arithmetic(op, known, types[0])
    if isinstance(op, ops.Convert):
        return known[0] if result.dtype is not DType.BOOL else None
    return _movement(op, known, types, result)


def _arithmetic(op: Operator, known: Sequence[Affine], kind: TensorType) -> Affine | None:
    first, last = known[0], known[-1]
    if kind.dtype is DType.BOOL:
        return _logic(op, first, last)
    if isinstance(op, ops.Add):
        return _combine(plus, first, last)
    if isinstance(op, ops.Subtract):
        return _combine(minus, first, last)
    if isinstance(op, ops.Negate):
        return Affine(-first.constant, tuple(-c for c in first.coefficients))
    if isinstance(op, ops.Multiply) and (first.is_uniform or last.is_uniform):
        scale, other = (first.constant, last) if first.is_uniform else (last.constant, first)
        return Affine(scale * other.constant, tuple(scale * c for c in other.coefficients))
    if isinstance(op, ops.Compare):
        return _compare(op.direction, _combine(minus, first, last))
    return None


def _logic(op: Operator, first: Affine, last: Affine) -> Affine | None:
    if isinstance(op, ops.Not):
        return Affine(1 - first.constant, first.coefficients)
    if isinstance(op, ops.And):
        return Affine(first.constant & last.constant, first.coefficients)
    if isinstance(op, ops.Or):
        return Affine(first.constant | last.constant, first.coefficients)
    return _compare(op.direction, _combine(minus, first, last)) if isinstance(op, ops.Compare) else None


def _combine(function: Callable[[int, int], int], first: Affine, last: Affine) -> Affine:
    pairs = zip(first.coefficients, last.coefficients, strict=True)
    return Affine(function(first.constant, last.constant), tuple(function(a, b) for a, b in pairs))


def combine(first: Affine, last: Affine, sign: int, less: int) -> Affine:
    """The difference of two forms times a sign, less a number."""
    found = _combine(minus, first, last)
    return Affine(sign * found.constant - less, tuple(sign * c for c in found.coefficients))


def _compare(direction: str, difference: Affine) -> Affine | None:
    holds = _decided(direction, difference, ()) if difference.is_uniform else None
    return None if holds is None else Affine(int(holds), difference.coefficients)


def decided(op: ops.Compare, first: Affine, last: Affine, shape: Shape) -> bool | None:
    """Whether a comparison holds of all elements, or of none; None where it depends on which."""
    return _decided(op.direction, _combine(minus, first, last), shape)


def _decided(direction: str, difference: Affine, shape: Shape) -> bool | None:
    reach = _reach(difference, shape)
    if reach is None:
        return None
    low, high = reach
    sure = {"EQ": low == high == 0, "NE": low > 0 or high < 0, "LT": high < 0, "LE": high <= 0, "GT": low > 0}
    never = {"EQ": low > 0 or high < 0, "NE": low == high == 0, "LT": low >= 0, "LE": low > 0, "GT": high <= 0}
    holds, fails = sure.get(direction, low >= 0), never.get(direction, high < 0)
    return True if holds else False if fails else None


def _reach(form: Affine, shape: Shape) -> tuple[int, int] | None:
    """The least and the largest element; None where sizes are symbols, or there is no element."""
    if form.is_uniform:
        return form.constant, form.constant
    sizes = [size for size in shape if isinstance(size, int) and size > 0]
    if len(sizes) != len(form.coefficients):
        return None
    ends = [c * (size - 1) for c, size in zip(form.coefficients, sizes, strict=True)]
    return form.constant + sum(min(end, 0) for end in ends), form.constant + sum(max(end, 0) for end in ends)


def _movement(op: Operator, known: Sequence[Affine], types: Sequence[TensorType], result: TensorType) -> Affine | None:
    form = known[0]
    if isinstance(op, ops.BroadcastInDim):
        spread = [0] * result.rank
        for axis, coefficient in zip(op.dimensions, form.coefficients, strict=True):
            spread[axis] = coefficient
        return Affine(form.constant, tuple(spread))
    if isinstance(op, ops.Reshape):
        return reshaped(form, types[0].shape, result.shape)
    if isinstance(op, ops.Transpose):
        return Affine(form.constant, tuple(form.coefficients[axis] for axis in op.permutation))
    if isinstance(op, ops.Slice):
        return _slice(op, form, result.shape)
    if isinstance(op, ops.Pad):
        return _crop(op, form, result.shape)
    if isinstance(op, ops.Concatenate):
        return _join(op.dimension, known, types, result.shape)
    if isinstance(op, ops.ReduceWindow) and op.kind == "sum":
        return _prefix_sum(op, form, types[0].shape)
    return None


def _prefix_sum(op: ops.ReduceWindow, form: Affine, shape: Shape) -> Affine | None:
    if not op.is_cumulative(shape) or not form.is_uniform:
        return None
    axis = next(a for a, size in enumerate(op.window) if size != 1)
    return _clean(form.constant, [form.constant * int(a == axis) for a in range(len(shape))], shape)


def reshaped(form: Affine, source: Shape, target: Shape) -> Affine | None:
    """The form of the same elements in another shape; None where it has none."""
    if form.is_uniform:
        return Affine(form.constant, (0,) * len(target))
    groups = merged_axes(source, target)
    if groups is None:
        return _with_ones(form, source, target)
    merged: list[int] = []
    for group in groups:
        wide = [axis for axis in group if source[axis] != 1]
        for outer, inner in pairwise(wide):
            if form.coefficients[outer] != form.coefficients[inner] * source[inner]:
                return None
        merged.append(form.coefficients[wide[-1]] if wide else 0)
    return Affine(form.constant, tuple(merged))


def _with_ones(form: Affine, source: Shape, target: Shape) -> Affine | None:
    wide = [(size, c) for size, c in zip(source, form.coefficients, strict=True) if size != 1]
    if [size for size, _ in wide] != [size for size in target if size != 1]:
        return None
    left = iter(c for _, c in wide)
    return Affine(form.constant, tuple(0 if size == 1 else next(left) for size in target))


def _crop(op: ops.Pad, form: Affine, shape: Shape) -> Affine | None:
    """What is left where nothing is filled in."""
    crops = not any((*op.low, *op.interior)) and all(is_nonnegative(-high) for high in op.high)
    return _clean(form.constant, form.coefficients, shape) if crops else None


def _slice(op: ops.Slice, form: Affine, shape: Shape) -> Affine | None:
    constant = form.constant
    for start, coefficient in zip(op.start, form.coefficients, strict=True):
        if coefficient and not isinstance(start, int):
            return None
        constant += coefficient * start if isinstance(start, int) else 0
    return _clean(constant, [c * s for c, s in zip(form.coefficients, op.stride, strict=True)], shape)


def _join(axis: int, known: Sequence[Affine], types: Sequence[TensorType], shape: Shape) -> Affine | None:
    offsets: list[int] = [0]
    for kind in types[:-1]:
        size = kind.shape[axis]
        if not isinstance(size, int):
            return None
        offsets.append(offsets[-1] + size)
    step = _step_along(axis, known, types, offsets)
    for form, kind, offset in zip(known, types, offsets, strict=True):
        others = form.coefficients[:axis] + form.coefficients[axis + 1 :]
        own = form.coefficients[axis]
        if others != known[0].coefficients[:axis] + known[0].coefficients[axis + 1 :]:
            return None
        if (kind.shape[axis] != 1 and own != step) or form.constant != known[0].constant + step * offset:
            return None
    coefficients = list(known[0].coefficients)
    coefficients[axis] = step
    return _clean(known[0].constant, coefficients, shape)


def _step_along(axis: int, known: Sequence[Affine], types: Sequence[TensorType], offsets: Sequence[int]) -> int:
    for form, kind in zip(known, types, strict=True):
        if kind.shape[axis] != 1:
            return form.coefficients[axis]
    return known[1].constant - known[0].constant if len(known) > 1 else 0


def _clean(constant: int, coefficients: Sequence[int], shape: Shape) -> Affine:
    return Affine(constant, tuple(0 if size == 1 else c for c, size in zip(coefficients, shape, strict=True)))
