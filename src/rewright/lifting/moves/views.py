"""Layout operations on one window: digits move, split and merge, and nothing is computed.

Each raises NotAView where the result is no single window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rewright.claims.language import Addend, Index, View
from rewright.ir.dims import Dim, Shape, divide, product
from rewright.lifting.terms.index import rename
from rewright.lifting.terms.value import Digits, NotAView, coalesce, plain_axis, variables_of, with_digits

_MOST_CUTS = 9


def reshape(value: View, shape: Shape) -> View:
    """Move digits between axes; not a view where an axis boundary cuts through a digit unevenly."""
    pool: list[tuple[int, Dim]] = list(enumerate(n for d in value.dims for n in d))
    count = len(pool)
    dims: list[Digits] = []
    taken: list[tuple[int, Dim]] = []
    for size in shape:
        digits: list[Dim] = []
        rest = size
        if size == 1 and pool:
            digits.append(1)
            taken.append((pool[0][0], 1))
            if pool[0][1] == 1:
                pool.pop(0)
        while rest != 1:
            rest = _move_digit(pool, rest, digits, taken, shape)
        dims.append(tuple(digits))
    if dims:
        dims[-1] = (*dims[-1], *(n for _, n in pool))
    taken.extend(pool)
    if any(n != 1 for _, n in pool):
        raise NotAView(f"reshape to {shape}")
    replacements: list[Index] = []
    for var in range(count):
        stride: Dim = 1
        strides: list[tuple[int, Dim]] = []
        for name in range(len(taken) - 1, -1, -1):
            if taken[name][0] == var and dims:
                strides.append((name, stride))
                stride = stride * taken[name][1]
        replacements.append((0, tuple(sorted(strides))))
    return coalesce(with_digits(value, tuple(dims), replacements))


def _move_digit(
    pool: list[tuple[int, Dim]], rest: Dim, digits: list[Dim], taken: list[tuple[int, Dim]], shape: Shape
) -> Dim:
    """Move the next digit, or its outer part, to the axis that is being filled; returns what is left to fill."""
    if not pool:
        raise NotAView(f"reshape to {shape}")
    var, length = pool[0]
    whole = divide(rest, length)
    if whole is not None and whole != 0:
        pool.pop(0)
        digits.append(length)
        taken.append((var, length))
        return whole
    inner = divide(length, rest) if rest != 0 else None
    if inner is None:
        raise NotAView(f"reshape to {shape} cuts a digit of {length}")
    pool[0] = (var, inner)
    digits.append(rest)
    taken.append((var, rest))
    return 1


def transpose(value: View, permutation: Sequence[int]) -> View:
    """Permute the axes."""
    names = variables_of(value.dims)
    order = [v for axis in permutation for v in names[axis]]
    positions = {old: new for new, old in enumerate(order)}
    return View(
        tuple(value.dims[axis] for axis in permutation),
        tuple(
            Addend(a.coefficient, a.term, tuple(rename(i, positions) for i in a.access), a.parts) for a in value.addends
        ),
    )


def broadcast(value: View, shape: Shape, dimensions: Sequence[int]) -> View:
    """Operand axis k becomes result axis dimensions[k]; size one expands."""
    names = variables_of(value.dims)
    dims: list[Digits] = []
    replacements: list[Index] = [(0, ())] * sum(len(d) for d in value.dims)
    fresh = 0
    source = {target: axis for axis, target in enumerate(dimensions)}
    for target, size in enumerate(shape):
        axis = source.get(target)
        if axis is not None and (product(value.dims[axis]) != 1 or size == 1):
            for old in names[axis]:
                replacements[old] = (0, ((fresh, 1),))
                fresh += 1
            dims.append(value.dims[axis])
        else:
            dims.append((size,))
            fresh += 1
    return with_digits(value, tuple(dims), replacements)


def slice_axis(value: View, axis: int, start: Dim, limit: Dim, stride: int) -> View:
    """Elements start, start+stride, .. below limit of one axis."""
    digits = value.dims[axis]
    if len(digits) > 1:
        return _slice_digits(value, axis, start, limit, stride)
    if isinstance(start, int) and isinstance(limit, int):
        length: Dim = max(0, -(-(limit - start) // stride))
    elif stride == 1:
        length = limit - start
    else:
        raise NotAView("strided slice of a symbolic axis")
    name = variables_of(value.dims)[axis]
    count = sum(len(d) for d in value.dims)
    replacements: list[Index] = [(0, ((v, 1),)) for v in range(count)]
    dims = (*value.dims[:axis], (length,), *value.dims[axis + 1 :])
    if name:
        replacements[name[0]] = (start, ((name[0], stride),))
        return with_digits(value, dims, replacements)
    for v in range(sum(len(d) for d in value.dims[:axis]), count):
        replacements[v] = (0, ((v + 1, 1),))
    return with_digits(value, dims, replacements)


def _slice_digits(value: View, axis: int, start: Dim, limit: Dim, stride: int) -> View:
    digits = value.dims[axis]
    inner = product(digits[1:])
    outermost = variables_of(value.dims)[axis][0]
    replacements: list[Index] = [(0, ((v, 1),)) for v in range(sum(len(d) for d in value.dims))]
    low, high = divide(start, inner), divide(limit, inner)
    if stride == 1 and low is not None and high is not None:
        replacements[outermost] = (low, ((outermost, 1),))
        dims = (*value.dims[:axis], (high - low, *digits[1:]), *value.dims[axis + 1 :])
        return with_digits(value, dims, replacements)
    if isinstance(start, int) and isinstance(limit, int) and isinstance(inner, int) and inner:
        outer = start // inner
        if limit > start and outer == (limit - 1) // inner:
            replacements = [(0, ((v if v < outermost else v - 1, 1),)) for v in range(len(replacements))]
            replacements[outermost] = (outer, ())
            fixed = with_digits(value, (*value.dims[:axis], digits[1:], *value.dims[axis + 1 :]), replacements)
            return slice_axis(fixed, axis, start - outer * inner, limit - outer * inner, stride)
    raise NotAView("slice through digits")


def cuts(value: View, axis: int, start: Dim, limit: Dim) -> list[tuple[int, int]]:
    """A range of an axis in parts that do not cut through digits; not a view where they are many."""
    inner = product(value.dims[axis][1:])
    if isinstance(start, int) and isinstance(limit, int) and isinstance(inner, int) and inner and limit > start:
        ends = [start, *range((start // inner + 1) * inner, limit, inner), limit]
        if 2 < len(ends) <= _MOST_CUTS:
            return list(zip(ends, ends[1:], strict=False))
    raise NotAView("slice through digits")


def join(left: View, right: View, axis: int) -> View | None:
    """One window for two neighbours, where the second continues the first; indices of one value may be left out."""
    if not _alike(left, right):
        return None
    ways = [(left, right)]
    if any(1 in digits for view in (left, right) for digits in view.dims):
        ways += [(plain_axis(left, axis), plain_axis(right, axis)), (_plain_axes(left), _plain_axes(right))]
    several = (together(*way, axis) for together in (_continue, _stack) for way in ways)
    return next((found for found in several if found is not None), None)


def _plain_axes(view: View) -> View:
    """The view with no index of one value read, along any axis."""
    for axis in range(len(view.dims)):
        view = plain_axis(view, axis)
    return view


def _alike(left: View, right: View) -> bool:
    """Whether two views are of the same terms, wherever they read them."""
    if len(left.addends) != len(right.addends):
        return False
    pairs = zip(left.addends, right.addends, strict=True)
    return all((x.coefficient, x.term, x.parts) == (y.coefficient, y.term, y.parts) for x, y in pairs)


def _beside(left: View, right: View, count: Dim) -> bool:
    """Whether all that a view of the same terms reads begins where another begins, or so many places behind."""
    pairs = zip(left.addends, right.addends, strict=True)
    places = [(i[0], j[0]) for x, y in pairs for i, j in zip(x.access, y.access, strict=True)]
    return all(there in (here, here + count) for here, there in places)


def _stack(left: View, right: View, axis: int) -> View | None:
    """Some rows and one more that is read at the next place of some axis, as the results of neighbours are stacked."""
    if right.shape[axis] != 1 or not _beside(left, right, left.shape[axis]):
        return None
    right = _unread(right, axis)
    left = _unread(left, axis) if left.shape[axis] == 1 else left
    if len(left.dims[axis]) != 1:
        return None
    if left.dims[:axis] != right.dims[:axis] or left.dims[axis + 1 :] != right.dims[axis + 1 :]:
        return None
    count, outer = left.dims[axis][0], variables_of(left.dims)[axis][0]
    addends: list[Addend] = []
    for x, y in zip(left.addends, right.addends, strict=True):
        access = [_next_place(i, j, outer, count) for i, j in zip(x.access, y.access, strict=True)]
        if any(index is None for index in access):
            return None
        addends.append(replace(x, access=tuple(index for index in access if index is not None)))
    return View((*left.dims[:axis], (count + 1,), *left.dims[axis + 1 :]), tuple(addends))


def _next_place(left: Index, right: Index, outer: int, count: Dim) -> Index | None:
    """The index of rows counted by a variable, and of the row after them; None where that one is elsewhere."""
    (c, t), (d, u) = left, right
    read = dict(t).get(outer)
    if tuple(item for item in t if item[0] != outer) != u:
        return None
    if d == c + count and (read == 1 or (read is None and count == 1)):
        return c, tuple(sorted((*u, (outer, 1))))
    return left if d == c and read is None else None


def _unread(view: View, axis: int) -> View:
    """A view of one row with one digit for it, which nothing reads."""
    bare = plain_axis(view, axis)
    before, count = sum(len(digits) for digits in bare.dims[:axis]), sum(len(digits) for digits in bare.dims)
    moved: list[Index] = [(0, ((v if v < before else v + 1, 1),)) for v in range(count)]
    return with_digits(bare, (*bare.dims[:axis], (1,), *bare.dims[axis + 1 :]), moved)


def _continue(left: View, right: View, axis: int) -> View | None:
    if left.dims[:axis] != right.dims[:axis] or left.dims[axis + 1 :] != right.dims[axis + 1 :]:
        return None
    a, b = left.dims[axis], right.dims[axis]
    if len(a) != len(b) or a[1:] != b[1:] or not a:
        return None
    outer = variables_of(left.dims)[axis][0]
    for x, y in zip(left.addends, right.addends, strict=True):
        for (c, t), (d, u) in zip(x.access, y.access, strict=True):
            if t != u or c + dict(t).get(outer, 0) * a[0] != d:
                return None
    dims = (*left.dims[:axis], (a[0] + b[0], *a[1:]), *left.dims[axis + 1 :])
    return View(dims, left.addends)


def reverse(value: View, axis: int) -> View:
    """Reverse one axis."""
    replacements: list[Index] = [(0, ((v, 1),)) for v in range(sum(len(d) for d in value.dims))]
    for name, size in zip(variables_of(value.dims)[axis], value.dims[axis], strict=True):
        replacements[name] = (size - 1, ((name, -1),))
    return with_digits(value, value.dims, replacements)
