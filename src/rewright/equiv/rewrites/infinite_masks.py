"""Whether numbers that stand for minus infinity do what minus infinity does, seen on random inputs.

What a program makes of its masks says that they end in a softmax, and not how large scores are: a program may add as
much to a masked score as was taken from it. So programs that are proved equal with minus infinity run on numbers as
they are written, too. Where a row is masked as a whole, minus infinity leaves no number, and nothing is compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rewright.analysis.meetings import match_collectives
from rewright.blame.layouts import agree
from rewright.equiv.rewrites.ideal import is_lowest, with_infinities
from rewright.interp.ranks import run, run_ranks
from rewright.interp.trial import Trial
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.operator import Unsupported
from rewright.ops.base import Array
from rewright.proof.rewriting.lowest import meeting
from rewright.proof.rewriting.program import Program
from rewright.refine.twin.twin import Twin

_DRAWS = 3
SHOWN = (
    "a number that masks are filled with does not do what -infinity does: with it the output {0!r} of the {1} program "
    "is another one on random inputs"
)

MET = "a number that masks are filled with does not do what -infinity does: at {0} a usual number may be made of it"
UNSEEN = "a number that masks are filled with may not do what -infinity does: programs cannot be run with both ({0})"


def value_doubt(twin: Twin | Unsupported) -> str:
    """Why what stands for minus infinity in two programs, as they are written, may be another number; else empty.

    Where nothing can be run nothing is known of it.
    """
    if isinstance(twin, Unsupported):
        return UNSEEN.format(twin.why)
    compared = 0
    infinite = with_infinities([twin.sequential, *twin.program.graphs])
    try:
        schedule = match_collectives(infinite[1:])
        for draw in range(_DRAWS):
            trial = twin.run_trial(0, draw)
            if not isinstance(trial, Trial):
                continue
            compared += 1
            ideal = run(infinite[0], trial.inputs).outputs
            ranks = run_ranks(infinite[1:], trial.held, schedule=schedule)
            name = _differing(trial.sequential.outputs, ideal)
            if name:
                return SHOWN.format(name, "left")
            pairs = zip(trial.ranks, ranks, strict=True)
            name = next((found for a, b in pairs if (found := _differing(a.outputs, b.outputs))), "")
            if name:
                return SHOWN.format(name, "right")
    except RewrightError as error:
        return UNSEEN.format(error)
    return "" if compared else UNSEEN.format("no inputs were found")


def lowest_doubt(graphs: Sequence[Graph]) -> str:
    """Why the most negative number of a type is not minus infinity in programs as they are written; else empty."""
    for graph in graphs:
        place = meeting(Program(graph), [position for position, node in enumerate(graph.nodes) if is_lowest(node)])
        if place is not None:
            return MET.format(graph.nodes[place].span)
    return ""


def _differing(written: Mapping[str, Array], ideal: Mapping[str, Array]) -> str:
    """The first output with an element that minus infinity makes another number; empty where there is none."""
    for name, value in written.items():
        known = np.isfinite(ideal[name])
        if not agree(value[known], ideal[name][known]):
            return name
    return ""
