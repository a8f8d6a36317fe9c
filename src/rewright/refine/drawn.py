"""Random numbers in a verdict: draws of ranks that cannot be right, and what values say whatever is drawn.

Values with numbers drawn at random show that programs differ for certain only where it is certain which numbers of the
ranks are which of the sequential program. Where every draw gives one and the same number it does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rewright.interp.ranks import run_ranks
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.ir.types import SourceSpan
from rewright.ir.unknowns import DRAWN, RANDOM, kind_of_draw, unknowns
from rewright.ops.base import Array
from rewright.proof.drawn import Fault, Held
from rewright.refine.case import Case
from rewright.refine.running import compare
from rewright.refine.twin.twin import Twin
from rewright.refine.verdict import Finding, Verdict

_KIND = "random_numbers"
_TRIED = 16
"""Elements of which it is asked whether two ranks read their own numbers for them."""
_MOST_LEVELS = 6


@dataclass(frozen=True)
class Misdrawn:
    """What is wrong with random numbers: findings, or why it is not known whether anything is."""

    findings: tuple[Finding, ...] = ()
    unknown: str = ""


def judge_faults(case: Case, faults: Sequence[Fault]) -> Misdrawn:
    """What draws that do not fit mean for a proof in which they do."""
    loose = next((fault for fault in faults if fault.kind == "unplaced"), None)
    if loose is not None:
        return Misdrawn(unknown=str(loose))
    used = _Uses.of(case)
    alike = [fault for fault in faults if fault.kind == "agree"]
    known = alike if used is None or not alike or used.reads_each(alike[0]) else []
    differing = [fault for fault in faults if fault.kind == "differ"]
    if differing and used is not None and used.reads_both(differing[0]):
        known = [*differing, *known]
    if not known:
        return Misdrawn(unknown=str(next((f for f in faults if f.kind != "agree"), faults[0])))
    places: dict[tuple[str, str, str], list[Fault]] = {}
    for fault in known:
        places.setdefault((fault.kind, fault.one.draw.place, fault.other.draw.place), []).append(fault)
    return Misdrawn(tuple(_finding(case, group[0]) for group in places.values()))


def is_misdrawn(verdict: Verdict) -> bool:
    """Whether programs were refuted that are equal but for which random numbers are the same."""
    return verdict.status == "refuted" and {finding.kind for finding in verdict.findings} == {_KIND}


def _finding(case: Case, fault: Fault) -> Finding:
    one, other = fault.one, fault.other
    where = _span(case.program, other)
    first = (
        f"rank {one.rank}" if one.draw.place == other.draw.place else f"rank {one.rank} at {_span(case.program, one)}"
    )
    who = f"{first} and rank {other.rank}" if one.rank != other.rank else f"rank {one.rank} twice"
    if fault.kind == "differ":
        message = (
            f"{who} draw different random numbers for the same elements; the states of their generators have to be the "
            "same here: set one seed, or draw from a generator that these ranks share"
        )
    else:
        message = (
            f"{who} draw the same random numbers for elements that are independent in the sequential program; the "
            "states of their generators have to differ here: make the seed depend on the rank, or go on drawing from "
            "one stream"
        )
    sequential = case.sequential
    span = sequential.nodes[sequential.inputs[one.name]].span if one.name in sequential.inputs else None
    return Finding(_KIND, message, span, where, _text(case, one.name), "", None, None)


def unrelated_draw(case: Case) -> str:
    """A draw of a rank that has no place among what the sequential program draws, in words; empty where all have."""
    parted = {equation.name for equation in case.relations.equations}
    for rank, graph in enumerate(case.program.graphs):
        for name, what in unknowns(graph).items():
            if what.startswith(RANDOM) and name not in case.relations.placements and name not in parted:
                node = graph.nodes[graph.inputs[name]]
                return (
                    f"rank {rank} draws {node.type} at {node.span}, and which numbers of the sequential program these "
                    "are is not known; draw them at the same line, or in a module of the same name"
                )
    return ""


def findings_of_draws(case: Case) -> tuple[Finding, ...]:
    """Draws that only one side has, by line, where nothing else is wrong."""
    sequential, graphs = unknowns(case.sequential), case.program.graphs
    of_ranks = {name: graph for graph in reversed(graphs) for name in graph.inputs if DRAWN + name in graph.metadata}
    alone = [name for name, what in sequential.items() if what.startswith(RANDOM) and name not in of_ranks]
    extra = [name for name in of_ranks if DRAWN + name not in case.sequential.metadata]
    found: dict[tuple[bool, SourceSpan], Finding] = {}
    for name in alone:
        span = case.sequential.nodes[case.sequential.inputs[name]].span
        message = "no rank draws the random numbers that the sequential program draws here"
        found[False, span] = Finding(_KIND, message, span, None, "", "", None, None)
    for name in extra:
        graph = of_ranks[name]
        span = graph.nodes[graph.inputs[name]].span
        found[True, span] = Finding(_KIND, _EXTRA, None, span, "", "", None, None)
    return tuple(found.values())


_EXTRA = (
    "the ranks draw random numbers here that the sequential program does not draw; what is computed a second time has "
    "to draw the same ones again, from the same state of the generator (preserve_rng_state=True)"
)


def _text(case: Case, name: str) -> str:
    placement = case.relations.placements.get(name)
    return "" if placement is None else str(placement)


def _span(program: RankProgram, held: Held) -> SourceSpan:
    graph = program.graphs[held.rank]
    return graph.nodes[graph.inputs[held.name]].span


@dataclass(frozen=True)
class _Uses:
    """Which elements of random numbers the outputs of ranks depend on."""

    twin: Twin
    held: list[dict[str, Array]]
    outputs: list[dict[str, Array]]

    @staticmethod
    def of(case: Case) -> _Uses | None:
        """The ranks run once; None where they cannot be run."""
        twin = compare(case).twin
        if twin is None:
            return None
        held = twin.rank_values(twin.draws.draw(0, 0), 0, 0)
        return _Uses(twin, held, _outputs(twin, held))

    def reads_both(self, fault: Fault) -> bool:
        """Whether, for some element, what both ranks draw makes a difference."""
        name, ranks = fault.one.name, (fault.one.rank, fault.other.rank)
        return any(all(self._depends(rank, name, place) for rank in ranks) for place in self._places(fault.one))

    def reads_each(self, fault: Fault) -> bool:
        """Whether what each of two draws gives makes a difference."""
        pairs = ((held, self._places(held)) for held in (fault.one, fault.other))
        return all(any(self._depends(held.rank, held.name, place) for place in places) for held, places in pairs)

    def _places(self, held: Held) -> list[int]:
        """Some elements of a draw."""
        size = self.held[held.rank][held.name].size
        return np.random.default_rng(0).permutation(size)[:_TRIED].tolist()

    def _depends(self, rank: int, name: str, place: int) -> bool:
        value = self.held[rank][name].copy()
        value.flat[place] = 0.0 if value.flat[place] >= 0.5 else 1.0
        held = [given | {name: value} if number == rank else given for number, given in enumerate(self.held)]
        pairs = zip(self.outputs, _outputs(self.twin, held), strict=True)
        return any(not np.array_equal(a[n], b[n], equal_nan=True) for a, b in pairs for n in a)


def _outputs(twin: Twin, held: list[dict[str, Array]]) -> list[dict[str, Array]]:
    return [dict(ran.outputs) for ran in run_ranks(twin.program.graphs, held, schedule=twin.schedule)]


def draw_again(case: Case) -> bool:
    """Whether ranks draw in their backward what the sequential program only draws forward: other gradients for certain.

    Else values differ perhaps only because other numbers of the ranks are those of the sequential program.
    """
    own = {what.rpartition(" #")[0] for what in unknowns(case.sequential).values()}
    return any(
        graph.nodes[graph.inputs[name]].span.backward and what.rpartition(" #")[0] in own
        for graph in case.program.graphs
        for name, what in unknowns(graph).items()
        if DRAWN + name in graph.metadata and DRAWN + name not in case.sequential.metadata
    )


def differs_for_all(case: Case) -> bool:
    """Whether values differ where all draws of a kind give one number, whichever belong together."""
    return any(compare(case, given).is_different for given in _levels(case))


def draws_numbers(case: Case) -> bool:
    """Whether the programs draw random numbers."""
    return any(what.startswith(RANDOM) for graph in _graphs(case) for what in unknowns(graph).values())


def _graphs(case: Case) -> tuple[Graph, ...]:
    return case.sequential, *case.program.graphs


def _levels(case: Case) -> Iterator[Mapping[str, Array]]:
    """Numbers on both sides of every constant that the programs may compare with, the same for all draws."""
    twin = compare(case).twin
    if twin is None:
        return
    inside = sorted({0.0, 1.0, *(value for value in twin.draws.constants if 0 < value < 1)})
    middles = [(low + high) / 2 for low, high in pairwise(inside)]
    for level in [*middles[-_MOST_LEVELS:], *middles[:-_MOST_LEVELS][:_MOST_LEVELS]]:
        yield {
            name: _constant(what, twin.sequential, name, level)
            for name, what in unknowns(twin.sequential).items()
            if what.startswith(RANDOM)
        }


def _constant(what: str, graph: Graph, name: str, level: float) -> Array:
    kind, *limits = kind_of_draw(what)
    shape = tuple(int(str(n)) for n in graph.nodes[graph.inputs[name]].type.shape)
    if kind == "permutation":
        return np.arange(shape[0])
    if kind == "integers":
        return np.full(shape, int(limits[0]))
    return np.full(shape, level)
