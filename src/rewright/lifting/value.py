"""What the engine knows about one tensor of one program: a sum of windows into terms, or pieces along an axis.

A :class:`View` says that the element at local index ``(i0, i1, ..)`` is ``sum of coefficient * term[access]``. Every
local axis is a list of *digits* (mixed radix, outermost first): reshapes move digits between axes and compute
nothing. ``parts`` of an addend say how much of each fold inside its term has been summed so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Union

from rewright.ir.dims import Dim, Shape, divide, product
from rewright.lifting.index import Access, Index, rename, substitute
from rewright.lifting.regions import Region

Digits = tuple[Dim, ...]
Parts = tuple[tuple[int, Region], ...]
"""For each fold inside the term (by class), the region of its range that has been summed; empty means all."""


@dataclass(frozen=True, slots=True)
class Addend:
    """``coefficient * term[access]``, the folds in ``parts`` restricted to their regions."""

    coefficient: Fraction
    term: int
    access: Access
    parts: Parts = ()


@dataclass(frozen=True, slots=True)
class View:
    """A tensor as a sum of windows; ``dims`` are the digits of every axis, variables are numbered across them."""

    dims: tuple[Digits, ...]
    addends: tuple[Addend, ...]

    @property
    def shape(self) -> Shape:
        """The local shape."""
        return tuple(product(digits) for digits in self.dims)


@dataclass(frozen=True, slots=True)
class Pieces:
    """A tensor as a concatenation along one axis of parts that are no single window together."""

    axis: int
    parts: tuple[Value, ...]

    @property
    def shape(self) -> Shape:
        """The local shape."""
        first = self.parts[0].shape
        along: Dim = sum((part.shape[self.axis] for part in self.parts), start=0)
        return (*first[: self.axis], along, *first[self.axis + 1 :])


Value = Union[View, Pieces]


class NotAView(Exception):
    """A layout operation that is no piecewise affine view; the caller keeps the operation as an opaque term."""


def variables_of(dims: Sequence[Digits]) -> list[list[int]]:
    """The variable numbers of each axis."""
    out: list[list[int]] = []
    start = 0
    for digits in dims:
        out.append(list(range(start, start + len(digits))))
        start += len(digits)
    return out


def with_digits(view: View, dims: tuple[Digits, ...], replacements: Sequence[Index]) -> View:
    """The view with old variables replaced by indices over the variables of new dims."""
    return View(
        dims,
        tuple(
            Addend(a.coefficient, a.term, tuple(substitute(i, replacements) for i in a.access), a.parts)
            for a in view.addends
        ),
    )


def refine(view: View, wanted: Sequence[Digits]) -> View:
    """Split digits so that every axis has exactly the wanted digits; raises NotAView where they do not nest."""
    if view.dims == tuple(wanted):
        return view
    replacements: list[Index] = []
    new = variables_of(wanted)
    for digits, target, names in zip(view.dims, wanted, new, strict=True):
        position = 0
        for size in digits:
            index, position = _take_digits(size, target, names, position)
            replacements.append(index)
        if any(t != 1 for t in target[position:]):
            raise NotAView("digits do not nest")
    return with_digits(view, tuple(wanted), replacements)


def _take_digits(size: Dim, target: Digits, names: list[int], position: int) -> tuple[Index, int]:
    """The next target digits whose product is size, as an index over their variables."""
    chosen: list[tuple[int, Dim]] = []
    total: Dim = 1
    while total != size or (not chosen and position < len(target)):
        if position >= len(target):
            raise NotAView("digits do not nest")
        chosen.append((names[position], target[position]))
        total = total * target[position]
        position += 1
        if len(chosen) > 8:
            raise NotAView("digits do not nest")
    strides: list[tuple[int, Dim]] = []
    stride: Dim = 1
    for name, length in reversed(chosen):
        strides.append((name, stride))
        stride = stride * length
    return (0, tuple(sorted(strides))), position


def common_digits(many: Sequence[Digits]) -> Digits:
    """The coarsest digits that refine all the given ones of equal product; raises NotAView where none nest."""
    first = many[0]
    if all(d == first for d in many):
        return first
    out: list[Dim] = []
    rests = [[n for n in digits if n != 1] for digits in many]
    while any(rests):
        if not all(rests):
            raise NotAView("axes of different sizes")
        inner = [rest[-1] for rest in rests]
        step = inner[0]
        for size in inner[1:]:
            if step == size:
                continue
            smaller = size if divide(step, size) is not None else step
            if divide(size, smaller) is None or divide(step, smaller) is None:
                raise NotAView("digits do not nest")
            step = smaller
        for rest in rests:
            left = divide(rest[-1], step)
            assert left is not None
            if left == 1:
                rest.pop()
            else:
                rest[-1] = left
        out.append(step)
    ones = max((digits for digits in many), key=lambda d: sum(1 for n in d if n == 1))
    return _with_ones(tuple(reversed(out)), ones)


def _with_ones(digits: Digits, pattern: Digits) -> Digits:
    """Re-insert digits of size one where the pattern has them, so that a single shard keeps its digit."""
    out: list[Dim] = []
    rest = list(digits)
    for size in pattern:
        if size == 1:
            out.append(1)
            continue
        total: Dim = 1
        while total != size and rest:
            total = total * rest[0]
            out.append(rest.pop(0))
    return tuple(out + rest)


def coalesce(view: View) -> View:
    """Merge neighbouring digits that every addend reads as one, and drop digits of size one that none reads."""
    if all(len(digits) == 1 and digits[0] != 1 for digits in view.dims):
        return view
    names = variables_of(view.dims)
    count = sum(len(d) for d in view.dims)
    read = {v for a in view.addends for _, terms in a.access for v, _ in terms}
    for axis, digits in enumerate(view.dims):
        for k, size in enumerate(digits):
            outer = names[axis][k]
            drop = size == 1 and outer not in read
            if not drop and k + 1 < len(digits):
                drop = all(_mergeable(a.access, outer, outer + 1, digits[k + 1]) for a in view.addends)
                size = size if drop else 1
            if drop:
                rest = digits[k + 1 :] if size == 1 else (size * digits[k + 1], *digits[k + 2 :])
                dims = (*view.dims[:axis], (*digits[:k], *rest), *view.dims[axis + 1 :])
                # The merged digit keeps the inner variable's stride; the outer one is absorbed in it.
                moved: list[Index] = [(0, ((v if v < outer else v - 1, 1),)) for v in range(count)]
                moved[outer] = (0, ())
                return coalesce(with_digits(view, dims, moved))
    return view


def _mergeable(access: Access, outer: int, inner: int, inner_size: Dim) -> bool:
    """Whether outer*inner_size + inner is what the access reads wherever either variable occurs."""
    for _, terms in access:
        strides = dict(terms)
        if strides.get(outer, 0) != strides.get(inner, 0) * inner_size:
            return False
    return True


def reshape(value: Value, shape: Shape) -> Value:
    """Move digits between axes; raises NotAView where an axis boundary cuts through a digit unevenly."""
    if value.shape == shape:
        return value
    if isinstance(value, Pieces):
        return _reshape_pieces(value, shape)
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


def _reshape_pieces(value: Pieces, shape: Shape) -> Value:
    """Reshape piece by piece where the axis of the pieces keeps its stride."""
    before, after = product(value.shape[: value.axis]), product(value.shape[value.axis + 1 :])
    outer: Dim = 1
    for axis, size in enumerate(shape):
        inner = product(shape[axis + 1 :])
        if outer == before and (divide(after, inner) is not None or divide(inner, after) is not None):
            parts: list[Value] = []
            for part in value.parts:
                length = divide(part.shape[value.axis] * after, inner)
                if length is None:
                    break
                parts.append(reshape(part, (*shape[:axis], length, *shape[axis + 1 :])))
            else:
                if sum((p.shape[axis] for p in parts), start=0) == size and _same_digits(value, parts, axis):
                    return concatenate(parts, axis)
        outer = outer * size
    raise NotAView(f"reshape of pieces to {shape}")


def _same_digits(value: Pieces, parts: Sequence[Value], axis: int) -> bool:
    """Whether the axis of the pieces took in no other digit: one head of a shard is merged like many heads are."""
    return all(
        isinstance(old, View) and isinstance(new, View) and len(new.dims[axis]) <= len(old.dims[value.axis])
        for old, new in zip(value.parts, parts, strict=True)
    )


def transpose(value: Value, permutation: Sequence[int]) -> Value:
    """Permute the axes."""
    if isinstance(value, Pieces):
        moved = tuple(transpose(part, permutation) for part in value.parts)
        return Pieces(list(permutation).index(value.axis), moved)
    names = variables_of(value.dims)
    order = [v for axis in permutation for v in names[axis]]
    positions = {old: new for new, old in enumerate(order)}
    return View(
        tuple(value.dims[axis] for axis in permutation),
        tuple(
            Addend(a.coefficient, a.term, tuple(rename(i, positions) for i in a.access), a.parts) for a in value.addends
        ),
    )


def broadcast(value: Value, shape: Shape, dimensions: Sequence[int]) -> Value:
    """StableHLO's broadcast_in_dim: operand axis k becomes result axis dimensions[k]; size one expands."""
    if isinstance(value, Pieces):
        parts: list[Value] = []
        for part in value.parts:
            target = list(shape)
            target[dimensions[value.axis]] = part.shape[value.axis]
            parts.append(broadcast(part, tuple(target), dimensions))
        return concatenate(parts, dimensions[value.axis])
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


def slice_axis(value: Value, axis: int, start: Dim, limit: Dim, stride: int = 1) -> Value:
    """Elements start, start+stride, .. below limit of one axis; raises NotAView where that cuts digits unevenly."""
    size = value.shape[axis]
    if start == 0 and limit == size and stride == 1:
        return value
    if isinstance(value, Pieces):
        return _slice_pieces(value, axis, start, limit, stride)
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
    if name:
        replacements[name[0]] = (start, ((name[0], stride),))
        return with_digits(value, (*value.dims[:axis], (length,), *value.dims[axis + 1 :]), replacements)
    for v in range(count):
        if v >= sum(len(d) for d in value.dims[:axis]):
            replacements[v] = (0, ((v + 1, 1),))
    return with_digits(value, (*value.dims[:axis], (length,), *value.dims[axis + 1 :]), replacements)


def _slice_digits(value: View, axis: int, start: Dim, limit: Dim, stride: int) -> Value:
    digits = value.dims[axis]
    inner = product(digits[1:])
    names = variables_of(value.dims)[axis]
    count = sum(len(d) for d in value.dims)
    replacements: list[Index] = [(0, ((v, 1),)) for v in range(count)]
    low, high = divide(start, inner), divide(limit, inner)
    if stride == 1 and low is not None and high is not None:
        replacements[names[0]] = (low, ((names[0], 1),))
        dims = (*value.dims[:axis], (high - low, *digits[1:]), *value.dims[axis + 1 :])
        return with_digits(value, dims, replacements)
    if isinstance(start, int) and isinstance(limit, int) and isinstance(inner, int) and inner:
        outer = start // inner
        if limit > start and outer == (limit - 1) // inner:
            replacements[names[0]] = (outer, ((names[0], 1),))
            fixed = with_digits(value, (*value.dims[:axis], (1, *digits[1:]), *value.dims[axis + 1 :]), replacements)
            dropped = reshape(fixed, fixed.shape)
            return _drop_leading_one(dropped, axis, start - outer * inner, limit - outer * inner, stride)
        if stride == 1 and limit > start:
            cuts = [start, *range((outer + 1) * inner, limit, inner), limit]
            if len(cuts) <= 9:
                return concatenate([slice_axis(value, axis, a, b) for a, b in zip(cuts, cuts[1:], strict=False)], axis)
    raise NotAView("slice through digits")


def _drop_leading_one(value: Value, axis: int, start: int, limit: int, stride: int) -> Value:
    """Slice inside the single outer index of a split axis."""
    assert isinstance(value, View)
    names = variables_of(value.dims)[axis]
    count = sum(len(d) for d in value.dims)
    replacements: list[Index] = [(0, ((v if v < names[0] else v - 1, 1),)) for v in range(count)]
    replacements[names[0]] = (0, ())
    digits = value.dims[axis][1:]
    return slice_axis(
        with_digits(value, (*value.dims[:axis], digits, *value.dims[axis + 1 :]), replacements),
        axis,
        start,
        limit,
        stride,
    )


def _slice_pieces(value: Pieces, axis: int, start: Dim, limit: Dim, stride: int) -> Value:
    if axis != value.axis:
        return concatenate([slice_axis(part, axis, start, limit, stride) for part in value.parts], value.axis)
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


def concatenate(parts: Sequence[Value], axis: int) -> Value:
    """Join along an axis; neighbours that continue each other become one window again."""
    flat: list[Value] = []
    for part in parts:
        inner = part.parts if isinstance(part, Pieces) and part.axis == axis else (part,)
        for piece in inner:
            if piece.shape[axis] == 0 and len(parts) > 1:
                continue
            joined = _join(flat[-1], piece, axis) if flat else None
            if joined is None:
                flat.append(piece)
            else:
                flat[-1] = joined
    if not flat:
        return parts[0]
    return flat[0] if len(flat) == 1 else Pieces(axis, tuple(flat))


def _join(left: Value, right: Value, axis: int) -> Value | None:
    """One value for two neighbours, where the second continues the first."""
    if isinstance(left, Pieces) or isinstance(right, Pieces):
        if isinstance(left, Pieces) and isinstance(right, Pieces) and left.axis == right.axis != axis:
            pairs = zip(left.parts, right.parts, strict=False)
            joined = [_join(a, b, axis) if a.shape[left.axis] == b.shape[left.axis] else None for a, b in pairs]
            if len(left.parts) == len(right.parts) and all(j is not None for j in joined):
                return Pieces(left.axis, tuple(j for j in joined if j is not None))
        return None
    if len(left.addends) != len(right.addends) or left.dims[:axis] != right.dims[:axis]:
        return None
    if left.dims[axis + 1 :] != right.dims[axis + 1 :]:
        return None
    a, b = left.dims[axis], right.dims[axis]
    if len(a) != len(b) or a[1:] != b[1:] or not a:
        return None
    outer = variables_of(left.dims)[axis][0]
    for x, y in zip(left.addends, right.addends, strict=True):
        if x.coefficient != y.coefficient or x.term != y.term or x.parts != y.parts:
            return None
        for (c, t), (d, u) in zip(x.access, y.access, strict=True):
            if t != u or c + dict(t).get(outer, 0) * a[0] != d:
                return None
    dims = (*left.dims[:axis], (a[0] + b[0], *a[1:]), *left.dims[axis + 1 :])
    return View(dims, left.addends)


def reverse_axis(value: Value, axis: int) -> Value:
    """Reverse one axis."""
    if isinstance(value, Pieces):
        parts = [reverse_axis(part, axis) for part in value.parts]
        return concatenate(parts[::-1] if axis == value.axis else parts, value.axis)
    replacements: list[Index] = [(0, ((v, 1),)) for v in range(sum(len(d) for d in value.dims))]
    for name, size in zip(variables_of(value.dims)[axis], value.dims[axis], strict=True):
        replacements[name] = (size - 1, ((name, -1),))
    return with_digits(value, value.dims, replacements)
