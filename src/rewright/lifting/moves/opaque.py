"""Operators without a law: functions of which nothing is known but the operator and the windows that it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rewright import ops
from rewright.claims.language import Addend, Index, View
from rewright.ir.dims import Dim, divide
from rewright.ir.operator import Operator
from rewright.ir.types import DType, TensorType
from rewright.lifting.moves.layout import reshape
from rewright.lifting.terms.algebra import Algebra
from rewright.lifting.terms.store import ONE, Key, Operand
from rewright.lifting.terms.value import (
    Digits,
    NotAView,
    Value,
    coalesce,
    common_digits,
    plain_parts,
    refine,
    variables_of,
    with_digits,
)


def opaque(
    algebra: Algebra, key: Key, views: Sequence[View], result: TensorType, roles: Sequence[Mapping[int, int]]
) -> View:
    """An operator known only by its key: operand axes in ``roles`` are result axes, all others are read whole."""
    found: dict[int, list[Digits]] = {}
    for view, mapping in zip(views, roles, strict=True):
        for axis, target in mapping.items():
            found.setdefault(target, []).append(view.dims[axis])
    shared = {target: common_digits(many) for target, many in found.items()}
    dims = tuple(shared.get(axis, (size,)) for axis, size in enumerate(result.shape))
    names = variables_of(dims)
    own = [axis for axis in range(len(dims)) if axis not in shared]
    fresh = sum(len(d) for d in dims)
    bound: dict[int, Dim] = {}
    operands: list[Operand] = []
    layout: list[tuple[int | Digits, ...]] = []
    for view, mapping in zip(views, roles, strict=True):
        fine = refine(view, [shared[mapping[a]] if a in mapping else view.dims[a] for a in range(len(view.dims))])
        replacements: list[Index] = []
        shape: list[int | Digits] = []
        for axis, digits in enumerate(fine.dims):
            if axis in mapping:
                replacements.extend((0, ((v, 1),)) for v in names[mapping[axis]])
                shape.append(mapping[axis])
                continue
            shape.append(digits)
            for length in digits:
                bound[fresh] = length
                replacements.append((0, ((fresh, 1),)))
                fresh += 1
        layout.append(tuple(shape))
        operands.append(algebra.operand(with_digits(fine, dims, replacements)))
    term, access = algebra.terms.opaque(key, tuple(layout), operands, bound, len(own))
    # The only index of an axis is a number, whoever has a variable for it.
    access = (*access, *((0, () if dims[axis] == (1,) else ((names[axis][0], 1),)) for axis in own))
    return View(dims, (Addend(ONE, term, access),))


def unknown(
    algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType], result: TensorType
) -> View:
    """The operator as an opaque function of its whole operands, apart from the axes it treats one by one."""
    # Equal numbers of different dtypes are one value, but an operator may treat them differently.
    key = (op, tuple("float" if t.dtype.is_float else t.dtype.value for t in types))
    try:
        return coalesce(opaque(algebra, key, views, result, _roles(op, views)))
    except NotAView:  # operands that share an axis are cut there in ways that do not nest
        nothing: Mapping[int, int] = {}
        return coalesce(opaque(algebra, key, views, result, [nothing] * len(views)))


def as_view(algebra: Algebra, value: Value) -> View:
    """Pieces as one term: their concatenation as an opaque function along the axis."""
    if isinstance(value, View):
        return value
    if 0 in value.shape:  # of no elements, however they lie
        return algebra.zero(tuple((n,) for n in value.shape))
    axis, rank = value.axis, len(value.shape)
    if value.outer != 1:
        length = divide(value.shape[axis], value.outer)
        assert length is not None
        shape = (*value.shape[:axis], value.outer, length, *value.shape[axis + 1 :])
        return as_view(algebra, reshape(as_view(algebra, reshape(value, shape)), value.shape))
    # Of a part of one element some programs read the index along the axis, and others do not.
    parts = [plain_parts(as_view(algebra, part), axis) for part in value.parts]
    keep: Mapping[int, int] = {a: a for a in range(rank) if a != axis}
    joined = TensorType(value.shape, DType.F32)
    try:
        return opaque(algebra, (ops.Concatenate(axis), ()), parts, joined, [keep] * len(parts))
    except NotAView:
        nothing: Mapping[int, int] = {}
        return opaque(algebra, (ops.Concatenate(axis), ()), parts, joined, [nothing] * len(parts))


def _roles(op: Operator, views: Sequence[View]) -> list[Mapping[int, int]]:
    """Operand axes that are result axes with equal index, for operators that are otherwise opaque."""
    rank = len(views[0].dims) if views else 0
    if isinstance(op, ops.Ordering):
        return [{a: a for a in range(rank) if a != op.along(rank)}]
    if isinstance(op, ops.ReduceWindow):
        still = [a for a in range(rank) if op.window[a] == 1 and op.strides[a] == 1 and op.padding[a] == (0, 0)]
        return [{a: a for a in still}]
    if isinstance(op, ops.DynamicUpdateSlice):
        # Along an axis that the update covers its start is moved to zero, whatever it is.
        covered = {a: a for a in range(rank) if views[0].shape[a] == views[1].shape[a]}
        return [covered, covered, *({} for _ in views[2:])]
    if isinstance(op, ops.Scatter):
        batching = dict(zip(op.scatter_indices_batching_dims, op.input_batching_dims, strict=True))
        numbers = [a for a in range(len(views[1].dims)) if a != op.index_vector_dim]
        axes = [a for a in range(len(views[2].dims)) if a not in op.update_window_dims]
        updates = {axes[k]: batching[a] for k, a in enumerate(numbers) if a in batching}
        # A window that covers an axis, along which it does not move, is read and written place by place.
        pairs = zip(op.update_window_dims, op.window_axes(rank), strict=True)
        still = {own: a for own, a in pairs if views[2].shape[own] == views[0].shape[a]}
        still = {own: a for own, a in still.items() if a not in op.scatter_dims_to_operand_dims}
        batching_axes = {a: a for a in op.input_batching_dims}
        return [{**batching_axes, **{a: a for a in still.values()}}, batching, {**updates, **still}]
    if isinstance(op, ops.Convolution):
        return [{0: 0}, {0: 1} if op.feature_groups == 1 else {}]
    return [{} for _ in views]
