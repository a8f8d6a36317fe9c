"""Ways to read indices of one value: every way is right, and one may be the sequential program's.

An index variable of length one may stand for an axis of which there is one element here, as a slice leaves it, or for
nothing: a reshape makes axes of one as it likes. In the sequential program these are never read. A rank that holds one
head reshapes to an axis of heads, so what it reads is tried as it is, and without some.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import replace
from itertools import combinations, islice, product
from typing import TYPE_CHECKING

from rewright.claims.language import Index, View
from rewright.lifting.terms.index import variables_in
from rewright.lifting.terms.value import NotAView, Pieces, Value, coalesce, plain_axis, with_digits

if TYPE_CHECKING:
    from rewright.lifting.terms.algebra import Algebra

_MOST = 3
"""More indices of one value than this are left out all together or not at all."""

_MOST_WAYS = 8
"""Ways to read an axis more that are tried."""


def plain(value: Value) -> Value:
    """The value with no index of one value read."""
    if isinstance(value, Pieces):
        return Pieces(value.axis, value.outer, tuple(plain(part) for part in value.parts))
    return plain_view(value)


def plain_view(view: View) -> View:
    """The view with no index of one value read."""
    return _without(view, _ones(view))


def plainer(values: Sequence[Value]) -> Iterator[list[Value]]:
    """The operands of an operator with indices of one value left out: as few as may be, at last all of them."""
    bare = [plain(value) for value in values]
    if bare == list(values):
        return
    reads = [(k, v) for k, value in enumerate(values) if isinstance(value, View) for v in sorted(_ones(value))]
    for count in range(1, len(reads)) if len(reads) <= _MOST else ():
        for chosen in combinations(reads, count):
            yield [_left_out(value, k, chosen) for k, value in enumerate(values)]
    yield bare


def reads_ones(value: Value) -> bool:
    """Whether any index of one value is read."""
    return any(map(reads_ones, value.parts)) if isinstance(value, Pieces) else bool(_ones(value))


def recognise(algebra: Algebra, compute: Callable[[Sequence[View]], View], views: Sequence[View]) -> View:
    """What an operator computes from views, with those of their indices read that make it the sequential program's.

    Raises NotAView where it does so for the operands as they are.
    """
    found = compute(views)
    if algebra.sequential or algebra.is_familiar(found) or algebra.is_strange(*views):
        return found
    for others in plainer(views):
        try:
            other = compute([v for v in others if isinstance(v, View)])
        except NotAView:
            continue
        if algebra.is_familiar(other):
            return other
    return found


def _left_out(value: Value, operand: int, chosen: Sequence[tuple[int, int]]) -> Value:
    out = {v for k, v in chosen if k == operand}
    return _without(value, out) if out and isinstance(value, View) else value


def open_axes(views: Sequence[View]) -> Iterator[list[View]]:
    """The operands with one axis more, of one element: the one at which they read some axes of their terms.

    A rank that holds one head may have no axis for it; what it computes may still be one head of what is computed for
    all of them. Operands that read no axis at that element stay as they are.
    """
    addends = [a for view in views for a in view.addends]
    places = [[(low, k) for k, (low, strides) in enumerate(a.access) if not strides] for a in addends]
    for value in dict.fromkeys(low for found in places for low, _ in found):
        chosen = [[k for low, k in found if low == value] or [None] for found in places]
        for ways in islice(product(*chosen), _MOST_WAYS):
            way = iter(ways)
            yield [_open(view, [next(way) for _ in view.addends]) for view in views]


def _open(view: View, places: Sequence[int | None]) -> View:
    fresh = sum(len(digits) for digits in view.dims)
    addends = [
        a if k is None else replace(a, access=(*a.access[:k], (a.access[k][0], ((fresh, 1),)), *a.access[k + 1 :]))
        for a, k in zip(view.addends, places, strict=True)
    ]
    return View((*view.dims, (1,)), tuple(addends))


def shut(view: View) -> View:
    """The view without the axis that opening its operands added."""
    axis = len(view.dims) - 1
    kept = plain_axis(view, axis)
    return View(kept.dims[:axis], kept.addends)


def _ones(view: View) -> set[int]:
    """The variables of one value that some addend reads."""
    lengths = [n for digits in view.dims for n in digits]
    return {v for a in view.addends for v in variables_in(a.access) if lengths[v] == 1}


def _without(view: View, variables: Set[int]) -> View:
    if not variables:
        return view
    count = sum(len(digits) for digits in view.dims)
    kept: list[Index] = [(0, () if v in variables else ((v, 1),)) for v in range(count)]
    return coalesce(with_digits(view, view.dims, kept))
