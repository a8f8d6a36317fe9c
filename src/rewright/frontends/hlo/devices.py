"""Lists of devices in the short form that HLO has for them."""

from __future__ import annotations

from collections.abc import Sequence

from rewright.ir.errors import RewrightError


def iota_groups(counts: Sequence[int], sizes: Sequence[int], order: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Replica groups in short form ``[groups,members]<=[sizes]T(order)``; raises RewrightError where sizes do not fit.

    The numbers 0, 1, .. in row-major order of ``sizes`` are transposed by ``order`` and cut into equal groups.
    """
    flat = iota_order(sizes, order)
    groups, members = (counts[0], counts[1]) if len(counts) == 2 else (1, counts[0] if counts else 0)
    if groups * members != len(flat):
        raise RewrightError(f"replica groups {list(counts)}<={list(sizes)} do not fit; print the module again")
    return tuple(flat[start : start + members] for start in range(0, len(flat), members))


def iota_order(sizes: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """The numbers 0, 1, .. in row-major order of ``sizes``, transposed by ``order``; raises RewrightError."""
    total = 1
    for size in sizes:
        total *= size
    if not 0 < total <= 1 << 16 or sorted(order) != list(range(len(sizes))):
        raise RewrightError(f"devices <={list(sizes)}T{list(order)} are no list of devices; print the module again")
    strides = [0] * len(sizes)
    step = 1
    for axis in reversed(range(len(sizes))):
        strides[axis] = step
        step *= sizes[axis]
    flat = [0]
    for axis in order:
        flat = [base + strides[axis] * place for base in flat for place in range(sizes[axis])]
    return tuple(flat)
