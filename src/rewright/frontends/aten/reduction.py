"""ATen reductions, cumulative sums, sorting."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from rewright import ops
from rewright.frontends.aten.context import Context, Number, Table, Value
from rewright.frontends.aten.ties import Promise
from rewright.ir.dims import Dim
from rewright.ir.errors import UnsupportedOperator
from rewright.ir.types import DType
from rewright.ops.base import ReductionKind
from rewright.ops.reference import building as rb
from rewright.ops.reference import normalization, softmax
from rewright.ops.reference.grouped import group_of_rows

TABLE = Table()
Axes = int | Sequence[int] | None


def axes_of(x: Value, dim: Axes) -> list[int]:
    """Axes counted from the front; none or an empty list means all."""
    if dim is None or (not isinstance(dim, int) and not dim):
        return list(range(x.rank))
    return sorted({x.axis(axis) for axis in ([dim] if isinstance(dim, int) else dim)}) if x.rank else []


@TABLE.register("aten.sum.default", "aten.sum.dim_IntList")
def sum_(c: Context, x: Value, dim: Axes = None, keepdim: bool = False, **__: object) -> int:
    (position,) = c.positions(x)
    return rb.reduce(c.b, "sum", position, axes_of(x, dim), keepdim)


@TABLE.register("aten.mean.default", "aten.mean.dim")
def mean(c: Context, x: Value, dim: Axes = None, keepdim: bool = False, **__: object) -> int:
    (position,) = c.positions(x)
    return rb.mean(c.b, position, axes_of(x, dim), keepdim)


@TABLE.register("aten.prod.default", "aten.prod.dim_int")
def prod(c: Context, x: Value, dim: Axes = None, keepdim: bool = False, **__: object) -> int:
    (position,) = c.positions(x)
    return rb.reduce(c.b, "product", position, axes_of(x, dim), keepdim)


def _extreme(kind: ReductionKind) -> Callable[..., int]:
    def lower(c: Context, x: Value, dim: Axes = None, keepdim: bool = False) -> int:
        use: ReductionKind = kind if x.dtype is not DType.BOOL else ("or" if kind == "maximum" else "and")
        return rb.reduce(c.b, use, x.position, axes_of(x, dim), keepdim)

    return lower


TABLE.register("aten.amax.default", "aten.max.default")(_extreme("maximum"))
TABLE.register("aten.amin.default", "aten.min.default")(_extreme("minimum"))


def _truth(kind: ReductionKind) -> Callable[..., int]:
    def lower(c: Context, x: Value, dim: Axes = None, keepdim: bool = False) -> int:
        position = x.position
        if x.dtype is not DType.BOOL:
            position = rb.compare(c.b, "NE", position, rb.splat_like(c.b, 0, position))
        return rb.convert(c.b, rb.reduce(c.b, kind, position, axes_of(x, dim), keepdim), c.result().dtype)

    return lower


TABLE.register("aten.any.default", "aten.any.dim", "aten.any.dims")(_truth("or"))
TABLE.register("aten.all.default", "aten.all.dim", "aten.all.dims")(_truth("and"))


def first_index(c: Context, x: int, axis: int, *, largest: bool) -> int:
    """Index of the first largest (or smallest) element, the axis kept with size one."""
    rank = c.b.type(x).rank
    if c.b.type(x).shape[axis] == 1:
        return rb.splat(c.b, 0, c.b.type(x).shape, DType.I64)
    moved = rb.swap(c.b, x if largest else _in_reverse_order(c, x), axis, rank - 1)
    return rb.swap(c.b, c.b.add(ops.TopK(1, "indices"), moved), axis, rank - 1)


def _in_reverse_order(c: Context, x: int) -> int:
    """The elements in the opposite order; of integers the complement, since the least one has no negative."""
    return c.b.add(ops.Negate() if c.b.type(x).dtype.is_float else ops.Not(), x)


def _argument(largest: bool) -> Callable[..., int]:
    def lower(c: Context, x: Value, dim: int | None = None, keepdim: bool = False) -> int:
        if x.rank == 0:
            return rb.splat(c.b, 0, (), DType.I64)
        if dim is None:
            flat = rb.reshape(c.b, x.position, (x.type.size(),))
            return rb.reshape(c.b, first_index(c, flat, 0, largest=largest), c.result().shape)
        found = first_index(c, x.position, x.axis(dim), largest=largest)
        return rb.reshape(c.b, found, c.result().shape)

    return lower


TABLE.register("aten.argmax.default")(_argument(True))
TABLE.register("aten.argmin.default")(_argument(False))


def _extreme_with_index(largest: bool) -> Callable[..., tuple[int, int]]:
    def lower(c: Context, x: Value, dim: int, keepdim: bool = False) -> tuple[int, int]:
        if x.rank == 0:
            return x.position, rb.splat(c.b, 0, (), DType.I64)
        axis = x.axis(dim)
        values = rb.reduce(c.b, "maximum" if largest else "minimum", x.position, [axis], keepdim)
        found = first_index(c, x.position, axis, largest=largest)
        return values, rb.reshape(c.b, found, c.b.type(values).shape)

    return lower


TABLE.register("aten.max.dim")(_extreme_with_index(True))
TABLE.register("aten.min.dim")(_extreme_with_index(False))


def _variance(c: Context, x: Value, dim: Axes, correction: Number | None, keepdim: bool) -> int:
    (position,) = c.positions(x)
    less = 1 if correction is None else correction
    return normalization.variance(c.b, position, axes_of(x, dim), less, keepdim)


@TABLE.register("aten.var.correction")
def var(c: Context, x: Value, dim: Axes = None, *, correction: Number | None = None, keepdim: bool = False) -> int:
    return _variance(c, x, dim, correction, keepdim)


@TABLE.register("aten.var.dim")
def var_dim(c: Context, x: Value, dim: Axes, unbiased: bool = True, keepdim: bool = False) -> int:
    return _variance(c, x, dim, int(unbiased), keepdim)


@TABLE.register("aten.std.correction")
def std(c: Context, x: Value, dim: Axes = None, *, correction: Number | None = None, keepdim: bool = False) -> int:
    return c.b.add(ops.Sqrt(), _variance(c, x, dim, correction, keepdim))


@TABLE.register("aten.var_mean.correction")
def var_mean(
    c: Context, x: Value, dim: Axes = None, *, correction: Number | None = None, keepdim: bool = False
) -> tuple[int, int]:
    average = rb.mean(c.b, x.position, axes_of(x, dim), keepdim)
    return _variance(c, x, dim, correction, keepdim), average


@TABLE.register("aten.logsumexp.default")
def logsumexp(c: Context, x: Value, dim: Axes, keepdim: bool = False) -> int:
    (position,) = c.positions(x)
    axes = axes_of(x, dim)
    if not axes:
        return position
    if len(axes) > 1:
        position, shape = _folded_together(c, position, axes), c.b.type(position).shape
        found = _logsumexp(c, position, 0, keepdim=False)
        return rb.insert_ones(c.b, found, axes) if keepdim and len(axes) <= len(shape) else found
    return _logsumexp(c, position, axes[0], keepdim)


def _folded_together(c: Context, x: int, axes: Sequence[int]) -> int:
    """Some axes as one, which comes first."""
    shape = c.b.type(x).shape
    others = [axis for axis in range(len(shape)) if axis not in axes]
    moved = rb.transpose(c.b, x, [*axes, *others])
    size: Dim = 1
    for axis in axes:
        size = size * shape[axis]
    return rb.reshape(c.b, moved, (size, *(shape[axis] for axis in others)))


def _logsumexp(c: Context, position: int, axis: int, keepdim: bool) -> int:
    if not c.guards_queries:
        return softmax.logsumexp(c.b, position, axis, keepdim)
    parts = softmax.exponentials(c.b, position, axis)
    own = rb.splat_like(c.b, 0.0, parts.total)  # the maximum is all that there is where it is infinite
    own = rb.select(c.b, c.b.add(ops.IsFinite(), parts.maximum), c.b.add(ops.Log(), parts.total), own)
    found = rb.add(c.b, parts.maximum, own)
    return found if keepdim else rb.reshape(c.b, found, [s for a, s in enumerate(c.b.type(found).shape) if a != axis])


@TABLE.register("aten.linalg_vector_norm.default", "aten.norm.ScalarOpt_dim", "aten.norm.Scalar")
def vector_norm(
    c: Context, x: Value, ord: Number | None = 2, dim: Axes = None, keepdim: bool = False, **__: object
) -> int:
    (position,) = c.positions(x)
    axes = axes_of(x, dim)
    order = 2 if ord is None else ord
    size = c.b.add(ops.Abs(), position)
    if order == math.inf:
        return rb.reduce(c.b, "maximum", size, axes, keepdim)
    if order == -math.inf:
        return rb.reduce(c.b, "minimum", size, axes, keepdim)
    if order == 0:
        there = rb.compare(c.b, "NE", position, rb.splat_like(c.b, 0, position))
        return rb.reduce(c.b, "sum", rb.convert(c.b, there, c.b.type(position).dtype), axes, keepdim)
    if order == 1:
        return rb.reduce(c.b, "sum", size, axes, keepdim)
    if order != 2:
        powers = rb.binary(c.b, ops.Power(), size, rb.splat_like(c.b, float(order), size))
        total = rb.reduce(c.b, "sum", powers, axes, keepdim)
        return rb.binary(c.b, ops.Power(), total, rb.splat_like(c.b, 1.0 / order, total))
    squares = rb.multiply(c.b, position, position)
    return c.b.add(ops.Sqrt(), rb.reduce(c.b, "sum", squares, axes, keepdim))


@TABLE.register("aten.cumsum.default")
def cumsum(c: Context, x: Value, dim: int, **__: object) -> int:
    (position,) = c.positions(x)
    return position if x.rank == 0 else prefix_sum(c, position, x.axis(dim))


@TABLE.register("aten.repeat_interleave.Tensor")
def repeat_interleave(c: Context, repeats: Value, **__: object) -> int:
    """Each place of ``repeats`` as often as it says: so many runs end at or before an element."""
    c.assume("what repeats are given to repeat_interleave adds up to its output size, and none is negative")
    ends = prefix_sum(c, repeats.position, 0)
    return rb.convert(c.b, group_of_rows(c.b, ends, (c.result().shape[0], repeats.shape[0])), repeats.dtype)


@TABLE.register("aten.cumprod.default")
def cumprod(c: Context, x: Value, dim: int, **__: object) -> int:
    (position,) = c.positions(x)
    return position if x.rank == 0 else _prefixes(c, "product", position, x.axis(dim))


def _running(kind: ReductionKind) -> Callable[..., tuple[int, int]]:
    def lower(c: Context, x: Value, dim: int) -> tuple[int, int]:
        """The largest (or smallest) element up to each one, and where it was last; NaN is kept."""
        if x.rank == 0:
            return x.position, rb.splat(c.b, 0, (), DType.I64)
        axis = x.axis(dim)
        wide = rb.convert(c.b, x.position, DType.U8) if x.dtype is DType.BOOL else x.position
        values = _prefixes(c, kind, wide, axis)
        is_new = rb.compare(c.b, "EQ", wide, values)
        if x.dtype.is_float:
            is_new = rb.binary(c.b, ops.Or(), is_new, rb.compare(c.b, "NE", wide, wide))
        ramp = rb.iota(c.b, x.shape, axis)
        places = rb.select(c.b, is_new, ramp, rb.splat_like(c.b, 0, ramp))
        return rb.convert(c.b, values, x.dtype), _prefixes(c, "maximum", places, axis)

    return lower


TABLE.register("aten.cummax.default")(_running("maximum"))
TABLE.register("aten.cummin.default")(_running("minimum"))


def prefix_sum(c: Context, x: int, axis: int) -> int:
    """Sums of the first 1, 2, ... elements along an axis."""
    return _prefixes(c, "sum", x, axis)


def _prefixes(c: Context, kind: ReductionKind, x: int, axis: int) -> int:
    shape = c.b.type(x).shape
    window: tuple[Dim, ...] = tuple(size if i == axis else 1 for i, size in enumerate(shape))
    padding = tuple((size - 1 if i == axis else 0, 0) for i, size in enumerate(shape))
    return c.b.add(ops.ReduceWindow(kind, window, (1,) * len(shape), padding), x)


@TABLE.register("aten.diff.default")
def diff(
    c: Context, x: Value, n: int = 1, dim: int = -1, prepend: Value | None = None, append: Value | None = None
) -> int:
    axis = x.axis(dim)
    parts = [part.position for part in (prepend, x, append) if part is not None]
    position = rb.concatenate(c.b, parts, axis)
    for _ in range(n):
        size = c.b.type(position).shape[axis]
        later = rb.slice_axis(c.b, position, axis, 1, size)
        position = rb.subtract(c.b, later, rb.slice_axis(c.b, position, axis, 0, size - 1))
    return position


@TABLE.register("aten.topk.default")
def topk(c: Context, x: Value, k: Dim, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[int, int]:
    if x.rank == 0:
        return _only(c, x)
    axis = x.axis(dim)
    if not sorted and k != 1:
        first = "largest" if largest else "smallest"
        c.assume(f"topk at {c.b.span} gives the {first} element first, an order that sorted=False leaves open")
    if not largest:  # NaN counts as the largest number here too
        values, places = _sort(c, x, dim, descending=False, stable=False)
        c.ties[places] = Promise("any", f"topk of the smallest {k} along {axis}")
        return rb.slice_axis(c.b, values, axis, 0, k), rb.slice_axis(c.b, places, axis, 0, k)
    moved = rb.swap(c.b, x.position, axis, x.rank - 1)
    values = rb.swap(c.b, c.b.add(ops.TopK(k, "values"), moved), axis, x.rank - 1)
    places = c.b.add(ops.TopK(k, "indices"), moved)
    c.ties[places] = Promise("any", f"topk of the largest {k}")
    return values, rb.swap(c.b, places, axis, x.rank - 1)


@TABLE.register("aten.kthvalue.default")
def kthvalue(c: Context, x: Value, k: int, dim: int = -1, keepdim: bool = False) -> tuple[int, int]:
    values, places = _sort(c, x, dim, descending=False, stable=False)
    if x.rank == 0:
        return values, places
    axis = x.axis(dim)
    c.ties[places] = Promise("any", f"kthvalue {k} along {axis}")
    found = [rb.slice_axis(c.b, position, axis, k - 1, k) for position in (values, places)]
    shape = tuple(size for a, size in enumerate(x.type.shape) if a != axis)
    first, second = found if keepdim else [rb.reshape(c.b, position, shape) for position in found]
    return first, second


def _only(c: Context, x: Value) -> tuple[int, int]:
    """What is chosen of a tensor without axes."""
    return x.position, rb.splat(c.b, 0, (), DType.I64)


@TABLE.register("aten.sort.default")
def sort(c: Context, x: Value, dim: int = -1, descending: bool = False) -> tuple[int, int]:
    return _sort(c, x, dim, descending, stable=False)


@TABLE.register("aten.sort.stable")
def sort_stable(
    c: Context, x: Value, *, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> tuple[int, int]:
    return _sort(c, x, dim, descending, bool(stable))


def _sort(c: Context, x: Value, dim: int, descending: bool, stable: bool) -> tuple[int, int]:
    if x.rank == 0:
        return _only(c, x)
    axis = x.axis(dim)
    places = c.b.add(ops.Sort(axis, descending, "indices"), x.position)
    if not stable:
        c.ties[places] = Promise("usual", "sort")
    return c.b.add(ops.Sort(axis, descending, "values"), x.position), places


@TABLE.register("aten.argsort.default")
def argsort(c: Context, x: Value, dim: int = -1, descending: bool = False) -> int:
    return _sort(c, x, dim, descending, stable=False)[1]


@TABLE.register("aten.argsort.stable")
def argsort_stable(c: Context, x: Value, *, stable: bool, dim: int = -1, descending: bool = False) -> int:
    return _sort(c, x, dim, descending, stable)[1]


def _whole_numbers(c: Context, position: int) -> int | None:
    """The integers that a tensor is, or that became its floats; None where these may be fractions, or wrapped."""
    node = c.b.node(position)
    source = node.operands[0] if isinstance(node.op, ops.Convert) and node.type.dtype.is_float else position
    return source if c.b.type(source).dtype in (DType.I32, DType.I64) else None


@TABLE.register("aten.histc.default")
def histc(c: Context, x: Value, bins: int = 100, min: Number = 0, max: Number = 0) -> int:
    """How many elements fall into each of ``bins`` equal intervals; the last one includes its upper end."""
    if max <= min:
        raise UnsupportedOperator("histc with limits taken from the data; give min and max as numbers")
    (position,) = c.positions(x)
    dtype = c.result().dtype
    whole = _whole_numbers(c, position)
    if whole is not None and float(min).is_integer() and bins == max - min + 1:  # one interval for each number
        flat = rb.reshape(c.b, whole, (1, x.type.size()))
        numbers = rb.shift_by(c.b, rb.iota(c.b, (bins, 1), 0, c.b.type(whole).dtype), int(min))
        return rb.reduce(c.b, "sum", rb.convert(c.b, rb.compare(c.b, "EQ", flat, numbers), dtype), [1])
    flat = rb.reshape(c.b, position, (1, x.type.size()))
    # In PyTorch's order of operations: only rounding separates elements on the bounds of an interval.
    scaled = rb.scale_by(c.b, rb.shift_by(c.b, flat, -min), bins)
    own = c.b.add(ops.Floor(), rb.binary(c.b, ops.Divide(), scaled, rb.splat_like(c.b, max - min, scaled)))
    own = rb.binary(c.b, ops.Minimum(), own, rb.splat_like(c.b, bins - 1, own))
    place = rb.convert(c.b, rb.iota(c.b, (bins, 1), 0), x.type.dtype)
    above = rb.compare(c.b, "GE", flat, rb.splat_like(c.b, min, flat))
    below = rb.compare(c.b, "LE", flat, rb.splat_like(c.b, max, flat))
    inside = rb.binary(c.b, ops.And(), above, below)
    hits = rb.binary(c.b, ops.And(), rb.compare(c.b, "EQ", own, place), inside)
    return rb.reduce(c.b, "sum", rb.convert(c.b, hits, dtype), [1])
