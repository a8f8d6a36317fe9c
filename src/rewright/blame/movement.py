"""Stretches of a rank program that only move data: cut, exchange, put together again.

The sequential program has nothing there, so no step of a stretch can be compared with one of its own. But elements can
be counted: a step after which the ranks together lack some of what they had has lost them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rewright import ops
from rewright.blame.holding import Holding
from rewright.blame.places import Place
from rewright.ir.operator import Operator
from rewright.ops.base import Array

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
        if _moves(operator):
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
        joins = operator is ops.Concatenate or _exchanges(operator)
        if (joins or place == found.places[-1]) and not np.array_equal(_elements(holding, place), had):
            return place
    exchanges = [p for p in found.places if _exchanges(holding.places.operator(p))]
    return exchanges[0] if exchanges else found.places[-1]


def _exchanges(operator: type[Operator] | None) -> bool:
    """Whether ranks give each other what they have, and nothing is computed of it."""
    if operator is None or not issubclass(operator, ops.Collective):
        return False
    return not issubclass(operator, ops.Combining | ops.Leaf)


def _moves(operator: type[Operator] | None) -> bool:
    """Whether elements only come to other places; those that a tensor is padded with come from nowhere."""
    is_layout = operator is not None and issubclass(operator, ops.Layout | ops.Convert)
    return _exchanges(operator) or (is_layout and operator is not ops.Pad)


def _elements(holding: Holding, place: Place) -> Array:
    """What all ranks have there, each number once."""
    return np.unique(np.concatenate([tensor.reshape(-1) for tensor in holding.local(place)]))
