"""Reductions that start again when an extremum moves: random tests of elements, and programs that look for a place."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import reduce
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rewright.ir.types import DType
from rewright.optimize import optimize
from rewright.optimize.online.derive import derive
from rewright.optimize.online.update import Reset, Update
from rewright.optimize.proving.proofs import reset_claim
from rewright.optimize.scalars.expressions import Bound, Expression, Table
from rewright.optimize.scalars.values import identity
from rewright.terms.index import variable
from rewright.terms.normal.prove import prove

LANE, SIZE = "r0_6", 6
FLIPPED = {"EQ": "EQ", "NE": "NE", "LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE"}
NAN, INF = float("nan"), float("inf")


class Row:
    """Two values of a row, and the running extremum of the first."""

    def __init__(self, extremum: str = "maximum", dtype: DType = DType.F64) -> None:
        self.table = Table()
        place = self.table.index(variable(LANE))
        self.own, self.other = (self.table.load(n, (place,), dtype) for n in range(2))
        self.extremum = self.table.reduce(Bound(extremum, LANE, SIZE), self.own)

    def f(self, op: str, *arguments: Expression) -> Expression:
        return self.table.apply(op, *arguments)

    def number(self, value: float | bool, dtype: DType = DType.F64) -> Expression:
        return self.table.constant(value, dtype)

    def derive(self, kind: str, body: Expression) -> Update | None:
        return derive(self.table, kind, body, LANE, [self.extremum])


def larger(a: float, b: float) -> float:
    return NAN if a != a or b != b else max(a, b)


JOIN = {
    "sum": lambda a, b: a + b,
    "maximum": larger,
    "minimum": lambda a, b: -larger(-a, -b),
    "or": lambda a, b: a or b,
    "and": lambda a, b: a and b,
}
COMPARE = {
    "EQ": lambda a, b: a == b,
    "NE": lambda a, b: a != b,
    "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b,
}


def evaluate(e: Expression, known: dict[int, float]) -> float:
    """The value of an expression of which the leaves have values."""
    if e.number in known:
        return known[e.number]
    if e.op == "constant":
        return e.value
    a = [evaluate(x, known) for x in e.arguments]
    if e.op.startswith("compare_"):
        return COMPARE[e.op.removeprefix("compare_")](a[0], a[1])
    if e.op == "select":
        return a[1] if a[0] else a[2]
    return {"or": lambda: a[0] or a[1], "and": lambda: a[0] and a[1], "multiply": lambda: a[0] * a[1]}[e.op]()


def total(row: Row, kind: str, body: Expression, elements: list[tuple[float, float]], extremum: float) -> float:
    """The reduction of a body over elements where the extremum is known."""
    values = [
        evaluate(body, {row.own.number: a, row.other.number: v, row.extremum.number: extremum}) for a, v in elements
    ]
    return reduce(JOIN[kind], values, identity(kind))


def one_pass(row: Row, kind: str, update: Update, elements: list[tuple[float, float]], cuts: list[int]) -> float:
    """The state after going through the elements once, in tiles."""
    assert update.reset is not None and row.extremum.bound is not None
    upward = row.extremum.bound.kind
    extremum, state = identity(upward), identity(kind)
    for begin, end in pairwise([0, *cuts, SIZE]):
        tile = elements[begin:end]
        before, extremum = extremum, reduce(JOIN[upward], [a for a, _ in tile], extremum)
        kept = begin == 0 or before == extremum or before != before
        state = state if kept else update.reset.value.value
        state = JOIN[kind](state, total(row, kind, update.body, tile, extremum))
    return state


elements = st.lists(
    st.tuples(st.sampled_from([-INF, -2.0, 0.0, 1.0, 3.0, INF, NAN]), st.integers(-9, 9).map(float)),
    min_size=SIZE,
    max_size=SIZE,
)


@given(
    elements,
    st.sets(st.integers(1, SIZE - 1)),
    st.sampled_from(["maximum", "minimum"]),
    st.sampled_from(["sum", "maximum", "minimum", "or", "and"]),
    st.sampled_from(["EQ", "GE", "NE"]),
    st.integers(0, 15),
    st.integers(-9, 9).map(float),
)
def test_what_is_derived_agrees_with_two_passes(
    values: list[tuple[float, float]],
    cuts: set[int],
    extremum: str,
    kind: str,
    compare: str,
    shape: int,
    constant: float,
) -> None:
    row = Row(extremum)
    name = compare if extremum == "maximum" else FLIPPED[compare]
    sides = (row.own, row.extremum) if shape & 1 else (row.extremum, row.own)
    test = row.f(f"compare_{name if shape & 1 else FLIPPED[name]}", *sides)
    if shape & 2 and compare != "NE":
        test = row.f("or", test, row.f("compare_NE", row.own, row.own))
    truth = kind in ("or", "and")
    value = row.f("compare_GE", row.other, row.number(0.0)) if truth else row.other
    if shape & 4 and not truth:
        value = row.f("multiply", value, value)
    last = row.number(bool(shape & 8), DType.BOOL) if truth else row.number(0.0 if kind == "sum" else constant)
    body = row.f("select", test, last, value) if compare == "NE" else row.f("select", test, value, last)

    update = row.derive(kind, body)

    assert update is not None and update.reset is not None
    whole = reduce(JOIN[extremum], [a for a, _ in values], identity(extremum))
    expected = total(row, kind, body, values, whole)
    found = one_pass(row, kind, update, values, sorted(cuts))
    assert found == expected or (math.isnan(found) and math.isnan(expected))
    assert prove(reset_claim(update)).status == "proved"


@given(elements, st.integers(1, SIZE - 1), st.sampled_from(["sum", "maximum", "minimum"]), st.integers(-9, 9))
def test_two_states_are_merged_at_the_larger_of_their_extrema(
    values: list[tuple[float, float]], cut: int, kind: str, constant: int
) -> None:
    row = Row()
    test = row.f("compare_EQ", row.own, row.extremum)
    body = row.f("select", test, row.other, row.number(0.0 if kind == "sum" else float(constant)))
    update = row.derive(kind, body)
    assert update is not None and update.reset is not None
    parts = values[:cut], values[cut:]
    extrema = [reduce(larger, [a for a, _ in part]) for part in parts]
    both = reduce(larger, extrema)

    states = [
        total(row, kind, body, part, mine) if mine == both or mine != mine else update.reset.value.value
        for part, mine in zip(parts, extrema, strict=True)
    ]

    assert JOIN[kind](*states) == total(row, kind, body, values, both)


@pytest.mark.parametrize("kind", ["LT", "LE", "other body", "counted", "no constant", "extremum left", "nearly"])
def test_what_a_moved_extremum_does_not_settle_gets_a_pass_of_its_own(kind: str) -> None:
    row = Row()
    equal, zero = row.f("compare_EQ", row.own, row.extremum), row.number(0.0)
    below = {n: row.f(f"compare_{n}", row.own, row.extremum) for n in ("LT", "LE")}
    half = row.f("multiply", row.extremum, row.number(0.5))
    body = {
        **{n: row.f("select", test, row.other, zero) for n, test in below.items()},
        "other body": row.f("select", row.f("compare_EQ", row.other, row.extremum), row.own, zero),
        "counted": row.f("select", equal, row.other, row.number(1.0)),
        "no constant": row.f("select", equal, row.other, row.own),
        "extremum left": row.f("select", equal, row.other, row.extremum),
        "nearly": row.f("select", row.f("compare_GE", row.own, half), row.other, zero),
    }[kind]

    assert row.derive("sum", body) is None
    assert kind == "counted" or row.derive("minimum", body) is None


def test_comparisons_that_nan_does_not_change_are_enough_for_integers_alone() -> None:
    for dtype in (DType.F64, DType.I64):
        row = Row(dtype=dtype)
        test = row.f("compare_LT", row.own, row.extremum)
        body = row.f("select", test, row.number(7, dtype), row.other)

        assert (row.derive("minimum", body) is not None) is dtype.is_integer


def test_an_extremum_that_starts_again_is_followed_by_nothing() -> None:
    row = Row()
    best = row.f("select", row.f("compare_EQ", row.own, row.extremum), row.other, row.number(-INF))
    second = row.table.reduce(Bound("maximum", LANE, SIZE), best)
    running = [row.extremum, second]
    bodies = {
        "minimum": row.f("select", row.f("compare_EQ", best, second), row.other, row.number(0.0)),
        "sum": row.f("exponential", row.f("subtract", row.other, second)),
    }

    assert row.derive("maximum", best) is not None
    assert all(derive(row.table, kind, body, LANE, running) is None for kind, body in bodies.items())


@pytest.mark.parametrize("wrong", ["constant", "test", "extremum"])
def test_the_identity_of_a_wrong_reset_is_not_proved(wrong: str) -> None:
    row, mirrored = Row(), Row("minimum")
    body = row.f("select", row.f("compare_GE", row.own, row.extremum), row.other, row.number(0.0))
    update = row.derive("minimum", body)
    assert update is not None and prove(reset_claim(update)).status == "proved"

    below = mirrored.f("compare_GE", mirrored.own, mirrored.extremum)
    always = mirrored.f("select", below, mirrored.other, mirrored.number(0.0))
    renewed = (mirrored.table.renewed(mirrored.extremum),)
    broken = {
        "constant": replace(update, reset=Reset(row.number(1.0))),
        "test": replace(update, body=row.f("select", row.f("compare_LE", row.own, row.extremum), row.other, row.own)),
        "extremum": Update(always, (mirrored.extremum,), renewed, reset=Reset(mirrored.number(0.0))),
    }[wrong]

    assert prove(reset_claim(broken)).status != "proved"


def rows(size: int) -> torch.Tensor:
    """Rows with ties, of one number, with infinities, and with NaN at the start, in the middle and at the end."""
    values = torch.randint(-3, 4, (12, size), generator=torch.Generator().manual_seed(0)).float()
    values[1] = -INF
    values[2, : size // 2] = -INF
    values[3, 7] = values[3, size - 20] = NAN
    values[4, -1] = values[5, 0] = NAN
    values[6] = NAN
    values[7, 20] = values[7, size - 9] = INF
    values[8] = 2.0
    return values


def several(value: object) -> list[torch.Tensor]:
    return list(value) if isinstance(value, tuple) else [value]  # type: ignore[list-item]


def places(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x.argmax(-1), x.argmin(-1), *x.max(-1), *x.min(-1)


def last_and_ties(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    largest = x.amax(-1, keepdim=True)
    last = torch.where(largest == x, torch.arange(x.shape[-1]), -1).amax(-1)
    least = torch.where(largest == x, torch.arange(x.shape[-1]) + 5, 3).amin(-1)  # 5 where no element is below
    return last, least, (x >= largest).sum(-1), ((x == largest) & (torch.arange(x.shape[-1]) > 50)).any(-1)


@pytest.mark.parametrize("program", [places, last_and_ties])
@pytest.mark.parametrize("target", ["torch", "cpu"])
def test_a_place_is_found_in_one_pass(program: object, target: str) -> None:
    x = rows(2100)  # several tiles

    optimized = optimize(program, (x,), target=target, floor=False, remember=False)

    assert optimized.status == "proved", optimized.reason
    assert optimized.plan is not None
    assert all(len(kernel.sweeps) == 1 for kernel in optimized.plan.kernels)
    assert optimized.trust is not None and any("starts again" in line for line in optimized.trust.updates)
    for mine, expected in zip(optimized(x), program(x), strict=True):  # type: ignore[operator]
        assert torch.equal(mine.nan_to_num(99.0), expected.nan_to_num(99.0))


@pytest.mark.parametrize("target", ["torch", "cpu"])
def test_what_is_computed_is_compared_as_it_was_computed(target: str) -> None:
    """Scores that are no longer the same number after being computed again would leave no place at all."""
    generator = torch.Generator().manual_seed(3)
    x, scale = torch.randn(9, 301, generator=generator), torch.randn(301, generator=generator)

    def program(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return (torch.tanh(x / 3) * scale + x * 0.1).argmax(-1)

    optimized = optimize(program, (x, scale), target=target, floor=False, remember=False)

    assert optimized.status == "proved", optimized.reason
    assert torch.equal(optimized(x, scale), program(x, scale))


@pytest.mark.parametrize("target", ["torch", "cpu"])
def test_nan_reaches_an_extremum_that_nothing_follows(target: str) -> None:
    x = rows(2100)  # several tiles

    optimized = optimize(lambda x: x.amax(-1), (x,), target=target, floor=False, remember=False)

    torch.testing.assert_close(optimized(x), x.amax(-1), equal_nan=True)


@pytest.mark.parametrize("target", ["torch", "cpu"])
def test_nan_reaches_an_extremum_that_is_returned_beside_its_softmax(target: str) -> None:
    def program(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.softmax(x, -1), x.amax(-1)

    x = rows(2100)

    optimized = optimize(program, (x,), target=target, floor=False, remember=False)

    assert optimized.status == "proved", optimized.reason
    assert len(optimized.plan.kernels) == 1 if optimized.plan else False
    for mine, expected in zip(optimized(x), program(x), strict=True):
        torch.testing.assert_close(mine, expected, equal_nan=True)


def test_of_equal_elements_a_library_takes_the_first() -> None:
    x = torch.zeros(7, 61)

    places = optimize(lambda x: (x * 2).argmin(-1), (x,), target="torch")
    best = optimize(lambda x: torch.topk(x * 2, 3).indices, (x,), target="torch")

    assert places.status == best.status == "proved"
    assert not places(x).any()
    assert best(x).tolist() == [[0, 1, 2]] * 7
