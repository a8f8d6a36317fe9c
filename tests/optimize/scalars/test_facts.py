"""What expressions may be, by the facts of operators."""

from __future__ import annotations

import math

import pytest
import torch

import rewright as rw
from rewright import ops
from rewright.ir.types import DType
from rewright.ops.facts import REAL
from rewright.optimize.scalars.expressions import Bound, Expression, Table
from rewright.optimize.scalars.facts import Known, facts_of_tensors
from rewright.optimize.scalars.values import is_no_number, specialise
from rewright.terms.index import variable
from tests.optimize.programs import normal

INF = math.inf


class Scalars:
    """Values that are read, and functions of them."""

    def __init__(self) -> None:
        self.table = Table()
        self.lane = self.table.index(variable("r0_8"))
        self.x, self.y = (self.table.load(n, (self.lane,), DType.F32) for n in (0, 1))

    def f(self, op: str, *arguments: Expression) -> Expression:
        return self.table.plain(op, arguments)

    def number(self, value: float) -> Expression:
        return self.table.constant(value, DType.F32)


def test_what_is_read_is_real_and_a_function_that_is_not_known_gives_anything() -> None:
    s = Scalars()
    known = Known()

    assert known.facts(s.x) == REAL
    assert known.facts(s.f("exponential", s.x)).is_positive
    assert known.facts(s.table.reduce(Bound("sum", "r0_8", 8), s.f("exponential", s.x))).is_positive
    assert known.facts(s.f("multiply", s.x, s.x)).is_nonnegative
    assert known.facts(s.f("mystery", s.x)).nan


def test_a_quotient_is_real_only_where_it_is_taken_to_be_defined() -> None:
    s = Scalars()
    quotient = s.f("divide", s.f("exponential", s.x), s.f("multiply", s.y, s.y))

    assert not Known().facts(quotient).is_nonnegative
    assert Known(defined=True).facts(quotient).is_nonnegative


def test_infinity_less_infinity_is_no_number_for_certain() -> None:
    s = Scalars()
    infinite = s.f("multiply", s.number(-INF), s.x)

    assert is_no_number(s.f("exponential", s.f("subtract", infinite, infinite)))
    assert is_no_number(s.f("subtract", s.number(INF), s.number(INF)))
    assert not is_no_number(s.f("subtract", s.x, s.x))
    assert not is_no_number(infinite)  # an infinity, unless x is zero


@pytest.mark.parametrize(
    ("op", "constant", "expected"),
    [
        ("add", -INF, -INF),
        ("multiply", 0.0, 0.0),
        ("multiply", -INF, None),
        ("maximum", INF, INF),
        ("minimum", -INF, -INF),
        ("divide", 0.0, 0.0),
        ("divide", 1.0, None),
        ("divide", INF, None),
    ],
)
def test_a_function_of_any_real_number_and_a_constant_may_be_one_number(
    op: str, constant: float, expected: float | None
) -> None:
    s = Scalars()
    taken: list[Expression] = []
    value = s.f(op, s.number(constant), s.x)

    found = specialise(s.table, value, {}, taken)

    assert (found.value if found.op == "constant" else None) == expected
    assert taken == ([] if expected is None else [value] if op == "divide" else [s.x])


def test_the_neutral_element_of_an_extremum_adds_nothing() -> None:
    s = Scalars()

    assert s.table.apply("maximum", s.number(-INF), s.x) is s.x
    assert s.table.apply("minimum", s.x, s.number(INF)) is s.x


def test_an_input_that_is_added_as_it_is_may_be_a_mask() -> None:
    def program(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return torch.exp(x * 2 + mask)

    graph = rw.capture(program, (normal(3, 4), normal(4)))
    facts = facts_of_tensors(graph)
    (output,) = graph.outputs.values()

    assert facts[graph.nodes[output].operands[0]].minus_infinity
    assert facts[output].zero and facts[output].plus_infinity and not facts[output].nan
    assert all(facts[position].is_finite for position in graph.inputs.values())


def test_a_sum_of_exponentials_over_a_row_is_positive_wherever_the_program_is_defined() -> None:
    graph = rw.capture(lambda x, mask: torch.softmax(x * 2 + mask, -1), (normal(3, 4), normal(4)))

    sums = [p for p, node in enumerate(graph.nodes) if isinstance(node.op, ops.Reduce) and node.op.kind == "sum"]

    assert all(facts_of_tensors(graph, defined=True)[p].is_positive for p in sums)
    assert facts_of_tensors(graph)[sums[0]].nan  # where all of a row is masked
