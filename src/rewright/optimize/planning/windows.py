"""Reductions over a loop that is read together with another one, ``x[i + k - 2]``: the sliding windows of a pooling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rewright.optimize.scalars.expressions import Expression, Table, walk
from rewright.optimize.scalars.ranges import number_span
from rewright.optimize.scalars.simplify import as_index
from rewright.optimize.scalars.values import identity
from rewright.terms.index import Index, Variable


@dataclass(frozen=True)
class Window:
    """``reduce over k < width of body[stride i + k - low]``, which is the identity outside of ``0 <= j < size``.

    The body may read tensors at an offset from j, as that of a pooling of a part does.
    """

    loop: str
    """The loop i."""
    body: Expression
    """The body at the loop ``place``, which takes the place of ``stride i + k - low``."""
    place: str
    size: int
    """How many values ``place`` has."""
    width: int
    stride: int
    low: int
    high: int
    """Elements before and after the body that windows reach into."""


def window_of(table: Table, e: Expression, sizes: Mapping[str, int]) -> Window | None:
    """What a reduction is as sliding windows; None where it is none, or where they leave the body."""
    assert e.bound is not None
    body, conditions = _guard(e)
    reading = next((i for i in _indices(body, e.bound.index) if _is_window(i, e.bound.index)), None)
    if reading is None:
        return None
    ((loop, stride),) = [(str(atom), factor) for atom, factor in reading.terms if atom != Variable(e.bound.index)]
    if loop not in sizes or not isinstance(stride, int):
        return None
    # The places are counted from where the body begins: what is at least zero, where that is said.
    reading = next((c for c in conditions if c.terms == reading.terms), Index(0, reading.terms))
    found = number_span(reading, {loop: (0, sizes[loop] - 1), e.bound.index: (0, e.bound.count - 1)})
    limits = _limits(conditions, reading, found)
    if limits is None or found is None or not isinstance(reading.constant, int):
        return None
    (size, low), place = limits, f"{e.bound.index}place"
    moved = Index(-reading.constant, ((Variable(place), 1),)) - Index(0, ((Variable(loop), stride),))
    inner = table.substitute(body, {e.bound.index: moved})
    if loop in inner.free or e.bound.index in inner.free:
        return None
    return Window(loop, inner, place, size, e.bound.count, stride, low, max(found[1] + 1 - size, 0))


def _guard(e: Expression) -> tuple[Expression, list[Index]]:
    """The body where it is not the identity, and the indices that are at least zero there."""
    assert e.bound is not None
    body = e.arguments[0]
    neutral = body.op == "select" and body.arguments[2].op == "constant"
    if not neutral or body.arguments[2].value != identity(e.bound.kind):
        return body, []
    found: list[Index] = []
    stack = [body.arguments[0]]
    while stack:
        condition = stack.pop()
        if condition.op == "and":
            stack.extend(condition.arguments)
            continue
        index = as_index(condition.arguments[0]) if condition.op == "at_least_zero" else None
        if index is None:
            return body, []
        found.append(index)
    return body.arguments[1], found


def _limits(conditions: list[Index], reading: Index, found: tuple[int, int] | None) -> tuple[int, int] | None:
    """How many places there are, and how many come before the first; None where the conditions say something else."""
    if found is None:
        return None
    size = found[1] + 1
    for condition in conditions:
        if condition == reading:
            continue
        last = (condition + reading).as_size()  # the largest index that is read
        if not isinstance(last, int) or last < 0:
            return None
        size = min(size, last + 1)
    if found[0] < 0 and reading not in conditions:
        return None
    return (size, -found[0]) if found[0] <= 0 else None


def _is_window(index: Index, bound: str) -> bool:
    """Whether an index is that of a reduction and one loop more, the windows being next to each other."""
    factors = dict(index.terms)
    others = [(a, f) for a, f in index.terms if a != Variable(bound)]
    if factors.get(Variable(bound)) != 1 or len(others) != 1:
        return False
    atom, factor = others[0]
    return isinstance(atom, Variable) and not atom.name.startswith("@") and isinstance(factor, int) and factor >= 1


def _indices(body: Expression, name: str) -> list[Index]:
    """The indices at which tensors are read that depend on a loop."""
    loads = [x for x in walk(body) if x.op == "load" and name in x.free]
    found = [as_index(a) for x in loads for a in x.arguments if name in a.free]
    return [index for index in found if index is not None]
