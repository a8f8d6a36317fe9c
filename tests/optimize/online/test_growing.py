"""Sums that grow by other sums of their pass: smoothed losses, entropies, divergences; and what is no such sum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from rewright.ir.types import DType
from rewright.optimize import optimize
from rewright.optimize.online.derive import derive
from rewright.optimize.online.update import Growth, Update
from rewright.optimize.proving.proofs import update_claim
from rewright.optimize.scalars.expressions import Bound, Expression, Table
from rewright.terms.index import variable
from rewright.terms.normal.prove import prove

LANE, SIZE = "r0_6", 6
INF, NAN = float("inf"), float("nan")
Program = Callable[[torch.Tensor], torch.Tensor]


class Row:
    """Two values of a row with their maxima, and the sum of the exponentials of the first."""

    def __init__(self) -> None:
        self.table = Table()
        place = self.table.index(variable(LANE))
        self.x, self.y = (self.table.load(n, (place,), self.dtype) for n in range(2))
        self.top, self.other = (self.table.reduce(Bound("maximum", LANE, SIZE), v) for v in (self.x, self.y))
        self.weight = self.f("exponential", self.f("subtract", self.x, self.top))
        self.total = self.table.reduce(Bound("sum", LANE, SIZE), self.weight)
        self.running = (self.top, self.other, self.total)

    dtype = DType.F64

    def f(self, op: str, *arguments: Expression) -> Expression:
        return self.table.apply(op, *arguments)

    def derived(self, body: Expression) -> Update | None:
        return derive(self.table, "sum", body, LANE, self.running)


def proved(row: Row, update: Update) -> bool:
    return prove(update_claim(update, {row.total.number: row.weight}), 2.0).status == "proved"


@given(st.integers(-3, 3), st.integers(-3, 3), st.booleans())
def test_what_moves_by_the_sum_of_its_weights_grows(a: int, b: int, weighted: bool) -> None:
    row = Row()
    terms = [row.f("multiply", row.table.constant(float(k), row.dtype), row.f("subtract", v, m))
             for k, v, m in ((a, row.x, row.top), (b, row.y, row.other))]  # fmt: skip
    body = row.f("add", *terms)
    body = row.f("multiply", row.weight, body) if weighted else body

    update = row.derived(body)

    assert update is not None
    if a or b:
        assert update.growth is not None
        assert (update.growth.each is None) == weighted
        assert proved(row, update)
        if b:
            assert not proved(row, replace(update, growth=Growth(None, ())))
            half = row.table.constant(0.5, row.dtype)
            others = tuple((row.f("multiply", half, c), e) for c, e in update.growth.others)
            each = None if update.growth.each is None else row.f("multiply", half, update.growth.each)
            assert not proved(row, replace(update, growth=Growth(each, others)))


def test_what_needs_a_sum_that_the_pass_has_not_takes_another_one() -> None:
    row = Row()
    gap = row.f("subtract", row.x, row.top)

    assert row.derived(row.f("multiply", row.weight, row.f("multiply", gap, gap))) is None  # the sum of weight x
    assert row.derived(row.f("multiply", row.y, gap)) is None  # the sum of y
    assert row.derived(row.f("tanh", gap)) is None


def mean_of_logarithms(x: torch.Tensor) -> torch.Tensor:
    return torch.log_softmax(x, -1).mean(-1)


def smoothed(x: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(x, torch.arange(x.shape[0]), label_smoothing=0.1, reduction="none")


def entropy(x: torch.Tensor) -> torch.Tensor:
    logarithms = torch.log_softmax(x, -1)
    return -(logarithms.exp() * logarithms).sum(-1)


def entropy_of_weights(x: torch.Tensor) -> torch.Tensor:
    weights = torch.softmax(x, -1)
    return -(weights * weights.log()).sum(-1)


def divergence(x: torch.Tensor) -> torch.Tensor:
    return F.kl_div(torch.log_softmax(x, -1), torch.log_softmax(x.tanh(), -1), log_target=True, reduction="none").sum(
        -1
    )


@pytest.mark.sample(3)
@pytest.mark.parametrize("program", [mean_of_logarithms, smoothed, entropy, entropy_of_weights, divergence])
@pytest.mark.parametrize("target", ["torch", "cpu"])
def test_a_loss_is_one_pass(program: Program, target: str) -> None:
    x = torch.randn(6, 2100, generator=torch.Generator().manual_seed(0)) * 3  # several tiles
    x[1] += 500.0
    x[2] = x[2].sort().values * 20  # the maximum rises in every tile
    exact = program(x.double())

    optimized = optimize(program, (x,), target=target, floor=False, remember=False)

    assert optimized.status == "proved", optimized.reason
    assert optimized.plan is not None and [len(k.sweeps) for k in optimized.plan.kernels] == [1]
    torch.testing.assert_close(optimized(x).double(), exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("target", ["torch", "cpu"])
def test_what_is_no_number_stays_none(target: str) -> None:
    x = torch.randn(6, 2100, generator=torch.Generator().manual_seed(0))
    x[0, 7], x[1, :1500], x[2, -1], x[3] = NAN, -INF, -INF, -INF

    optimized = optimize(mean_of_logarithms, (x,), target=target, floor=False, remember=False)

    assert optimized.status == "proved", optimized.reason
    torch.testing.assert_close(optimized(x), mean_of_logarithms(x), equal_nan=True, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("target", ["torch", "cpu"])
def test_what_is_summed_before_there_is_a_maximum_counts(target: str) -> None:
    """A maximum of something else may have seen nothing where the sum has seen terms already."""

    def weights(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        top, other = x.amax(-1, keepdim=True), y.amax(-1, keepdim=True)
        return torch.exp(y - top).sum(-1), torch.exp(y - torch.maximum(top, other)).sum(-1), (y - top).sum(-1)

    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(4, 2100, generator=generator) for _ in range(2))
    x[0, :1500], x[1, 5], y[2, 1400:] = -INF, NAN, -INF

    optimized = optimize(weights, (x, y), target=target, floor=False, remember=False)

    assert optimized.status == "proved", optimized.reason
    for mine, expected in zip(optimized(x, y), weights(x, y), strict=True):
        torch.testing.assert_close(mine, expected, equal_nan=True, rtol=2e-5, atol=1e-5)
