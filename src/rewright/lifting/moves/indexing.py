"""Gather, scatter and opaque functions on views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from rewright import ops
from rewright.claims.language import Addend, Index, View
from rewright.ir.dims import Dim, Shape
from rewright.lifting.arithmetic.products import multiply
from rewright.lifting.arithmetic.reduction import combine, reduce
from rewright.lifting.masks.nested_guards import simplify, take
from rewright.lifting.masks.truths import integer_test
from rewright.lifting.moves.layout import assemble, broadcast, reshape, slice_axis, transpose
from rewright.lifting.recognition.quotients import place
from rewright.lifting.terms import regions
from rewright.lifting.terms.algebra import Algebra, align
from rewright.lifting.terms.regions import Region
from rewright.lifting.terms.store import ONE, Operand
from rewright.lifting.terms.value import Digits, NotAView, Value, common_digits, refine, variables_of, with_digits


def components(indices: Value, vector_dim: int, count: int) -> list[View]:
    """The index tensors along the index vector axis of StableHLO's gather and scatter, that axis removed."""
    if vector_dim == len(indices.shape):
        if not isinstance(indices, View):
            raise NotAView("indices in pieces")
        return [indices]
    shape = (*indices.shape[:vector_dim], *indices.shape[vector_dim + 1 :])
    found: list[View] = []
    for k in range(count):
        one = reshape(slice_axis(indices, vector_dim, k, k + 1), shape)
        if not isinstance(one, View):
            raise NotAView("indices in pieces")
        found.append(one)
    return found


def counted(algebra: Algebra, op: ops.Scatter, indices: Value) -> tuple[tuple[int, int], ...]:
    """The components of an index that count its vectors along one of their axes, with the number of that axis."""
    try:
        parts = components(indices, op.index_vector_dim, len(op.scatter_dims_to_operand_dims))
    except NotAView:
        return ()
    found: list[tuple[int, int]] = []
    for number, part in enumerate(parts):
        index = place(algebra, part)
        names = variables_of(part.dims)
        axes = [axis for axis, own in enumerate(names) if index == (0, ((own[0], 1),))] if all(names) else []
        found += [(number, axis) for axis in axes if len(names[axis]) == 1]
    return tuple(found)


def gather(
    algebra: Algebra, op: ops.Gather, data: View, indices: View, result: Shape, *, is_masked: bool = False
) -> View:
    """Reads of data at the values of index tensors; an index that is affine in the position is a plain view.

    ``is_masked``: what is read at an index out of range is multiplied with zero.
    """
    parts = components(indices, op.index_vector_dim, len(op.start_index_map))
    batch_axes = [a for a in range(len(result)) if a not in op.offset_dims]
    dims: list[Digits] = [()] * len(result)
    for k, axis in enumerate(batch_axes):
        dims[axis] = common_digits([p.dims[k] for p in parts]) if parts else (result[axis],)
    names_of_batch = [a for a in range(len(indices.dims)) if a != op.index_vector_dim]
    batching = {
        axis: batch_axes[names_of_batch.index(b)]
        for axis, b in zip(op.operand_batching_dims, op.start_indices_batching_dims, strict=True)
    }
    offsets = [a for a in range(len(data.dims)) if a not in (*op.collapsed_slice_dims, *op.operand_batching_dims)]
    fine: list[Digits] = list(data.dims)
    for axis, target in zip(offsets, op.offset_dims, strict=True):
        whole = op.slice_sizes[axis] == data.shape[axis]
        dims[target] = data.dims[axis] if whole else (op.slice_sizes[axis],)
        if not whole and len(data.dims[axis]) > 1:
            raise NotAView("a window of a split axis")
    for axis, target in batching.items():
        dims[target] = fine[axis] = common_digits([dims[target], data.dims[axis]])
    source = refine(data, fine)
    target_names, source_names = variables_of(dims), variables_of(source.dims)
    replacements: list[Index] = [(0, ())] * sum(len(d) for d in source.dims)
    for axis, target in [*batching.items(), *zip(offsets, op.offset_dims, strict=True)]:
        for old, new in zip(source_names[axis], target_names[target], strict=False):
            replacements[old] = (0, ((new, 1),))
    for number, axis in enumerate(op.start_index_map, start=1):
        if data.shape[axis] == 1 and not source_names[axis]:
            continue
        if len(source_names[axis]) != 1:
            raise NotAView("an index into a split axis")
        (low, strides) = replacements[source_names[axis][0]]
        replacements[source_names[axis][0]] = (low, ((-number, 1), *strides))
    order = [dims[axis] for axis in batch_axes]
    index_addends = [_index(algebra, refine(p, order), batch_axes, target_names, dims) for p in parts]
    if not is_masked:
        stay_in_range(algebra, op, parts, data.shape)
    # Addends are joined first: the numbers of index operands mean nothing inside of a sum.
    joined = View(source.dims, algebra.solid(source, linear=True))
    read = with_digits(joined, tuple(dims), replacements)
    return algebra.settle(read.dims, [b for a in read.addends for b in take(algebra.terms, a, index_addends)])


def stay_in_range(algebra: Algebra, op: ops.Gather, parts: Sequence[View], shape: Shape) -> None:
    """Record that the indices of a look-up into a shape are in range; raises NotAView where they are not."""
    check = assume_in_range if algebra.sequential else require_in_range
    for part, axis in zip(parts, op.start_index_map, strict=True):
        check(algebra, part, shape[axis] - op.slice_sizes[axis] + 1)


def _index(
    algebra: Algebra, part: View, batch_axes: Sequence[int], names: Sequence[Sequence[int]], dims: Sequence[Digits]
) -> Addend:
    """An index tensor over the variables of the result."""
    replacements: list[Index] = [(0, ((v, 1),)) for axis in batch_axes for v in names[axis]]
    return algebra.close(with_digits(part, tuple(dims), replacements))


def assume_in_range(algebra: Algebra, index: View, size: Dim) -> None:
    """Record what the sequential program needs to be defined: its indices lie in [0, size)."""
    wanted = regions.intervals(0, size)
    addend = algebra.close(index)
    constant, scale, term = algebra.integer(index)
    if term is None or not isinstance(size, int):
        return
    lengths = [n for digits in index.dims for n in digits]
    if algebra.terms.inside[term[0]]:
        _assume_masked(algebra, addend, wanted, index)
    direct = regions.preimage(wanted, scale, constant)
    if _whole(algebra, term):
        algebra.facts.learn(term, lengths, direct)


def require_in_range(algebra: Algebra, index: View, size: Dim) -> None:
    """A rank's look-up must be defined wherever the sequential program is; raises NotAView where it is not.

    What cannot be decided is remembered, so that the verdict says it among its assumptions.
    """
    holds = _stays_in_range(algebra, index, size)
    if holds is False:
        raise NotAView("a look-up out of range")
    if holds is None:
        algebra.facts.leave_unchecked([a.term for a in index.addends])


def _stays_in_range(algebra: Algebra, index: View, size: Dim) -> bool | None:
    constant, scale, term = algebra.integer(index)
    if not isinstance(size, int):
        return None
    if term is None:
        return 0 <= constant < size
    lengths = [n for digits in index.dims for n in digits]
    if term[0] == algebra.terms.index:
        possible = _positions(term, lengths)
    else:
        possible = algebra.guards.possible(algebra.facts.name_operand(term, lengths)[0], regions.EVERYTHING)
    inside = regions.preimage(regions.intervals(0, size), scale, constant)
    if possible is None or possible == regions.EVERYTHING:
        return None
    return regions.intersect(possible, inside) == possible


def _positions(term: Operand, lengths: Sequence[Dim]) -> Region | None:
    """The positions that a window of the index covers; None where sizes are symbols or strides turn back."""
    low, strides = term[1][0]
    high = low
    for var, stride in strides:
        length = lengths[var]
        if not isinstance(stride, int) or stride < 0 or not isinstance(length, int):
            return None
        high = high + stride * (length - 1)
    return regions.intervals(low, high + 1) if isinstance(low, int) and isinstance(high, int) else None


def _assume_masked(algebra: Algebra, addend: Addend, wanted: Region, index: View) -> None:
    """``select(t in S, t + c, k)`` in range says that t is outside of S, or t + c in range."""
    tested = algebra.terms.inside[addend.term]
    for value in tested:
        if algebra.facts.has(value):
            continue
        if algebra.terms.arity[value] != len(addend.access):
            continue
        operand: Operand = (value, addend.access)
        for inner in algebra.terms.tests(addend.term, value):
            outside = regions.complement(inner)
            allowed: list[Region] = []
            for part in (inner, outside):
                simple = simplify(algebra.terms, (addend.term, addend.access), operand, part)
                view = View(index.dims, (Addend(addend.coefficient * simple.coefficient, simple.term, simple.access),))
                constant, scale, term = algebra.integer(view)
                if term is None:
                    if any(_holds(constant, low, high) for ((low, high),), _ in wanted):
                        allowed.append(part)
                elif term == operand:
                    allowed.append(regions.intersect(part, regions.preimage(wanted, scale, constant)))
                else:
                    break
            else:
                algebra.facts.learn(operand, [n for digits in index.dims for n in digits], regions.add(allowed))


def _holds(value: Fraction, low: object, high: object) -> bool:
    return isinstance(low, int) and isinstance(high, int) and low <= value < high


def _whole(algebra: Algebra, operand: Operand) -> bool:
    """Whether a fact about the values read is worth keeping for the term: positions have their own laws."""
    term = operand[0]
    return term != algebra.terms.index and not algebra.terms.open[term]


def scatter_sum(algebra: Algebra, op: ops.Scatter, shape: Shape, indices: View, updates: View) -> Value:
    """Sum of updates into zeros: an indicator that index and position agree, summed over the updates."""
    parts = components(indices, op.index_vector_dim, len(op.scatter_dims_to_operand_dims))
    scatter_axes = [a for a in range(len(updates.dims)) if a not in op.update_window_dims]
    windows = [a for a in range(len(shape)) if a not in (*op.inserted_window_dims, *op.input_batching_dims)]
    names_of_batch = [a for a in range(len(indices.dims)) if a != op.index_vector_dim]
    place: dict[int, int] = dict(zip(op.update_window_dims, windows, strict=True))
    for axis, b in zip(op.input_batching_dims, op.scatter_indices_batching_dims, strict=True):
        place[scatter_axes[names_of_batch.index(b)]] = axis
    summed = [a for a in scatter_axes if a not in place]
    for k, axis in enumerate(summed):
        place[axis] = len(shape) + k
    if any(axis in windows for axis in op.scatter_dims_to_operand_dims):
        raise NotAView("a scatter of windows at moving positions")
    sizes = (*shape, *(updates.shape[a] for a in summed))
    wide = broadcast_view(updates, sizes, [place[a] for a in range(len(updates.dims))])
    bodies = [View(wide.dims, ())]
    inside: list[Value] = []
    for addend in algebra.solid(wide, linear=True):
        body = View(wide.dims, (addend,))
        cuts: dict[int, tuple[int, int]] = {}
        for part, axis in zip(parts, op.scatter_dims_to_operand_dims, strict=True):
            spread = broadcast_view(part, sizes, [place[scatter_axes[k]] for k in range(len(part.dims))])
            body, cut = _where_index(algebra, spread, axis, shape[axis], body)
            cuts |= {} if cut is None else {axis: cut}
        if cuts:
            inside.append(_only_inside(algebra, reduce(algebra, "sum", body, range(len(shape), len(sizes))), cuts))
        else:
            bodies.append(body)
    total = algebra.add(align(bodies), [ONE] * len(bodies))
    return combine(algebra, "sum", [reduce(algebra, "sum", total, range(len(shape), len(sizes))), *inside])


def _only_inside(algebra: Algebra, value: Value, cuts: Mapping[int, tuple[int, int]]) -> Value:
    """A value within some positions of some axes, and zero elsewhere."""
    for axis, (low, high) in cuts.items():
        size = value.shape[axis]
        assert isinstance(size, int)
        sides = [(*value.shape[:axis], n, *value.shape[axis + 1 :]) for n in (low, size - high)]
        zeros = [algebra.zero(tuple((n,) for n in shape)) for shape in sides]
        parts = [zeros[0], slice_axis(value, axis, low, high), zeros[1]]
        value = assemble([part for part in parts if part.shape[axis]], axis, 1)
    return value


def _where_index(
    algebra: Algebra, index: View, axis: int, size: Dim, body: View
) -> tuple[View, tuple[int, int] | None]:
    """The body where the index equals the position along an axis, and the only positions where that is not zero.

    A test of the index that the body has is one of the position there, which all positions meet if none is given.
    """
    addend = next(iter(body.addends), None)
    if addend is None:
        return body, None
    if len(body.addends) > 1:
        raise NotAView("a scatter of a sum")
    addend = algebra.guards.outside(addend)
    guard, cut = algebra.guards.guard_of(addend), None
    if guard is not None:
        value, region, bare = guard
        index = algebra.guards.assume(value, region, index)
        met = _positions_met(algebra, index, value, region, size)
        if met is not None:
            addend, cut = bare, None if met == (0, size) else met
    position = View(index.dims, (Addend(ONE, algebra.terms.index, ((0, ((variables_of(index.dims)[axis][0], 1),)),)),))
    if len(index.dims[axis]) != 1:
        raise NotAView("a scatter into a split axis")
    dims = tuple(common_digits([a, b]) for a, b in zip(index.dims, body.dims, strict=True))
    index, position, fine = refine(index, dims), refine(position, dims), refine(View(body.dims, (addend,)), dims)
    test = integer_test(algebra, algebra.add([index, position], [ONE, Fraction(-1)]), regions.intervals(0, 1))
    if not test.addends or not fine.addends:
        return View(dims, ()), None
    return multiply(algebra, test, fine), cut


def _positions_met(algebra: Algebra, index: View, value: Operand, region: Region, size: Dim) -> tuple[int, int] | None:
    """From where to where in [0, size) an index is a position and a test of it holds; None where that is no range.

    Positions that the index is never at count as well.
    """
    constant, scale, term = algebra.integer(index)
    if term != value or scale != 1 or not isinstance(size, int):
        return None
    window = regions.intervals(-int(constant), size - int(constant))
    possible = algebra.guards.possible(value[0], window)
    if regions.intersect(possible, region) == possible:
        return 0, size
    met = regions.single(regions.intersect(window, region))
    if met is None or not isinstance(met[0][0], int) or not isinstance(met[0][1], int):
        return None
    return met[0][0] + int(constant), met[0][1] + int(constant)


def broadcast_view(view: View, shape: Shape, dimensions: Sequence[int]) -> View:
    """Spread a view over more axes, which may be permuted."""
    order = sorted(range(len(dimensions)), key=lambda k: dimensions[k])
    spread = broadcast(transpose(view, order), shape, [dimensions[k] for k in order])
    assert isinstance(spread, View)
    return spread
