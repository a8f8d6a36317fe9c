"""Programs that agree on numbers of usual size, on much smaller and larger ones.

A number that is added below a root, or outside of it, shows where what it is added to is as small; a bound of a clamp
shows where something is as large. Values that are far apart there tell programs apart, provided that rounding is no
reason: both are run in single precision too, and what that changes has to be far less.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from rewright.interp.ranks import run
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ops.base import Array
from rewright.refine.twin.twin import Twin
from rewright.refine.verdict import Counterexample

_SCALES = (1 / 256, 16.0)
_CLEAR = 1e-3
"""A difference of more than this part of the largest element is none of rounding .."""
_TIMES = 100
""".. where it is more than so many times what single precision changes."""


@dataclass(frozen=True)
class Apart:
    """The numbers that tell two programs apart, and the element that differs most."""

    twin: Twin
    scale: float
    example: Counterexample

    @property
    def reason(self) -> str:
        """One sentence."""
        return (
            f"the output {self.example.output} is wrong: values agree on inputs of usual size, and differ on inputs "
            f"{self.scale:g} times as large"
        )


def told_apart(twin: Twin) -> Apart | None:
    """Inputs of another size on which programs of one rank compute something else; None where there are none."""
    for scale in _SCALES:
        scaled = replace(twin, draws=replace(twin.draws, scale=scale))
        try:
            inputs = scaled.draws.draw(0, 0)
            sides = [_both(graph, inputs) for graph in (twin.sequential, twin.program.graphs[0])]
        except RewrightError:
            continue
        example = _example(sides[0], sides[1], inputs)
        if example is not None:
            return Apart(scaled, scale, example)
    return None


@dataclass(frozen=True)
class _Output:
    """What a program computes, and what single precision makes of it."""

    value: Array
    single: Array

    @property
    def is_finite(self) -> bool:
        return bool(np.isfinite(self.value).all() and np.isfinite(self.single).all())

    @property
    def rounding(self) -> float:
        return float(np.abs(self.value - self.single).max(initial=0.0))


def _both(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, _Output]:
    exact, single = run(graph, inputs).outputs, run(graph, inputs, np.float32).outputs
    return {name: _Output(value, single[name].astype(np.float64)) for name, value in exact.items() if _is_float(value)}


def _is_float(value: Array) -> bool:
    return value.dtype.kind == "f" and value.size > 0


def _example(
    left: Mapping[str, _Output], right: Mapping[str, _Output], inputs: Mapping[str, Array]
) -> Counterexample | None:
    for name, mine in left.items():
        theirs = right.get(name)
        if theirs is None or theirs.value.shape != mine.value.shape or not (mine.is_finite and theirs.is_finite):
            continue
        gap = np.abs(mine.value - theirs.value)
        largest = float(np.abs(mine.value).max())
        if gap.max() > _CLEAR * largest and gap.max() > _TIMES * max(mine.rounding, theirs.rounding):
            where = tuple(int(k) for k in np.unravel_index(int(gap.argmax()), gap.shape))
            sizes = {n: tuple(v.shape) for n, v in inputs.items()}
            return Counterexample(sizes, name, where, float(mine.value[where]), float(theirs.value[where]), 0)
    return None
