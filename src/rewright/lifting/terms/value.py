"""What the engine knows about one tensor of one program: a sum of windows into terms, or pieces along an axis.

A :class:`View` says that the element at local index ``(i0, i1, ..)`` is ``sum of coefficient * term[access]``. Every
local axis is a list of *digits* (mixed radix, outermost first): reshapes move digits between axes and compute
nothing. ``parts`` of an addend say how much of each fold inside its term has been summed so far.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Union

from rewright.claims.language import Access, Addend, Index, View
from rewright.ir.dims import Dim, Shape, divide
from rewright.lifting.terms.index import substitute
from rewright.lifting.terms.regions import NotAView, Region

Digits = tuple[Dim, ...]
Parts = tuple[tuple[int, Region], ...]
"""For each fold inside the term (by class), the region of its range that has been summed; empty means all."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """A tensor as a concatenation of parts that are no single window together.

    The axis counts as ``outer`` rows; the parts lie along the rows. With one row they lie along the axis.
    """

    axis: int
    outer: Dim
    parts: tuple[Value, ...]

    @property
    def shape(self) -> Shape:
        """The local shape."""
        first = self.parts[0].shape
        along: Dim = sum((part.shape[self.axis] for part in self.parts), start=0)
        return (*first[: self.axis], along, *first[self.axis + 1 :])


Value = Union[View, Pieces]


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
    if size == 1 and (position >= len(target) or target[position] != 1):
        return (0, ()), position  # its only value
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
    """Merge neighbouring digits that every addend reads as one, and drop digits of size one that none reads.

    Neither is one kept that an addend reads backwards: the only one of parts in falling order is no place among them.
    """
    if all(len(digits) == 1 and digits[0] != 1 for digits in view.dims):
        return view
    names = variables_of(view.dims)
    count = sum(len(d) for d in view.dims)
    steps = {item for a in view.addends for _, terms in a.access for item in terms}
    read = {v for v, _ in steps} - {v for v, step in steps if isinstance(step, int) and step < 0}
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


def plain_axis(view: View, axis: int) -> View:
    """The view without the digits of one value of an axis, none of which it reads any more."""
    return _without_ones(view, {axis})


def plain_parts(view: View, axis: int) -> View:
    """The same for one axis and for all of more than one value, where a digit of one value is no axis of its own."""
    several = {k for k, digits in enumerate(view.dims) if any(n != 1 for n in digits)}
    return _without_ones(view, {axis, *several})


def _without_ones(view: View, axes: Set[int]) -> View:
    names = variables_of(view.dims)
    out = {v for axis in axes for v, n in zip(names[axis], view.dims[axis], strict=True) if n == 1}
    moved: list[Index] = []
    fresh = 0
    for v in range(sum(len(digits) for digits in view.dims)):
        moved.append((0, () if v in out else ((fresh, 1),)))
        fresh += v not in out
    dims = tuple(tuple(n for n in d if n != 1) if axis in axes else d for axis, d in enumerate(view.dims))
    return with_digits(view, dims, moved)
