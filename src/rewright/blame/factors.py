"""Outputs that are wrong by one number, in words: ``exactly 2 times too large, and 2 is dp``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from rewright.ir.placement import Mesh

_CLOSE = 1e-6


def describe_factor(factor: float, mesh: Mesh) -> str:
    """What an output is that has everywhere so many times the right value, with the mesh axes that make the number."""
    if not factor:
        return "zero everywhere"
    if _equal(factor, -1.0):
        return "exactly right but for the sign"
    for names, size in _sizes(mesh):
        if _equal(factor, size):
            return f"exactly {size} times too large, and {size} is {names}"
        if _equal(factor, 1 / size):
            return f"exactly 1/{size} of the right value, and {size} is {names}"
    return f"{factor:g} times the right value"


def describe_wrong(outputs: Sequence[str], factors: Mapping[str, float], mesh: Mesh) -> str:
    """Some wrong outputs in a few words, with the number that they are wrong by where it is one."""
    first, more = outputs[0], len(outputs) - 1
    by = [factors.get(name) for name in outputs]
    others = f"{more} more output{'s' if more > 1 else ''}"
    if by[0] is None:
        return f"{first} is wrong" if not more else f"{first} and {others} are wrong"
    what = describe_factor(by[0], mesh)
    if not more:
        return f"{first} is {what}"
    if all(other is not None and _equal(other, by[0]) for other in by):
        return f"{first} and {others} are {what}"
    return f"{first} is {what}, and {others} {'are' if more > 1 else 'is'} wrong"


def _sizes(mesh: Mesh) -> Iterator[tuple[str, int]]:
    """Names of mesh axes, and the product of their sizes; fewer axes come first, and all of one size are one entry."""
    found: dict[int, list[str]] = {}
    for count in range(1, len(mesh.axes) + 1):
        for axes in combinations(mesh.axes, count):
            size = math.prod(n for _, n in axes)
            known = found.setdefault(size, [])
            if not known or known[0].count("*") == count - 1:
                known.append(" * ".join(name for name, _ in axes))
    return ((" or ".join(names), size) for size, names in found.items() if size > 1)


def _equal(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_CLOSE)
