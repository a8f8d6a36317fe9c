"""Programs that are said to be equal are run on inputs that try to tell them apart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from rewright import ops
from rewright.analysis.needs import WRAPS
from rewright.analysis.obligations import sentence
from rewright.interp.adversarial import SPECIAL, Kind
from rewright.interp.machine import Settle
from rewright.interp.placing import cut, fitting
from rewright.interp.ranks import ExecutionFailed, run_ranks
from rewright.interp.settling import WholeNumbers, coarse, shortest, whole_nodes
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.holders import holders_of
from rewright.ir.operator import call_operator
from rewright.ir.placement import Placement
from rewright.ops.base import Array
from rewright.ops.facts import DIGITS
from rewright.refine.shrink.shrinking import elements
from rewright.refine.twin.culprits import overflowing, spoiled_outputs, uncastable, undefined_nodes, wrapping
from rewright.refine.twin.elements import Outputs, Part, clearly_differing, parts, unexplained_elements, worst
from rewright.refine.twin.twin import Twin
from rewright.refine.verdict import Counterexample

Cause = Literal["values", "rounded", "wrapped", "undefined", "failed", "unclaimed"]
"""Why outputs differ: their numbers do; whole numbers are rounded to a float type; integers do not fit their type; an
operator has no number; a rank cannot go on; or nothing is claimed of these elements."""
RARE = frozenset({Kind.CONSTANTS, Kind.TIES, Kind.ZEROS, Kind.LARGE})
"""Kinds of draws with inputs that programs may never be meant for, where an operator has no number."""
_ROWS = 4
"""How many draws have rows in which nothing counts, for these come in several forms."""
_EFFORT, _STEPS = 1 << 25, 5000
"""Elements and operators that are computed in all draws together, more or less."""
_FEWEST = 2
_CLEAR = 16
"""Results that differ by this many units in the last digit differ by more than rounding."""
_ON = {
    Kind.USUAL: "random inputs",
    Kind.CONSTANTS: "inputs at or near the constants of the programs",
    Kind.TIES: "inputs with equal and with half numbers",
    Kind.ZEROS: "inputs with zeros",
    Kind.ROWS: "inputs with rows in which nothing counts",
    Kind.LARGE: "large integers and numbers of very different sizes",
    Kind.IDS: "integers above what short floats hold",
}


@dataclass(frozen=True)
class Draw:
    """Which inputs: enough to make them again."""

    kind: Kind
    trial: int
    seed: int = 0


@dataclass(frozen=True)
class Contradiction:
    """Inputs on which two programs compute different outputs."""

    cause: Cause
    draw: Draw
    reason: str
    """One sentence."""
    example: Counterexample
    condition: str = ""
    """What would have to hold of the inputs for this not to happen, with the operator and its line."""
    is_reference_defined: bool = True
    inputs: Mapping[str, Array] = field(default_factory=dict[str, Array], repr=False)
    twin: Twin | None = field(default=None, repr=False)


@dataclass(frozen=True)
class _Ran:
    """One run of both programs on the same inputs."""

    inputs: Mapping[str, Array]
    held: Sequence[Mapping[str, Array]]
    parts: list[Part]
    placements: Mapping[str, Placement]
    rounds: bool = False
    """Whether a whole number is another one in the type that holds it."""


@dataclass(frozen=True)
class Contest:
    """Two programs, and how the ranks hold outputs."""

    twin: Twin
    placements: Mapping[str, Placement]
    guessed: frozenset[str] = frozenset()
    """Outputs of which the placement is one that fits the values of one draw: in another any may fit."""
    unclaimed: Graph | None = None
    """A program over the same inputs; where its outputs are not a number nothing is claimed."""
    tolerance: float = 0.0
    """Of the usual size of the elements of an output, what tables that were rounded explain."""

    def draws(self, *, thorough: bool) -> list[Draw]:
        """The inputs to be tried; all kinds at least once where that is not too much to compute.

        With ``thorough`` integers that may be flags are drawn as if they were ids.
        """
        kinds = [k for k in (Kind.USUAL, *SPECIAL) if self._has(k) and (thorough or k is not Kind.IDS)]
        found = [Draw(k, 0) for k in kinds]
        found += [Draw(Kind.ROWS, trial) for trial in range(1, _ROWS) if Kind.ROWS in kinds]
        size, steps = elements(self._graphs), sum(len(graph.nodes) for graph in self._graphs)
        return found[: max(min(_EFFORT // max(size, 1), _STEPS // max(steps, 1)), _FEWEST)]

    def _has(self, kind: Kind) -> bool:
        """Whether a draw of a kind is another one than the usual."""
        dtypes = [op.tensor.dtype for op in self.twin.draws.inputs.values()]
        if kind is Kind.ROWS:
            return any(not dtype.is_float for dtype in dtypes)
        if kind is Kind.IDS:
            return any(known.ends is not None for known in self.twin.draws.integers.values())
        return True

    def first(self, *, thorough: bool) -> Contradiction | None:
        """The first draw that tells the programs apart."""
        for draw in self.draws(thorough=thorough):
            found = self.try_draw(draw)
            if found is not None:
                return found
        return None

    def try_draw(self, draw: Draw) -> Contradiction | None:
        """What a draw says; None where nothing can be run on it, or no output differs."""
        try:
            ran = self._run(draw)
        except ExecutionFailed as error:
            return self._contradiction_of_failure(draw, error)
        except RewrightError:
            return None
        if ran is None:
            return None
        return self._of_values(draw, ran) or self._of_whole_numbers(draw, ran)

    # --- runs

    def _run(self, draw: Draw) -> _Ran | None:
        """Both programs on a draw, with positive floats where others leave the sequential program without a number."""
        for positive in (False, True):
            inputs = self.twin.draws.draw(draw.seed, draw.trial, positive, draw.kind)
            notes = [WholeNumbers(graph, rounds=False) for graph in self._graphs]
            try:
                sequential = run_ranks((self.twin.sequential,), (inputs,), settle=notes[:1])[0].outputs
            except RewrightError:
                return None  # it reads out of range, and nothing is claimed
            if any(np.isfinite(value).any() or not value.size for value in sequential.values()):
                break
        held = self.twin.rank_values(inputs, draw.seed, draw.trial)
        ranks = run_ranks(self.twin.program.graphs, held, schedule=self.twin.schedule, settle=notes[1:])
        outputs = sequential, [rank.outputs for rank in ranks]
        placements = {**self.placements, **self._fitting(outputs)}
        return _Ran(inputs, held, self._parts(outputs, placements), placements, any(note.changed for note in notes))

    def _fitting(self, outputs: Outputs) -> dict[str, Placement]:
        """How the ranks hold the guessed outputs of one run, where they hold them at all."""
        found: dict[str, Placement] = {}
        for name in self.guessed:
            owners = holders_of(name, self.twin.program.graphs, self.twin.program.mesh)
            held = [] if owners is None else [outputs[1][rank][name] for rank in owners.ranks]
            placement = None if owners is None else fitting([outputs[0][name]], [held], owners.mesh)
            if owners is not None and placement is not None:
                found[name] = owners.extend(placement)
        return found

    def _again(self, ran: _Ran, settles: Sequence[Settle]) -> list[Part]:
        """Both programs on the same inputs, with other values of nodes."""
        sequential = run_ranks((self.twin.sequential,), (ran.inputs,), settle=settles[:1])[0].outputs
        graphs, schedule = self.twin.program.graphs, self.twin.schedule
        ranks = run_ranks(graphs, ran.held, schedule=schedule, settle=settles[1:])
        return self._parts((sequential, [rank.outputs for rank in ranks]), ran.placements)

    def _parts(self, outputs: Outputs, placements: Mapping[str, Placement]) -> list[Part]:
        return parts(outputs, placements, self.twin.program.graphs, self.twin.program.mesh)

    @property
    def _graphs(self) -> tuple[Graph, ...]:
        return self.twin.sequential, *self.twin.program.graphs

    # --- what differs

    def _of_values(self, draw: Draw, ran: _Ran) -> Contradiction | None:
        try:
            masks = unexplained_elements(
                ran.parts, lambda seed: self._again(ran, [coarse(seed, graph) for graph in self._graphs])
            )
        except RewrightError:
            return None  # rounding alone makes it fail
        if self.tolerance:
            clear = [clearly_differing(part, self.tolerance) for part in ran.parts]
            masks = [
                mask & (own | ~np.isfinite(part.held)) for mask, own, part in zip(masks, clear, ran.parts, strict=True)
            ]
        every, masks = masks, self._claim(ran, masks)
        if not any(mask.any() for mask in masks):
            left_out = any(mask.any() for mask in every)
            return self._contradiction("unclaimed", draw, ran, _show(ran.parts, every)) if left_out else None
        pairs = list(zip(self._graphs, self._all_values(ran), strict=True))
        if draw.kind in RARE:
            masks = self._within_floats(ran, masks, pairs)
            if not any(mask.any() for mask in masks):
                return None
        return self._explain(draw, ran, _show(ran.parts, masks), pairs)

    def _within_floats(
        self, ran: _Ran, masks: Sequence[Array], pairs: Sequence[tuple[Graph, Mapping[int, Array]]]
    ) -> list[Array]:
        """The differences that are none of numbers too large for floats, or too small.

        What an infinity that no real number is goes into may be finite again, and another number.
        """
        over = [set(overflowing(graph, held)) for graph, held in pairs]
        first, *others = spoiled_outputs(self._graphs[:1], over[:1]) + spoiled_outputs(self._graphs[1:], over[1:])
        spoiled = [part.output in first or part.output in others[part.rank] for part in ran.parts]
        masks = [np.zeros_like(mask) if bad else mask for mask, bad in zip(masks, spoiled, strict=True)]
        if any(True for graph, held in pairs for _ in overflowing(graph, held, or_vanishes=True)):
            masks = [m & np.isfinite(part.expected + part.held) for m, part in zip(masks, ran.parts, strict=True)]
        return masks

    def _explain(
        self,
        draw: Draw,
        ran: _Ran,
        shown: tuple[Part, tuple[int, ...]],
        pairs: Sequence[tuple[Graph, Mapping[int, Array]]],
    ) -> Contradiction:
        """A difference with the operator that leaves the numbers of a proof, where one does."""
        part, where = shown
        found = [(g, p) for g, held in pairs for p in uncastable(g, held)]
        if not found and not np.isfinite([part.expected[where], part.held[where]]).all():
            found = [(g, p) for g, held in pairs for p in undefined_nodes(g, held, poles=draw.kind in RARE)]
        if found:
            named = _name(*found[0])
            told = f"where {named} has no finite result"
            return self._contradiction("undefined", draw, ran, shown, told, _condition(*found[0]))
        wrapped = [(g, p) for g, held in pairs for p in wrapping(g, held)]
        if wrapped:
            graph, position = wrapped[0]
            named, kind = _name(graph, position), graph.nodes[position].type.dtype.value
            told = f"where {named} does not fit {kind} and wraps"
            return self._contradiction(
                "wrapped", draw, ran, shown, told, sentence(graph.nodes[position], WRAPS.format(kind))
            )
        return self._contradiction("values", draw, ran, shown)

    def _of_whole_numbers(self, draw: Draw, ran: _Ran) -> Contradiction | None:
        """Whether whole numbers that are rounded to the types that hold them give other outputs."""
        if not ran.rounds:
            return None
        machines = [WholeNumbers(graph) for graph in self._graphs]
        try:
            found = self._again(ran, machines)
        except RewrightError:
            return None
        changed = [(g, p) for g, machine in zip(self._graphs, machines, strict=True) for p in machine.changed]
        if not changed:
            return None
        digits = min(shortest(graph, whole_nodes(graph)) for graph in self._graphs)
        masks = self._claim(ran, [clearly_differing(part, _CLEAR * 2.0**-digits) for part in found])
        if not any(mask.any() for mask in masks):
            return None
        graph, position = min(changed, key=lambda pair: shortest(pair[0], [pair[1]]))
        node = graph.nodes[position]
        passing = f"whole numbers pass through {node.type.dtype.value} at {node.span}"
        most = f"{2 ** DIGITS[node.type.dtype]:,}"
        told = f"where {passing}, which holds all of them up to {most} only"
        condition = f"no number is larger than {most} where {passing}"
        return self._contradiction("rounded", draw, ran, _show(found, masks), told, condition)

    def _claim(self, ran: _Ran, masks: Sequence[Array]) -> list[Array]:
        """The differences that the verdict says anything about."""
        if self.unclaimed is None or not any(mask.any() for mask in masks):
            return list(masks)
        try:
            outputs = run_ranks((self.unclaimed,), (ran.inputs,))[0].outputs
        except RewrightError:
            return [np.zeros_like(mask) for mask in masks]
        known = [cut(outputs[part.output], part.placement.runs[part.rank]) for part in ran.parts]
        return [mask & ~np.isnan(value) for mask, value in zip(masks, known, strict=True)]

    def _all_values(self, ran: _Ran) -> list[Mapping[int, Array]]:
        everything = [range(len(graph.nodes)) for graph in self._graphs]
        first = run_ranks(self._graphs[:1], (ran.inputs,), keep=everything[:1])
        rest = run_ranks(self._graphs[1:], ran.held, keep=everything[1:], schedule=self.twin.schedule)
        return [execution.values for execution in (*first, *rest)]

    def _contradiction(
        self,
        cause: Cause,
        draw: Draw,
        ran: _Ran,
        shown: tuple[Part, tuple[int, ...]],
        told: str = "",
        condition: str = "",
    ) -> Contradiction:
        part, index = shown
        left, right = float(part.expected[index]), float(part.held[index])
        example = Counterexample.of(ran.inputs, part.output, part.place(index), (left, right), draw.seed)
        reason = f"the output {part.output} differs on {_ON[draw.kind]}{f', {told}' if told else ''}"
        defined = not np.isnan(left)
        return Contradiction(cause, draw, reason, example, condition, defined, ran.inputs, self.twin)

    def _contradiction_of_failure(self, draw: Draw, error: ExecutionFailed) -> Contradiction:
        inputs = self.twin.draws.draw(draw.seed, draw.trial, kind=draw.kind)
        name = next(iter(self.twin.sequential.outputs))
        example = Counterexample.of(inputs, name, (), (math.nan, math.nan), draw.seed)
        reason = f"the sequential program runs on {_ON[draw.kind]}, and the distributed one fails: {error}"
        return Contradiction("failed", draw, reason, example, inputs=inputs, twin=self.twin)


def _show(found: Sequence[Part], masks: Sequence[Array]) -> tuple[Part, tuple[int, ...]]:
    """The element that shows the difference best: one that both programs have a number for, where there is one."""
    for finite in (True, False):
        for part, mask in zip(found, masks, strict=True):
            own = mask & np.isfinite(part.expected + part.held) if finite else mask
            if own.any():
                return part, worst(part, own)
    raise AssertionError("there is a difference")


def _condition(graph: Graph, position: int) -> str:
    """What an operator needs to have a finite result."""
    node = graph.nodes[position]
    assert isinstance(node.op, ops.TensorOperator)
    return sentence(
        node, f"its argument fits {node.type.dtype.value}" if isinstance(node.op, ops.Convert) else node.op.needs
    )


def _name(graph: Graph, position: int) -> str:
    node = graph.nodes[position]
    return f"the {call_operator(node.op)} at {node.span}"
