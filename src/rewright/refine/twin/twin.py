"""Both programs on the same random inputs: do the ranks hold what the sequential program computes?"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import chain

import numpy as np

from rewright import ops
from rewright.analysis.meetings import Schedule, match_collectives
from rewright.interp.adversarial import Draws, plan_draws
from rewright.interp.placing import Difference, closest, compare, fitting, largest_gap, local_inputs, multiple
from rewright.interp.ranks import run, run_ranks
from rewright.interp.trial import Execution, Trial
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.holders import Holders, holders_of
from rewright.ir.operator import Unsupported
from rewright.ir.placement import Placement, RankProgram, place
from rewright.ir.sizes import size_symbols
from rewright.ops.agreement import CollectiveMismatch
from rewright.ops.base import Array, static
from rewright.refine.relations.solving import Read, Solved, build_rank_tensor
from rewright.refine.shrink.shrinking import elements, shrink
from rewright.refine.twin.resizing import Resize
from rewright.refine.twin.symbols import at_sizes, default_sizes, program_at_sizes
from rewright.refine.twin.unspecified import as_inputs, draw_unwritten, is_unspecified
from rewright.refine.verdict import Counterexample


@dataclass(frozen=True)
class TwinResult:
    """What running both programs showed.

    ``agrees`` is True where every output fits on every trial, False where one does not (or the ranks fail while
    the sequential program runs), None where nothing could be decided; ``reason`` says why in one sentence.
    """

    agrees: bool | None
    reason: str
    trials: int = 0
    largest_error: float = 0.0
    """Over all outputs, relative to the largest magnitude of the output."""
    wrong_outputs: tuple[str, ...] = ()
    counterexample: Counterexample | None = None
    placements: dict[str, Placement | None] = field(default_factory=dict[str, "Placement | None"])
    """By output: the expected placement where one was given and holds, else the one that fits the values."""
    factors: dict[str, float] = field(default_factory=dict[str, float])
    """By wrong output that is the right one times a number: that number."""


@dataclass(frozen=True)
class Twin:
    """A sequential program and the programs of all ranks at sizes that can be executed.

    Node positions are those of the programs that it was made from; sizes may be smaller.
    """

    sequential: Graph
    program: RankProgram
    draws: Draws
    schedule: Schedule
    shrunk: bool = False
    resize: Resize = field(default_factory=Resize)
    solved: Solved = field(default_factory=dict[tuple[int, str], Sequence[Read]])
    """The rank inputs that equations give, where placements do not."""
    memory: int = 0
    """Determines what is in memory that ranks read before it is written."""

    def compare(
        self,
        seed: int = 0,
        expect: Mapping[str, Placement] | None = None,
        trials: int | None = None,
        outputs: Collection[str] | None = None,
        stop_early: bool = False,
    ) -> TwinResult:
        """Run both programs until every special input value has occurred, and compare all outputs.

        Args:
            seed: determines all inputs.
            expect: placements of outputs at the sizes of the programs that the twin was made from; by default those
                of the program. An output without one may have any.
            trials: how many draws; by default as many as the special integer values need.
            outputs: the outputs to compare; all by default.
            stop_early: look no further after the first wrong output.
        """
        expected = dict(self.program.outputs)
        if expect is not None:
            expected = self.rescale(expect)
        found: TwinResult | None = None
        count = self.draws.trials if trials is None else trials
        known, every = frozenset(expected), list[Trial]()
        for trial in range(count):
            ran = self.run_trial(seed, trial)
            if isinstance(ran, TwinResult):
                return replace(ran, trials=trial + 1)
            every.append(ran)
            one = self.judge(ran, expected, outputs, seed, stop_early)
            while one.agrees is False and (others := self._other_guesses(every, expected, known, one.wrong_outputs)):
                expected |= others
                one = self.judge(ran, expected, outputs, seed, stop_early)
            if one.agrees is not True:
                return replace(one, trials=trial + 1)
            # A placement that fitted the values of one draw has to fit those of the next.
            expected |= {name: placement for name, placement in one.placements.items() if placement is not None}
            error = max(one.largest_error, found.largest_error if found else 0.0)
            found = replace(one, trials=trial + 1, largest_error=error)
        return found or TwinResult(None, "no trial was asked for")

    def _other_guesses(
        self, trials: Sequence[Trial], guesses: Mapping[str, Placement], known: Collection[str], wrong: Collection[str]
    ) -> dict[str, Placement]:
        """Placements of outputs that fit all runs, where one was guessed from the first runs and does not fit all."""
        found = {n: self.fitting_all(n, trials) for n in wrong if n in guesses and n not in known}
        return {n: placement for n, placement in found.items() if placement is not None and placement != guesses[n]}

    def fitting_all(self, name: str, trials: Sequence[Trial]) -> Placement | None:
        """The first placement under which the ranks hold an output in all of several runs, or None."""
        owners = holders_of(name, self.program.graphs, self.program.mesh)
        if owners is None:
            return None
        values = [trial.sequential.outputs[name] for trial in trials]
        held = [[trial.ranks[rank].outputs[name] for rank in owners.ranks] for trial in trials]
        floors = [_rounding(self.sequential, trial) for trial in trials]
        exact = fitting(values, held, owners.mesh)
        found = exact or fitting(values, held, owners.mesh, max(floor(name) for floor in floors))
        return None if found is None else owners.extend(found)

    def rescale(self, placements: Mapping[str, Placement]) -> dict[str, Placement]:
        """Placements of outputs at the sizes of the programs that the twin was made from, at those of the twin."""
        return {name: self._resize(name, p) for name, p in placements.items() if name in self.sequential.outputs}

    def _resize(self, name: str, placement: Placement) -> Placement:
        shape = self.sequential.nodes[self.sequential.outputs[name]].type.shape
        return self.resize(name, placement, shape, self.program.mesh)

    def with_ranks(self, program: RankProgram) -> Twin:
        """The twin of another distributed program at the same sizes; raises CollectiveMismatch."""
        program = as_inputs(program)
        draws = plan_draws(self.sequential, program.graphs, program.inputs)
        return replace(self, program=program, draws=draws, schedule=match_collectives(program.graphs))

    def agrees_with(self, program: RankProgram, expect: Mapping[str, Placement], outputs: Collection[str]) -> bool:
        """Whether another distributed program at the same sizes would compute some outputs as expected."""
        try:
            return bool(self.with_ranks(program).compare(expect=expect, outputs=outputs, stop_early=True).agrees)
        except CollectiveMismatch:
            return False

    def run_trial(
        self, seed: int, trial: int, keep: Sequence[frozenset[int]] = (), keep_sequential: frozenset[int] = frozenset()
    ) -> Trial | TwinResult:
        """One run of both programs, or the result where one of them fails.

        Args:
            keep: for every rank the nodes whose values are kept.
            keep_sequential: nodes of the sequential program whose values are kept.
        """
        try:
            inputs, sequential = self._run_sequential(seed, trial, keep_sequential)
        except RewrightError as error:
            return TwinResult(None, f"the sequential program cannot be executed: {error}")
        try:
            held = self.rank_values(inputs, seed, trial)
            ranks = run_ranks(self.program.graphs, held, keep=keep or None, schedule=self.schedule)
        except RewrightError as error:
            why = f"the sequential program runs, and the distributed one fails: {error}"
            return TwinResult(False, why, counterexample=_nothing(inputs, sequential, seed))
        return Trial(inputs, held, sequential, ranks)

    def run_all(self, seed: int = 0, trial: int = 0) -> Trial | TwinResult:
        """One run that keeps the values of all nodes, or the result where one of the programs fails."""
        keep = [frozenset(range(len(graph))) for graph in self.program.graphs]
        return self.run_trial(seed, trial, keep, frozenset(range(len(self.sequential))))

    def rank_values(self, inputs: Mapping[str, Array], seed: int, trial: int) -> list[dict[str, Array]]:
        """What every rank is given of the inputs, and of memory that nothing was written to; raises RewrightError."""
        generator = np.random.default_rng((seed, trial, 1))
        held = local_inputs(inputs, self.program.inputs, self.program.mesh, generator)
        for (rank, name), parts in self.solved.items():
            graph = self.program.graphs[rank]
            shape = static(name, graph.nodes[graph.inputs[name]].type.shape)
            held[rank][name] = build_rank_tensor(shape, parts, inputs)
        generator = np.random.default_rng((seed, trial, 2, self.memory))
        for graph, given in zip(self.program.graphs, held, strict=True):
            given |= draw_unwritten(graph, generator)
        return held

    def spoiled_outputs(self) -> list[str]:
        """The outputs that change with what is in memory that ranks read before it is written."""
        if not any(map(is_unspecified, chain(*(graph.inputs for graph in self.program.graphs)))):
            return []
        one, other = self.run_trial(0, 0), replace(self, memory=self.memory + 1).run_trial(0, 0)
        if isinstance(one, TwinResult) or isinstance(other, TwinResult):
            return []
        held = [(a.outputs, b.outputs) for a, b in zip(one.ranks, other.ranks, strict=True)]
        names = dict.fromkeys(name for outputs, _ in held for name in outputs)
        return [n for n in names if any(n in a and not np.array_equal(a[n], b[n], equal_nan=True) for a, b in held)]

    def _run_sequential(self, seed: int, trial: int, keep: frozenset[int]) -> tuple[dict[str, Array], Execution]:
        inputs = self.draws.draw(seed, trial)
        execution = run(self.sequential, inputs, keep=keep)
        if not all(np.isfinite(value).all() for value in execution.outputs.values()):
            positive = self.draws.draw(seed, trial, positive=True)
            again = run(self.sequential, positive, keep=keep)
            if all(np.isfinite(value).all() for value in again.outputs.values()):
                return positive, again
        return inputs, execution

    def judge(
        self,
        trial: Trial,
        expected: Mapping[str, Placement],
        outputs: Collection[str] | None = None,
        seed: int = 0,
        stop_early: bool = False,
    ) -> TwinResult:
        """Whether the ranks hold outputs in one run; placements are at the sizes of the twin."""
        placements: dict[str, Placement | None] = {}
        wrong: dict[str, tuple[Difference | None, str]] = {}
        factors: dict[str, float] = {}
        worst = 0.0
        rounding = _rounding(self.sequential, trial)
        for name in trial.sequential.outputs if outputs is None else outputs:
            if wrong and stop_early:
                break
            owners = holders_of(name, self.program.graphs, self.program.mesh)
            if owners is None:
                missing = [rank for rank, execution in enumerate(trial.ranks) if name not in execution.outputs]
                wrong[name] = None, f"rank {missing[0]} has no output {name!r}"
                continue
            placements[name], difference, why = self._place(
                name, trial, expected.get(name), owners, partial(rounding, name)
            )
            placements[name] = None if (found := placements[name]) is None else owners.extend(found)
            worst = max(worst, difference.relative if difference else 0.0)
            if why:
                wrong[name] = difference, why
                factor = None if stop_early else _factor(name, trial, owners, expected.get(name))
                factors |= {} if factor is None else {name: factor}
        if not wrong:
            return TwinResult(True, "all outputs agree", largest_error=worst, placements=placements)
        name = next((name for name, (difference, _) in wrong.items() if difference), next(iter(wrong)))
        difference, why = wrong[name]
        apart = difference and (difference.sequential, difference.distributed)
        example = difference and apart and Counterexample.of(trial.inputs, name, difference.index, apart, seed)
        return TwinResult(False, why, 0, worst, tuple(wrong), example, placements, factors)

    def _place(
        self, name: str, trial: Trial, expected: Placement | None, owners: Holders, rounding: Callable[[], float]
    ) -> tuple[Placement | None, Difference | None, str]:
        """The placement that holds, the largest difference, and why the output is wrong (empty if it is not)."""
        value, held = trial.sequential.outputs[name], [trial.ranks[rank].outputs[name] for rank in owners.ranks]
        mesh, expected = owners.mesh, None if expected is None else owners.restrict(expected)
        difference: Difference | None = None
        for floor in (lambda: 0.0, rounding):
            try:
                placement = expected or fitting([value], [held], mesh, floor())
                difference = placement and compare(value, held, placement, mesh, floor())
            except RewrightError as error:
                return fitting([value], [held], mesh), None, f"output {name!r}: {error}"
            if placement and (difference is None or difference.is_rounding):
                return placement, difference, ""
        if expected is not None:
            found = fitting([value], [held], mesh)
            is_ = f"it is {found}" if found else "it fits no placement"
            return found, difference, f"output {name!r} does not have the placement {expected}; {is_}"
        if all(tensor.shape == value.shape for tensor in held):
            difference = compare(value, held, place(value.shape, mesh, ("Replicate()",)), mesh)
        else:
            difference = closest(value, held, mesh)
        return None, difference, f"output {name!r} fits no placement"


def _factor(name: str, trial: Trial, owners: Holders, expected: Placement | None) -> float | None:
    """The number by which the ranks hold a multiple of an output, where it is one."""
    held = [trial.ranks[rank].outputs[name] for rank in owners.ranks]
    asked = None if expected is None else owners.restrict(expected)
    return multiple(trial.sequential.outputs[name], held, owners.mesh, asked)


def _nothing(inputs: Mapping[str, Array], sequential: Execution, seed: int) -> Counterexample | None:
    """Inputs on which the ranks compute nothing, with an element that the sequential program computes from them."""
    for name, value in sequential.outputs.items():
        if value.size:
            first = float(np.asarray(value, np.float64).reshape(-1)[0])
            return Counterexample.of(inputs, name, (0,) * value.ndim, (first, float("nan")), seed)
    return None


def _rounding(sequential: Graph, trial: Trial) -> Callable[[str], float]:
    """How far single precision is from an output, run when it is first asked for.

    A tensor that is zero but for rounding (the gradient of what softmax ignores, say) has no magnitude of its own to
    compare differences with; this is one.
    """
    single = cache(lambda: run(sequential, trial.inputs, np.float32).outputs)
    return lambda name: largest_gap(trial.sequential.outputs[name], single()[name])


LARGEST = 1 << 23
"""Programs with more elements in all tensors of all ranks together are executed at smaller sizes."""

MARGIN = 32
"""Programs that are shrunk may be this much larger: shrinking them further is not possible."""


def make_twin(
    sequential: Graph,
    program: RankProgram,
    largest: int = LARGEST,
    solved: Solved | None = None,
    sizes: Mapping[str, int] | None = None,
) -> Twin | Unsupported:
    """The twin of a pair of programs, at smaller sizes where the captured ones are too large to execute.

    Args:
        largest: with more elements than this in all tensors together, sizes are shrunk.
        solved: the rank inputs that equations give; programs with such inputs are not shrunk.
        sizes: numbers for size symbols; different small primes where none are given.

    Returns Unsupported with the reason where inputs have no placement, an operator cannot be executed, or the
    sizes cannot be shrunk consistently. Raises CollectiveMismatch where collectives do not meet.
    """
    solved = solved or {}
    if any(map(is_unspecified, chain(sequential.inputs, *(graph.inputs for graph in program.graphs)))):
        return Unsupported("an input has the name that is kept for memory that nothing was written to; rename it")
    program = as_inputs(program)
    why = _obstacle(sequential, program, solved)
    if why is not None:
        return Unsupported(why)
    shapes = {name: sequential.nodes[p].type.shape for name, p in sequential.outputs.items()}
    names = {name for graph in (sequential, *program.graphs) for name in size_symbols(graph)}
    sizes = {**default_sizes(names), **(sizes or {})} if names else {}
    if names:
        sequential, program = at_sizes(sequential, sizes), program_at_sizes(program, sizes)
    schedule = match_collectives(program.graphs)
    if elements((sequential, *program.graphs)) <= largest:
        draws = plan_draws(sequential, program.graphs, program.inputs)
        return Twin(sequential, program, draws, schedule, resize=Resize(shapes, sizes), solved=solved)
    if solved:
        return Unsupported("the programs are too large to execute, and inputs given by equations are not shrunk")
    small = shrink_programs(sequential, program, schedule, Resize(shapes, sizes))
    left = 0 if isinstance(small, Unsupported) else elements((small.sequential, *small.program.graphs))
    if left > MARGIN * largest:
        return Unsupported(
            f"the programs have {elements((sequential, *program.graphs)):.1e} elements, and shrinking them "
            f"consistently leaves {left:.1e}, too many to execute"
        )
    return small


def shrink_programs(sequential: Graph, program: RankProgram, schedule: Schedule, resize: Resize) -> Twin | Unsupported:
    """The twin of programs at the smallest sizes that are consistent, or why there are none."""
    small = shrink(sequential, program, schedule)
    if isinstance(small, Unsupported):
        return small
    draws = plan_draws(small.sequential, small.program.graphs, small.program.inputs)
    return Twin(small.sequential, small.program, draws, schedule, True, replace(resize, scales=small.scales))


def _obstacle(sequential: Graph, program: RankProgram, solved: Solved) -> str | None:
    for rank, graph in enumerate(program.graphs):
        for name in graph.inputs:
            if (rank, name) in solved or is_unspecified(name):
                continue
            if name not in sequential.inputs:
                return f"input {name!r} of rank {rank} has no counterpart in the sequential program"
            if name not in program.inputs:
                return f"input {name!r} has no placement over the ranks"
    for graph in (sequential, *program.graphs):
        for node in graph.nodes:
            if isinstance(node.op, ops.CustomCall):
                return f"custom_call {node.op.target} at {node.span} is opaque"
    return None


__all__ = ["CollectiveMismatch", "Twin", "TwinResult", "make_twin"]
