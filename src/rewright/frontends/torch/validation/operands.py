"""Operands for one call: numbers that it is defined on, as wide as that allows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch

from rewright.frontends.torch.lower.sizes import DTYPES
from rewright.frontends.torch.validation.cuts import Cut, Value
from rewright.interp.adversarial import Draws, IntegerRange, Kind, plan_draws
from rewright.ir.graph import Graph
from rewright.ir.types import DType
from rewright.ops.base import Array, integer_limits

_SORTED = ("sorted_sequence", "boundaries", "offs")
"""Operands that must be in order, by the names that schemas give them; groups of a grouped product end at ``offs``."""
_POINTS = ("grid",)
"""Operands that say where to sample: PyTorch's kernels read memory that is not theirs where a point is infinite."""
_FARTHEST = 4.0
"""How far from the middle, where the border is at one, a point to sample is at most."""
_REALS_OF_INTEGERS = 100.0
"""Reals that become integers are no larger: what a conversion gives beyond its dtype is not defined."""
Bounds = tuple[int, int] | None
"""The lowest and the highest integer of an operand; None where it may be anything that its dtype holds."""


def name_of(leaf: int) -> str:
    """What an operand is called in the graph of a call."""
    return f"operand{leaf}"


class Operands:
    """Draws of the operands of a call."""

    def __init__(self, call: Cut, graph: Graph, dtypes: Sequence[torch.dtype]) -> None:
        """``graph`` is what the call was lowered to, whose constants are tried; ``dtypes`` are of its results."""
        self._call, self._draws = call, plan_draws(graph)
        reals = (_real_range(dtypes), (0.0, 1.0))
        self._ranges = [(real, bounds) for real in reals for bounds in _integer_bounds(call)]
        self._sorted, self._points = _leaves_named(call, _SORTED), _leaves_named(call, _POINTS)

    def draw(self, kind: Kind, seed: int) -> Iterator[list[Array]]:
        """Values for the operands, the widest first; the next ones are for a call that refuses those."""
        for reals, bounds in self._ranges:
            for draws in self._bounded_draws(bounds):
                values = draws.draw(seed, 0, kind=kind)
                found = [np.asarray(values[name_of(leaf)]) for leaf in range(len(self._call.leaves))]
                for number, value in enumerate(found):
                    if reals is not None and value.dtype.kind == "f":
                        found[number] = _within(value, *reals)
                    if number in self._points:
                        found[number] = _within(value, -_FARTHEST, _FARTHEST)
                    if number in self._sorted:
                        found[number] = np.sort(found[number], axis=-1)
                yield found

    def _bounded_draws(self, bounds: Sequence[Bounds]) -> list[Draws]:
        """Draws within bounds, first with integers below them that the call tests for, such as labels of nothing."""
        ranges: dict[str, IntegerRange] = {}
        tested: dict[str, IntegerRange] = {}
        for number, (leaf, limit) in enumerate(zip(self._call.leaves, bounds, strict=True)):
            if leaf.dtype.is_floating_point or leaf.dtype is torch.bool:
                continue
            name = name_of(number)
            known = ranges[name] = _range(DTYPES[leaf.dtype], limit)
            extra = tuple(value for value in self._draws.integers[name].ignored if value < known.low)
            tested[name] = replace(known, special=(*known.special, *extra), ignored=extra) if extra else known
        return [replace(self._draws, integers=table) for table in ([tested] if tested != ranges else []) + [ranges]]


def _range(dtype: DType, bounds: Bounds) -> IntegerRange:
    lowest, highest = integer_limits(dtype)
    low, high = bounds or (-9, 9)
    low, high = max(low, lowest), min(high, highest)
    return IntegerRange(high + 1, (low, high), low, (lowest, highest) if bounds is None else None)


def _within(values: Array, low: float, high: float) -> Array:
    """Values moved into a range; infinite ones are at its ends."""
    folded = np.abs(values) if low >= 0 else values
    largest = float(np.max(np.abs(values), where=np.isfinite(values), initial=1.0))
    return np.clip(folded * min(1.0, high / largest), low, high)


def _real_range(dtypes: Sequence[torch.dtype]) -> tuple[float, float] | None:
    """The range of real operands where all results are integers; None where reals may be anything."""
    if not dtypes or any(dtype.is_floating_point or dtype is torch.bool for dtype in dtypes):
        return None
    signed = all(dtype.is_signed for dtype in dtypes)
    return (-_REALS_OF_INTEGERS if signed else 0.0, _REALS_OF_INTEGERS)


def _integer_bounds(call: Cut) -> Iterator[list[Bounds]]:
    """Bounds of the leaves' integers, the widest first.

    An integer beside other tensors may be an index, and kernels that do not check their indices exist: it is kept
    within all sizes that it may count, unless the operator works element by element.
    """
    every: list[Bounds] = [None] * len(call.leaves)
    target = call.steps[-1].target
    if torch.Tag.pointwise in target.tags:
        yield every
        yield [(0, 3)] * len(call.leaves)
        yield [(1, 3)] * len(call.leaves)  # what is divided by
        return
    if len(call.leaves) == 1:
        yield [(-6, 6)]
        yield [(0, 3)]
        return
    signed = _negative_allowed(call)
    likely = [_bound(call, number, own=False) for number in range(len(call.leaves))]
    certain = [_bound(call, number, own=True) for number in range(len(call.leaves))]
    yield [(-high if number in signed else 0, high - 1) for number, high in enumerate(likely)]
    yield [(0, high - 1) for high in certain]


def _bound(call: Cut, number: int, *, own: bool) -> int:
    """The smallest size that an integer operand may be an index of; ``own`` counts its own sizes too."""
    shape = call.leaves[number].shape
    others = [size for place, leaf in enumerate(call.leaves) if place != number for size in leaf.shape]
    sizes = [*others, *(size for result in call.results for size in result)]
    kept = [size for size in sizes if own or size not in shape]
    return max(min(kept or sizes, default=1), 1)


def _negative_allowed(call: Cut) -> set[int]:
    """Leaves that are indices which count from the end too: those that PyTorch takes as a list with gaps."""
    found: set[int] = set()
    for schema, argument in _name(call):
        if str(schema.type) == "List[Optional[Tensor]]" and isinstance(argument, list):
            found |= {item.number for item in cast("list[Any]", argument) if isinstance(item, Value) and not item.step}
    return found


def _leaves_named(call: Cut, names: Collection[str]) -> list[int]:
    return [
        argument.number
        for schema, argument in _name(call)
        if schema.name in names and isinstance(argument, Value) and not argument.step
    ]


def _name(call: Cut) -> Iterator[tuple[Any, Any]]:
    """The arguments of the call that is checked with what the schema says of them."""
    step = call.steps[-1]
    schemas = step.target._schema.arguments
    yield from zip(schemas, step.arguments, strict=False)
    for schema in schemas[len(step.arguments) :]:
        if schema.name in step.keywords:
            yield schema, step.keywords[schema.name]


def argument_named(call: Cut, name: str, otherwise: Any) -> Any:
    """An argument of the call that is checked, by the name that the schema gives it."""
    return next((argument for schema, argument in _name(call) if schema.name == name), otherwise)
