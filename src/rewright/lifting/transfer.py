"""One operator applied to what is known about its operands: one function for each operator family."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial

from rewright import ops
from rewright.claims.language import Addend, View
from rewright.ir.dims import Shape, divide, product
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.operator import Operator
from rewright.ir.types import DType, TensorType
from rewright.lifting.arithmetic.distributed_argmax import first_of_all
from rewright.lifting.arithmetic.pointwise import pointwise
from rewright.lifting.arithmetic.reduction import among_numbers, combine, dot_general, reduce, split_alike
from rewright.lifting.moves.indexing import gather, opaque, scatter_sum
from rewright.lifting.moves.layout import (
    assemble,
    broadcast,
    concatenate,
    lengthwise,
    reshape,
    reverse_axis,
    slice_axis,
    slice_rows,
    tidy,
    transpose,
)
from rewright.lifting.moves.padding import pad
from rewright.lifting.recognition.equal_steps import of_sequential
from rewright.lifting.recognition.placed import written_out
from rewright.lifting.recognition.quotients import place
from rewright.lifting.recognition.tables import constant
from rewright.lifting.recognition.unit_axes import open_axes, plain, plain_view, plainer, reads_ones, recognise, shut
from rewright.lifting.terms.algebra import Algebra, align
from rewright.lifting.terms.store import ONE
from rewright.lifting.terms.value import NotAView, Pieces, Value, coalesce, plain_parts, variables_of
from rewright.ops.reference.convolution import as_products

Law = Callable[[Algebra, Operator, Sequence[Value], Sequence[TensorType], TensorType], Value]


def transfer(
    algebra: Algebra, op: Operator, values: Sequence[Value], types: Sequence[TensorType], result: TensorType
) -> Value:
    """The value of an operator's result; an operator without a law becomes an opaque function of its operands."""
    if algebra.forms.plain:
        known = [written_out(algebra.terms, plain(value)) for value in values]
        return written_out(algebra.terms, plain(_transferred(algebra, op, known, types, result)))
    found = _transferred(algebra, op, values, types, result)
    if algebra.sequential and isinstance(op, ops.Reshape) and not reads_ones(values[0]):
        return plain(found)
    if algebra.sequential or isinstance(op, ops.Layout) or _is_familiar(algebra, found):
        return found
    if algebra.is_strange(*(value for value in values if isinstance(value, View))):
        return found
    for others in plainer(values):
        other = _transferred(algebra, op, others, types, result)
        if _is_familiar(algebra, other):
            algebra.count_use("(another reading of one of many)")
            return other
    return found


def _is_familiar(algebra: Algebra, value: Value) -> bool:
    if isinstance(value, Pieces):
        return all(_is_familiar(algebra, part) for part in value.parts)
    return algebra.is_familiar(value)


def _transferred(
    algebra: Algebra, op: Operator, values: Sequence[Value], types: Sequence[TensorType], result: TensorType
) -> Value:
    try:
        return tidy(apply_law(algebra, op, values, types, result))
    except NotAView:
        pass
    whole = [as_view(algebra, v) for v in values]
    if any(isinstance(v, Pieces) for v in values):
        try:
            return tidy(apply_law(algebra, op, whole, types, result))
        except NotAView:
            pass
    algebra.count_use("(no law)")
    return unknown(algebra, op, whole, types, result)


def apply_law(
    algebra: Algebra, op: Operator, values: Sequence[Value], types: Sequence[TensorType], result: TensorType
) -> Value:
    """The value that an operator's law gives; raises NotAView where it has none for such operands."""
    if isinstance(op, ops.Elementwise):
        return elementwise(algebra, op, values, types)
    law = LAWS.get(type(op))
    if law is None:
        raise NotAView(op.name)
    if 0 in result.shape:  # no elements, whatever they are computed from
        return algebra.zero(tuple((n,) for n in result.shape))
    return law(algebra, op, values, types, result)


def elementwise(algebra: Algebra, op: Operator, values: Sequence[Value], types: Sequence[TensorType]) -> Value:
    """An elementwise operator, piece by piece where an operand is in pieces."""
    cut = split_alike(values)
    if cut is not None and cut.is_stack and algebra.sequential and not any(map(reads_ones, values)):
        # What is stacked is read at no index, as everywhere in the sequential program.
        return cut.join([tidy(elementwise(algebra, op, list(map(plain, row)), types)) for row in cut.rows])
    if cut is not None:
        return cut.join([tidy(elementwise(algebra, op, row, types)) for row in cut.rows])

    def compute(views: Sequence[View]) -> View:
        return pointwise(algebra, op, align(views), types)

    views = [v for v in values if isinstance(v, View)]
    found = recognise(algebra, compute, views)
    if algebra.sequential or algebra.is_familiar(found) or len(views) < 2 or algebra.is_strange(*views):
        return found
    # A rank that holds one head may have no axis for it; what it computes may be one head of what all of them are.
    for longer in open_axes(align([plain_view(v) for v in views])):
        one = compute(longer)
        if algebra.is_familiar(one):
            return shut(one)
    return found


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
    if isinstance(op, ops.Sort):
        return [{a: a for a in range(rank) if a != op.dimension % max(rank, 1)}]
    if isinstance(op, ops.TopK):
        return [{a: a for a in range(rank - 1)}]
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
        return [{a: a for a in op.input_batching_dims}, batching, updates]
    if isinstance(op, ops.Convolution):
        return [{0: 0}, {0: 1} if op.feature_groups == 1 else {}]
    return [{} for _ in views]


def _constant(
    algebra: Algebra, op: Operator, values: Sequence[Value], types: Sequence[TensorType], result: TensorType
) -> Value:
    assert isinstance(op, ops.Constant)
    return constant(algebra, op.values, result.shape)


def _iota(
    algebra: Algebra, op: Operator, values: Sequence[Value], types: Sequence[TensorType], result: TensorType
) -> Value:
    assert isinstance(op, ops.Iota)
    access = ((0, ((op.dimension, 1),)),)
    return View(tuple((n,) for n in result.shape), (Addend(ONE, algebra.terms.index, access),))


def _broadcast(
    algebra: Algebra, op: Operator, values: Sequence[Value], types: Sequence[TensorType], result: TensorType
) -> Value:
    assert isinstance(op, ops.BroadcastInDim)
    return broadcast(values[0], op.shape, op.dimensions)


def _reshape(
    algebra: Algebra, op: Operator, values: Sequence[Value], types: Sequence[TensorType], result: TensorType
) -> Value:
    assert isinstance(op, ops.Reshape)
    return reshape(values[0], op.shape)


def _transpose(
    algebra: Algebra, op: Operator, values: Sequence[Value], types: Sequence[TensorType], result: TensorType
) -> Value:
    assert isinstance(op, ops.Transpose)
    return transpose(values[0], op.permutation)


def _slice(
    algebra: Algebra, op: Operator, values: Sequence[Value], types: Sequence[TensorType], result: TensorType
) -> Value:
    assert isinstance(op, ops.Slice)
    value = values[0]
    for axis, (start, limit, stride) in enumerate(zip(op.start, op.limit, op.stride, strict=True)):
        value = slice_axis(value, axis, start, limit, stride)
    return value


def _pad(
    algebra: Algebra, op: Operator, values: Sequence[Value], types: Sequence[TensorType], result: TensorType
) -> Value:
    assert isinstance(op, ops.Pad)
    return pad(op, values[0], values[1])


def _concatenate(
    algebra: Algebra, op: Operator, values: Sequence[Value], types: Sequence[TensorType], result: TensorType
) -> Value:
    assert isinstance(op, ops.Concatenate)
    return concatenate(values, op.dimension)


def _reverse(
    algebra: Algebra, op: Operator, values: Sequence[Value], types: Sequence[TensorType], result: TensorType
) -> Value:
    assert isinstance(op, ops.Reverse)
    value = values[0]
    for axis in op.dimensions:
        value = reverse_axis(value, axis)
    return value


def _dot(
    algebra: Algebra, op: Operator, values: Sequence[Value], types: Sequence[TensorType], result: TensorType
) -> Value:
    assert isinstance(op, ops.DotGeneral)
    return dot_general(algebra, op, values[0], values[1])


def _convolution(
    algebra: Algebra, op: Operator, values: Sequence[Value], types: Sequence[TensorType], result: TensorType
) -> Value:
    """The sum of what the elements of the kernel add; one function of all where sums of products are not looked for."""
    assert isinstance(op, ops.Convolution)
    graph = _in_products(op, *types) if algebra.forms.products else None
    if graph is None:
        raise NotAView(op.name)
    found: list[Value] = []
    given = iter(values)
    for node in graph.nodes:
        if isinstance(node.op, ops.Input):
            found.append(next(given))
            continue
        kinds = [graph.nodes[p].type for p in node.operands]
        found.append(transfer(algebra, node.op, [found[p] for p in node.operands], kinds, node.type))
    return found[graph.outputs["result"]]


@lru_cache(256)
def _in_products(op: ops.Convolution, x: TensorType, kernel: TensorType) -> Graph | None:
    builder = GraphBuilder("convolution")
    places = [builder.input(name, ops.Input(name, kind)) for name, kind in (("x", x), ("kernel", kernel))]
    total = as_products(builder, op, *places)
    if total is None:
        return None
    builder.output("result", total)
    return builder.build()


def _reduce(
    algebra: Algebra, op: Operator, values: Sequence[Value], types: Sequence[TensorType], result: TensorType
) -> Value:
    assert isinstance(op, ops.Reduce)
    if product(types[0].shape[a] for a in op.dimensions) == 0:
        if op.kind != "sum":
            raise NotAView("an empty reduction")
        return algebra.zero(tuple((n,) for n in result.shape))
    found = reduce(algebra, among_numbers(op.kind, types[0].dtype), values[0], op.dimensions)
    in_parts = isinstance(values[0], Pieces) and values[0].axis in op.dimensions
    return of_sequential(algebra, found) if in_parts and op.kind == "sum" else found


def _gather(
    algebra: Algebra, op: Operator, values: Sequence[Value], types: Sequence[TensorType], result: TensorType
) -> Value:
    assert isinstance(op, ops.Gather)
    data, indices = values
    if isinstance(data, Pieces) and isinstance(indices, View):
        rows = _rows_in_order(algebra, op, data, indices, result)
        if rows is not None:
            return rows
        found = first_of_all(algebra, op, data, indices, partial(_applied, algebra))
        if found is not None:
            return found
    if isinstance(indices, Pieces) or isinstance(data, Pieces):
        return _gather_pieces(algebra, op, values, types, result)
    return recognise(algebra, lambda views: gather(algebra, op, views[0], views[1], result.shape), [data, indices])


def _rows_in_order(algebra: Algebra, op: ops.Gather, data: Pieces, indices: View, result: TensorType) -> Value | None:
    """A table in pieces that is looked up at places one after the other is a part of the table; None where it is not.

    So are the places of a sequence that was put in another order, of which each rank takes its part.
    """
    is_table = len(data.shape) == 1 and op.start_index_map == (0,) and op.index_vector_dim == len(indices.dims)
    whole = place(algebra, indices) if is_table else None
    if whole is None or len(whole[1]) != 1 or whole[1][0][1] != 1:
        return None
    low, ((variable, _),) = whole
    axis = next((k for k, names in enumerate(variables_of(indices.dims)) if names == [variable]), None)
    if axis is None:
        return None
    length, size = indices.shape[axis], data.shape[0]
    if not isinstance(low, int) or not isinstance(length, int) or not isinstance(size, int):
        return None
    if not 0 <= low <= size - length:
        return None
    return broadcast(slice_axis(data, 0, low, low + length), result.shape, [axis])


def _applied(algebra: Algebra, op: Operator, value: Value, kind: TensorType, result: TensorType) -> Value:
    """The value of an operator of one operand that has no law."""
    return tidy(unknown(algebra, op, [as_view(algebra, value)], [kind], result))


def _gather_pieces(
    algebra: Algebra, op: ops.Gather, values: Sequence[Value], types: Sequence[TensorType], result: TensorType
) -> Value:
    """Gather piece by piece along an axis of the indices or one that is read whole, else from pieces as one term."""
    data, indices = values
    if not isinstance(indices, Pieces) or indices.axis == op.index_vector_dim:
        if isinstance(data, Pieces) and _is_read_whole(op, data.shape, data.axis):
            return _gather_from_pieces(algebra, op, data, indices, types, result)
        if isinstance(data, Pieces) and isinstance(indices, View) and data.axis in op.operand_batching_dims:
            return _gather_alongside(algebra, op, data, indices, types, result)
        return gather(algebra, op, as_view(algebra, data), as_view(algebra, indices), result.shape)
    axes = [a for a in range(len(indices.shape)) if a != op.index_vector_dim]
    out = [a for a in range(result.rank) if a not in op.offset_dims][axes.index(indices.axis)]
    parts: list[Value] = []
    for part, start, length in lengthwise(indices):
        rows = data
        if indices.axis in op.start_indices_batching_dims:
            axis = op.operand_batching_dims[op.start_indices_batching_dims.index(indices.axis)]
            rows = slice_rows(data, indices, axis, start, start + length)
        shape = (*result.shape[:out], part.shape[indices.axis], *result.shape[out + 1 :])
        parts.append(_gather(algebra, op, (rows, part), types, result.with_shape(shape)))
    return assemble(parts, out, indices.outer)


def _is_read_whole(op: ops.Gather, shape: Shape, axis: int) -> bool:
    """Whether every window of a gather holds all of an axis of the data."""
    looked_up = (*op.start_index_map, *op.collapsed_slice_dims, *op.operand_batching_dims)
    return axis not in looked_up and op.slice_sizes[axis] == shape[axis]


def _gather_from_pieces(
    algebra: Algebra, op: ops.Gather, data: Pieces, indices: Value, types: Sequence[TensorType], result: TensorType
) -> Value:
    """The same elements of every piece, in pieces along the axis of the result that holds theirs."""
    windows = [a for a in range(len(data.shape)) if a not in (*op.collapsed_slice_dims, *op.operand_batching_dims)]
    out = op.offset_dims[windows.index(data.axis)]
    parts: list[Value] = []
    for part in data.parts:
        length = part.shape[data.axis]
        sizes = (*op.slice_sizes[: data.axis], length, *op.slice_sizes[data.axis + 1 :])
        shape = (*result.shape[:out], length, *result.shape[out + 1 :])
        one = replace(op, slice_sizes=sizes)
        parts.append(_gather(algebra, one, (part, indices), types, result.with_shape(shape)))
    return assemble(parts, out, data.outer)


def _gather_alongside(
    algebra: Algebra, op: ops.Gather, data: Pieces, indices: View, types: Sequence[TensorType], result: TensorType
) -> Value:
    """A look-up in every piece by the indices for it, where data and indices share the axis of the pieces."""
    axis = op.start_indices_batching_dims[op.operand_batching_dims.index(data.axis)]
    axes = [a for a in range(len(indices.shape)) if a != op.index_vector_dim]
    out = [a for a in range(result.rank) if a not in op.offset_dims][axes.index(axis)]
    parts: list[Value] = []
    for part, start, length in lengthwise(data):
        rows = slice_rows(indices, data, axis, start, start + length)
        shape = (*result.shape[:out], part.shape[data.axis], *result.shape[out + 1 :])
        parts.append(_gather(algebra, op, (part, rows), types, result.with_shape(shape)))
    return assemble(parts, out, data.outer)


def _scatter(
    algebra: Algebra, op: Operator, values: Sequence[Value], types: Sequence[TensorType], result: TensorType
) -> Value:
    assert isinstance(op, ops.Scatter)
    if op.kind != "sum":
        raise NotAView("scatter " + op.kind)
    base, indices, updates = values
    return combine(algebra, "sum", [base, _scatter_sum(algebra, op, indices, updates, result.shape)])


def _scatter_sum(algebra: Algebra, op: ops.Scatter, indices: Value, updates: Value, shape: Shape) -> Value:
    """Scatter into zeros, piece by piece where the indices or the updates are in pieces along a scattered axis."""
    if isinstance(indices, View) and isinstance(updates, View):
        return scatter_sum(algebra, op, shape, indices, updates)
    rows = [a for a in range(len(indices.shape)) if a != op.index_vector_dim]
    columns = [a for a in range(len(updates.shape)) if a not in op.update_window_dims]
    pieces = indices if isinstance(indices, Pieces) else updates
    assert isinstance(pieces, Pieces)
    own = rows if pieces is indices else columns
    if pieces.axis not in own:
        return scatter_sum(algebra, op, shape, as_view(algebra, indices), as_view(algebra, updates))
    number = own.index(pieces.axis)
    batch = op.scatter_indices_batching_dims
    axis = op.input_batching_dims[batch.index(rows[number])] if rows[number] in batch else None
    results: list[Value] = []
    for part, start, length in lengthwise(pieces):
        if pieces is indices:
            pair = part, slice_rows(updates, pieces, columns[number], start, start + length)
        else:
            pair = slice_rows(indices, pieces, rows[number], start, start + length), part
        own_shape = shape if axis is None else (*shape[:axis], part.shape[pieces.axis], *shape[axis + 1 :])
        results.append(_scatter_sum(algebra, op, *pair, own_shape))
    return combine(algebra, "sum", results) if axis is None else assemble(results, axis, pieces.outer)


LAWS: dict[type[Operator], Law] = {
    ops.Constant: _constant,
    ops.Iota: _iota,
    ops.BroadcastInDim: _broadcast,
    ops.Reshape: _reshape,
    ops.Transpose: _transpose,
    ops.Slice: _slice,
    ops.Pad: _pad,
    ops.Concatenate: _concatenate,
    ops.Reverse: _reverse,
    ops.Convolution: _convolution,
    ops.DotGeneral: _dot,
    ops.Reduce: _reduce,
    ops.Gather: _gather,
    ops.Scatter: _scatter,
}
