"""Layout operations on values: on windows as they are, on pieces part by part.

Each raises NotAView where the result is no concatenation of windows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rewright import ops
from rewright.claims.language import View
from rewright.ir.dims import Dim, Shape, divide, product
from rewright.ir.operator import Operator
from rewright.lifting.moves import views
from rewright.lifting.terms.value import NotAView, Pieces, Value, coalesce

if TYPE_CHECKING:
    from rewright.lifting.terms.algebra import Algebra


def tidy(value: Value) -> Value:
    """Neighbouring digits merged, in every piece."""
    if isinstance(value, Pieces):
        return Pieces(value.axis, value.outer, tuple(tidy(part) for part in value.parts))
    return coalesce(value)


def reshape(value: Value, shape: Shape) -> Value:
    """The same elements in row-major order under another shape."""
    if value.shape == shape:
        return value
    if isinstance(value, View):
        return views.reshape(value, shape)
    try:
        return _reshape_pieces(value, shape)
    except NotAView:
        return _reshape_rows(value, shape)


def _reshape_pieces(value: Pieces, shape: Shape) -> Value:
    """Pieces lie along the new axis that holds their stride; what stands before them on that axis is rows."""
    rows = product(value.shape[: value.axis]) * value.outer
    after = product(value.shape[value.axis + 1 :])
    lengths = _lengths(value)
    before: Dim = 1
    for axis, size in enumerate(shape):
        inner = product(shape[axis + 1 :])
        outer = divide(rows, before) if before != 0 else None
        new = [None if inner == 0 else divide(length * after, inner) for length in lengths]
        if outer is not None and all(length is not None for length in new):
            along = [length for length in new if length is not None]
            if outer * sum(along, start=0) == size:
                together = _merge(value, axis) if value.shape[:axis] == shape[:axis] else value.parts
                parts = [
                    reshape(part, (*shape[:axis], outer * length, *shape[axis + 1 :]))
                    for part, length in zip(together, along, strict=True)
                ]
                return assemble(parts, axis, outer)
        before = before * size
    raise NotAView(f"reshape of pieces to {shape}")


def _merge(value: Pieces, axis: int) -> tuple[Value, ...]:
    """The pieces with all axes from one to that of the pieces as one, so that a piece of one element stays in it."""
    parts = value.parts
    for _ in range(value.axis - axis):
        parts = tuple(merge(part, axis) if isinstance(part, View) else part for part in parts)
    return parts


def _reshape_rows(value: Pieces, shape: Shape) -> Value:
    """Row by row, where an axis of pieces is cut into equal rows, or rows are put end to end.

    Flat buffers of several tensors are like that: the row of each rank holds its pieces of all of them.
    """
    own, wanted = (tuple(size for size in sizes if size != 1) for sizes in (value.shape, shape))
    same = next((i for i, (a, b) in enumerate(zip(own, wanted, strict=False)) if a != b), None)
    if same is None:
        raise NotAView(f"reshape of pieces to {shape}")
    held, rows = own[same], wanted[same]
    if not isinstance(held, int) or not isinstance(rows, int) or not 1 < min(held, rows) <= _MOST_ROWS:
        raise NotAView(f"reshape of pieces to {shape}")
    if held % rows and rows % held:
        raise NotAView(f"reshape of pieces to {shape} cuts rows of {held}")
    count, step = min(held, rows), max(held // rows, 1)
    target = (*wanted[:same], rows // count, *wanted[same + 1 :])
    plain = reshape(value, own)
    parts = [reshape(slice_axis(plain, same, row * step, (row + 1) * step), target) for row in range(count)]
    return reshape(concatenate(parts, same), shape)


_MOST_ROWS = 512


def _lengths(value: Pieces) -> list[Dim]:
    """How long the pieces are along a row."""
    found = [divide(part.shape[value.axis], value.outer) for part in value.parts]
    if any(length is None for length in found):
        raise NotAView("rows of unequal pieces")
    return [length for length in found if length is not None]


def lengthwise(value: Pieces) -> Iterator[tuple[Value, Dim, Dim]]:
    """Every piece with its start and length along a row."""
    start: Dim = 0
    for part, length in zip(value.parts, _lengths(value), strict=True):
        yield part, start, length
        start = start + length


def transpose(value: Value, permutation: Sequence[int]) -> Value:
    """Permute the axes."""
    if isinstance(value, View):
        return views.transpose(value, permutation)
    moved = tuple(transpose(part, permutation) for part in value.parts)
    return Pieces(list(permutation).index(value.axis), value.outer, moved)


def broadcast(value: Value, shape: Shape, dimensions: Sequence[int]) -> Value:
    """StableHLO's broadcast_in_dim: operand axis k becomes result axis dimensions[k]; size one expands."""
    if isinstance(value, View):
        return views.broadcast(value, shape, dimensions)
    parts: list[Value] = []
    for part in value.parts:
        target = list(shape)
        target[dimensions[value.axis]] = part.shape[value.axis]
        parts.append(broadcast(part, tuple(target), dimensions))
    return assemble(parts, dimensions[value.axis], value.outer)


def slice_axis(value: Value, axis: int, start: Dim, limit: Dim, stride: int = 1) -> Value:
    """Elements start, start+stride, .. below limit of one axis; NotAView also where that cuts digits unevenly."""
    if start == 0 and limit == value.shape[axis] and stride == 1:
        return value
    if isinstance(value, Pieces):
        return _slice_pieces(value, axis, start, limit, stride)
    try:
        return views.slice_axis(value, axis, start, limit, stride)
    except NotAView:
        if stride != 1:
            raise
        ranges = views.cuts(value, axis, start, limit)
    return concatenate([views.slice_axis(value, axis, low, high, 1) for low, high in ranges], axis)


def _slice_pieces(value: Pieces, axis: int, start: Dim, limit: Dim, stride: int) -> Value:
    if axis != value.axis:
        cut = [slice_axis(part, axis, start, limit, stride) for part in value.parts]
        return assemble(cut, value.axis, value.outer)
    if value.outer != 1:
        return _slice_rows(value, start, limit, stride)
    if not isinstance(start, int) or not isinstance(limit, int):
        raise NotAView("slice of pieces at a symbolic position")
    parts: list[Value] = []
    offset = 0
    for part in value.parts:
        size = part.shape[axis]
        if not isinstance(size, int):
            raise NotAView("slice of pieces of symbolic size")
        first = max(start - offset, (start - offset) % stride if start < offset else start - offset)
        last = min(limit - offset, size)
        if first < last:
            parts.append(slice_axis(part, axis, first, last, stride))
        offset += size
    if not parts:
        return slice_axis(value.parts[0], axis, 0, 0)
    return concatenate(parts, axis)


def _slice_rows(value: Pieces, start: Dim, limit: Dim, stride: int) -> Value:
    """Whole rows of pieces, or a part of one row."""
    lengths = _lengths(value)
    row = sum(lengths, start=0)
    low, high = divide(start, row), divide(limit, row)
    if stride == 1 and low is not None and high is not None:
        pairs = zip(value.parts, lengths, strict=True)
        parts = [slice_axis(part, value.axis, low * length, high * length) for part, length in pairs]
        return assemble(parts, value.axis, high - low)
    if isinstance(start, int) and isinstance(limit, int) and isinstance(row, int) and row:
        number = start // row
        if start < limit and number == (limit - 1) // row:
            one = _slice_rows(value, number * row, (number + 1) * row, 1)
            return slice_axis(one, value.axis, start - number * row, limit - number * row, stride)
    raise NotAView("slice through rows of pieces")


def slice_rows(value: Value, like: Pieces, axis: int, start: Dim, limit: Dim) -> Value:
    """Elements from start up to limit of every row of an axis that has rows like those of some pieces."""
    outer = like.outer
    if not any(has_rows(part, like.axis, outer) for part in like.parts):
        return slice_axis(value, axis, start, limit)
    shape = value.shape
    length = divide(shape[axis], outer)
    if length is None:
        raise NotAView("rows of unequal length")
    if start == 0 and limit == length:
        return value
    return merge(slice_axis(split_axis(value, axis, outer, length), axis + 1, start, limit), axis)


def split_axis(value: Value, axis: int, outer: Dim, length: Dim) -> Value:
    """An axis as two, of rows and of what is in a row; rows of one element hold nothing of the axes around them."""
    shape = (*value.shape[:axis], outer, length, *value.shape[axis + 1 :])
    if length != 1 or not isinstance(value, View):
        return reshape(value, shape)
    return View((*value.dims[: axis + 1], (), *value.dims[axis + 1 :]), value.addends)


def merge(value: Value, axis: int) -> Value:
    """An axis and the next one as one axis."""
    shape = value.shape
    if isinstance(value, View):
        return tidy(
            View((*value.dims[:axis], sum(value.dims[axis : axis + 2], ()), *value.dims[axis + 2 :]), value.addends)
        )
    if value.axis == axis + 1 and value.outer == 1:
        return Pieces(axis, shape[axis], tuple(merge(part, axis) for part in value.parts))
    return reshape(value, (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))


def concatenate(parts: Sequence[Value], axis: int) -> Value:
    """Join along an axis; neighbours that continue each other become one window again."""
    flat: list[Value] = []
    for part in parts:
        for piece in _plain(part, axis):
            if piece.shape[axis] == 0 and len(parts) > 1:
                continue
            joined = _join(flat[-1], piece, axis) if flat else None
            if joined is None:
                flat.append(piece)
            else:
                flat[-1] = joined
    if not flat:
        return parts[0]
    return flat[0] if len(flat) == 1 else Pieces(axis, 1, tuple(flat))


def _plain(value: Value, axis: int) -> tuple[Value, ...]:
    """The pieces of a value along an axis, unless they lie within rows of it."""
    if isinstance(value, View) or (value.axis, value.outer) != (axis, 1):
        return (value,)
    return (value,) if any(has_rows(part, axis, 1) for part in value.parts) else value.parts


def has_rows(part: Value, axis: int, outer: Dim) -> bool:
    """Whether an axis counts as rows: also as a single one, whose digit says where it lies among others."""
    if outer != 1:
        return True
    if isinstance(part, Pieces):
        return part.axis != axis and any(has_rows(inner, axis, 1) for inner in part.parts)
    return len(part.dims[axis]) > 1 and part.dims[axis][0] == 1


def assemble(parts: Sequence[Value], axis: int, outer: Dim) -> Value:
    """Join along the rows of an axis."""
    if not any(has_rows(part, axis, outer) for part in parts):
        return concatenate(parts, axis)
    spread: list[Value] = []
    for part in parts:
        length = divide(part.shape[axis], outer)
        if length is None:
            raise NotAView("rows of unequal pieces")
        spread.append(split_axis(part, axis, outer, length))
    return merge(concatenate(spread, axis + 1), axis)


def _join(left: Value, right: Value, axis: int) -> Value | None:
    """One value for two neighbours, where the second continues the first."""
    if isinstance(left, View) and isinstance(right, View):
        return views.join(left, right, axis)
    if not isinstance(left, Pieces) or not isinstance(right, Pieces):
        return None
    if (left.axis, left.outer) != (right.axis, right.outer) or left.axis == axis:
        return None
    pairs = zip(left.parts, right.parts, strict=False)
    joined = [_join(a, b, axis) if a.shape[left.axis] == b.shape[left.axis] else None for a, b in pairs]
    if len(left.parts) == len(right.parts) and all(j is not None for j in joined):
        return Pieces(left.axis, left.outer, tuple(j for j in joined if j is not None))
    return None


def reverse_axis(value: Value, axis: int) -> Value:
    """Reverse one axis."""
    if isinstance(value, View):
        return views.reverse(value, axis)
    parts = [reverse_axis(part, axis) for part in value.parts]
    return assemble(parts[::-1] if axis == value.axis else parts, value.axis, value.outer)


def _broadcast(algebra: Algebra, op: ops.BroadcastInDim, values: Sequence[Value], *_: object) -> Value:
    return broadcast(values[0], op.shape, op.dimensions)


def _reshape(algebra: Algebra, op: ops.Reshape, values: Sequence[Value], *_: object) -> Value:
    return reshape(values[0], op.shape)


def _transpose(algebra: Algebra, op: ops.Transpose, values: Sequence[Value], *_: object) -> Value:
    return transpose(values[0], op.permutation)


def _slice(algebra: Algebra, op: ops.Slice, values: Sequence[Value], *_: object) -> Value:
    value = values[0]
    for axis, (start, limit, stride) in enumerate(zip(op.start, op.limit, op.stride, strict=True)):
        value = slice_axis(value, axis, start, limit, stride)
    return value


def _concatenate(algebra: Algebra, op: ops.Concatenate, values: Sequence[Value], *_: object) -> Value:
    return concatenate(values, op.dimension)


def _reverse(algebra: Algebra, op: ops.Reverse, values: Sequence[Value], *_: object) -> Value:
    value = values[0]
    for axis in op.dimensions:
        value = reverse_axis(value, axis)
    return value


LAWS: Mapping[type[Operator], Callable[..., Value]] = {
    ops.BroadcastInDim: _broadcast,
    ops.Reshape: _reshape,
    ops.Transpose: _transpose,
    ops.Slice: _slice,
    ops.Concatenate: _concatenate,
    ops.Reverse: _reverse,
}
