"""Stretches of a rank program that only move data: cut, exchange, put together again.

The sequential program has nothing there, so no step of a stretch can be compared with one of its own. But elements can
be counted: a step after which the ranks together lack some of what they had has lost them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rewright import ops
from rewright.ir.operator import Operator
from rewright.ops.base import Array
from rewright.refine.twin.holding import Holding
from rewright.refine.twin.places import Place

_EXCHANGES = (ops.AllGather, ops.AllToAll, ops.CollectivePermute, ops.CollectiveBroadcast)
_MOVING: tuple[type[Operator], ...] = (
    ops.Reshape,
    ops.Transpose,
    ops.Convert,
    ops.Slice,
    ops.Concatenate,
    ops.Reverse,
    *_EXCHANGES,
)
_LONGEST = 64


@dataclass(frozen=True)
class Stretch:
    """Places that only move the elements of one place, in the order of the program, the end of them last."""

    source: Place
    places: tuple[Place, ...]


def stretch(holding: Holding, end: Place) -> Stretch | None:
    """The stretch that ends at a place; None where several tensors are moved together, or none is."""
    found: set[Place] = set()
    sources: set[Place] = set()
    stack = [end]
    while stack and len(found) < _LONGEST:
        place = stack.pop()
        operator = holding.places.operator(place)
        if place in found or place in sources:
            continue
        if operator is not None and issubclass(operator, _MOVING):
            found.add(place)
            stack.extend(holding.places.operands(place))
        else:
            sources.add(place)
    if stack or len(sources) != 1 or len(found) < 2:
        return None
    return Stretch(sources.pop(), tuple(sorted(found)))


def spoiler(holding: Holding, found: Stretch) -> Place:
    """The step that is most likely wrong: the first that loses elements, else an exchange, else the last one."""
    had = _elements(holding, found.source)
    for place in found.places:
        operator = holding.places.operator(place)
        joins = operator is ops.Concatenate or (operator is not None and issubclass(operator, _EXCHANGES))
        if (joins or place == found.places[-1]) and not np.array_equal(_elements(holding, place), had):
            return place
    exchanges = [p for p in found.places if issubclass(holding.places.operator(p) or Operator, _EXCHANGES)]
    return exchanges[0] if exchanges else found.places[-1]


def _elements(holding: Holding, place: Place) -> Array:
    """What all ranks have there, each number once."""
    return np.unique(np.concatenate([tensor.reshape(-1) for tensor in holding.local(place)]))
