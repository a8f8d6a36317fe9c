"""Where two programs that compute one function round differently, and how much that is worth.

That programs are equal over the reals says nothing about casts. A tensor that both programs have may be held in other
element types; and both programs can be run with every result rounded to its declared type.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rewright import ops
from rewright.interp.placing import largest_gap
from rewright.interp.program import run
from rewright.interp.ranks import run_ranks
from rewright.interp.settling import rounded_to
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.types import DType
from rewright.lifting.programs import Lifted
from rewright.ops.base import Array
from rewright.ops.facts import DIGITS
from rewright.refine.twin.twin import Twin

_MOST_SHOWN = 6


@dataclass(frozen=True)
class Rounding:
    """A tensor that one side rounds to fewer digits than the other ever does."""

    side: str
    dtype: str
    other: str
    place: str

    def __str__(self) -> str:
        other = "right" if self.side == "left" else "left"
        return (
            f"the {self.side} program rounds to {self.dtype} at {self.place}, which the {other} keeps in {self.other}"
        )


def roundings(left: Lifted, right: Lifted) -> list[Rounding]:
    """The places at which one program holds in fewer digits what the other one holds too, each source line once."""
    found: dict[tuple[str, str, str, str], Rounding] = {}
    narrowest = _narrowest(left), _narrowest(right)
    for value in narrowest[0].keys() & narrowest[1].keys():
        mine, other = narrowest[0][value], narrowest[1][value]
        if DIGITS[mine[0]] == DIGITS[other[0]]:
            continue
        side, (dtype, position), kept = ("left", mine, other[0])
        if DIGITS[other[0]] < DIGITS[mine[0]]:
            side, (dtype, position), kept = ("right", other, mine[0])
        graph = left.graph if side == "left" else right.graph
        place = Rounding(side, dtype.value, kept.value, str(graph.nodes[position].span))
        found.setdefault((place.side, place.dtype, place.other, place.place), place)
    return sorted(found.values(), key=lambda r: (r.place, r.side))


def _narrowest(lifted: Lifted) -> dict[int, tuple[DType, int]]:
    """By value the element type of fewest digits that a program holds it in, and the first node that does."""
    found: dict[int, tuple[DType, int]] = {}
    for position, (node, value) in enumerate(zip(lifted.graph.nodes, lifted.values, strict=True)):
        dtype = node.type.dtype
        if dtype not in DIGITS or isinstance(node.op, ops.Constant) or value < 0:
            continue
        if value not in found or DIGITS[dtype] < DIGITS[found[value][0]]:
            found[value] = dtype, position
    return found


@dataclass(frozen=True)
class Effect:
    """How far outputs are apart when both programs round every result to its type, and how large they are."""

    difference: float
    scale: float
    own: float
    """How far the left program is from itself without rounding: what rounding alone does."""

    def __str__(self) -> str:
        return (
            f"with every result rounded to its type the outputs differ by {self.difference:.2g} at a scale of "
            f"{self.scale:.2g}; rounding alone moves the left program by {self.own:.2g}"
        )


def effect(twin: Twin) -> Effect | None:
    """Both programs with every result rounded to its declared type; None where they cannot be run that way."""
    left, right = twin.sequential, twin.program.graphs[0]
    try:
        inputs = twin.draws.draw(0, 0)
        mine, theirs = _round(left, inputs), _round(right, {n: inputs[n] for n in right.inputs})
        true = run(left, inputs)
    except RewrightError:
        return None
    names = [n for n in mine if n in theirs and mine[n].dtype.kind == "f" and mine[n].shape == theirs[n].shape]
    if not names:
        return None
    return Effect(
        max(largest_gap(mine[n], theirs[n]) for n in names),
        max(float(np.abs(true[n][np.isfinite(true[n])]).max(initial=0.0)) for n in names),
        max(largest_gap(mine[n], true[n]) for n in names),
    )


def _round(graph: Graph, inputs: dict[str, Array]) -> dict[str, Array]:
    """What a program computes where every result is rounded to its type."""

    def settle(position: int, value: Array) -> Array:
        return rounded_to(value, graph.nodes[position].type.dtype)

    return run_ranks((graph,), (inputs,), settle=(settle,))[0].outputs


def notes(left: Lifted, right: Lifted, twin: Twin | None) -> list[str]:
    """The verdict on precision in sentences; none where both programs hold everything in the same types."""
    found = roundings(left, right)
    if not found:
        return []
    lines = [f"precision: equal over the reals; {place}" for place in found[:_MOST_SHOWN]]
    if len(found) > _MOST_SHOWN:
        lines.append(f"precision: and {len(found) - _MOST_SHOWN} more places where casts sit elsewhere")
    worth = None if twin is None else effect(twin)
    if worth is not None:
        fewest = min(DIGITS[DType(place.dtype)] for place in found)
        lines.append(f"precision: each of these moves a number by at most 2^-{fewest} of it; {worth}")
    return lines
