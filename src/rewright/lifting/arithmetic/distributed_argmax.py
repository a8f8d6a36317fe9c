"""The place of the largest of all, where every rank found the largest of its part.

Each rank takes the largest value of its part of an axis and the first place where it stands; of these pairs the first
with the largest value is chosen. That is the first place of the largest value of the whole axis, among equal values
too, if the parts lie in the order of the ranks, all of them, and every place counts from where the axis begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple, cast

from rewright import ops
from rewright.claims.language import Add, Addend, Index, Opaque, View
from rewright.ir.dims import Dim
from rewright.ir.types import DType, TensorType
from rewright.lifting.arithmetic.reduction import reduce
from rewright.lifting.moves.layout import concatenate, reshape, slice_axis, tidy, transpose
from rewright.lifting.recognition.unit_axes import plain
from rewright.lifting.terms.algebra import Algebra
from rewright.lifting.terms.index import compose
from rewright.lifting.terms.store import ONE
from rewright.lifting.terms.value import Digits, NotAView, Pieces, Value

Apply = Callable[[ops.Ordering, Value, TensorType, TensorType], Value]
"""The value of an operator on an operand, given the types of operand and result."""


class Found(NamedTuple):
    """A place of the largest along the last axis of a tensor, which an operator gives, and what was added to it."""

    op: ops.Ordering
    tensor: View
    dtype: DType
    added: Fraction


def first_of_all(algebra: Algebra, op: ops.Gather, data: Pieces, indices: View, apply: Apply) -> Value | None:
    """What a look-up gives of the places that parts have their largest value at, by which part has the largest.

    None where it is no such look-up, or gives no place that the sequential program looks for.
    """
    axis = data.axis
    rest = [a for a in range(len(data.shape)) if a != axis]
    free = _free_axis(op, axis, rest, indices)
    if algebra.sequential or free is None or data.outer != 1:
        return None
    batch = tuple(data.shape[a] for a in rest)
    try:
        which = _largest_of(algebra, _by_batch(op, indices, rest, free), batch)
        found = [_largest_of(algebra, part, batch) if part.shape[axis] == 1 else None for part in data.parts]
        several = [one for one in found if one is not None]
        if which is None or which.added or len(several) < max(len(found), 2) or not _follow(several):
            return None
        place = _whole(algebra, several, which, apply)
        return None if place is None else _laid_out(op, place, rest, free)
    except NotAView:
        return None


def _free_axis(op: ops.Gather, axis: int, rest: Sequence[int], indices: View) -> int | None:
    """The axis of an index of one element at every place of all other axes; None for other look-ups."""
    batched = sorted(op.operand_batching_dims) == list(rest) and not op.offset_dims
    if not batched or op.start_index_map != (axis,) or op.collapsed_slice_dims != (axis,):
        return None
    own = [a for a in range(len(indices.dims)) if a != op.index_vector_dim]
    free = [a for a in own if a not in op.start_indices_batching_dims]
    return free[0] if len(free) == 1 and indices.shape[free[0]] == 1 else None


def _by_batch(op: ops.Gather, indices: View, rest: Sequence[int], free: int) -> Value:
    """An index with the axes of the data that it is looked up in for, and no others."""
    own = dict(zip(op.operand_batching_dims, op.start_indices_batching_dims, strict=True))
    others = [a for a in range(len(indices.dims)) if a not in own.values()]
    moved = transpose(indices, [*(own[a] for a in rest), *others])
    return reshape(moved, tuple(indices.shape[own[a]] for a in rest))


def _laid_out(op: ops.Gather, place: Value, rest: Sequence[int], free: int) -> Value:
    """The same the other way round, as the look-up gives it."""
    own = dict(zip(op.operand_batching_dims, op.start_indices_batching_dims, strict=True))
    kept = sorted([*own.values(), free])
    order = [*(own[a] for a in rest), free]
    return transpose(reshape(place, (*place.shape, 1)), [order.index(a) for a in kept])


def _follow(several: Sequence[Found]) -> bool:
    """Whether places in parts that follow each other are all counted from one place on."""
    lengths = [n for one in several if isinstance(n := one.tensor.shape[-1], int)]
    if len(lengths) < len(several) or len({(one.op, one.dtype) for one in several}) > 1:
        return False
    first = several[0].added
    starts = accumulate(lengths, initial=0)
    return all(one.added == first + start for one, start in zip(several, starts, strict=False))


def _whole(algebra: Algebra, several: Sequence[Found], which: Found, apply: Apply) -> Value | None:
    """The place in the concatenation of the parts; None where the index is not that of the largest of their largest."""
    last = len(several[0].tensor.dims) - 1
    largest = [reduce(algebra, "maximum", one.tensor, [last]) for one in several]
    stacked = concatenate([reshape(one, (*one.shape, 1)) for one in largest], last)
    given = _place(apply, which.op, which.tensor, which.dtype)
    if which.dtype != several[0].dtype or _place(apply, which.op, stacked, which.dtype) != given:
        return None
    joined = concatenate([one.tensor for one in several], last)
    found = _place(apply, several[0].op, joined, several[0].dtype)
    if not isinstance(found, View) or not algebra.is_familiar(found):
        return None
    algebra.count_use("largest of parts")
    added = several[0].added
    return algebra.add([found, algebra.constant(found.dims, added)], [ONE, ONE]) if added else found


def _place(apply: Apply, op: ops.Ordering, value: Value, dtype: DType) -> Value:
    """The first place that an operator gives along the last axis of a value."""
    rank = len(value.shape)
    axis = op.along(rank)
    order = list(range(rank - 1))
    moved = tidy(transpose(value, [*order[:axis], rank - 1, *order[axis:]]))
    shape = moved.shape if isinstance(op, ops.Sort) else (*moved.shape[:-1], 1)
    found = apply(op, moved, TensorType(moved.shape, dtype), TensorType(shape, DType.I64))
    return tidy(plain(reshape(slice_axis(found, axis, 0, 1), value.shape[:-1])))


def _largest_of(algebra: Algebra, part: Value, batch: tuple[Dim, ...]) -> Found | None:
    """What a tensor is the place of the largest of, at every place of the batch."""
    row = plain(reshape(part, batch))
    if not isinstance(row, View):
        return None
    added, rest = Fraction(0), list[Addend]()
    for one in _summands(algebra, row):
        number = _number(algebra, one)
        added += number * one.coefficient if number is not None else 0
        rest += [one] if number is None else []
    if len(rest) != 1 or rest[0].coefficient != 1 or rest[0].parts:
        return None
    label = algebra.terms.label(rest[0].term)
    if not isinstance(label, Opaque) or len(label.kinds) != 1:
        return None
    op = label.op
    if op != ops.TopK(1, "indices") and not (isinstance(op, ops.Sort) and op.descending and op.result == "indices"):
        return None
    op, kind = cast("ops.Ordering", op), label.kinds[0]
    tensor = _operand(algebra, op, row.dims, rest[0])
    return None if tensor is None else Found(op, tensor, DType.F32 if kind == "float" else DType(kind), added)


def _summands(algebra: Algebra, row: View) -> Iterator[Addend]:
    """The addends of a view, also of what is one sum to the engine."""
    for a in row.addends:
        if a.parts or not isinstance(algebra.terms.label(a.term), Add):
            yield a
            continue
        for coefficient, (term, access) in algebra.terms.expand(a.term, a.access):
            yield Addend(a.coefficient * coefficient, term, access)


def _number(algebra: Algebra, addend: Addend) -> int | None:
    """What a term is, where that is a number: the index along an axis at one place is one."""
    if addend.term == algebra.terms.one:
        return 1
    low, strides = addend.access[0] if addend.access else (None, ())
    return low if addend.term == algebra.terms.index and isinstance(low, int) and not strides else None


def _operand(algebra: Algebra, op: ops.Ordering, dims: tuple[Digits, ...], addend: Addend) -> View | None:
    """The tensor that was looked at along one axis, that axis last, at the batch axes of a view of these digits."""
    applied = cast("Opaque", algebra.terms.look_into(addend.term))
    own, windows, accesses = applied.own, applied.windows, applied.accesses
    axes = list(applied.layout[0])
    looked_at = axes.pop(op.axis)
    count = sum(map(len, dims))
    if own != 1 or isinstance(looked_at, int) or not all(isinstance(axis, int) for axis in axes):
        return None
    digits: Digits = looked_at
    if addend.access[-1] != (0, ()):  # the first place
        return None
    at: dict[int, Index] = {
        window[0]: (window[1], ((count + number, 1),)) for number, window in enumerate(windows) if window is not None
    }
    outer = iter(addend.access[:-1])
    frame = range(len(addend.access) - own + len(at))
    at |= {variable: next(outer) for variable in frame if variable not in at}
    (child,) = algebra.terms.children(addend.term)
    return View((*dims, digits), (Addend(ONE, child, compose(accesses[0], at)),))
