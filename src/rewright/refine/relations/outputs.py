"""How the ranks hold each output of the sequential program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product

from rewright.claims.language import Index, View
from rewright.ir.dims import Dim, divide
from rewright.ir.errors import RewrightError
from rewright.ir.placement import AxisRuns, Mesh, Placement, place
from rewright.lifting.arithmetic.reduction import combine, split_alike
from rewright.lifting.moves.layout import reshape, slice_axis, tidy
from rewright.lifting.programs import Lifter
from rewright.lifting.recognition.expansion import multiplied_out
from rewright.lifting.recognition.unit_axes import plain
from rewright.lifting.terms.algebra import align
from rewright.lifting.terms.value import NotAView, Value, with_digits

_MOST_CANDIDATES = 64


def same(lifter: Lifter, left: Value, right: Value, *, expand: bool = False) -> bool:
    """Whether two values are one tensor in normal form, or with ``expand`` as sums of products, which takes long."""
    left, right = plain(left), plain(right)
    if left == right:
        return True
    if left.shape != right.shape:
        return False
    if 0 in left.shape:
        return True  # tensors without elements, as of a rank that has no rows of a parameter
    try:
        cut = split_alike([left, right])
        if cut is not None:
            return all(same(lifter, *row, expand=expand) for row in cut.rows)
        algebra = lifter.algebra
        views = align([_without_ones(v) for v in (left, right) if isinstance(v, View)])
        first, second = (algebra.settle(v.dims, [algebra.folds.close(a) for a in v.addends]) for v in views)
    except NotAView:
        return False
    return first == second or (expand and _same_products(lifter, first, second))


def _same_products(lifter: Lifter, first: View, second: View) -> bool:
    """Whether two sums are of the same products; looked at where rows stand alone, which is where sums are of few."""
    if first.dims != second.dims:
        return False
    algebra, close = lifter.algebra, lifter.algebra.folds.close  # a sum may have opened its folds again
    with algebra.spending(algebra.effort_for_outputs):
        left, right = (multiplied_out(algebra, [close(a) for a in view.addends]) for view in (first, second))
    return left is not None and left == right


def _without_ones(view: View) -> View:
    """The view without parts of axes that have one value: a rank's only head among those that share a key, say."""
    replacements: list[Index] = []
    for digits in view.dims:
        for digit in digits:
            kept = sum(len(index[1]) for index in replacements)
            replacements.append((0, ()) if digit == 1 else (0, ((kept, 1),)))
    dims = tuple(tuple(digit for digit in digits if digit != 1) for digits in view.dims)
    return with_digits(view, dims, replacements)


def holds(
    lifter: Lifter, value: Value, locals_: Sequence[Value], placement: Placement, mesh: Mesh, *, expand: bool = False
) -> bool:
    """Whether the ranks hold a global value under a placement; partial ones are reduced first."""
    done: set[tuple[int, ...]] = set()
    for rank in range(mesh.size):
        group = mesh.group(rank, placement.partial)
        if group in done:
            continue
        done.add(group)
        try:
            wanted = tidy(_window(lifter, value, placement, rank))
            if placement.partial:
                kind = {"sum": "sum", "max": "maximum", "min": "minimum"}[placement.reduction]
                held = combine(lifter.algebra, kind, [locals_[r] for r in group])
            else:
                held = locals_[rank]
        except NotAView:
            return False
        if not same(lifter, wanted, held, expand=expand):
            return False
    return True


def _window(lifter: Lifter, value: Value, placement: Placement, rank: int) -> Value:
    """What a rank holds of a value; pieces of equal blocks are one slice of an axis of blocks."""
    for axis, runs in enumerate(placement.runs[rank]):
        if len(runs) > 1:
            (start, length), size = runs[0], value.shape[axis]
            spacing = divide(size, len(runs))
            if spacing is None or any(run != (start + k * spacing, length) for k, run in enumerate(runs)):
                return lifter.window(value, placement, rank)
            shape = list(value.shape)
            shape[axis : axis + 1] = [len(runs), spacing]
            part = slice_axis(reshape(value, tuple(shape)), axis + 1, start, start + length)
            shape[axis : axis + 2] = [len(runs) * length]
            value = reshape(part, tuple(shape))
        elif runs:
            value = slice_axis(value, axis, runs[0][0], runs[0][0] + runs[0][1])
        else:
            value = slice_axis(value, axis, 0, 0)
    return value


def infer(
    lifter: Lifter, value: Value, locals_: Sequence[Value], mesh: Mesh, *, expand: bool = False
) -> Placement | None:
    """The simplest placement under which the ranks hold a value; partial ones are tried last."""
    for count, placement in enumerate(_candidates(value, locals_, mesh)):
        if count > _MOST_CANDIDATES:
            return None
        if holds(lifter, value, locals_, placement, mesh, expand=expand):
            return placement
    return None


def _candidates(value: Value, locals_: Sequence[Value], mesh: Mesh) -> Iterator[Placement]:
    axes = range(len(value.shape))
    choices = ["Replicate()", *(f"Shard({axis})" for axis in axes)]
    clean = sorted(product(choices, repeat=len(mesh.axes)), key=lambda c: sum(x != "Replicate()" for x in c))
    for spelled in clean:
        placement = _fitting(value, locals_, mesh, spelled)
        if placement is not None:
            yield placement
    yield from _stride(value, locals_, mesh)
    for count in range(1, len(mesh.axes) + 1):
        for partial in combinations(range(len(mesh.axes)), count):
            for spelled in clean:
                mixed = ["Partial(sum)" if k in partial else text for k, text in enumerate(spelled)]
                if all(spelled[k] == "Replicate()" for k in partial):
                    placement = _fitting(value, locals_, mesh, mixed)
                    if placement is not None:
                        yield placement


def _stride(value: Value, locals_: Sequence[Value], mesh: Mesh) -> Iterator[Placement]:
    """Shards of an inner part of a flattened axis, as of the heads where batch and heads are one axis.

    DTensor's ``_StridedShard``; the outer part is what the leading digits of a rank's axis say it is.
    """
    first, parts = locals_[0], mesh.size
    if len(mesh.axes) != 1 or not isinstance(first, View) or any(v.shape != first.shape for v in locals_):
        return
    if len(first.shape) != len(value.shape):
        return
    for axis, (size, own) in enumerate(zip(value.shape, first.shape, strict=True)):
        if not isinstance(size, int) or not isinstance(own, int) or size != own * parts or parts == 1:
            continue
        if any(a != b for k, (a, b) in enumerate(zip(value.shape, first.shape, strict=True)) if k != axis):
            continue
        outer = 1
        for digit in first.dims[axis][:-1]:
            if not isinstance(digit, int):
                break
            outer *= digit
            if outer > 1 and own % outer == 0:
                yield strided_shard(value.shape, parts, axis, outer)


def strided_shard(shape: Sequence[Dim], parts: int, axis: int, outer: int) -> Placement:
    """An axis of ``outer`` equal blocks, each of which is split over all ranks of a mesh of one axis."""
    size = shape[axis]
    assert isinstance(size, int)
    block, piece = size // outer, size // (outer * parts)
    runs: list[tuple[AxisRuns, ...]] = []
    for rank in range(parts):
        own = tuple((start * block + rank * piece, piece) for start in range(outer))
        runs.append(tuple(own if k == axis else ((0, n),) for k, n in enumerate(shape)))
    return Placement(tuple(runs), (f"_StridedShard(dim={axis}, sf={outer})",))


def _fitting(value: Value, locals_: Sequence[Value], mesh: Mesh, spelled: Sequence[str]) -> Placement | None:
    try:
        placement = place(value.shape, mesh, spelled)
    except RewrightError:
        return None
    shapes = [placement.local_shape(rank) for rank in range(mesh.size)]
    return placement if all(s == v.shape for s, v in zip(shapes, locals_, strict=True)) else None


def equation(
    name: str, placement: Placement, mesh: Mesh, label: str | None = None, ranks: Sequence[int] | None = None
) -> str:
    """``name = clean expression over rank tensors`` of a placement with at most one sharded mesh axis, else words.

    ``label`` is what the ranks call it, where that is another name; ``ranks`` are the numbers of the mesh's ranks,
    where it is a part of another mesh.
    """
    held = label or name
    numbers = list(range(mesh.size)) if ranks is None else ranks
    if "@" in placement.printed[0]:
        return f"{name} = {placement.printed[0]}"
    busy = [k for k, text in enumerate(placement.printed) if text != "Replicate()"]
    if not busy:
        return f"{name} = {held}@{numbers[0]}"
    if len(busy) > 1 or not placement.printed[busy[0]].startswith(("Shard", "Partial")):
        return f"{name} is held as {placement}" + (f" by {held}" if held != name else "")
    axis_name, size = mesh.axes[busy[0]]
    group = mesh.group(0, (axis_name,))
    shown = [f"{held}@{numbers[r]}" for r in group]
    if size > 4:
        shown = [*shown[:2], "..", shown[-1]]
    text = placement.printed[busy[0]]
    if text.startswith("Partial"):
        return f"{name} = {' + '.join(shown)}"
    return f"{name} = concat([{', '.join(shown)}], axis={text.removeprefix('Shard(').rstrip(')')})"
