"""Accesses whose places are numbers, element by element: which instance touches which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Literal

import numpy as np

from rewright.frontends.triton.meaning.addresses.indices import DATA, STEP, Numbers, evaluated, lane, variables
from rewright.frontends.triton.meaning.addresses.instances import INSTANCE, Instances
from rewright.frontends.triton.meaning.memories.memory import Access
from rewright.frontends.triton.meaning.writer import Writer
from rewright.terms.index import Index

_MOST = 1 << 20
"""Lanes of all instances of an access that are counted."""


def meeting(
    writer: Writer, instances: Instances, first: Access, second: Access
) -> Literal["never", "in one instance", "unknown"]:
    """Whether two accesses touch the same elements, and whether one iteration of one instance alone does."""
    if not first.places or first.shape != second.shape:
        return "unknown"
    own = [{n for n, _ in access.sizes if not n.startswith(("lane", INSTANCE))} for access in (first, second)]
    names = own[0] & own[1]
    if any(not name.startswith(STEP) for name in own[0] ^ own[1]):
        return "unknown"
    one, other = (_touched(writer, instances, access, sorted(names)) for access in (first, second))
    if one is None or other is None:
        return "unknown"
    both = np.isin(one[:, 0], other[:, 0]), np.isin(other[:, 0], one[:, 0])
    rows = np.unique(np.concatenate([one[both[0]], other[both[1]]]), axis=0)
    if not len(rows):
        return "never"
    return "in one instance" if len(np.unique(rows[:, 0])) == len(rows) else "unknown"


def _touched(writer: Writer, instances: Instances, access: Access, names: Sequence[str]) -> Numbers | None:
    """For each lane that a mask lets through its element of memory, its instance and its iteration.

    A mask that is data, or of which a part is no number, is taken to let all through. None where a place is no number.
    """
    own = [(name, size) for name, size in access.sizes if not name.startswith(INSTANCE)]
    sizes = {name: size for name, size in own if isinstance(size, int)}
    shape = [size for size in access.shape if isinstance(size, int)]
    if len(sizes) < len(own) or len(shape) < len(access.shape) or prod(sizes.values()) > _MOST:
        return None
    counts = list(sizes.values())
    tables = dict(zip(sizes, np.indices(counts, dtype=np.int64), strict=True)) or {"": np.zeros((), np.int64)}
    for name in (name for name, _ in access.sizes if name.startswith(INSTANCE)):
        numbers = instances.table(name)
        if numbers is None or any(
            n > 1 and a not in tables for a, n in zip(instances.names, numbers.shape, strict=True)
        ):
            return None
        tables[name] = numbers[tuple(tables.get(axis, np.int64(0)) for axis in instances.names)]
    for name in {n for part in (*access.places, *access.mask) for n in variables(part) if n.startswith(DATA)}:
        numbers = _looked_up(writer, name, tables)
        if numbers is not None:
            tables[name] = numbers
    places, mask = _known(access.places, tables), _known(access.mask, tables)
    if len(places) < len(access.places):
        return None
    holds = np.logical_and.reduce([np.ones(counts, bool), *(part >= 0 for part in mask)])
    element = np.zeros(counts, np.int64)
    for place, size in zip(places, shape, strict=True):
        element = element * size + place
    columns = [element[holds]]
    columns += [np.full(len(columns[0]), number, np.int64) for number in access.instance]
    columns += [np.broadcast_to(tables[name], tuple(counts))[holds] for name in names]
    return np.stack(columns, 1)


def _known(parts: Sequence[Index], tables: Mapping[str, Numbers]) -> list[Numbers]:
    """Those of some indices that are numbers."""
    found = [evaluated(part, tables) for part in parts]
    return [numbers for numbers in found if numbers is not None]


def _looked_up(writer: Writer, name: str, tables: Mapping[str, Numbers]) -> Numbers | None:
    """The numbers of a variable that was read, in each instance and lane; None where they are not known."""
    data = writer.read(name)
    numbers = writer.b.known(data.position)
    axes = [*data.axes, *(lane(axis) for axis in range(len(data.shape)))]
    if numbers is None or any(axis not in tables and size != 1 for axis, size in zip(axes, numbers.shape, strict=True)):
        return None
    zero = np.zeros_like(next(iter(tables.values())))
    places = [zero if size == 1 else tables[axis] for axis, size in zip(axes, numbers.shape, strict=True)]
    if any(bool((place >= size).any()) for place, size in zip(places, numbers.shape, strict=True)):
        return None
    return np.asarray(numbers, np.int64)[tuple(places)]
