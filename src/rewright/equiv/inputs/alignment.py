"""The numbers of two programs, and layouts that were found by them at the sizes of the programs."""

from __future__ import annotations

from collections.abc import Sequence

from rewright import ops
from rewright.blame.layouts import Layout, Numbers, agree
from rewright.interp.trial import Trial
from rewright.ir.dims import Shape, divide, product
from rewright.ir.errors import RewrightError
from rewright.ir.graph import GraphBuilder
from rewright.ir.types import DType, TensorType
from rewright.refine.twin.twin import Twin

_USUAL, _MOST_DRAWS = (0, 1), 8


def numbers_of(twin: Twin, draws: Sequence[int] = _USUAL) -> Numbers | None:
    """What both programs compute on some draws; None where they run on none."""
    trials = [trial for draw in draws if isinstance(trial := twin.run_all(0, draw), Trial)]
    return Numbers(trials) if trials else None


def telling_draws(twin: Twin) -> tuple[int, ...]:
    """Two draws on which the outputs of a program of one rank differ, as far as there are any among the first."""
    found: list[int] = []
    for draw in range(_MOST_DRAWS):
        trial = twin.run_trial(0, draw)
        if isinstance(trial, Trial):
            other = trial.ranks[0].outputs
            pairs = ((value, other[name]) for name, value in trial.sequential.outputs.items() if name in other)
            if not all(a.shape == b.shape and agree(a, b) for a, b in pairs):
                found.append(draw)
        if len(found) == len(_USUAL):
            break
    return (*found, *(draw for draw in _USUAL if draw not in found))[: len(_USUAL)]


def fits(layout: Layout, left: Shape, right: Shape) -> bool:
    """Whether a layout that was found at small sizes makes sense at the sizes of the programs."""
    if divide(product(left), product(right)) != 1:
        return False
    builder = GraphBuilder()
    try:
        place = builder.input("x", ops.Input("x", TensorType(left, DType.F32)))
        return builder.type(layout.build(builder, place, right)).shape == right
    except RewrightError:
        return False
