"""Rounded constants, and the numbers that they stand for."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewright import ops
from rewright.interp.program import run
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, TensorType
from rewright.proof.constants import differ, stands, stood_for, written_out

SIMPLE = {
    1 / 3: "1/3",
    0.1: "1/10",
    0.1 + 0.2: "3/10",
    0.1 / 30: "1/300",
    1e-12: "1/1000000000000",
    0.044715: "8943/200000",
    -1 / 7: "minus 1/7",
    math.sqrt(2): "the root of 2",
    -math.sqrt(0.5): "minus the root of 1/2",
    1 / math.sqrt(80): "the root of 1/80",
    float(np.float32(1 / 3)): "1/3",
    float(np.float32(1e-5)): "1/100000",
    float(np.float32(math.sqrt(3))): "the root of 3",
}
THEMSELVES = (0.0, 0.75, 5.0, 2.0**-40, math.pi, math.sqrt(2 / math.pi), math.log(2), math.inf, math.nan, 1e300, 1e-45)
EXACT_NEIGHBOURS = (2.9999999999999996, 1.0000000000000002, 0.49999999999999994)


@pytest.mark.parametrize("value", SIMPLE)
def test_simple_numbers(value: float) -> None:
    assert str(stood_for(value)) == SIMPLE[value]


@pytest.mark.parametrize("value", [*THEMSELVES, float(np.float32(math.pi)), *EXACT_NEIGHBOURS])
def test_numbers_that_stand_for_themselves(value: float) -> None:
    assert stood_for(value) is None


@given(st.integers(1, 999), st.integers(1, 999), st.floats(1e-14, 1e-3), st.booleans())
def test_a_number_a_little_further_off_is_another_one(over: int, under: int, by: float, is_root: bool) -> None:
    """Neither the number that is meant nor, but by the chance of one in thousands, any other one."""
    exact = math.sqrt(over / under) if is_root else over / under
    value = exact * (1 + by)
    found = stood_for(value)
    if found is not None:
        near = math.sqrt(found.value) if found.is_root else float(found.value)
        assert abs(near / value - 1) < 1e-7
        assert (found.value, found.is_root) != (Fraction(over, under), is_root)


@given(st.integers(-(10**6), 10**6).filter(bool), st.integers(1, 10**6))
def test_quotients_are_found_again(over: int, under: int) -> None:
    found = stood_for(over / under)
    exact = Fraction(over, under)
    assert Fraction(over / under) == exact or (found is not None and found.value == abs(exact) and not found.is_root)


def filled(*values: float, dtype: DType = DType.F32) -> Graph:
    builder = GraphBuilder("fill")
    kind = TensorType((2,), dtype)
    place = builder.input("x", ops.Input("x", kind))
    for value in values:
        place = builder.add(ops.Multiply(), place, builder.add(ops.Constant(kind, (value,))))
    builder.output("y", place)
    return builder.build()


def test_what_is_written_out_has_the_same_values() -> None:
    before = filled(1 / 3, -math.sqrt(0.5), 0.3, 2.5)
    after, _ = written_out(before, [])
    x = np.array([1.0, -3.0])
    assert np.allclose(run(after, {"x": x})["y"], run(before, {"x": x})["y"], rtol=1e-15)
    assert "-0.7071067811865476 for minus the root of 1/2" in after.metadata["assumptions"]
    assert stands([after]) == ""


def test_programs_differ_where_one_has_other_rounded_constants() -> None:
    assert differ(filled(1 / 3), [filled(0.5), filled(3.0)])
    assert not differ(filled(1 / 3), [filled(0.5), filled(1 / 3)])
    assert not differ(filled(3.0), [filled(0.5)])


def test_integers_are_left_alone() -> None:
    assert stands([filled(3, dtype=DType.I64)]) == ""
