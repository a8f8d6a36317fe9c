"""A kernel on tiles in two: what copies tiles into shared memory, and what works on them.

Example: in ``for begin in ...: tile = tiles.load([begin, 0]); s = dot(q, tile); ...`` the producer keeps the loop, its
limits and the load; the consumer has the rest, and waits for the tile instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from rewright.ir.errors import RewrightError
from rewright.optimize.printing.gluon.consumer import Consumer
from rewright.optimize.printing.gluon.producer import producer_of
from rewright.optimize.printing.gluon.rings import Ring, require, rings_of
from rewright.optimize.printing.statements import Function, If, Loop, Name, Statement, Sum
from rewright.optimize.printing.tiles.context import DESCRIPTORS, FIRST, UPCAST
from rewright.optimize.printing.variables import calls, live, names


@dataclass(frozen=True, slots=True)
class Partitions:
    """The two parts of a kernel, and the rings between them."""

    rings: tuple[Ring, ...]
    producer: tuple[Statement, ...]
    consumer: tuple[Statement, ...]
    width: int
    """The least width of a product, besides the lanes of a tile: that of its instructions."""


def partition(function: Function) -> Partitions:
    """A kernel in two partitions; raises RewrightError where it has no tiles to copy or uses them otherwise."""
    body = tuple(_as_compiled(function.body))
    dtypes = {a.tensor: a.dtype for a in function.arguments}
    rings = {ring.name: ring for ring in rings_of(body, dtypes)}
    if not rings:
        raise RewrightError(f"{function.name} reads no tiles through descriptors; use tiles without specialised warps")
    known = {FIRST.text, "BM", "BN", *(loop.name for loop in function.grid)}
    for ring in rings.values():
        require(names(ring.descriptor.arguments[1]) <= known, "a descriptor depends on a row")
    producer = tuple(producer_of(body, rings, known))
    lefts = {e.arguments[0] for e in calls(body) if e.function == "dot"}
    require(all(isinstance(left, Name) for left in lefts), "a left operand has no name")
    consumer = tuple(Consumer(rings, {left.text for left in lefts if isinstance(left, Name)}).all(body))
    return Partitions(tuple(rings.values()), producer, live(consumer), _width(body))


def _as_compiled(body: Iterable[Statement]) -> Iterator[Statement]:
    """Statements with the choices taken that are fixed here: tiles by descriptors, operands as they are."""
    for s in body:
        match s:
            case If(condition) if condition == DESCRIPTORS:
                yield from _as_compiled(s.then)
            case If(condition) if condition == UPCAST:
                yield from _as_compiled(s.otherwise)
            case If():
                then, otherwise = tuple(_as_compiled(s.then)), tuple(_as_compiled(s.otherwise))
                yield replace(s, then=then, otherwise=otherwise)
            case Loop():
                yield replace(s, body=tuple(_as_compiled(s.body)))
            case _:
                yield s


def _width(body: Iterable[Statement]) -> int:
    """The least width of the states that products are added to."""
    widths = [e.arguments[1].constant for e in calls(body) if e.function == "full" and isinstance(e.arguments[1], Sum)]
    return min([256, *(width for width in widths if isinstance(width, int))])
