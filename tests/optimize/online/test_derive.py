"""Online reductions are derived from factorisations, whatever they are called: random algebra and counterexamples."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewright.ir.types import DType
from rewright.optimize.online.derive import derive
from rewright.optimize.online.update import Update
from rewright.optimize.proving.proofs import update_claim
from rewright.optimize.scalars.expressions import Bound, Expression, Table
from rewright.terms.index import variable
from rewright.terms.normal.prove import prove

LANE = "r0_8"


class Algebra:
    """Values of a row, a running maximum of one of them, and a way to evaluate."""

    def __init__(self) -> None:
        self.table = Table()
        place = self.table.index(variable(LANE))
        self.values = [self.table.load(n, (place,), DType.F32) for n in range(3)]
        self.constant = self.table.load(3, (), DType.F32)
        self.maximum = self.table.reduce(Bound("maximum", LANE, 8), self.values[0])

    def f(self, op: str, *arguments: Expression) -> Expression:
        return self.table.apply(op, *arguments)

    def number(self, value: float) -> Expression:
        return self.table.constant(value, DType.F32)

    def derive(self, body: Expression) -> Update | None:
        return derive(self.table, "sum", body, LANE, [self.maximum])


def evaluate(e: Expression, known: dict[int, float]) -> float:
    """The value of an expression of which the leaves have values."""
    if e.number in known:
        return known[e.number]
    if e.op == "constant":
        return float(e.value)
    a = [evaluate(x, known) for x in e.arguments]
    table: dict[str, Callable[..., float]] = {
        "add": lambda x, y: x + y,
        "subtract": lambda x, y: x - y,
        "multiply": lambda x, y: x * y,
        "divide": lambda x, y: x / y,
        "exponential": math.exp,
        "negate": lambda x: -x,
    }
    return table[e.op](*a)


def one_pass(algebra: Algebra, update: Update, rows: list[list[float]]) -> float:
    """The state after going through the elements once."""
    m, state = -math.inf, 0.0
    for element in rows:
        new = max(m, element[0])
        known = {v.number: x for v, x in zip(algebra.values, element, strict=True)}
        known |= {algebra.constant.number: 0.7, algebra.maximum.number: new}
        if state:
            old = {algebra.maximum.number: m, update.renewed[0].number: new, algebra.constant.number: 0.7}
            assert update.factor is not None
            state *= evaluate(update.factor, old)
        state += evaluate(update.body, known)
        m = new
    known = {algebra.maximum.number: m, algebra.constant.number: 0.7}
    return state * (1.0 if update.finish is None else evaluate(update.finish, known))


elements = st.lists(
    st.lists(st.floats(-3, 3).map(lambda x: round(x, 3)), min_size=3, max_size=3), min_size=1, max_size=6
)


@given(elements, st.integers(0, 63))
def test_what_is_derived_agrees_with_two_passes(rows: list[list[float]], shape: int) -> None:
    a = Algebra()
    x, y, z = a.values
    exponent = a.f("subtract", x if shape & 1 else a.f("add", x, y), a.maximum)
    if shape & 2:
        exponent = a.f("divide", exponent, a.number(1.5))
    body = a.f("exponential", exponent)
    if shape & 4:
        body = a.f("multiply", body, z)
    if shape & 8:
        body = a.f("divide", body, a.constant)
    if shape & 16:
        body = a.f("multiply", a.f("exponential", a.f("multiply", a.maximum, a.number(0.5))), body)
    if shape & 32:
        body = a.f("multiply", body, a.f("multiply", z, z))

    update = a.derive(body)

    assert update is not None
    m = max(row[0] for row in rows)
    expected = 0.0
    for row in rows:
        known = {v.number: value for v, value in zip(a.values, row, strict=True)}
        expected += evaluate(body, known | {a.constant.number: 0.7, a.maximum.number: m})
    assert one_pass(a, update, rows) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_the_identity_of_an_update_is_proved() -> None:
    a = Algebra()
    body = a.f("multiply", a.f("exponential", a.f("subtract", a.values[0], a.maximum)), a.values[1])

    update = a.derive(body)

    assert update is not None
    assert prove(update_claim(update)).status == "proved"


@pytest.mark.parametrize("kind", ["square", "product with the element", "sum outside", "tanh"])
def test_what_does_not_factor_gets_a_pass_of_its_own(kind: str) -> None:
    a = Algebra()
    x, _, _ = a.values
    gap = a.f("subtract", x, a.maximum)
    body = {
        "square": lambda: a.f("multiply", gap, gap),
        "product with the element": lambda: a.f("exponential", a.f("multiply", x, a.maximum)),
        "sum outside": lambda: a.f("add", a.f("exponential", gap), x),
        "tanh": lambda: a.f("tanh", gap),
    }[kind]()

    assert a.derive(body) is None


def test_numbers_and_what_holds_a_reduction_leave_the_sum() -> None:
    a = Algebra()
    total = a.table.reduce(Bound("sum", LANE, 8), a.values[2])

    for factor in (a.number(3.0), total):
        update = a.derive(a.f("divide", a.values[1], factor))

        assert update is not None and update.body is a.values[1] and update.factor is None
        assert update.finish is not None


def test_what_is_read_from_memory_stays_in_the_sum() -> None:
    """``inf * x`` is no number where one of the elements is zero, and ``inf * sum(x)`` may be one."""
    a = Algebra()
    body = a.f("multiply", a.values[1], a.constant)

    update = a.derive(body)

    assert update is not None and update.body is body and update.finish is None


def test_a_maximum_of_something_running_is_not_followed() -> None:
    a = Algebra()

    assert derive(a.table, "maximum", a.f("subtract", a.values[1], a.maximum), LANE, [a.maximum]) is None


@pytest.mark.parametrize(("kind", "dtype"), [("sum", DType.I32), ("product", DType.F32), ("or", DType.BOOL)])
def test_what_is_no_extremum_and_no_sum_of_reals_is_not_followed(kind: str, dtype: DType) -> None:
    """As a count is which says where a row's group starts: ``where(lane == count, x, 0)`` needs a pass of its own."""
    a = Algebra()
    flag = a.f("compare_LE", a.values[0], a.constant)
    counted = a.table.reduce(Bound(kind, LANE, 8), flag if dtype is DType.BOOL else a.f(f"convert_{dtype.value}", flag))
    chosen = counted if dtype is DType.BOOL else a.f("compare_EQ", counted, a.table.constant(3, dtype))
    body = a.f("select", chosen, a.values[1], a.number(0.0))

    assert derive(a.table, "sum", body, LANE, [counted]) is None
    alone = derive(a.table, "sum", body, LANE, [])
    assert alone is not None and not alone.depends
