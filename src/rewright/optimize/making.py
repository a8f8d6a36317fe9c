"""Kernels for a program: planned, proved, built, tested, and timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.optimize.floor.measuring import measure, measure_peers
from rewright.optimize.floor.peers import Example
from rewright.optimize.floor.timings import FLOOR_SECONDS, OURS, Peer
from rewright.optimize.planning.plan import WANT, KernelStep, Plan, widen_storage, writes
from rewright.optimize.planning.planner import Planner
from rewright.optimize.planning.preparing import prepare_graph
from rewright.optimize.planning.splitting import split_plan
from rewright.optimize.planning.work import work_of
from rewright.optimize.proving.composing import Known
from rewright.optimize.proving.laws import laws
from rewright.optimize.proving.leaving import computed_for, look_ups
from rewright.optimize.proving.proofs import LEAST, trust, unproved_identity
from rewright.optimize.proving.rewrite_proofs import unproved_rewrite
from rewright.optimize.proving.rewriting import rewritten
from rewright.optimize.proving.trusted import Allow, Trust
from rewright.optimize.running import targets
from rewright.optimize.running.bare import CPU
from rewright.optimize.running.checking import check, small_graph
from rewright.optimize.running.execution import Runner
from rewright.optimize.running.targets import Target
from rewright.optimize.sizes.runner import FlexibleRunner

if TYPE_CHECKING:
    from rewright.optimize.api import Optimized

ROUNDS = 3
"""So often a plan is made anew without what is not proved of it."""
SMALL_PIECES = 3
"""Pieces of the lanes of a small program, so that what merges them is tested where the program has it."""


def find_kernels(found: Optimized, captured: Graph, target: Target, allow: Allow, budget: float, verify: bool) -> None:
    seconds, graph = found.seconds, found.graph
    assert graph is not None
    started = time.process_time()
    given = None if captured.nodes == graph.nodes else captured
    machine = targets.machine(target, found.device or CPU)
    planner = Planner(graph, machine=machine)
    found.plan = plan = planner.plan()
    seconds["plan"] = time.process_time() - started
    if not plan.kernels:
        found.reason = "there is nothing to fuse: every operator is a library's"
        return

    def again(apart: frozenset[int]) -> Plan:
        nonlocal planner
        planner = Planner(graph, apart, planner)
        return planner.plan()

    plan, found.trust = trust_plan(plan, budget, given, again)
    found.plan = plan
    if found.trust.evidence != "proved" and allow != "tested":
        seconds["prove"] = found.trust.seconds
        found.reason = f"the plan is not proved ({found.trust.reason}); allow='tested' uses it all the same"
        return
    cheaper = _cheaper(plan, found.trust, budget)
    seconds["prove"] = found.trust.seconds
    small = small_graph(captured) if verify else None  # as it was given: what was prepared is tested too
    tiny = Planner(prepare_graph(small), machine=machine, like=planner).plan() if small is not None else None
    if cheaper is not None and _build(found, cheaper, target, small, _rewritten_too(tiny)):
        found.trust.updates += _words(found.trust.rules)
    elif cheaper is not None:
        plan.decisions.append(f"rules of the library are not used: {found.reason}")
    if found.runner is None and not _build(found, plan, target, small, tiny):
        return
    found.status = found.trust.evidence
    found.reason = found.trust.reason


def trust_plan(
    plan: Plan, budget: float, given: Graph | None, again: Callable[[frozenset[int]], Plan]
) -> tuple[Plan, Trust]:
    """The plan, with its unproved parts left to a library if need be, and the evidence for it.

    ``again`` makes a plan that leaves some nodes to a library. Reads at computed places are left out first, those of
    all kernels where the time was over before it was known which has no proof; then everything that is computed for a
    tensor that is not proved.
    """
    known, apart, spent = Known(), frozenset[int](), 0.0
    found, current = trust(plan, budget, given, hurried=True, known=known), plan
    why = found.reason
    for _ in range(ROUNDS):
        stored = [p for step in current.steps if isinstance(step, KernelStep) for p in writes(step)]
        more = look_ups(current, found.unproved or stored) or computed_for(current, found.unproved)
        if found.evidence == "proved" or more <= apart:
            break
        apart, spent = apart | more, spent + found.seconds
        started = time.process_time()
        current = again(apart)
        spent += time.process_time() - started
        if not current.kernels:
            break
        found = trust(current, budget, given, hurried=True, known=known)
    if found.evidence != "proved" or not current.kernels:
        current, found = plan, trust(plan, min(budget, max(budget - spent, LEAST)), given, known=known)
        found.reason = found.reason if found.evidence == "proved" else why
    elif apart:
        current.decisions.append(f"{len(apart)} operators are left to a library {WANT}: {why}")
    found.seconds += spent
    return current, found


def _build(found: Optimized, plan: Plan, target: Target, small: Graph | None, tiny: Plan | None) -> bool:
    """Print, build and test the kernels of a plan, split for the target; false, with the reason, where a test fails."""
    started = time.monotonic()
    machine = targets.machine(target, found.device or CPU)
    split = split_plan(plan, machine)
    if len(split.steps) > len(plan.steps) and not unproved_identity(split, found.trust.updates, 5.0, whole=False):
        plan = split
        tiny = None if tiny is None else split_plan(tiny, machine, SMALL_PIECES)
    stored, small_stored = widen_storage(plan), None if tiny is None else widen_storage(tiny)
    printed = targets.print_kernels(target, stored, small_stored)
    runner, small_runner, printed = targets.runners(target, stored, small_stored, printed, found.device or CPU)
    seconds = found.seconds
    seconds["build"] = seconds.get("build", 0.0) + time.monotonic() - started
    if small is not None and small_runner is not None:
        started = time.monotonic()
        found.checked = check(small, small_runner)
        seconds["check"] = seconds.get("check", 0.0) + time.monotonic() - started
        if not found.checked.passed:
            found.reason = f"kernels failed on small inputs: {found.checked.reason}"
            return False
    found.plan, found.printed, found.runner, found.runs = plan, printed, runner, OURS
    assert found.graph is not None
    found.work = work_of(plan, found.graph)
    return True


def _cheaper(plan: Plan, trust: Trust, seconds: float) -> Plan | None:
    """The plan by rules of the library, where it is cheaper and proved to be the plan; else why not is a decision."""
    started = time.process_time()
    found = rewritten(plan)
    if found is None:
        return None
    try:
        why = unproved_rewrite(plan, found, seconds) or unproved_identity(found.plan, [], seconds, whole=False)
    except RewrightError as error:  # the plan from before is as good as it was
        why = str(error)
    trust.seconds += time.process_time() - started
    if why:
        plan.decisions.append(f"rules of the library are not used: {why}")
        return None
    trust.rules = dict(found.laws)
    return found.plan


def _rewritten_too(tiny: Plan | None) -> Plan | None:
    """The small plan rewritten by the same rules, where they apply to it."""
    found = None if tiny is None else rewritten(tiny)
    return tiny if found is None else found.plan


def _words(rules: Mapping[str, int]) -> list[str]:
    """The rules that a plan was rewritten by, for its explanation."""
    used = [f"rule {name}, {count} times: {laws()[name].rule.statement}" for name, count in rules.items()]
    return [*used, "every stored value is proved to be what it was before these rules"]


def keep_fastest(
    found: Optimized,
    captured: Graph,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    peers: Sequence[Peer],
) -> None:
    """Find out what is fastest on this machine; a note says where the program has no values to be timed on."""
    calls, runner, started = found.calls, found.runner, time.monotonic()
    if not isinstance(runner, (Runner, FlexibleRunner)) and found.original is None:
        return
    try:
        example = Example.of(captured, found.original, calls, args, kwargs, found.device or CPU)
        if not isinstance(runner, (Runner, FlexibleRunner)):
            found.floor = peers_alone = measure_peers(example, peers)
            if peers_alone is not None:
                found.runs, found.compiled = peers_alone.runs, peers_alone.compiled
            return
        own, named = example.args, example.kwargs

        def call(chosen: Runner) -> Any:
            if calls is None:
                return chosen(example.tensors)
            value, why = calls(chosen, own, named)
            if why:
                raise RewrightError(why)
            return value

        found.floor = measured = measure(runner, example, call, peers, FLOOR_SECONDS)
    except RewrightError as error:
        found.notes.append(f"nothing was timed: {error}")
        return
    found.runner, found.runs, found.compiled = measured.runner, measured.runs, measured.compiled
    found.seconds["floor"] = time.monotonic() - started
