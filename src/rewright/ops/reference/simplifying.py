"""A graph builder that drops identities, composes layout operators and folds index arithmetic as it goes.

Everything it does holds for all inputs and sizes: a reshape of a reshape is one reshape; a matrix product of
flattened operands is one of the operands as they were; a comparison of two equal ramps is a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from rewright import ops
from rewright.ir.dims import Dim, Shape, is_nonnegative
from rewright.ir.errors import TypeMismatch
from rewright.ir.graph import GraphBuilder
from rewright.ir.operator import Operator
from rewright.ir.types import DType, SourceSpan, TensorType
from rewright.ops.base import Array, TensorOperator, array_dtype, integer_limits
from rewright.ops.facts import Facts, in_dtype, of_dtype
from rewright.ops.reference import affine, collectives, cropping, filled_folds, products
from rewright.ops.reference import building as rb
from rewright.ops.reference.affine import Affine
from rewright.ops.reference.groups import merged_axes

MOST_ELEMENTS = 65_536
MOST_OF_TABLE = 32
"""Tables of more elements that are computed stay what they are computed from, which proofs understand better."""


class SimplifyingBuilder(GraphBuilder):
    """A GraphBuilder whose ``add`` may return an earlier or an equal node instead of a new one."""

    def __init__(self, name: str = "graph", *, computes_tables: bool = False) -> None:
        """``computes_tables``: what is computed of tables of integers, and of what is known, is a table again."""
        super().__init__(name)
        self._computes_tables = computes_tables
        self._forms: dict[int, Affine] = {}
        self._shared: dict[tuple[Operator, tuple[int, ...]], int] = {}
        self.values: dict[int, Array | None] = {}
        """Integers and booleans that were asked for, by node; None where they are not known."""
        self._tables: set[int] = set()
        """Tables of integers, and views of these."""
        self.cropped: dict[cropping.Seen, int] = {}
        """What was cropped in front of what is computed."""
        self.superseded: set[int] = set()
        """Collectives that another one along another axis replaces."""

    def affine(self, position: int) -> Affine | None:
        """The affine form of an integer or boolean node, where it has one."""
        return self._forms.get(position)

    def known(self, position: int) -> Array | None:
        """The value of an integer or boolean node that is made of constants alone, if it is small."""
        if position not in self.values:
            self.values[position] = self._value(position)
        return self.values[position]

    def _value(self, position: int) -> Array | None:
        node = self.node(position)
        if not is_small_integer(node.type):
            return None
        if isinstance(node.op, (ops.Constant, ops.Iota)):
            return node.op.execute([], np.float64)
        return self.computed(node.op, node.operands)

    def computed(self, op: Operator, operands: Sequence[int]) -> Array | None:
        """What an operator gives on operands that are all known; None where one is not."""
        if not isinstance(op, TensorOperator) or isinstance(op, (ops.Collective, ops.CustomCall, ops.Input)):
            return None
        values = [self.known(operand) for operand in operands]
        given = [value for value in values if value is not None]
        return op.execute(given, np.float64) if len(given) == len(values) else None

    def add(self, op: Operator, *operands: int, span: SourceSpan | None = None) -> int:
        """Append a node, or return the position of one that is already equal to it."""
        rewrite = _REWRITES.get(type(op))
        if rewrite is not None:
            found = rewrite(self, op, operands)
            if found is not None:
                return found
        found = self._folded(op, operands)
        return self.add_plain(op, *operands, span=span) if found is None else found

    def _folded(self, op: Operator, operands: tuple[int, ...]) -> int | None:
        """A table of integers for what is computed from one, and from what is known; views of tables stay views."""
        if not self._computes_tables or not any(p in self._tables for p in operands):
            return None
        try:
            kind = op.infer([self.type(p) for p in operands])
        except TypeMismatch:
            return None  # which is said where the node is added
        if not is_small_integer(kind):
            return None
        if isinstance(op, (ops.BroadcastInDim, ops.Reshape, ops.Transpose)):
            position = self.add_plain(op, *operands)
            self._tables.add(position)
            return position
        values = self.computed(op, operands)
        if values is None or values.size > MOST_OF_TABLE:
            return None
        numbers = values.reshape(-1).tolist()
        return self.add(ops.Constant(kind, tuple(numbers[:1] if len(set(numbers)) == 1 else numbers)))

    def add_plain(self, op: Operator, *operands: int, span: SourceSpan | None = None) -> int:
        """Append a node without rewriting it; equal constants, index arithmetic and layout are still shared.

        Two calls of a collective are two, whatever they are called on: other ranks take part in each.
        """
        key = (op, operands)
        affine_operands = bool(operands) and all(p in self._forms for p in operands)
        shared = isinstance(op, _SHARED) or (affine_operands and not isinstance(op, ops.Collective))
        if shared and key in self._shared:
            return self._shared[key]
        position = super().add(op, *operands, span=span)
        if ops.is_table(op) and is_small_integer(self.type(position)):
            self._tables.add(position)
        if shared:
            self._shared[key] = position
        kind = self.type(position)
        form = affine.of_node(op, [self._forms.get(p) for p in operands], [self.type(p) for p in operands], kind)
        if form is None:
            return position
        self._forms[position] = form
        return self._canonical(position, form, kind)

    def _canonical(self, position: int, form: Affine, kind: TensorType) -> int:
        """The one way in which a ramp along one axis, or a constant, is written."""
        op = self.node(position).op
        if isinstance(op, (ops.Constant, ops.Iota)):
            return position
        if form.is_uniform:
            value = bool(form.constant) if kind.dtype is DType.BOOL else form.constant
            return self.add_plain(ops.Constant(kind, (value,)))
        moving = [axis for axis, c in enumerate(form.coefficients) if c]
        if len(moving) != 1 or isinstance(op, (ops.Add, ops.Multiply)):
            return position
        result = self.add_plain(ops.Iota(kind, moving[0]))
        scale = form.coefficients[moving[0]]
        if scale != 1:
            result = self.add_plain(ops.Multiply(), result, self.add_plain(ops.Constant(kind, (scale,))))
        if form.constant:
            result = self.add_plain(ops.Add(), result, self.add_plain(ops.Constant(kind, (form.constant,))))
        return result

    def range_of(self, position: int, depth: int = 8) -> Facts:
        """What integers of a node may be, by the operators that made them."""
        node = self.node(position)
        if not isinstance(node.op, TensorOperator) or node.op.is_met or depth == 0 or not node.type.dtype.is_integer:
            return of_dtype(node.type.dtype)
        operands = [self.range_of(p, depth - 1) for p in node.operands]
        found = node.op.facts(operands, [self.type(p) for p in node.operands], node.type)
        return in_dtype(found, node.type.dtype)

    def gathered_along(self, axis: int, parts: Sequence[int]) -> int | None:
        """A gather along another axis than ``axis``, cut into the ranks' pieces and joined, as one gather."""
        source = collectives.joined_pieces(self, parts)
        if source is None:
            return None
        gather = self.node(source.whole)
        if not isinstance(gather.op, ops.AllGather) or gather.op.dimension != source.axis or source.axis == axis:
            return None
        if len(parts) != len(gather.op.groups[0]):
            return None
        key = (replace(gather.op, dimension=axis), (source.whole,))
        if key not in self._shared:
            self._shared[key] = self.add_plain(key[0], *gather.operands)
            self.superseded.add(source.whole)
        return self._shared[key]

    def uniform(self, position: int) -> float | int | bool | None:
        """The value of a constant with equal elements, else None."""
        return ops.splat(self.node(position).op)


def is_small(kind: TensorType) -> bool:
    """Whether a tensor has so few elements that they are computed."""
    sizes = [n for n in kind.shape if isinstance(n, int)]
    return len(sizes) == kind.rank and int(np.prod(sizes, dtype=np.int64)) <= MOST_ELEMENTS


def is_small_integer(kind: TensorType) -> bool:
    """Whether a small tensor has integers or booleans."""
    return (kind.dtype.is_integer or array_dtype(kind.dtype, np.float64) == np.bool_) and is_small(kind)


_SHARED = (ops.Constant, ops.Iota, ops.Reshape, ops.Transpose, ops.Slice, ops.BroadcastInDim)
"""Operators that compute nothing: equal ones are one node wherever they stand in the program."""

Rewrite = Callable[[SimplifyingBuilder, Any, tuple[int, ...]], int | None]


def _constant(b: SimplifyingBuilder, value: float | int | bool, shape: Shape, dtype: DType) -> int:
    return b.add_plain(ops.Constant(TensorType(shape, dtype), (value,)))


def _reshape(b: SimplifyingBuilder, op: ops.Reshape, operands: tuple[int, ...]) -> int | None:
    (x,) = operands
    inner = b.node(x)
    if inner.type.shape == op.shape:
        return x
    if isinstance(inner.op, ops.Reshape) or products.inserts_ones(b, x):
        return b.add(ops.Reshape(op.shape), *inner.operands)
    value = b.uniform(x)
    if value is None:
        return cropping.filled_behind(b, inner, op.shape) if isinstance(inner.op, ops.Select) else None
    return _constant(b, value, op.shape, inner.type.dtype)


def _transpose(b: SimplifyingBuilder, op: ops.Transpose, operands: tuple[int, ...]) -> int | None:
    (x,) = operands
    if op.permutation == tuple(range(len(op.permutation))):
        return x
    inner = b.node(x)
    if isinstance(inner.op, ops.Transpose):
        composed = tuple(inner.op.permutation[axis] for axis in op.permutation)
        return b.add(ops.Transpose(composed), *inner.operands)
    value = b.uniform(x)
    shape = tuple(inner.type.shape[axis] for axis in op.permutation)
    return None if value is None else _constant(b, value, shape, inner.type.dtype)


def _broadcast(b: SimplifyingBuilder, op: ops.BroadcastInDim, operands: tuple[int, ...]) -> int | None:
    (x,) = operands
    inner = b.node(x)
    if inner.type.shape == op.shape and op.dimensions == tuple(range(len(op.shape))):
        return x
    value = b.uniform(x)
    if value is not None:
        return _constant(b, value, op.shape, inner.type.dtype)
    if isinstance(inner.op, ops.BroadcastInDim):
        composed = tuple(op.dimensions[axis] for axis in inner.op.dimensions)
        return b.add(ops.BroadcastInDim(op.shape, composed), *inner.operands)
    if isinstance(inner.op, ops.Reshape):
        kept = products.inserted_ones(b.type(inner.operands[0]).shape, inner.type.shape)
        if kept is not None:
            return b.add(ops.BroadcastInDim(op.shape, tuple(op.dimensions[axis] for axis in kept)), *inner.operands)
    return None


def _slice(b: SimplifyingBuilder, op: ops.Slice, operands: tuple[int, ...]) -> int | None:
    (x,) = operands
    inner = b.node(x)
    shape = inner.type.shape
    if all(s == 0 for s in op.start) and op.limit == shape and all(s == 1 for s in op.stride):
        return x
    if isinstance(inner.op, ops.Slice) and all(s == 1 for s in inner.op.stride):
        start = tuple(a + c for a, c in zip(inner.op.start, op.start, strict=True))
        limit = tuple(a + c for a, c in zip(inner.op.start, op.limit, strict=True))
        return b.add(ops.Slice(start, limit, op.stride), *inner.operands)
    if isinstance(inner.op, ops.Pad) and filled_folds.is_before(op, inner.op, b.type(inner.operands[0]).shape):
        return b.add(op, inner.operands[0])
    value = b.uniform(x)
    if value is not None:
        return _constant(b, value, op.infer([inner.type]).shape, inner.type.dtype)
    if isinstance(inner.op, ops.Sort) and inner.op.descending and inner.op.dimension == len(shape) - 1:
        return _first_of_sort(b, op, inner.op.result, inner.operands[0], shape)
    return _slice_of_parts(b, op, inner.operands, inner.op) if isinstance(inner.op, ops.Concatenate) else None


def _first_of_sort(
    b: SimplifyingBuilder, op: ops.Slice, result: Literal["values", "indices"], x: int, shape: tuple[Dim, ...]
) -> int | None:
    """The first elements of rows that are sorted, the largest first, are the largest ones."""
    is_first = all(s == 0 for s in op.start) and all(s == 1 for s in op.stride) and op.limit[:-1] == shape[:-1]
    return b.add(ops.TopK(op.limit[-1], result), x) if is_first else None


def _slice_of_parts(
    b: SimplifyingBuilder, op: ops.Slice, parts: tuple[int, ...], joined: ops.Concatenate
) -> int | None:
    """Only the parts that the slice reads, where it starts and ends at numbers along the joined axis."""
    axis = joined.dimension
    low, high = op.start[axis], op.limit[axis]
    if op.stride[axis] != 1 or not isinstance(low, int) or not isinstance(high, int) or low == high:
        return None
    kept: list[int] = []
    first, offset = 0, 0
    for part in parts:
        size = b.type(part).shape[axis]
        if not isinstance(size, int):
            return None
        if offset < high and offset + size > low:
            first = offset if not kept else first
            kept.append(part)
        offset += size
    if len(kept) == len(parts):
        return None
    inner = kept[0] if len(kept) == 1 else b.add(ops.Concatenate(axis), *kept)
    start, limit = list(op.start), list(op.limit)
    start[axis], limit[axis] = low - first, high - first
    return b.add(ops.Slice(tuple(start), tuple(limit), op.stride), inner)


def _concatenate(b: SimplifyingBuilder, op: ops.Concatenate, operands: tuple[int, ...]) -> int | None:
    flat: list[int] = []
    for part in operands:
        inner = b.node(part)
        same = isinstance(inner.op, ops.Concatenate) and inner.op.dimension == op.dimension
        flat.extend(inner.operands if same else (part,))
    kept = [p for p in flat if b.type(p).shape[op.dimension] != 0] or flat[:1]
    gathered = b.gathered_along(op.dimension, kept)
    if gathered is not None:
        return gathered
    merged = _merge_slices(b, op.dimension, kept)
    if len(merged) == 1:
        return merged[0]
    return b.add_plain(op, *merged) if tuple(merged) != operands else None


def _merge_slices(b: SimplifyingBuilder, axis: int, parts: list[int]) -> list[int]:
    """Neighbours that are consecutive slices of one tensor become one slice."""
    merged: list[int] = []
    for part in parts:
        last = b.node(merged[-1]) if merged else None
        this = b.node(part)
        if last is not None and isinstance(last.op, ops.Slice) and isinstance(this.op, ops.Slice):
            one, two = last.op, this.op
            aligned = all(
                (one.start[d], one.limit[d]) == (two.start[d], two.limit[d]) or d == axis for d in range(len(one.start))
            )
            plain = all(s == 1 for s in (*one.stride, *two.stride))
            if last.operands == this.operands and aligned and plain and one.limit[axis] == two.start[axis]:
                limit = (*one.limit[:axis], two.limit[axis], *one.limit[axis + 1 :])
                merged[-1] = b.add(ops.Slice(one.start, limit, one.stride), *this.operands)
                continue
        merged.append(part)
    return merged


def _convert(b: SimplifyingBuilder, op: ops.Convert, operands: tuple[int, ...]) -> int | None:
    (x,) = operands
    kind = b.type(x)
    if kind.dtype is op.dtype:
        return x
    value = b.uniform(x)
    if value is None or (kind.dtype.is_float and not op.dtype.is_float):
        return None
    if op.dtype.is_integer and not integer_limits(op.dtype)[0] <= value <= integer_limits(op.dtype)[1]:
        return None
    return _constant(b, rb.cast(value, op.dtype), kind.shape, op.dtype)


def _select(b: SimplifyingBuilder, op: ops.Select, operands: tuple[int, ...]) -> int | None:
    condition, on_true, on_false = operands
    value = b.uniform(condition)
    if value is None:
        return on_true if on_true == on_false else None
    return on_true if value else on_false


def _and(b: SimplifyingBuilder, op: ops.And, operands: tuple[int, ...]) -> int | None:
    return _logical(b, operands, neutral=True)


def _or(b: SimplifyingBuilder, op: ops.Or, operands: tuple[int, ...]) -> int | None:
    return _logical(b, operands, neutral=False)


def _logical(b: SimplifyingBuilder, operands: tuple[int, ...], neutral: bool) -> int | None:
    x, y = operands
    if b.type(x).dtype is not DType.BOOL:
        return None
    for this, other in ((x, y), (y, x)):
        value = b.uniform(this)
        if value is not None:
            return other if value == neutral else this
    return x if x == y else None


def _neutral(index: int, value: int) -> Rewrite:
    """Operators that leave the operand ``1 - index`` as it is when the other is a constant ``value``."""

    def rewrite(b: SimplifyingBuilder, op: Operator, operands: tuple[int, ...]) -> int | None:
        for place in (index,) if index == 1 else (0, 1):
            if b.uniform(operands[place]) == value:
                return operands[1 - place]
        return None

    return rewrite


def _reduce(b: SimplifyingBuilder, op: ops.Reduce, operands: tuple[int, ...]) -> int | None:
    """Nothing for no axes; a reduction of flattened axes is one of the axes as they were."""
    if not op.dimensions:
        return operands[0]
    found = filled_folds.unfilled(b, op, operands[0])
    if found is not None:
        return found
    node = b.node(operands[0])
    if not isinstance(node.op, ops.Reshape):
        return None
    groups = merged_axes(b.type(node.operands[0]).shape, node.type.shape)
    if groups is None or sum(len(group) for group in groups) <= len(groups):
        return None
    folded = tuple(sorted(axis for dimension in op.dimensions for axis in groups[dimension]))
    result = b.add(ops.Reduce(op.kind, folded), *node.operands)
    return b.add(ops.Reshape(op.infer([node.type]).shape), result)


def _sort(b: SimplifyingBuilder, op: ops.Sort, operands: tuple[int, ...]) -> int | None:
    return filled_folds.sorted_filled(b, op, operands[0]) if op.descending else None


def _top(b: SimplifyingBuilder, op: ops.TopK, operands: tuple[int, ...]) -> int | None:
    return filled_folds.top_of_filled(b, op, operands[0])


def _pad(b: SimplifyingBuilder, op: ops.Pad, operands: tuple[int, ...]) -> int | None:
    if all(size == 0 for size in (*op.low, *op.high, *op.interior)):
        return operands[0]
    inner = b.node(operands[0])
    if not isinstance(inner.op, ops.Pad):
        crops = not any((*op.low, *op.interior)) and all(is_nonnegative(-high) for high in op.high)
        value = b.uniform(operands[0]) if crops else None
        if value is not None:
            return _constant(b, value, op.infer([b.type(p) for p in operands]).shape, inner.type.dtype)
        return cropping.crop_before(b, operands[0], op.high) if crops else None
    if any((*op.low, *op.interior, *inner.op.low, *inner.op.interior)):
        return None
    crops = all(is_nonnegative(-high) and is_nonnegative(own) for high, own in zip(op.high, inner.op.high, strict=True))
    high = tuple(outer + own for outer, own in zip(op.high, inner.op.high, strict=True))
    return b.add(replace(op, high=high), *inner.operands) if crops else None


def _dot(b: SimplifyingBuilder, op: ops.DotGeneral, operands: tuple[int, ...]) -> int | None:
    plain = products.absorb(op, products.Operand.of(b, operands[0]), products.Operand.of(b, operands[1]))
    if plain is None:
        return None
    wanted: tuple[Dim, ...] = op.infer([b.type(p) for p in operands]).shape
    result = b.add_plain(*plain)
    return result if b.type(result).shape == wanted else b.add(ops.Reshape(wanted), result)


def _limit(b: SimplifyingBuilder, op: ops.Maximum | ops.Minimum, operands: tuple[int, ...]) -> int | None:
    """The one of two integers that is never on the other side of the other one."""
    if not b.type(operands[0]).dtype.is_integer:
        return None
    for one, other in (operands, operands[::-1]):
        if b.uniform(other) is not None:
            own, limit = b.range_of(one), b.range_of(other)
            less = own.top <= limit.bottom if isinstance(op, ops.Minimum) else own.bottom >= limit.top
            return one if less else None
    return None


def _compare(b: SimplifyingBuilder, op: ops.Compare, operands: tuple[int, ...]) -> int | None:
    """A constant for two constants; a truth value that was made a number, and is asked for again, is that."""
    node = b.node(operands[0])
    sides = [b.uniform(p) for p in operands]
    if None not in sides:
        value = op.execute([np.asarray(side) for side in sides], np.float64).item()
        return _constant(b, value, node.type.shape, DType.BOOL)
    if not isinstance(node.op, ops.Convert) or b.type(node.operands[0]).dtype is not DType.BOOL:
        return None
    asked = op.direction, b.uniform(operands[1])
    return node.operands[0] if asked in (("NE", 0), ("EQ", 1)) else None


def _reduce_scatter(b: SimplifyingBuilder, op: ops.ReduceScatter, operands: tuple[int, ...]) -> int | None:
    """Pieces along another axis put one after the other and scattered: a scatter along that axis."""
    joined = b.node(operands[0])
    if not isinstance(joined.op, ops.Concatenate) or joined.op.dimension != op.dimension:
        return None
    source = collectives.joined_pieces(b, joined.operands)
    if source is None or source.axis == op.dimension or len(joined.operands) != len(op.groups[0]):
        return None
    return b.add_plain(replace(op, dimension=source.axis), source.whole)


_REWRITES: dict[type[Operator], Rewrite] = {
    ops.Reshape: _reshape,
    ops.Transpose: _transpose,
    ops.BroadcastInDim: _broadcast,
    ops.Slice: _slice,
    ops.Concatenate: _concatenate,
    ops.Convert: _convert,
    ops.Select: _select,
    ops.And: _and,
    ops.Or: _or,
    ops.Add: _neutral(0, 0),
    ops.Subtract: _neutral(1, 0),
    ops.Multiply: _neutral(0, 1),
    ops.Divide: _neutral(1, 1),
    ops.Compare: _compare,
    ops.Maximum: _limit,
    ops.Minimum: _limit,
    ops.Reduce: _reduce,
    ops.Sort: _sort,
    ops.TopK: _top,
    ops.Pad: _pad,
    ops.DotGeneral: _dot,
    ops.ReduceScatter: _reduce_scatter,
}
