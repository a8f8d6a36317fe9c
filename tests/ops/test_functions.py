"""The facets of every scalar function agree with each other; a new record is tested here by being in the table."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from rewright import ops
from rewright.interp.decimals import Decimals
from rewright.ir.errors import NotKnown
from rewright.ir.types import DType
from rewright.ops.facts import of_values, round_facts
from rewright.ops.functions import FUNCTIONS
from rewright.ops.functions.record import Curve
from tests.ops.drawn import arguments, is_of_integers, values

CURVES = {name: function.curve for name, function in FUNCTIONS.items() if function.curve is not None}
INFINITY = float("inf")


def points(name: str) -> list[tuple[list[Any], Any]]:
    """Python's numbers for arguments and for the value that numpy computes of them."""
    operands = arguments(name)
    found = values(name, operands)
    return list(zip(zip(*(x.tolist() for x in operands), strict=True), found.tolist(), strict=True))  # type: ignore[arg-type]


def at(name: str, *numbers: float) -> float:
    return float(values(name, [np.array(x) for x in numbers]))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_operator_computes_it(name: str) -> None:
    op = ops.ELEMENTWISE[name]
    operands = arguments(name)
    assert np.array_equal(op.execute(operands), values(name, operands))
    assert op.arity == FUNCTIONS[name].operands.count


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_on_arrays_are_those_to_fifty_digits(name: str) -> None:
    known = 0
    for operands, value in points(name):
        try:
            found = Decimals().apply(name, [Decimal(x) if type(x) is float else x for x in operands])
        except NotKnown:
            continue
        known += 1
        assert float(found) == pytest.approx(float(value), rel=1e-13, abs=1e-15)
    facets = FUNCTIONS[name].values
    assert known or facets.exact is facets.digits is facets.definition is None


@pytest.mark.parametrize("name", [name for name, function in FUNCTIONS.items() if function.values.exact is not None])
def test_fractions_have_the_same_values(name: str) -> None:
    exact = FUNCTIONS[name].values.exact
    assert exact is not None
    for operands, value in points(name):
        found = exact(*(Fraction(x) if type(x) is float else x for x in operands))
        assert float(found) == pytest.approx(float(value), rel=1e-15)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_lie_in_the_facts(name: str) -> None:
    function, operands = FUNCTIONS[name], arguments(name)
    result = values(name, operands)
    dtype = DType.BOOL if result.dtype == bool else DType.U8 if name == "not_unsigned" else DType.I64
    dtype = DType.F64 if result.dtype == np.float64 else dtype
    for width in (1, 5, result.size):
        known = [of_values(x[:width].tolist()) for x in operands]
        said = function.facts(known, dtype)
        machine = round_facts(said, dtype) if dtype.is_float else said
        assert all(machine.contains(value) for value in result[:width].tolist()), str(said)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_inside_of_its_domain_it_is_a_number(name: str) -> None:
    operands = arguments(name)
    assert all(len(x) > 10 for x in operands)
    assert np.isfinite(values(name, operands)).all()


@pytest.mark.parametrize("name", CURVES)
def test_slope_and_root(name: str) -> None:
    curve = CURVES[name]
    x = np.unique(arguments(name)[0])
    steps = np.diff(values(name, [x]))
    apart = np.diff(x) > 0.2  # where rounding does not make neighbours equal
    holds = {"increasing": steps[apart] > 0, "nondecreasing": steps >= 0, "decreasing": steps[apart] < 0}
    assert curve.slope == "no" or holds[curve.slope].all()
    if curve.root is not None:
        assert at(name, curve.root) == 0


@pytest.mark.parametrize("name", CURVES)
def test_ends_zero_and_symmetry(name: str) -> None:
    curve: Curve = CURVES[name]
    for place, value in ((-INFINITY, curve.at_minus), (INFINITY, curve.at_plus), (0.0, curve.at_zero)):
        assert value is None or at(name, place) == pytest.approx(value, nan_ok=True)
    x = arguments(name)[0]
    sign = {"even": 1, "odd": -1, "none": 0}[curve.parity]
    assert not sign or values(name, [-x]) == pytest.approx(sign * values(name, [x]), rel=1e-14)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_traits(name: str) -> None:
    function, operands = FUNCTIONS[name], arguments(name)
    result = values(name, operands)
    if function.has("commutative"):
        assert np.array_equal(values(name, operands[::-1]), result)
    if function.has("whole"):
        assert np.array_equal(np.round(result), result)
    if function.has("keeps whole"):
        whole = np.round(operands[0])
        assert np.array_equal(values(name, [whole]), whole)
    if function.has("nan"):
        for k in range(len(operands)):
            spoilt = [np.full_like(x, math.nan) if i == k else x for i, x in enumerate(operands)]
            assert np.isnan(values(name, spoilt)).all()


def test_what_is_never_negative() -> None:
    found = {name for name, function in FUNCTIONS.items() if function.is_nonnegative}
    assert {"exponential", "logistic", "abs", "sqrt"} <= found
    assert all((values(name, arguments(name)) >= 0).all() for name in found)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_costs_are_stated(name: str) -> None:
    """What is irrational takes more than one operation."""
    function = FUNCTIONS[name]
    assert function.code.cost >= (2 if function.values.exact is None and not is_of_integers(function) else 1)
