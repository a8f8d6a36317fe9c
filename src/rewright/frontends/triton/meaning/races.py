"""That no instance, and no iteration, sees what another one writes in the same launch.

Loads and stores of one tensor are read one after the other for all instances at once. That is what the machine does
where each element is touched by one lane of one iteration of one instance, or is written and never read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rewright.frontends.triton.meaning.indices import substitute, variables
from rewright.frontends.triton.meaning.memory import Access, Memory
from rewright.frontends.triton.meaning.safety import Ranges
from rewright.ir.errors import UnsupportedOperator
from rewright.terms.index import Index, variable

_OTHER = "other_"
"""Stands before the variables of the second of two accesses."""


def refuse_races(ranges: Ranges, memories: Iterable[Memory]) -> None:
    """Raises UnsupportedOperator with the line of a store that may race with another access."""
    for memory in memories:
        for number, store in enumerate(memory.stores):
            for access in (*memory.loads, *memory.stores[:number]):
                if access.kind is not None and access.kind == store.kind:
                    continue  # in any order they leave the same
                if not (_is_own(access, store) or _are_apart(ranges, access, store)):
                    raise UnsupportedOperator(
                        f"it is not shown that the elements of {memory.name} that lines {access.span.line} and "
                        f"{store.span.line} touch are not those of other instances (kernel, line {store.span.line} of "
                        f"{store.span.file})"
                    )


def _is_own(first: Access, second: Access) -> bool:
    """Whether each element is touched by one lane of one iteration of one instance in both."""
    if not first.places or first.places != second.places or first.shape != second.shape:
        return False
    moving = {name for place in first.places for name in variables(place)}
    return all(size == 1 or name in moving for name, size in (*first.sizes, *second.sizes))


def _are_apart(ranges: Ranges, first: Access, second: Access) -> bool:
    """Whether all places of one lie before those of the other along some axis."""
    if first.shape != second.shape or not first.places:
        return False
    names = {name: variable(_OTHER + name) for name, _ in second.sizes}
    sizes = {**dict(first.sizes), **{_OTHER + name: size for name, size in second.sizes}}
    given = (*first.mask, *(substitute(part, names) for part in second.mask))
    moved = [substitute(place, names) for place in second.places]
    return any(ranges.implies(sizes, given, gap) for gap in _gaps(first.places, moved))


def _gaps(left: Iterable[Index], right: Iterable[Index]) -> Iterator[Index]:
    for a, b in zip(left, right, strict=True):
        yield b - a - 1
        yield a - b - 1
