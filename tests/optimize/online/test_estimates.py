"""Sums that follow means by way of other sums of their pass: random moments in exact arithmetic, and known moments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import prod

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import rewright as rw
from rewright.ir.types import DType
from rewright.optimize import optimize
from rewright.optimize.kernel import Running, Store, Sweep
from rewright.optimize.online.derive import derive
from rewright.optimize.online.estimates import is_nonnegative
from rewright.optimize.online.update import Growth
from rewright.optimize.phases import variants
from rewright.optimize.planning.planner import Planner
from rewright.optimize.planning.preparing import prepare_graph
from rewright.optimize.planning.roles import Job, arrange
from rewright.optimize.planning.splitting import split_plan
from rewright.optimize.proving.proofs import remainder_claim, unproved_identity, update_claim
from rewright.optimize.running import targets
from rewright.optimize.scalars.expressions import Bound, Expression, Table
from rewright.terms.index import variable
from rewright.terms.normal.prove import prove
from tests.optimize.programs import tensors_by_name

LANE, SIZE = "r0_6", 6
Program = Callable[..., torch.Tensor]


class Row:
    """Two values of a row with their means, and weights that are squares of a third one."""

    def __init__(self, weighted: bool) -> None:
        self.table = Table()
        place = self.table.index(variable(LANE))
        self.values = [self.table.load(n, (place,), DType.F64) for n in range(3)]
        root = self.values[2]
        self.weight = self.f("multiply", root, root)
        self.means = [self.mean(value, weighted) for value in self.values[:2]]

    def f(self, op: str, *arguments: Expression) -> Expression:
        return self.table.apply(op, *arguments)

    def sum(self, body: Expression) -> Expression:
        return self.table.reduce(Bound("sum", LANE, SIZE), body)

    def mean(self, value: Expression, weighted: bool) -> Expression:
        if weighted:
            return self.f("divide", self.sum(self.f("multiply", self.weight, value)), self.sum(self.weight))
        return self.f("divide", self.sum(value), self.table.constant(float(SIZE), DType.F64))

    def moment(self, powers: Sequence[int], weighted: bool) -> Expression:
        """The product of so many factors ``x - mean`` and ``y - mean``, and of the weight."""
        gaps = [self.f("subtract", v, m) for v, m in zip(self.values, self.means, strict=False)]
        factors = [gap for gap, power in zip(gaps, powers, strict=True) for _ in range(power)]
        factors = [self.weight, *factors] if weighted else factors
        total, *rest = factors
        for factor in rest:
            total = self.f("multiply", total, factor)
        return total

    def pass_of(self, *values: Expression) -> tuple[Running, ...]:
        """The states of the one pass that computes some sums."""
        return self.sweep_of(*values).running

    def sweep_of(self, *values: Expression) -> Sweep:
        """The one pass that computes some sums."""
        stores = tuple(Store(n + 3, (), value) for n, value in enumerate(values))
        kernel = arrange(self.table, Job(stores, {}), "kernel")
        assert len(kernel.sweeps) == 1
        return kernel.sweeps[0]


def evaluate(e: Expression, known: dict[int, Fraction]) -> Fraction:
    """The value of an expression of which the leaves have values."""
    if e.number in known:
        return known[e.number]
    if e.op == "constant":
        return Fraction(e.value)
    left, *right = [evaluate(a, known) for a in e.arguments]
    match e.op:
        case "add":
            return left + right[0]
        case "subtract":
            return left - right[0]
        case "multiply":
            return left * right[0]
        case "divide":
            return left / right[0]
        case _:
            assert e.op == "negate"
            return -left


def one_pass(
    row: Row, states: Sequence[Running], elements: list[list[Fraction]], cuts: list[int]
) -> dict[int, Fraction]:
    """The states after going through the elements once, in tiles."""
    now: dict[int, Fraction] = {r.value.number: Fraction(0) for r in states}
    for begin, end in pairwise([0, *cuts, SIZE]):
        tile = [{v.number: x for v, x in zip(row.values, element, strict=True)} for element in elements[begin:end]]
        old, known = dict(now), dict[int, Fraction]()
        for running in states:
            state, growth = old[running.value.number], running.update.growth
            for e in () if growth is None else growth.estimates:
                for number, sums, seen in ((e.leaf.number, old, begin), (e.renewed.number, now, end)):
                    top, bottom = sums[e.sum.number], Fraction(seen) if e.weight is None else sums[e.weight.number]
                    known[number] = top * Fraction(e.count) / bottom if bottom else Fraction(0)
            if growth is not None:
                state += sum((evaluate(c, known) * old[other.number] for c, other in growth.others), Fraction(0))
                state += begin * evaluate(growth.each, known) if growth.each is not None else 0
                after = {e.leaf.number: known[e.renewed.number] for e in growth.estimates}
            else:
                after = {}
            now[running.value.number] = state + sum(evaluate(running.body, at | after) for at in tile)
    return now


elements = st.lists(st.lists(st.integers(-9, 9).map(Fraction), min_size=3, max_size=3), min_size=SIZE, max_size=SIZE)


@settings(deadline=None)
@given(elements, st.sets(st.integers(1, SIZE - 1)), st.tuples(st.integers(0, 3), st.integers(0, 2)), st.booleans())
def test_moments_in_one_pass_are_those_in_two(
    rows: list[list[Fraction]], cuts: set[int], powers: tuple[int, int], weighted: bool
) -> None:
    if not any(powers) or (weighted and not any(row[2] for row in rows)):
        return
    row = Row(weighted)
    moment = row.sum(row.moment(powers, weighted))

    states = row.pass_of(moment)

    weights = [element[2] ** 2 if weighted else Fraction(1) for element in rows]
    means = [sum(w * e[n] for w, e in zip(weights, rows, strict=True)) / sum(weights) for n in range(2)]
    expected = sum(
        w * prod((e[n] - means[n]) ** powers[n] for n in range(2)) for w, e in zip(weights, rows, strict=True)
    )
    assert one_pass(row, states, rows, sorted(cuts))[moment.number] == expected


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("powers", [(2, 0), (3, 0), (4, 0), (1, 1), (2, 1)])
def test_the_identity_of_a_moment_is_proved_and_that_of_half_its_growth_is_not(
    powers: tuple[int, int], weighted: bool
) -> None:
    row = Row(weighted)
    moment = row.sum(row.moment(powers, weighted))
    states = row.pass_of(moment)
    bodies = {r.value.number: r.body for r in states}
    (update,) = (r.update for r in states if r.value is moment)

    assert all(prove(update_claim(r.update, bodies)).status == "proved" for r in states)
    assert update.growth is not None
    half = row.table.constant(0.5, DType.F64)
    for number, (coefficient, other) in enumerate(update.growth.others):
        others = list(update.growth.others)
        others[number] = (row.f("multiply", half, coefficient), other)
        wrong = replace(update, growth=replace(update.growth, others=tuple(others)))
        assert prove(update_claim(wrong, bodies)).status != "proved"
    without = replace(update, growth=Growth(None, update.growth.others[1:], update.growth.estimates))
    assert prove(update_claim(without, bodies)).status != "proved"


@pytest.mark.parametrize("kind", ["weights of both signs", "quotient of a mean", "exponential of a mean"])
def test_what_no_estimate_says_has_no_update(kind: str) -> None:
    row = Row(weighted=False)
    x, y, w = row.values
    total, weights = row.sum(row.f("multiply", w, x)), row.sum(w)
    gap = row.f("subtract", x, row.means[0])
    signed = row.f("subtract", x, row.f("divide", total, weights))
    body = {
        "weights of both signs": row.f("multiply", w, row.f("multiply", signed, signed)),
        "quotient of a mean": row.f("divide", y, row.f("add", row.means[0], y)),
        "exponential of a mean": row.f("multiply", row.f("exponential", gap), gap),
    }[kind]
    running = [total, weights, row.sum(x), row.sum(y)]

    assert derive(row.table, "sum", body, LANE, running) is None


def test_what_is_never_below_zero_is_seen_by_its_functions() -> None:
    row = Row(weighted=False)
    x, y, _ = row.values
    square, power = row.weight, row.f("exponential", x)

    assert all(map(is_nonnegative, [square, power, row.f("add", square, power), row.f("maximum", x, power)]))
    assert not any(map(is_nonnegative, [x, row.f("multiply", x, y), row.f("subtract", square, power)]))
    assert not is_nonnegative(row.f("minimum", x, power))


def skewness(x: torch.Tensor) -> torch.Tensor:
    gap = x - x.mean(-1, keepdim=True)
    return (gap**3).mean(-1) / (gap**2).mean(-1) ** 1.5


def kurtosis(x: torch.Tensor) -> torch.Tensor:
    gap = x - x.mean(-1, keepdim=True)
    return (gap**4).mean(-1) / (gap**2).mean(-1) ** 2


def variance_by_softmax(x: torch.Tensor) -> torch.Tensor:
    weights, values = torch.softmax(3 * x, -1), x.cos()
    mean = (weights * values).sum(-1, keepdim=True)
    return (weights * (values - mean) ** 2).sum(-1)


def variance_under_a_mask(x: torch.Tensor) -> torch.Tensor:
    """The first tiles of some rows have no element that counts."""
    kept = (torch.arange(x.shape[-1]) > 700 * torch.arange(x.shape[0])[:, None]).float()
    count = kept.sum(-1, keepdim=True)
    mean = (kept * x).sum(-1, keepdim=True) / count
    return (kept * (x - mean) ** 2).sum(-1) / count[:, 0]


def correlation(x: torch.Tensor) -> torch.Tensor:
    a, y = x - x.mean(-1, keepdim=True), (x + x.sin()).relu()
    b = y - y.mean(-1, keepdim=True)
    return (a * b).sum(-1) / ((a * a).sum(-1) * (b * b).sum(-1)).sqrt()


MOMENTS = [skewness, kurtosis, variance_by_softmax, variance_under_a_mask, correlation]


def rows(offset: float) -> torch.Tensor:
    x = torch.randn(3, 2100, generator=torch.Generator().manual_seed(0))
    x[1] = x[1].sort().values  # the mean moves in every tile
    return x**2 + x + offset


@pytest.mark.sample(3)
@pytest.mark.parametrize("program", MOMENTS)
@pytest.mark.parametrize("target", ["torch", "cpu"])
def test_a_moment_is_one_pass(program: Program, target: str) -> None:
    x = rows(0.5)

    optimized = optimize(program, (x,), target=target, floor=False, remember=False)

    assert optimized.status == "proved", optimized.reason
    assert optimized.plan is not None and [len(k.sweeps) for k in optimized.plan.kernels] == [1]
    torch.testing.assert_close(optimized(x).double(), program(x.double()), rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("program", MOMENTS)
def test_pieces_of_a_moment_are_merged(program: Program) -> None:
    x = rows(0.5)
    plan = Planner(prepare_graph(rw.capture(program, (x,)))).plan()

    split = split_plan(plan, targets.machine("torch"), 3)

    assert len(split.kernels) > len(plan.kernels)
    assert not unproved_identity(split, [], 5.0, whole=False)
    runner, *_ = targets.runners("torch", split, None, targets.print_kernels("torch", split, None))
    (found,) = runner(tensors_by_name(program, (x,), {})).values()
    torch.testing.assert_close(found.double(), program(x.double()), rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("target", ["torch", "cpu"])
@pytest.mark.parametrize("pieces", [1, 3])
def test_the_mean_of_nothing_is_no_number_and_neither_is_what_follows_it(target: targets.Target, pieces: int) -> None:
    def deviations(x: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
        weights = kept.float()
        mean = (weights * x).sum(-1, keepdim=True) / weights.sum(-1, keepdim=True)
        return (weights * (x - mean) ** 2).sum(-1)

    x = rows(0.5)
    kept = torch.arange(x.shape[-1]) >= torch.tensor([[0], [1600], [2100]])  # of the second row the last piece only
    plan = Planner(prepare_graph(rw.capture(deviations, (x, kept)))).plan()

    split = split_plan(plan, targets.machine("torch"), pieces)

    assert (len(split.kernels) > len(plan.kernels)) == (pieces > 1)
    runner, *_ = targets.runners(target, split, None, targets.print_kernels(target, split, None))
    (found,) = runner(tensors_by_name(deviations, (x, kept), {})).values()
    torch.testing.assert_close(found, deviations(x, kept), rtol=2e-5, atol=1e-5, equal_nan=True)


def test_a_variance_far_from_zero_has_the_error_of_two_passes() -> None:
    """The mean is rounded at its own size, and what is summed is not."""

    def variances(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        gap, other = x - x.mean(-1, keepdim=True), x.cos() - x.cos().mean(-1, keepdim=True)
        return (gap**2).mean(-1), (gap * other).mean(-1)

    x = rows(2000.0)

    optimized = optimize(variances, (x,), target="cpu", floor=False, remember=False)

    assert optimized.status == "proved", optimized.reason
    for mine, eager, exact in zip(optimized(x), variances(x), variances(x.double()), strict=True):
        error, own = ((v - exact).abs().max() / exact.abs().max() for v in (mine, eager))
        assert error <= 2 * own + 5e-6


class Normalised(torch.nn.Module):
    """A residual sum and its layer normalisation."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(size)

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        total = x + residual
        return self.norm(total), total


@pytest.mark.parametrize("target", ["torch", "cpu"])
@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_layer_normalisation_reads_its_rows_twice(target: str, offset: float) -> None:
    torch.manual_seed(0)
    module = Normalised(777).requires_grad_(False)
    args = torch.randn(5, 777) + offset, torch.randn(5, 777)

    optimized = optimize(module, args, target=target, floor=False, remember=False)

    assert optimized.status == "proved"
    text = optimized.explain()
    assert "pass 2 over 777" in text and "pass 3" not in text
    exact = torch.nn.functional.layer_norm((args[0] + args[1]).double(), (777,))
    # The mean is known to half a unit in the last place of the offset, as it is to eager.
    assert (optimized(*args)[0] - exact).abs().max() <= 4e-6 + 4 * offset * torch.finfo(torch.float32).eps


def test_a_pass_that_counts_its_elements_skips_no_tile() -> None:
    row = Row(weighted=False)
    place = row.table.index(variable(LANE) + -3)
    masked = row.f("select", row.f("at_least_zero", place), row.values[0], row.table.constant(0.0, DType.F64))
    gap = row.f("subtract", masked, row.mean(masked, False))

    plain, following = (row.sweep_of(row.sum(body)) for body in (masked, row.f("multiply", gap, masked)))

    assert variants(row.table, plain).skip and not variants(row.table, following).skip


@pytest.mark.parametrize("target", ["torch", "cpu"])
def test_no_tile_is_skipped_whose_elements_an_estimate_counts(target: str) -> None:
    """Above the diagonal both sums add nothing, but the mean is over all positions."""

    def program(x: torch.Tensor) -> torch.Tensor:
        rows = torch.arange(x.shape[0])
        seen = torch.where(rows[:, None] >= rows, x, 0.0)
        mean = seen.mean(-1, keepdim=True)
        return (seen * mean + seen * seen).sum(-1)

    torch.manual_seed(0)
    x = torch.randn(300, 300) + 1

    optimized = optimize(program, (x,), target=target, floor=False, remember=False)

    assert "follows the running sum" in optimized.explain()
    torch.testing.assert_close(optimized(x), program(x), rtol=1e-5, atol=1e-4)


def test_the_square_of_a_deviation_moves_by_that_of_the_difference_of_means() -> None:
    """The update of Chan, Golub and LeVeque: nothing of the size of the squared mean is left to cancel."""
    row = Row(weighted=False)
    square = row.sum(row.moment((2, 0), False))

    (growth,) = (r.update.growth for r in row.pass_of(square) if r.value is square)

    assert growth is not None and growth.each is not None
    ((mean, renewed),) = ((e.leaf, e.renewed) for e in growth.estimates)
    assert evaluate(growth.each, {mean.number: Fraction(1_000_000), renewed.number: Fraction(1_000_002)}) == 4
    ((coefficient, _),) = growth.others  # of the sum of what is left of the mean, which is zero but for rounding
    assert evaluate(coefficient, {mean.number: Fraction(1_000_000), renewed.number: Fraction(1_000_002)}) == -4


def test_what_is_left_of_a_mean_is_proved_and_twice_that_is_not() -> None:
    row = Row(weighted=False)
    moment = row.sum(row.moment((2, 0), False))
    ((estimate, left),) = row.sweep_of(moment).remainders

    assert prove(remainder_claim(row.values[0], estimate, left)).status == "proved"
    twice = replace(left, body=row.f("add", left.body, left.body))
    assert prove(remainder_claim(row.values[0], estimate, twice)).status != "proved"


def projected(x: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.layer_norm(x, (m.shape[0],)) @ m


@pytest.mark.parametrize("target", ["torch", "cpu"])
@pytest.mark.parametrize("pieces", [1, 3])
@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_a_matrix_product_follows_the_mean_of_its_rows(target: targets.Target, pieces: int, offset: float) -> None:
    """The sum of ``(x - e) w`` moves by the sum of w, and never is a difference of sums of the size of the offset."""
    torch.manual_seed(0)
    x, m = torch.randn(50, 300) + offset, torch.randn(300, 48) / 17
    plan = Planner(prepare_graph(rw.capture(projected, (x, m)))).plan()
    assert [len(k.sweeps) for k in plan.kernels] == [1]
    assert any(r.is_shared for r in plan.kernels[0].sweeps[0].running)

    split = split_plan(plan, targets.machine(target), pieces)

    assert (len(split.kernels) > len(plan.kernels)) == (pieces > 1)
    assert not unproved_identity(split, [], 5.0, whole=False)
    runner, *_ = targets.runners(target, split, None, targets.print_kernels(target, split, None))
    (found,) = runner({"x": x, "m": m}).values()
    exact = projected(x.double(), m.double())
    error, eager = ((y.double() - exact).abs().max() for y in (found, projected(x, m)))
    assert error <= (1.5 if offset else 2) * eager


@pytest.mark.parametrize("target", ["torch", "cpu"])
def test_the_mean_of_rows_far_from_zero_is_the_nearest_number(target: targets.Target) -> None:
    """What is left of it tells how far the sum is from what it should be."""

    def deviations(x: torch.Tensor) -> torch.Tensor:
        mean = x.mean(-1, keepdim=True)
        return (x - mean) / ((x - mean) ** 2).mean(-1, keepdim=True)

    x = torch.randn(40, 3000, generator=torch.Generator().manual_seed(0)) + 1000

    optimized = optimize(deviations, (x,), target=target, floor=False, remember=False)

    error = (optimized(x).double() - deviations(x.double())).abs().max()
    assert optimized.status == "proved"
    assert error <= 1000 * torch.finfo(torch.float32).eps
