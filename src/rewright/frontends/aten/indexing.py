"""ATen operators that read or write at indices from data."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rewright import ops
from rewright.frontends.aten.context import Context, Number, Operand, Table, Value
from rewright.ir.dims import Dim
from rewright.ir.errors import UnsupportedOperator
from rewright.ir.types import DType
from rewright.ops.reference import building as rb
from rewright.ops.reference import indexing as reference
from rewright.ops.reference.advanced import Selection, read, write
from rewright.ops.scatter import ScatterKind

TABLE = Table()
Indices = Sequence[Value | None]


@TABLE.register("aten.embedding.default")
def embedding(c: Context, weight: Value, indices: Value, *_: object) -> int:
    with rb.scope(c.b, "embedding"):
        return reference.take(c.b, weight.position, indices.position, 0)


@TABLE.register("aten.embedding_dense_backward.default")
def embedding_dense_backward(
    c: Context, gradient: Value, indices: Value, num_weights: Dim, padding_idx: int, scale_grad_by_freq: bool
) -> int:
    if scale_grad_by_freq:
        raise UnsupportedOperator("embedding with scale_grad_by_freq; turn it off")
    with rb.scope(c.b, "embedding"):
        updates = gradient.position
        if padding_idx >= 0:
            padding = rb.compare(c.b, "EQ", indices.position, rb.splat_like(c.b, padding_idx, indices.position))
            rest = (1,) * (gradient.rank - indices.rank)
            padding = rb.reshape(c.b, padding, (*indices.shape, *rest))
            updates = rb.select(c.b, padding, rb.splat_like(c.b, 0, updates), updates)
        return reference.add_rows(c.b, num_weights, indices.position, updates)


@TABLE.register("aten.index_select.default")
def index_select(c: Context, x: Value, dim: int, index: Value) -> int:
    if x.rank == 0:
        return rb.reshape(c.b, x.position, c.result().shape)
    flat = rb.reshape(c.b, index.position, (index.type.size(),))
    return reference.take(c.b, x.position, flat, x.axis(dim))


@TABLE.register("aten.gather.default")
def gather(c: Context, x: Value, dim: int, index: Value, *_: object, **__: object) -> int:
    return reference.gather_along(c.b, x.position, index.position, x.axis(dim))


def _scatter(c: Context, x: Value, dim: int, index: Value, source: Operand, kind: ScatterKind) -> int:
    updates = c.position(source, x.dtype)
    if not isinstance(source, Value):
        updates = rb.broadcast(c.b, updates, index.shape)

    def write(base: int, updates: int, kind: ScatterKind) -> int:
        return reference.scatter_along(c.b, base, index.position, updates, x.axis(dim), kind)

    return _combine(c, x.position, updates, kind, write)


def _combine(
    c: Context, base: int, updates: int, kind: ScatterKind, write: Callable[[int, int, ScatterKind], int]
) -> int:
    """A write; sums and products of booleans say whether one, or every one, holds."""
    if kind not in ("sum", "product") or c.b.type(base).dtype is not DType.BOOL:
        return write(base, updates, kind)
    bits = [rb.convert(c.b, part, DType.U8) for part in (base, updates)]
    return rb.convert(c.b, write(bits[0], bits[1], "maximum" if kind == "sum" else "minimum"), DType.BOOL)


@TABLE.register("aten.scatter.src", "aten.scatter.value")
def scatter(c: Context, x: Value, dim: int, index: Value, source: Operand) -> int:
    return _scatter(c, x, dim, index, source, "replace")


@TABLE.register("aten.scatter_add.default")
def scatter_add(c: Context, x: Value, dim: int, index: Value, source: Value) -> int:
    return _scatter(c, x, dim, index, source, "sum")


_KINDS: dict[str, ScatterKind] = {
    "sum": "sum",
    "add": "sum",
    "prod": "product",
    "multiply": "product",
    "amax": "maximum",
    "amin": "minimum",
}


@TABLE.register("aten.scatter_reduce.two", "aten.scatter.reduce", "aten.scatter.value_reduce")
def scatter_reduce(
    c: Context,
    x: Value,
    dim: int,
    index: Value,
    source: Operand,
    reduce: str = "sum",
    *,
    include_self: bool = True,
    **kwargs: str,
) -> int:
    if reduce not in _KINDS or not include_self:
        raise UnsupportedOperator(f"scatter_reduce with {reduce} and include_self={include_self}; use sum or amax")
    return _scatter(c, x, dim, index, source, _KINDS[reduce])


def _indices(c: Context, x: Value, indices: Indices) -> Selection | int:
    """The integer index tensors by axis; or the mask, where a single boolean tensor selects."""
    masks = [index for index in indices if index is not None and index.dtype is DType.BOOL]
    if masks:
        if len([index for index in indices if index is not None]) > 1 or indices[0] is None:
            raise UnsupportedOperator("a boolean index among others; use torch.where or integer indices")
        return masks[0].position
    columns: list[tuple[int, int]] = []
    for axis, index in enumerate(indices):
        if index is not None and index.dtype is DType.U8:
            raise UnsupportedOperator("a mask of bytes as an index; convert it to bool and use torch.where")
        if index is not None:
            integers = rb.convert(c.b, index.position, DType.I64)
            columns.append((axis, _from_front(c, integers, x.shape[axis])))
    return Selection(tuple(columns))


def _from_front(c: Context, index: int, size: Dim) -> int:
    """Indices counted from the front; those that a captured program is given are taken to be."""
    trusted: set[str] = set()
    if not c.trusts_indices or not reference.is_nonnegative(c.b, index, trusted=trusted):
        return reference.wrap_index(c.b, index, size)
    for label in sorted(trusted):
        c.assume(f"no index in {label} is negative, which would count from the end")
    return index


@TABLE.register("aten.index.Tensor", "aten._unsafe_index.Tensor")
def index(c: Context, x: Value, indices: Indices) -> int:
    selection = _indices(c, x, indices)
    if isinstance(selection, int):
        raise UnsupportedOperator("a boolean index gives a tensor whose size depends on data; use torch.where")
    return read(c.b, x.position, selection)


@TABLE.register("aten.index_put.default", "aten._unsafe_index_put.default", "aten._index_put_impl.default")
def index_put(c: Context, x: Value, indices: Indices, values: Value, accumulate: bool = False, *_: object) -> int:
    updates = rb.convert(c.b, values.position, x.dtype)
    first = indices[0] if len(indices) == 1 else None
    if first is not None and not accumulate and first.shape == x.shape[:1] and _is_permutation(c, first.position):
        # Every row is written, each once: x[p] = v is x = v[argsort(p)], whatever x was.
        order = c.b.add(ops.Sort(0, False, "indices"), first.position)
        return read(c.b, rb.broadcast(c.b, updates, x.shape), Selection(((0, order),)))
    selection = _indices(c, x, indices)
    if isinstance(selection, int):
        return _masked_put(c, x, selection, updates, accumulate)

    def written(base: int, updates: int, kind: ScatterKind) -> int:
        return write(c.b, base, selection, updates, kind)

    return _combine(c, x.position, updates, "sum" if accumulate else "replace", written)


def _is_permutation(c: Context, index: int) -> bool:
    """Whether an index is the order of a vector, as a sort gives it."""
    op = c.b.node(index).op
    return isinstance(op, ops.Sort) and op.result == "indices" and c.b.type(index).rank == 1


def _masked_put(c: Context, x: Value, mask: int, values: int, accumulate: bool) -> int:
    """``x[mask] = values`` for values that are the same at every place of the mask."""
    leading = c.b.type(mask).rank
    shape = c.b.type(values).shape
    inner = x.shape[leading:]
    if len(shape) > len(inner):
        if shape[0] != 1 or len(shape) > len(inner) + 1:
            raise UnsupportedOperator("x[mask] = values with one value per place; use torch.where or masked_scatter")
        values = rb.reshape(c.b, values, shape[1:])
    spread = rb.broadcast(c.b, values, x.shape)
    mask = rb.reshape(c.b, mask, (*c.b.type(mask).shape, *(1 for _ in inner)))
    return rb.select(c.b, mask, rb.add(c.b, x.position, spread) if accumulate else spread, x.position)


@TABLE.register("aten.index_add.default")
def index_add(c: Context, x: Value, dim: int, index: Value, source: Value, *, alpha: Number = 1) -> int:
    updates = rb.convert(c.b, source.position, x.dtype)
    if x.dtype is not DType.BOOL:
        updates = updates if alpha == 1 else rb.multiply(c.b, updates, c.position(alpha, x.dtype))
    elif not alpha:
        return x.position
    return _index_write(c, x, dim, _flat(c, index), updates, "sum")


@TABLE.register("aten.index_copy.default")
def index_copy(c: Context, x: Value, dim: int, index: Value, source: Value) -> int:
    return _index_write(c, x, dim, _flat(c, index), source.position, "replace")


def _flat(c: Context, index: Value) -> int:
    """Indices as a vector; PyTorch raises where one is negative."""
    return rb.reshape(c.b, index.position, (index.type.size(),))


def _index_write(c: Context, x: Value, dim: int, places: int, updates: int, kind: ScatterKind) -> int:
    axis, rank = x.axis(dim), max(x.rank, 1)
    base = rb.reshape(c.b, x.position, x.shape or (1,))
    updates = rb.reshape(c.b, updates, c.b.type(updates).shape or (1,))
    moved = rb.transpose(c.b, updates, [axis, *(i for i in range(rank) if i != axis)])

    def write(base: int, updates: int, kind: ScatterKind) -> int:
        return reference.scatter_points(c.b, base, [axis], [places], updates, kind)

    return rb.reshape(c.b, _combine(c, base, moved, kind, write), x.shape)


@TABLE.register("aten.index_fill.int_Scalar")
def index_fill(c: Context, x: Value, dim: int, index: Value, value: Number) -> int:
    axis, count = x.axis(dim), index.type.size()
    shape = tuple(count if i == axis else size for i, size in enumerate(x.shape or (1,)))
    places = _from_front(c, _flat(c, index), (x.shape or (1,))[axis])  # negative ones count from the end here
    return _index_write(c, x, dim, places, rb.splat(c.b, value, shape, x.dtype), "replace")


@TABLE.register("aten.cat.default", "aten.concat.default")
def cat(c: Context, tensors: Sequence[Value], dim: int = 0) -> int:
    dtype, rank = c.result().dtype, c.result().rank
    kept = [x for x in tensors if x.shape != (0,) or rank == 1]
    return rb.concatenate(c.b, c.positions(*kept, dtype=dtype), dim % rank)


@TABLE.register("aten.stack.default")
def stack(c: Context, tensors: Sequence[Value], dim: int = 0) -> int:
    kind = c.result()
    axis = dim % kind.rank
    shape = (*kind.shape[:axis], 1, *kind.shape[axis + 1 :])
    return rb.concatenate(c.b, [rb.reshape(c.b, p, shape) for p in c.positions(*tensors)], axis)


@TABLE.register("aten.repeat.default", "aten.tile.default")
def repeat(c: Context, x: Value, repeats: Sequence[Dim]) -> int:
    counts = (*(1 for _ in range(x.rank - len(repeats))), *repeats)
    own = (*(1 for _ in range(len(counts) - x.rank)), *x.shape)
    position = rb.reshape(c.b, x.position, own)
    pairs = [size for pair in zip(counts, own, strict=True) for size in pair]
    spread = c.b.add(ops.BroadcastInDim(tuple(pairs), tuple(range(1, len(pairs), 2))), position)
    return rb.reshape(c.b, spread, c.result().shape)


@TABLE.register("aten.repeat_interleave.self_int")
def repeat_interleave(c: Context, x: Value, repeats: Dim, dim: int | None = None, **__: object) -> int:
    shape = x.shape if dim is not None else (x.type.size(),)
    axis = x.axis(dim) if dim is not None else 0
    position = rb.reshape(c.b, x.position, shape)
    wide = (*shape[: axis + 1], repeats, *shape[axis + 1 :])
    axes = tuple(i for i in range(len(wide)) if i != axis + 1)
    return rb.reshape(c.b, c.b.add(ops.BroadcastInDim(wide, axes), position), c.result().shape)


@TABLE.register("aten.roll.default")
def roll(c: Context, x: Value, shifts: Sequence[int], dims: Sequence[int] = ()) -> int:
    if 0 in x.shape or not x.rank:
        return x.position
    axes = [x.axis(dim) for dim in dims] or [0]
    position = x.position if dims else rb.reshape(c.b, x.position, (x.type.size(),))
    for shift, axis in zip(shifts, axes, strict=True):
        size = c.b.type(position).shape[axis]
        cut = size - (shift % size if isinstance(size, int) else shift)
        parts = [rb.slice_axis(c.b, position, axis, cut, size), rb.slice_axis(c.b, position, axis, 0, cut)]
        position = rb.concatenate(c.b, parts, axis)
    return rb.reshape(c.b, position, x.shape)


@TABLE.register("aten.flip.default")
def flip(c: Context, x: Value, dims: Sequence[int]) -> int:
    return c.b.add(ops.Reverse(tuple(sorted(x.axis(dim) for dim in dims))), x.position)


@TABLE.register("aten.constant_pad_nd.default", "aten.pad.default")
def constant_pad_nd(c: Context, x: Value, pad: Sequence[Dim], *rest: object) -> int:
    value = rest[-1] if rest and not isinstance(rest[-1], str) else 0
    if "constant" not in (*(r for r in rest if isinstance(r, str)), "constant")[:1]:
        raise UnsupportedOperator(f"padding of mode {rest[0]}; use constant padding")
    low: list[Dim] = [0] * x.rank
    high: list[Dim] = [0] * x.rank
    for place in range(len(pad) // 2):
        low[-1 - place], high[-1 - place] = pad[2 * place], pad[2 * place + 1]
    return rb.pad(c.b, x.position, low, high, value if isinstance(value, (int, float)) else 0)
