"""Kernels for a program whose sizes are symbols: planned and proved once, and called with the sizes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rewright.ir.graph import Graph
from rewright.optimize.floor.timings import OURS
from rewright.optimize.making import trust_plan
from rewright.optimize.planning.outline import Outline
from rewright.optimize.planning.plan import Plan, widen_storage
from rewright.optimize.planning.preparing import prepare_graph
from rewright.optimize.planning.work import work_of
from rewright.optimize.proving.trusted import Allow
from rewright.optimize.running import reference, targets, triton_launch
from rewright.optimize.running.bare import CPU
from rewright.optimize.running.execution import Runner
from rewright.optimize.running.targets import Printed, Target
from rewright.optimize.sizes.bounding import STATED, bound_places
from rewright.optimize.sizes.counting import fold_counts
from rewright.optimize.sizes.plans import plan_at, symbolic_plan
from rewright.optimize.sizes.runner import FlexibleRunner
from rewright.optimize.sizes.testing import Tests, compiled_runner
from rewright.optimize.sizes.variants import Unit, print_sources

if TYPE_CHECKING:
    from rewright.optimize.api import Optimized


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
    tests = Tests(captured, hints) if verify else None  # a program that is too large to be tested is not planned
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


__all__ = ["find_kernels"]
