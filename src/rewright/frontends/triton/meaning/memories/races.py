"""That no instance, and no iteration, sees what another one writes in the same launch.

Loads and stores of one tensor are read one after the other for all instances at once. That is what the machine does
where each element is touched by one lane of one iteration of one instance, or is written and never read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rewright.frontends.triton.meaning.addresses.indices import DATA, STEP, reads_data, substitute, variables
from rewright.frontends.triton.meaning.addresses.instances import Instances
from rewright.frontends.triton.meaning.addresses.places import digits_of
from rewright.frontends.triton.meaning.addresses.safety import Ranges
from rewright.frontends.triton.meaning.memories.enumerated import meeting
from rewright.frontends.triton.meaning.memories.memory import Access, Memory
from rewright.frontends.triton.meaning.writer import Writer
from rewright.ir.dims import Dim
from rewright.ir.errors import UnsupportedOperator
from rewright.terms.index import Index, Variable, variable

_OTHER = "other_"
"""Stands before the variables of the second of two accesses."""


def refuse_races(writer: Writer, instances: Instances, ranges: Ranges, memories: Iterable[Memory]) -> list[str]:
    """What has to be taken for granted of the order in which one instance reads and writes.

    Raises UnsupportedOperator with the line of a store that may race with an access of another instance.
    """
    found: list[str] = []
    for memory in memories:
        for number, store in enumerate(memory.stores):
            for access in (*memory.loads, *memory.stores[:number]):
                if access.kind is not None and access.kind == store.kind:
                    continue  # in any order they leave the same
                if _is_own(access, store) or _are_apart(ranges, access, store):
                    continue
                met = meeting(writer, instances, access, store)
                if met == "never":
                    continue
                lines = f"{access.span.line} and {store.span.line}"
                is_alike = access.instance == store.instance and _are_of_one_instance(ranges, access, store)
                if met == "unknown" and not is_alike:
                    raise UnsupportedOperator(
                        f"it is not shown that the elements of {memory.name} that lines {lines} touch are not those of "
                        f"other instances (kernel, line {store.span.line} of {store.span.file})"
                    )
                if not _has_barrier(access, store):
                    where = f"lines {lines} of {os.path.basename(store.span.file)}"
                    what = f"where lanes of one instance touch the same elements of {memory.name}"
                    found.append(f"{where}, {what}, run in the order of the program for all lanes")
    return found


def _has_barrier(first: Access, second: Access) -> bool:
    """Whether the instance waits between two accesses."""
    early, late = sorted((first, second), key=lambda access: access.barriers)
    return any(number >= early.barriers for number in late.met)


def _are_of_one_instance(ranges: Ranges, first: Access, second: Access) -> bool:
    """Whether an element is touched by one iteration of one instance alone, of the loops that both accesses are in.

    Along some axes places begin with the same digits, which tell instances and iterations apart; lanes are below.
    """
    if not first.places or not second.places:
        return False
    sides = (first.places, second.places)
    if first.shape != second.shape:  # axes that are one for the one access are several for the other
        sides = ((_flat(first),), (_flat(second),))
    one, other = dict(first.sizes), dict(second.sizes)
    wanted = {name for name, size in {**one, **other}.items() if size != 1 and not name.startswith("lane")}
    wanted = {name for name in wanted if not name.startswith(STEP) or (name in one and name in other)}
    found: set[str] = set()
    for a, b in zip(*sides, strict=True):
        high, low = _parted(a, wanted)
        same, rest = _parted(b, wanted)
        digits = digits_of(high, {**one, **other})
        if high != same or digits is None or not digits.digits:
            continue
        room = digits.digits[-1].stride - 1
        if all(
            ranges.holds(dict(access.sizes), access.mask, (part, Index(room) - part))
            for access, part in ((first, low), (second, rest))
        ):
            found |= set(variables(high))
    return wanted <= found


def _flat(access: Access) -> Index:
    """Which element of the tensor in order a place is."""
    total = Index(0)
    for place, size in zip(access.places, access.shape, strict=True):
        total = total * size + place
    return total


def _parted(place: Index, names: set[str]) -> tuple[Index, Index]:
    """A place as what some variables make of it, and the rest."""
    high = Index(0, tuple(term for term in place.terms if isinstance(term[0], Variable) and term[0].name in names))
    return high, place - high


def _is_own(first: Access, second: Access) -> bool:
    """Whether each element is touched by one lane of one iteration of one instance in both.

    Of rows whose numbers were read, both have to be the row of one number; that no two of these are the same is noted
    where the row is written, and is not so where it is added to.
    """
    if not first.places or first.shape != second.shape or first.instance != second.instance:
        return False
    are_read = any(map(reads_data, (*first.places, *second.places)))
    if are_read and not first.kind is second.kind is None:
        return False
    if first.places != second.places and (are_read or not _are_alike(first, second)):
        return False
    return all(
        size == 1 or name in {name for place in access.places for name in variables(place)} | _rows(access)
        for access in (first, second)
        for name, size in access.sizes
    )


def _rows(access: Access) -> set[str]:
    """The instances and iterations that the numbers of rows depend on, where a place along an axis is one of these."""
    alone = {next(iter(variables(place))) for place in access.places if len(set(variables(place))) == 1}
    return {axis for name, axes in access.read if name in alone for axis in axes}


def _are_alike(first: Access, second: Access) -> bool:
    """Whether places have the same digits, where one loop counts for the other that follows it."""
    for one, other in zip(first.places, second.places, strict=True):
        left, right = digits_of(one, dict(first.sizes)), digits_of(other, dict(second.sizes))
        if left is None or right is None or left.start != right.start or len(left.digits) != len(right.digits):
            return False
        for a, b in zip(left.digits, right.digits, strict=True):
            is_same = a.variable == b.variable or (a.variable.startswith(STEP) and b.variable.startswith(STEP))
            if not is_same or a.stride != b.stride or a.size != b.size:
                return False
    shared = {name for name, _ in first.sizes if name.startswith(STEP)} & {name for name, _ in second.sizes}
    return all(
        n in set(variables(a)) & set(variables(b)) or n not in {*variables(a), *variables(b)}
        for n in shared
        for a, b in zip(first.places, second.places, strict=True)
    )


def _are_apart(ranges: Ranges, first: Access, second: Access) -> bool:
    """Whether all places of one lie before those of the other along some axis."""
    if first.shape != second.shape or not first.places:
        return False
    read = {name for part in (*second.places, *second.mask) for name in variables(part) if name.startswith(DATA)}
    names = {name: variable(_OTHER + name) for name, _ in second.sizes}
    names |= {name: variable(f"{DATA}{_OTHER}{name}") for name in read}  # it reads other numbers
    sizes = {**dict(first.sizes), **{_OTHER + name: size for name, size in second.sizes}}
    given = (*first.mask, *(substitute(part, names) for part in second.mask))
    moved = [substitute(place, names) for place in second.places]
    if any(ranges.implies(sizes, given, gap) for gap in _gaps(first.places, moved)):
        return True
    pairs = zip(first.places, moved, strict=True)
    return any(ranges.implies(sizes, given, gap) for a, b in pairs for gap in _digit_gaps(ranges, sizes, given, a, b))


def _digit_gaps(
    ranges: Ranges, sizes: Mapping[str, Dim], given: Sequence[Index], left: Index, right: Index
) -> Iterator[Index]:
    """Gaps between what is left of two places below a step: ``16 * head + lane`` and ``16 * head + lane + 8``."""
    for step in sorted({c for _, c in left.terms if isinstance(c, int) and c > 1}, reverse=True):
        low = [_below(place, step) for place in (left, right)]
        if all(ranges.holds(sizes, given, (part, Index(step - 1) - part)) for part in low):
            yield from _gaps([low[0]], [low[1]])


def _below(place: Index, step: int) -> Index:
    """A place without what moves it by multiples of a step."""
    kept = tuple((atom, c) for atom, c in place.terms if not (isinstance(c, int) and c % step == 0))
    constant = place.constant % step if isinstance(place.constant, int) else place.constant
    return Index(constant, kept)


def _gaps(left: Iterable[Index], right: Iterable[Index]) -> Iterator[Index]:
    for a, b in zip(left, right, strict=True):
        yield b - a - 1
        yield a - b - 1
