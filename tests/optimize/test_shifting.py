"""Sums that follow the estimate of another sum: random polynomials in exact arithmetic, and layer normalisation."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rewright.ir.types import DType
from rewright.optimize import optimize
from rewright.optimize.derive import Update, derive
from rewright.optimize.expressions import Bound, Expression, Table
from rewright.optimize.kernel import Loop, Running, Sweep
from rewright.optimize.phases import variants
from rewright.optimize.proofs import drift_claims
from rewright.optimize.reading import variable_index
from rewright.terms.normal.prove import prove

LANE, SIZE = "r0_6", 6
FIXED = Fraction(3, 7)


class Row:
    """Two values of a row and the running sum of a combination of them."""

    def __init__(self, weights: tuple[int, int] = (1, 0)) -> None:
        self.table = Table()
        place = self.table.index(variable_index(LANE))
        self.values = [self.table.load(n, (place,), DType.F64) for n in range(2)]
        self.fixed = self.table.load(2, (), DType.F64)
        parts = [self.f("multiply", self.number(w), v) for w, v in zip(weights, self.values, strict=True) if w]
        self.item = parts[0] if len(parts) == 1 else self.f("add", *parts)
        self.total = self.table.reduce(Bound("sum", LANE, SIZE), self.item)
        self.mean = self.f("divide", self.total, self.number(SIZE))

    def f(self, op: str, *arguments: Expression) -> Expression:
        return self.table.apply(op, *arguments)

    def number(self, value: float) -> Expression:
        return self.table.constant(float(value), DType.F64)

    def derive(self, body: Expression) -> Update | None:
        return derive(self.table, "sum", body, LANE, [self.total])

    def leaves(self, element: list[Fraction]) -> dict[int, Fraction]:
        """The values of one element, by number."""
        return {v.number: x for v, x in zip(self.values, element, strict=True)} | {self.fixed.number: FIXED}


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


def one_pass(row: Row, update: Update, elements: list[list[Fraction]], cuts: list[int]) -> Fraction:
    """The state after going through the elements once, in tiles."""
    assert update.drift is not None
    (renewed,) = update.renewed
    total, state, estimate = Fraction(0), Fraction(0), Fraction(0)
    for begin, end in pairwise([0, *cuts, SIZE]):
        tile = [row.leaves(element) for element in elements[begin:end]]
        total += sum(evaluate(row.item, known) for known in tile)
        before, estimate = estimate, total * SIZE / end
        moved = {row.total.number: before if begin else estimate, renewed.number: estimate, row.fixed.number: FIXED}
        state += begin * evaluate(update.drift.rate, moved)
        state += sum(evaluate(update.body, known | {row.total.number: estimate}) for known in tile)
    return state * (1 if update.finish is None else evaluate(update.finish, {row.fixed.number: FIXED}))


elements = st.lists(st.lists(st.integers(-9, 9).map(Fraction), min_size=2, max_size=2), min_size=SIZE, max_size=SIZE)


@given(elements, st.sets(st.integers(1, SIZE - 1)), st.integers(0, 31))
def test_what_is_derived_agrees_with_two_passes(rows: list[list[Fraction]], cuts: set[int], shape: int) -> None:
    row = Row((2, -3) if shape & 1 else (1, 0))
    x, y = row.values
    item = x
    if shape & 1:
        item = row.f("subtract", row.f("multiply", row.number(2), x), row.f("multiply", row.number(3), y))
    gap = row.f("subtract", item, row.mean)
    body = row.f("multiply", gap, gap)
    if shape & 2:
        body = row.f("multiply", body, row.fixed)
    if shape & 4:
        body = row.f("add", body, row.f("multiply", x, row.f("multiply", y, y)))
    if shape & 8:
        body = row.f("subtract", row.f("multiply", row.mean, item), body)
    if shape & 16:
        body = row.f("add", body, row.f("multiply", row.mean, row.f("multiply", row.mean, row.fixed)))

    update = row.derive(body)

    assert update is not None
    known = [row.leaves(element) for element in rows]
    total = sum((evaluate(row.item, leaves) for leaves in known), Fraction(0))
    expected = sum(evaluate(body, leaves | {row.total.number: total}) for leaves in known)
    assert one_pass(row, update, rows, sorted(cuts)) == expected
    assert all(prove(claim).status == "proved" for claim in drift_claims(update))


def test_the_squared_deviation_moves_by_the_square_of_the_difference_of_means() -> None:
    """The update of Chan, Golub and LeVeque: nothing of the size of the squared mean is left to cancel."""
    row = Row()
    gap = row.f("subtract", row.values[0], row.mean)

    update = row.derive(row.f("multiply", gap, gap))

    assert update is not None and update.drift is not None
    (renewed,) = update.renewed
    rate = evaluate(update.drift.rate, {row.total.number: Fraction(6_000_000), renewed.number: Fraction(6_000_012)})
    assert rate == Fraction(12, SIZE) ** 2


@pytest.mark.parametrize("kind", ["cube", "weighted", "quotient", "exponential", "other sum"])
def test_what_the_sum_does_not_tell_gets_a_pass_of_its_own(kind: str) -> None:
    row = Row()
    x, y = row.values
    gap = row.f("subtract", y if kind == "other sum" else x, row.mean)
    square = row.f("multiply", gap, gap)
    body = {
        "cube": lambda: row.f("multiply", gap, square),
        "weighted": lambda: row.f("multiply", y, square),
        "quotient": lambda: row.f("divide", x, row.f("add", row.mean, y)),
        "exponential": lambda: row.f("exponential", gap),
        "other sum": lambda: square,
    }[kind]()

    assert row.derive(body) is None


def test_the_identity_of_a_wrong_drift_is_not_proved() -> None:
    row = Row()
    gap = row.f("subtract", row.values[0], row.mean)
    square = row.f("multiply", gap, gap)
    update, other = row.derive(square), row.derive(row.f("add", square, row.f("multiply", row.mean, row.values[0])))
    assert update is not None and other is not None

    mixed = Update(update.body, update.depends, update.renewed, None, None, other.drift)

    assert "proved" not in [prove(claim).status for claim in drift_claims(mixed)][:1]


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

    optimized = optimize(module, args, target=target)

    assert optimized.status == "proved"
    text = optimized.explain()
    assert "pass 2 over 777" in text and "pass 3" not in text
    exact = torch.nn.functional.layer_norm((args[0] + args[1]).double(), (777,))
    # The mean is known to half a unit in the last place of the offset, as it is to eager.
    assert (optimized(*args)[0] - exact).abs().max() <= 4e-6 + 4 * offset * torch.finfo(torch.float32).eps


@pytest.mark.parametrize("followed", [False, True])
def test_a_pass_that_counts_its_elements_skips_no_tile(followed: bool) -> None:
    row = Row()
    gap = row.f("subtract", row.values[0], row.mean)
    update = row.derive(row.f("multiply", gap, gap))
    assert update is not None
    seen = row.f("at_least_zero", row.table.index(variable_index(LANE) + -3))
    body = row.f("select", seen, row.values[0], row.number(0))
    plain = Running(row.total, body, Update(body))
    other = Running(row.table.reduce(Bound("sum", LANE, SIZE), body), body, Update(body))
    following = replace(other, update=replace(update, body=body))

    found = variants(row.table, Sweep(Loop(LANE, SIZE), (), (plain, following if followed else other), ()))

    assert bool(found.skip) is not followed


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

    optimized = optimize(program, (x,), target=target)

    assert "follows the running sum" in optimized.explain()
    torch.testing.assert_close(optimized(x), program(x), rtol=1e-5, atol=1e-4)
