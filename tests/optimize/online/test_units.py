"""The number that stays outside of a difference from a maximum."""

from __future__ import annotations

import torch

import rewright as rw
from bench.optimize.programs import eviction
from rewright.ir.types import DType
from rewright.optimize.online.units import unit
from rewright.optimize.planning.outline import Outline
from rewright.optimize.planning.planner import Planner
from rewright.optimize.planning.preparing import prepare_graph
from rewright.optimize.scalars.constants import closed_value
from rewright.optimize.scalars.expressions import Bound, Expression, Table
from rewright.terms.index import variable


class Scores:
    """A difference of scaled and masked scores from their maximum."""

    def __init__(self, dtype: DType = DType.F32) -> None:
        self.table, self.dtype = Table(), dtype
        row, lane = (self.table.index(variable(name)) for name in ("o0", "r0_8"))
        self.x, self.y = (self.table.load(n, (row, lane), dtype) for n in range(2))
        self.masked = self.table.plain("at_least_zero", (lane,))

    def number(self, value: float) -> Expression:
        return self.table.constant(value, self.dtype)

    def below_its_maximum(self, score: Expression) -> Expression:
        out = self.table.plain("select", (self.masked, self.number(float("-inf")), score))
        return self.table.plain("subtract", (out, self.table.reduce(Bound("maximum", "r0_8", 8), out)))

    def value(self, score: Expression) -> float | None:
        found = unit(self.table, self.below_its_maximum(score), frozenset())
        return None if found is None else closed_value(found)


def test_a_mask_does_not_hide_the_scale_of_scores() -> None:
    s = Scores()

    assert s.value(s.table.apply("divide", s.x, s.number(3.0))) == 1 / 3
    assert s.value(s.table.apply("multiply", s.x, s.number(0.3))) == 0.3


def test_what_has_no_scale_or_several_has_none() -> None:
    s = Scores()
    scaled = [s.table.apply("multiply", x, s.number(n)) for x, n in ((s.x, 0.3), (s.y, 0.7))]

    assert s.value(s.x) is None
    assert s.value(s.table.apply("add", *scaled)) is None
    assert s.value(s.table.apply("multiply", s.x, s.number(-0.3))) is None


def test_a_power_of_two_rounds_nothing_and_exponents_of_16_bits_are_taken_as_a_whole() -> None:
    for dtype, expected in ((DType.F32, None), (DType.F16, 1.0)):
        s = Scores(dtype)
        assert s.value(s.table.apply("multiply", s.x, s.number(0.25))) == expected


def test_a_number_times_its_inverse_is_one_unless_there_is_none() -> None:
    s = Scores()

    def product(value: float) -> Expression:
        inverse = s.table.plain("divide", (s.number(1.0), s.number(value)))
        return s.table.apply("multiply", s.number(value), inverse)

    assert product(3.0) is s.number(1.0)
    assert all(product(value).op == "multiply" for value in (0.0, float("inf"), float("nan")))


def test_what_every_reader_computes_again_is_not_stored() -> None:
    args = eviction.inputs("h2o", 24, 2, 32, torch.float32, "cpu", 1.0)

    plan = Planner(prepare_graph(rw.capture(eviction.h2o, args))).plan()

    outline = Outline.of(plan)
    read = {p for step in outline.steps for p in outline.reads(step)} | set(plan.graph.outputs.values())
    views = {p for o in plan.graph.outputs.values() for p in plan.graph.nodes[o].operands}
    assert {s.tensor for kernel in plan.kernels for s in kernel.stores} <= read | views
