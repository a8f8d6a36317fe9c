"""Programs that agree on numbers of usual size, on much smaller and larger ones.

A number that is added below a root, or outside of it, shows where what it is added to is as small; a bound of a clamp
shows where something is as large. Values that are far apart there tell programs apart, provided that rounding is no
reason: both are run in single precision too, and what that changes has to be far less.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from rewright.interp.placing import largest_gap
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
""".. where it is more than this many times what single precision changes."""


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


_Outputs = Mapping[str, tuple[Array, float]]
"""What a program computes, and how far single precision is from it; infinitely far where a number is infinite."""


def _both(graph: Graph, inputs: Mapping[str, Array]) -> _Outputs:
    exact, single = run(graph, inputs).outputs, run(graph, inputs, np.float32).outputs
    found: dict[str, tuple[Array, float]] = {}
    for name, value in exact.items():
        if value.dtype.kind == "f" and value.size:
            is_finite = np.isfinite(value).all() and np.isfinite(single[name]).all()
            found[name] = value, largest_gap(value, single[name]) if is_finite else math.inf
    return found


def _example(left: _Outputs, right: _Outputs, inputs: Mapping[str, Array]) -> Counterexample | None:
    for name in (name for name in left if name in right):
        (mine, own), (theirs, other) = left[name], right[name]
        if theirs.shape != mine.shape or not math.isfinite(own + other):
            continue
        gap = np.abs(mine - theirs)
        if gap.max() > _CLEAR * float(np.abs(mine).max()) and gap.max() > _TIMES * max(own, other):
            where = tuple(int(k) for k in np.unravel_index(int(gap.argmax()), gap.shape))
            return Counterexample.of(inputs, name, where, (float(mine[where]), float(theirs[where])))
    return None
