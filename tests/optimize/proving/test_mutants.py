"""Wrong rewrites put into plans: none of them may be proved, whatever part of a kernel they are in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import torch

import rewright as rw
from rewright.optimize.kernel import Kernel, Running, Sweep
from rewright.optimize.planning.plan import KernelStep, Plan
from rewright.optimize.planning.planner import Planner
from rewright.optimize.planning.preparing import prepare_graph
from rewright.optimize.planning.roles import Cut, Job, arrange
from rewright.optimize.planning.splitting import split_plan
from rewright.optimize.proving.proofs import trust, unproved_identity
from rewright.optimize.running import targets
from rewright.optimize.scalars.expressions import Bound, Expression, Table, walk
from rewright.terms.index import Index
from tests.optimize.programs import PROGRAMS, tensors_by_name

Change = Callable[[Table, Expression], Expression | None]


def plan_of(name: str) -> Plan:
    program, args = PROGRAMS[name]()
    return Planner(prepare_graph(rw.capture(program, args))).plan()


def with_kernel(plan: Plan, number: int, kernel: Kernel) -> Plan:
    """The plan with another kernel in the place of one."""
    old = plan.kernels[number]
    steps = tuple(KernelStep(kernel) if isinstance(s, KernelStep) and s.kernel is old else s for s in plan.steps)
    return replace(plan, steps=steps)


# --- what a kernel computes


def mask_off_by_one(table: Table, e: Expression) -> Expression | None:
    """A condition on indices that holds one index longer."""
    if e.op != "at_least_zero" or e.arguments[0].index is None:
        return None
    return table.plain("at_least_zero", (table.index(e.arguments[0].index + 1, e.arguments[0].dtype),))


def no_mask(table: Table, e: Expression) -> Expression | None:
    """The scores of keys that no query may see."""
    if e.op != "select" or (e.arguments[1].op != "constant" and e.arguments[2].op != "constant"):
        return None
    return e.arguments[1] if e.arguments[2].op == "constant" else e.arguments[2]


def dropped_tail(table: Table, e: Expression) -> Expression | None:
    """A reduction without its last element."""
    if e.bound is None:
        return None
    bound = Bound(e.bound.kind, e.bound.index, e.bound.size - 1)
    return table.reduce(bound, table.replace(e.arguments[0], lambda x: dropped_tail(table, x)))


def no_maximum(table: Table, e: Expression) -> Expression | None:
    """A softmax of which each part is over another maximum: half of it."""
    if e.bound is None or e.bound.kind != "maximum":
        return None
    return table.plain("multiply", (e, table.constant(0.5, e.dtype)))


def other_scale(table: Table, e: Expression) -> Expression | None:
    """A scale that is a little larger."""
    if e.op != "constant" or not e.dtype.is_float or e.value in (0.0, 1.0) or abs(float(e.value)) == float("inf"):
        return None
    return table.constant(float(e.value) * 1.001, e.dtype)


def other_place(table: Table, e: Expression) -> Expression | None:
    """A tensor that is read at its first row only."""
    if e.op != "load" or e.tensor < 0 or len(e.arguments) < 2 or e.arguments[-2].op != "index":
        return None
    return table.load(e.tensor, (*e.arguments[:-2], table.index(Index(0)), e.arguments[-1]), e.dtype)


def sum_for_maximum(table: Table, e: Expression) -> Expression | None:
    """A sum in the place of the first maximum."""
    if e.bound is None or e.bound.kind not in ("maximum", "or"):
        return None
    return table.reduce(Bound("minimum" if e.bound.kind == "maximum" else "and", *_loop(e)), e.arguments[0])


def _loop(e: Expression) -> tuple[str, int]:
    assert e.bound is not None
    return e.bound.index, e.bound.size


CHANGES: dict[str, Change] = {
    f.__name__: f
    for f in (mask_off_by_one, no_mask, dropped_tail, no_maximum, other_scale, other_place, sum_for_maximum)
}


def changed(plan: Plan, change: Change) -> Iterator[Plan]:
    """The plan with one of its stores computed otherwise, kernel by kernel."""
    table = plan.table
    for number, kernel in enumerate(plan.kernels):
        stores = tuple(replace(s, value=table.replace(s.value, lambda e: change(table, e))) for s in kernel.stores)
        if all(new.value is old.value for new, old in zip(stores, kernel.stores, strict=True)):
            continue
        loops = [*kernel.grid, *(loop for loop in (kernel.rows, kernel.features) if loop is not None)]
        sizes = {loop.name: loop.size for loop in loops} | {
            s.lane.name: s.lane.size for s in kernel.sweeps if not s.running
        }
        try:
            yield with_kernel(plan, number, arrange(table, Job(stores, sizes), kernel.name))
        except Cut:
            continue


def differs(plan: Plan, wrong: Plan, name: str) -> bool:
    """Whether a wrong plan computes other numbers at all."""
    program, args = PROGRAMS[name]()
    inputs = tensors_by_name(program, args, {})
    found: list[list[torch.Tensor]] = []
    for each in (plan, wrong):
        runner, *_ = targets.runners("torch", each, None, targets.print_kernels("torch", each, None))
        found.append(list(runner(inputs).values()))
    pairs = zip(*found, strict=True)
    return not all(torch.allclose(a.double(), b.double(), atol=1e-6, equal_nan=True) for a, b in pairs)


SLOW = ("window", "grouped", "alibi", "threshold")


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "name", ["causal", "residual_norm", "deviation", *(pytest.param(n, marks=pytest.mark.slow) for n in SLOW)]
)
@pytest.mark.parametrize("kind", CHANGES)
def test_no_kernel_that_computes_something_else_is_proved(name: str, kind: str) -> None:
    plan = plan_of(name)

    for wrong in changed(plan, CHANGES[kind]):
        if differs(plan, wrong, name):
            assert trust(wrong, seconds=1.0).evidence == "tested"


# --- how its states follow each other


def one(e: Expression, table: Table) -> Expression:
    return table.constant(1.0, e.dtype)


def no_rescale(table: Table, r: Running) -> Running | None:
    """The state stays as it is when the maximum moves."""
    if r.update.factor is None:
        return None
    return replace(r, update=replace(r.update, factor=one(r.value, table)))


def wrong_way(table: Table, r: Running) -> Running | None:
    """The state is scaled by the inverse of what it has to be."""
    if r.update.factor is None:
        return None
    inverse = table.plain("divide", (one(r.value, table), r.update.factor))
    return replace(r, update=replace(r.update, factor=inverse))


def no_finish(table: Table, r: Running) -> Running | None:
    """What is to be applied at the end is forgotten."""
    if r.update.finish is None:
        return None
    return replace(r, update=replace(r.update, finish=one(r.value, table)))


def half_growth(table: Table, r: Running) -> Running | None:
    """What follows a mean moves by half of what other sums say."""
    growth = r.update.growth
    if growth is None or not growth.others:
        return None
    half = table.constant(0.5, r.value.dtype)
    others = tuple((table.plain("multiply", (rate, half)), other) for rate, other in growth.others)
    return replace(r, update=replace(r.update, growth=replace(growth, others=others)))


def other_start(table: Table, r: Running) -> Running | None:
    """A place starts again from another one than the last."""
    if r.update.reset is None:
        return None
    value = table.constant(int(r.update.reset.value.value) - 1, r.value.dtype)
    return replace(r, update=replace(r.update, reset=replace(r.update.reset, value=value)))


def other_weights(table: Table, r: Running) -> Running | None:
    """The tile of weights is twice what it is read as."""
    if r.factors is None:
        return None
    weight, item = r.factors
    return replace(r, factors=(table.plain("add", (weight, weight)), item))


def other_product(table: Table, sweep: Sweep) -> Sweep:
    """The left tile of a product is its square."""
    products = tuple(replace(p, left=table.plain("multiply", (p.left, p.left))) for p in sweep.products)
    return replace(sweep, products=products)


UPDATES = {f.__name__: f for f in (no_rescale, wrong_way, no_finish, half_growth, other_start, other_weights)}


def states(plan: Plan, change: Callable[[Table, Running], Running | None]) -> Iterator[Plan]:
    """The plan with one running state changed, one after the other."""
    for number, kernel in enumerate(plan.kernels):
        for place, sweep in enumerate(kernel.sweeps):
            for which, running in enumerate(sweep.running):
                other = change(plan.table, running)
                if other is not None:
                    found = (*sweep.running[:which], other, *sweep.running[which + 1 :])
                    sweeps = list(kernel.sweeps)
                    sweeps[place] = replace(sweep, running=found)
                    yield with_kernel(plan, number, replace(kernel, sweeps=tuple(sweeps)))


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", UPDATES)
def test_no_state_that_follows_otherwise_is_proved(kind: str) -> None:
    tried = 0
    for name in ("causal", "grouped", "deviation", "norm_product"):
        for wrong in states(plan_of(name), UPDATES[kind]):
            assert trust(wrong, seconds=1.0).evidence == "tested", name
            tried += 1
    program, args = PROGRAMS["largest"]()
    places = Planner(prepare_graph(rw.capture(program, args))).plan()
    for wrong in states(places, UPDATES[kind]):
        assert unproved_identity(wrong, [], 1.0, whole=False)
        tried += 1
    assert tried


def test_no_tile_that_is_not_what_it_is_read_as_is_proved() -> None:
    plan = plan_of("causal")
    kernel = plan.kernels[0]
    sweeps = tuple(other_product(plan.table, sweep) for sweep in kernel.sweeps)

    assert trust(with_kernel(plan, 0, replace(kernel, sweeps=sweeps)), seconds=1.0).evidence == "tested"


@pytest.mark.parametrize("kind", ["no_rescale", "wrong_way"])
def test_no_merge_of_pieces_that_forgets_their_maxima_is_proved(kind: str) -> None:
    split = split_plan(plan_of("decode"), targets.machine("cpu"), 3)
    wrong = list(states(split, UPDATES[kind]))

    assert len(split.kernels) == 2 and len(wrong) >= 2
    assert not unproved_identity(split, [], 2.0, whole=False)
    assert all(unproved_identity(plan, [], 1.0, whole=False) for plan in wrong)


def test_the_changes_reach_what_they_are_about() -> None:
    plan = plan_of("causal")
    reached = {kind for kind in CHANGES if any(changed(plan, CHANGES[kind]))}

    assert reached == set(CHANGES)
    assert any(e.op == "at_least_zero" for s in plan_of("causal").kernels[0].stores for e in walk(s.value))
