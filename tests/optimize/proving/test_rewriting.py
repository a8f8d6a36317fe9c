"""Rules of the library on scalars with loops, what they make of plans, and that what they make is proved."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

import rewright as rw
from bench.optimize.programs import eviction
from rewright.ir.types import DType
from rewright.optimize.planning.costs import operations
from rewright.optimize.planning.plan import Plan
from rewright.optimize.planning.planner import Planner
from rewright.optimize.planning.preparing import prepare_graph
from rewright.optimize.proving.laws import laws
from rewright.optimize.proving.rewrite_proofs import unproved_rewrite
from rewright.optimize.proving.rewriting import log_two, rewritten
from rewright.optimize.scalars.constants import closed_value, power_of_two
from rewright.optimize.scalars.expressions import Bound, Expression, Table, walk
from rewright.rules.library import registered
from rewright.terms.index import variable
from tests.optimize.programs import PROGRAMS, normal


class Scalars:
    """Values of rows and lanes, and laws applied to them."""

    def __init__(self) -> None:
        self.table = Table()
        row, lane = (self.table.index(variable(name)) for name in ("o0", "r0_8"))
        self.x = self.table.load(0, (row, lane), DType.F32)
        self.y = self.table.load(1, (row, lane), DType.F32)
        self.row = self.table.load(2, (row,), DType.F32)

    def f(self, op: str, *arguments: Expression) -> Expression:
        return self.table.apply(op, *arguments)

    def number(self, value: float) -> Expression:
        return self.table.constant(value, DType.F32)

    def by(self, name: str, e: Expression, known: bool = True) -> list[Expression]:
        return list(laws()[name].instances(self.table, e, lambda kind, value: known))


def test_every_law_is_a_rule_with_evidence() -> None:
    registry = registered()
    for name, law in laws().items():
        assert law.rule.name == name and registry.record(name).tier == "proved"


def test_a_law_holds_for_parts_of_any_shape() -> None:
    s = Scalars()
    quotient = s.f("divide", s.f("exponential", s.f("subtract", s.x, s.row)), s.y)

    (found,) = s.by("exp-difference-over", quotient)

    logarithm = s.f("add", s.row, s.f("log", s.y))
    assert found is s.f("exponential", s.f("subtract", s.x, logarithm))


def test_a_condition_that_is_not_known_keeps_a_law_out() -> None:
    s = Scalars()
    quotient = s.f("divide", s.f("exponential", s.x), s.y)

    assert s.by("exp-over", quotient) and not s.by("exp-over", quotient, known=False)


def test_the_sign_of_a_number_is_looked_at() -> None:
    s = Scalars()
    largest = s.table.reduce(Bound("maximum", "r0_8", 8), s.x)

    assert s.by("max-over", s.f("divide", largest, s.number(3.0)))
    assert not s.by("max-over", s.f("divide", largest, s.number(-3.0)))


def test_what_varies_in_a_reduction_is_not_taken_out_of_it() -> None:
    s = Scalars()
    total = s.table.reduce(Bound("sum", "r0_8", 8), s.f("multiply", s.x, s.y))

    assert len(s.by("dot-times", s.f("multiply", total, s.number(3.0)))) == 2  # either operand
    assert not s.by("dot-times", s.f("multiply", total, s.row))  # only numbers go in


def test_a_product_may_be_written_either_way() -> None:
    s = Scalars()
    three, five = s.number(3.0), s.number(5.0)

    for value in (s.f("multiply", s.x, three), s.f("multiply", three, s.x)):
        (found,) = s.by("product-over", s.f("divide", value, five))
        assert closed_value(found.arguments[1]) == pytest.approx(0.6)


def test_numbers_are_not_rounded_before_they_are_printed() -> None:
    s = Scalars()
    third = s.f("divide", s.number(1.0), s.number(3.0))

    assert third.op == "divide" and closed_value(third) == 1 / 3
    assert s.f("divide", s.number(1.0), s.number(4.0)).op == "constant"
    assert closed_value(log_two(s.table, DType.F32)) == math.log(2)
    assert closed_value(s.f("add", s.x, third)) is None


def plan_of(program: Any, args: Any) -> Plan:
    return Planner(prepare_graph(rw.capture(program, args))).plan()


def variant(name: str, dtype: torch.dtype) -> Plan:
    args = tuple(t.to("meta") for t in eviction.inputs(name, 64, 2, 32, dtype, "cpu", 1.0))
    return plan_of(eviction.MODULES[name], args)


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("name", eviction.MODULES)
def test_exponentials_become_powers_of_two_and_that_is_proved(name: str, dtype: torch.dtype) -> None:
    plan = variant(name, dtype)

    found = rewritten(plan)

    assert found is not None and found.laws["exp-in-base-two"] > 0
    values = [e for kernel in found.plan.kernels for store in kernel.stores for e in walk(store.value)]
    assert all(power_of_two(e) is not None for e in values if e.op == "exponential")
    assert len(found.plan.kernels) == len(plan.kernels)
    assert unproved_rewrite(plan, found, 5.0) == ""


@pytest.mark.parametrize("name", ["h2o", "roco", "corm", "keyformer"])
def test_a_row_of_16_bits_has_two_small_statistics_and_no_division_for_each_element(name: str) -> None:
    """The maximum of unscaled scores and the logarithm of the sum: their sum would be rounded at the size of scores."""
    found = rewritten(variant(name, torch.float16))

    assert found is not None and found.laws["exp-over"] == 1
    columns = next(k for k in found.plan.kernels if not any(r.update.depends for s in k.sweeps for r in s.running))
    assert not any(e.op == "divide" and e.arguments[1].free for s in columns.stores for e in walk(s.value))
    read = {e.tensor for s in columns.stores for e in walk(s.value) if e.op == "load"}
    assert sum(tensor in {s.tensor for k in found.plan.kernels for s in k.stores} for tensor in read) == 2


@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_the_log_domain_is_closer_to_float64_than_eager_16_bits(scale: float) -> None:
    program, args = eviction.h2o, eviction.inputs("h2o", 48, 2, 24, torch.float16, "cpu", scale)

    found = rw.optimize(program, args, target="torch")

    assert found.status == "proved" and "exp-over" in found.trust.rules
    exact = program(*(a.double() for a in args))
    for mine, eager, expected in zip(found(*args), program(*args), exact, strict=True):
        assert mine.isfinite().all()
        assert (mine.double() - expected).abs().max() <= (eager.double() - expected).abs().max()


def test_float32_rows_keep_maximum_and_sum_apart() -> None:
    found = rewritten(variant("h2o", torch.float32))

    assert found is not None and not {"exp-difference-over", "exp-over"} & set(found.laws)


@pytest.mark.sample(4)
@pytest.mark.parametrize("scale", [10.0, 100.0, 1000.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_weights_of_logits_in_the_thousands_keep_their_digits(dtype: torch.dtype, scale: float) -> None:
    """Products of integers are exact: what is left is how a difference from the maximum is rounded."""
    args = tuple((normal(1, 37, 2, 24, seed=s) * m).round().to(dtype) for s, m in enumerate((scale, 3.0, 1.0)))
    exact = eviction.h2o(*(a.double() for a in args))[1]

    found = rw.optimize(eviction.h2o, args, target="torch")

    assert found.status == "proved", found.reason
    assert (found(*args)[1].double() - exact).abs().max() < 4e-6


def test_a_scale_goes_into_the_smaller_operand_where_one_kernel_has_the_product() -> None:
    alone, shared = rewritten(variant("attn", torch.float32)), rewritten(variant("h2o", torch.float32))

    assert alone is not None and shared is not None
    assert {"dot-over", "dot-times"} & set(alone.laws)
    assert not {"dot-over", "dot-times"} & set(shared.laws)  # both kernels have to round the product alike


def test_what_was_exact_is_not_rounded() -> None:
    program, args = PROGRAMS["causal"]()  # a scale that is a power of two, and two kernels

    assert rewritten(plan_of(program, args)) is None


def test_a_wrong_rewrite_is_not_proved() -> None:
    plan = variant("h2o", torch.float16)
    found = rewritten(plan)
    assert found is not None
    kernel = found.plan.kernels[0]
    table, first = plan.table, kernel.finals[0]
    for wrong in (
        table.apply("multiply", first.value, table.constant(1.0001, first.value.dtype)),
        table.apply("add", first.value, table.constant(1e-6, first.value.dtype)),
    ):
        finals = (replace(first, value=wrong), *kernel.finals[1:])
        steps = tuple(
            replace(s, kernel=replace(kernel, finals=finals)) if getattr(s, "kernel", None) is kernel else s
            for s in found.plan.steps
        )
        assert unproved_rewrite(plan, replace(found, plan=replace(found.plan, steps=steps)), 2.0)


def test_rewriting_makes_plans_cheaper_or_leaves_them() -> None:
    for name in ("decode", "alibi", "gating", "gated", "residual_norm", "loss"):
        program, args = PROGRAMS[name]()
        plan = plan_of(program, args)
        found = rewritten(plan)
        assert found is None or unproved_rewrite(plan, found, 5.0) == "", name


def test_operations_are_counted_for_the_loops_of_a_value() -> None:
    s = Scalars()
    sizes = {"o0": 10, "r0_8": 8}

    assert operations([s.f("add", s.x, s.row)], sizes) == 80
    assert operations([s.f("add", s.row, s.number(1.0))], sizes) == 10
    power = s.f("exponential", s.f("multiply", s.x, log_two(s.table, DType.F32)))
    assert operations([power], sizes) < operations([s.f("exponential", s.x)], sizes)


def test_the_explanation_names_the_rules() -> None:
    program, args = PROGRAMS["decode"]()
    args = (normal(2, 3, 1, 24), normal(2, 3, 45, 24, seed=1), normal(2, 3, 45, 24, seed=2))

    found = rw.optimize(program, args, target="torch")

    assert found.status == "proved" and found.certificate is not None
    assert "rule exp-in-base-two" in found.explain()
    torch.testing.assert_close(found(*args), program(*args), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("target", ["torch", "cpu"])
def test_powers_of_two_are_right_at_their_edges(target: str) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x * 0.3, -1)

    x = torch.tensor([[0.0, -1e30, float("-inf"), 1e-40], [300.0, 299.0, -300.0, 1.0], [float("nan"), 0.0, 1.0, 2.0]])

    found = rw.optimize(program, (x,), target=target, verify=False, floor=False, remember=False)  # type: ignore[arg-type]

    torch.testing.assert_close(found(x), program(x), rtol=1e-5, atol=1e-38, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("stored", [False, True])
def test_the_least_number_of_a_dtype_is_no_infinity(dtype: torch.dtype, stored: bool) -> None:
    """Where all keys of a query are masked with it, the program weighs them alike; over log 2 it would overflow."""
    least = torch.finfo(dtype).min

    def program(q: torch.Tensor, k: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        scores = q @ k.transpose(-1, -2) * 0.3
        scores = scores + mask if stored else scores.masked_fill(~mask, least)
        return torch.softmax(scores.float(), -1).to(k.dtype) @ k

    keep = torch.ones(2, 5, 21, dtype=torch.bool)
    keep[1, 2] = False
    mask = torch.where(keep, 0.0, least).to(dtype) if stored else keep
    args = normal(2, 5, 16, dtype=dtype), normal(2, 21, 16, seed=1, dtype=dtype), mask

    found = rw.optimize(program, args, target="torch", verify=False)

    assert found.status == "proved", found.reason
    torch.testing.assert_close(found(*args), program(*args), atol=2e-2 if dtype is torch.bfloat16 else 1e-5, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_maximum_that_is_returned_or_compared_is_one_of_the_elements_in_every_bit(dtype: torch.dtype) -> None:
    def program(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        i, j = torch.arange(x.shape[0])[:, None], torch.arange(x.shape[1])[None]
        scores = (-x).masked_fill(j > i + 90, float("-inf")).float()
        logs = torch.log_softmax(scores, -1)
        largest, place = scores.max(-1)
        near = (scores >= largest[:, None] - 0.5).sum(-1)
        return largest, place, near, -(logs.exp() * logs.clamp(min=-1e4)).sum(-1)

    x = normal(19, 130, dtype=dtype)
    found = rw.optimize(program, (x,), target="torch")

    assert found.status == "proved", found.reason
    mine, own = found(x), program(x)
    assert all(torch.equal(a, b) for a, b in zip(mine[:3], own[:3], strict=True))
    torch.testing.assert_close(mine[3], own[3], atol=1e-4, rtol=1e-3)
