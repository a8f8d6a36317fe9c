"""Kernels for a program whose sizes are symbols: planned and proved once, and called with the sizes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rewright.ir.errors import RewrightError, TypeMismatch
from rewright.ir.graph import Graph
from rewright.ir.sizes import size_symbols, with_sizes
from rewright.optimize.floor.timings import OURS
from rewright.optimize.making import trust_plan
from rewright.optimize.planning.outline import Outline
from rewright.optimize.planning.plan import Plan, widen_storage
from rewright.optimize.planning.preparing import prepare_graph
from rewright.optimize.planning.work import work_of
from rewright.optimize.proving.trusted import Allow
from rewright.optimize.running import reference, targets, triton_launch
from rewright.optimize.running.bare import CPU
from rewright.optimize.running.checked import Checked
from rewright.optimize.running.checking import check
from rewright.optimize.running.execution import Runner
from rewright.optimize.running.targets import Printed, Target
from rewright.optimize.scalars.expressions import number_of
from rewright.optimize.sizes.bounding import STATED, bound_places
from rewright.optimize.sizes.counting import fold_counts
from rewright.optimize.sizes.plans import plan_at, symbolic_plan
from rewright.optimize.sizes.runner import FlexibleRunner
from rewright.optimize.sizes.variants import Compiled, Unit, Variants, print_sources

if TYPE_CHECKING:
    from rewright.optimize.api import Optimized

SMALL, SOME, LARGE = (1, 1, 1), (2, 3, 5), (71, 1031)
"""Sizes that kernels are tested at: one element, less than a tile, and for one symbol at a time more than one tile."""
MOST = 1 << 18
"""Elements of the largest tensor at such sizes; the first ones are tested however large the rest is, up to"""
MOST_OF_ALL = 1 << 26
"""elements of all tensors: half a gigabyte in float64."""


def find_kernels(
    found: Optimized,
    captured: Graph,
    hints: Mapping[str, int],
    target: Target,
    allow: Allow,
    budget: float,
    verify: bool,
) -> None:
    """Plan, prove, build and test kernels that take sizes; ``hints`` are those of an example.

    Raises NotAlike where plans for several sizes have more apart than numbers.
    """
    seconds, started = found.seconds, time.process_time()
    bounded = bound_places(captured)
    found.graph = graph = prepare_graph(bounded)
    machine = targets.machine(target, found.device or CPU)

    def again(apart: frozenset[int]) -> Plan:
        return symbolic_plan(graph, machine, hints, apart)

    found.plan = plan = again(frozenset())
    seconds["plan"] = time.process_time() - started
    if not plan.kernels:
        found.reason = "there is nothing to fuse: every operator is a library's"
        return
    given = None if bounded.nodes == graph.nodes else bounded
    found.plan, found.trust = plan, trust = trust_plan(plan, budget, given, again)
    if bounded.nodes != captured.nodes:
        trust.assumptions = (*trust.assumptions, STATED)
    seconds["prove"] = trust.seconds
    if trust.evidence != "proved" and allow != "tested":
        found.reason = f"the plan is not proved ({trust.reason}); allow='tested' uses it all the same"
        return
    started = time.monotonic()
    tests = Tests(captured, hints) if verify else None
    found.runner = _runner(found, plan, target, tests)
    if tests is not None:
        found.checked = tests.done
    seconds["build"] = time.monotonic() - started
    found.status, found.reason, found.runs = trust.evidence, trust.reason, OURS
    fixed = plan_at(plan, hints)
    found.work = work_of(fixed, fold_counts(fixed.graph))


def _runner(found: Optimized, plan: Plan, target: Target, tests: Tests | None) -> FlexibleRunner:
    """What runs a plan at each tuple of sizes; raises RewrightError where its kernels fail a test."""
    device = found.device or CPU
    if target != "cpu":

        def fixed(sizes: Mapping[str, int]) -> Runner:
            at = widen_storage(plan_at(plan, sizes))
            return reference.runner(at, device) if target == "torch" else triton_launch.runner(at, device)

        runner = FlexibleRunner(Outline.of(plan), fixed)
        if tests is not None:
            tests.run(runner)
        return runner
    sources = print_sources(plan, True)
    found.printed = Printed("cpu", {"kernels.cpp": Unit.of(plan, sources).text}, sources)

    units = [Unit.of(plan, sources)]
    if units[0].guards:
        units.append(Unit.of(plan, print_sources(plan, False)))
    return compiled_runner(Outline.of(widen_storage(plan)), units, tests)


def compiled_runner(plan: Outline, units: Sequence[Unit], tests: Tests | None, known: int = 0) -> FlexibleRunner:
    """What runs printed kernels; so many units are known to be right. Raises RewrightError where the first is wrong."""

    def check(kernels: Compiled) -> None:
        if tests is not None:
            tests.run(FlexibleRunner(plan, lambda sizes: kernels.runner(plan, sizes)))

    variants = Variants(plan, units, check, known)
    return FlexibleRunner(plan, variants, variants)


class Tests:
    """A program at small sizes, against which kernels are tested before they run; at those of an example for want.

    Raises RewrightError where it is too large to be computed in float64.
    """

    def __init__(self, captured: Graph, hints: Mapping[str, int]) -> None:
        symbols = size_symbols(captured)
        self.done = Checked(False, 0.0, "not run on numbers")
        self.graphs: list[tuple[str, Graph]] = []
        some = dict(zip(symbols, SOME, strict=False))
        tuples = [dict(zip(symbols, SMALL, strict=False)), some]
        for sizes in [*tuples, *({**some, name: size} for size in LARGE for name in symbols)]:
            try:
                self._add(sizes, with_sizes(captured, sizes))
            except TypeMismatch:  # a program need not be for all sizes
                continue
        if not self.graphs:
            self._add(hints, with_sizes(captured, hints))

    def _add(self, sizes: Mapping[str, int], graph: Graph) -> None:
        """Test at these sizes, where the program is small there or is tested at no others."""
        counts = [number_of(node.type.size()) for node in graph.nodes]
        if self.graphs and max(counts) > MOST:
            return
        if sum(counts) > MOST_OF_ALL:
            raise RewrightError(f"it has {sum(counts):,} elements, too many to test kernels that take its sizes")
        self.graphs.append((", ".join(f"{name} = {n}" for name, n in sizes.items()), graph))

    def run(self, runner: FlexibleRunner) -> None:
        """Run kernels on numbers; raises RewrightError where they are wrong."""
        worst = 0.0
        for sizes, graph in self.graphs:
            found = check(graph, runner)
            if not found.passed:
                raise RewrightError(f"kernels failed where {sizes}: {found.reason}")
            worst = max(worst, found.error)
            self.done = Checked(True, worst, f"{found.reason}, where {'; '.join(said for said, _ in self.graphs)}")


__all__ = ["find_kernels"]
