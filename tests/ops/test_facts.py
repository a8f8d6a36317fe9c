"""Every operator's transfer function contains what the operator computes, on values that facts are about.

Operands are drawn from special values (zeros, ones, infinities, NaN, huge and tiny numbers, the ends of integer types),
facts about them are exactly what they are or anything weaker, and every element of the result must lie in the facts
that the operator gives.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rewright import ops
from rewright.ir.types import DType, TensorType
from rewright.ops.base import Array
from rewright.ops.facts import REAL, UNKNOWN, Facts, facts_between, in_dtype, join, of_values, round_facts
from tests.ops.cases import CASES, Case

POOLS: tuple[tuple[float, ...], ...] = (
    (0.0, 1.0, -1.0, 0.5, -2.5, 3.0),
    (0.25, 1.0, 2.0, 700.0),
    (-0.0, 0.0, 1e-300, -1e-300, 5e-324),
    (1e300, -1e300, 1.7976931348623157e308, 1.0),
    (math.inf, -math.inf, math.nan, 0.0, 1.0, -1.0),
    (-math.inf, 0.0, -3.0, 2.0),
    (math.inf, 2.0, 0.5),
    (0.999, -0.999, 1.0, -1.0),
)
INDEX_OPERANDS = {"gather": (1,), "scatter": (1,), "dynamic_slice": (1, 2, 3), "dynamic_update_slice": (2, 3, 4)}
"""Operands that must stay in range: they are left as they were drawn."""


def special(case: Case, seed: int) -> tuple[Array, ...]:
    """Operands of the same types with special values."""
    generator = np.random.default_rng(seed)
    kept = INDEX_OPERANDS.get(case.op.name, ())
    found: list[Array] = []
    for k, (operand, kind) in enumerate(zip(case.operands, case.types, strict=True)):
        if k in kept or kind.dtype is DType.BOOL:
            found.append(operand)
            continue
        if kind.dtype.is_float:
            pool = np.array(POOLS[generator.integers(len(POOLS))])
        else:
            info = np.iinfo(operand.dtype)
            pools = ([0, 1, 2, 3, 5], [info.min, info.max, 0], [1, 3, 7], [info.max - 1, 2, info.min])
            pool = np.array(pools[generator.integers(len(pools))], operand.dtype)
        found.append(pool[generator.integers(len(pool), size=operand.shape)].astype(operand.dtype))
    return tuple(found)


def weaker(known: Facts, generator: np.random.Generator) -> Facts:
    """The facts themselves, or some that say less."""
    choice = generator.integers(5)
    if choice == 0:
        return known
    if choice == 1:
        return join(known, facts_between(known.low - 1, known.high + 1) if known.low <= known.high else REAL)
    if choice == 2:
        return replace(known, plus_infinity=True)
    if choice == 3:
        return join(known, of_values([0.0, -math.inf]))
    return replace(known, low=min(known.low, -math.inf), high=max(known.high, 0), zero=True)


def check(op: ops.TensorOperator, types: tuple[TensorType, ...], operands: tuple[Array, ...], seed: int) -> None:
    generator = np.random.default_rng(seed)
    known = [of_values(o.reshape(-1).tolist()) for o in operands]
    known = [
        weaker(facts, generator) if kind.dtype.is_float else facts for facts, kind in zip(known, types, strict=True)
    ]
    with np.errstate(all="ignore"):
        found = op.execute(operands)
    result = op.infer(types)
    said = in_dtype(op.facts(known, types, result), result.dtype)
    is_float = result.dtype.is_float
    machine = round_facts(replace(said, exact=False), DType.F64, accumulates=op.accumulates) if is_float else said
    for value in found.reshape(-1).tolist():
        assert machine.contains(value), f"{op} gives {value} and says {said} for {[str(k) for k in known]}"


@pytest.mark.parametrize("name", sorted(CASES))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data(), seed=st.integers(0, 2**16))
def test_results_lie_in_the_facts_of_their_operator(name: str, data: st.DataObject, seed: int) -> None:
    case: Case = data.draw(CASES[name])
    if name in ("divide", "remainder") and not case.types[0].dtype.is_float:
        check(case.op, case.types, case.operands, seed)
        return
    check(case.op, case.types, special(case, seed), seed)


def test_an_operator_without_facts_says_nothing() -> None:
    kind = TensorType((2,), DType.F32)
    call = ops.CustomCall("something", (), (kind,), 0)
    assert call.facts([of_values([1.0])], [kind], kind) == UNKNOWN


def test_exponentials_of_numbers_are_positive_and_of_minus_infinity_are_zero() -> None:
    kind = TensorType((2,), DType.F32)
    assert ops.Exponential().facts([REAL], [kind], kind).is_positive
    masked = ops.Exponential().facts([join(REAL, of_values([-math.inf]))], [kind], kind)
    assert masked.is_finite and masked.is_nonnegative and masked.zero


@pytest.mark.parametrize(
    ("left", "right", "nan"),
    [
        ([math.inf], [math.inf], False),
        ([math.inf], [-math.inf], True),
        ([-math.inf, 1.0], [2.0], False),
        ([math.inf, -math.inf], [math.inf], True),
    ],
)
def test_a_sum_is_undefined_where_opposite_infinities_meet(left: list[float], right: list[float], nan: bool) -> None:
    kind = TensorType((2,), DType.F32)
    assert ops.Add().facts([of_values(left), of_values(right)], [kind, kind], kind).nan is nan


def test_the_bounds_of_a_logistic_keep_the_digits_of_small_numbers() -> None:
    kind = TensorType((), DType.F64)
    found = ops.Logistic().facts([of_values([-30.0])], [kind], kind)
    assert found.low == pytest.approx(math.exp(-30), rel=1e-12, abs=0)
    assert found.high == pytest.approx(math.exp(-30), rel=1e-12, abs=0)


def test_the_larger_one_of_a_number_and_infinity_is_infinity() -> None:
    kind = TensorType((), DType.F32)
    infinite = ops.Maximum().facts([REAL, of_values([math.inf])], [kind, kind], kind)
    assert (infinite.bottom, infinite.top, infinite.nan) == (math.inf, math.inf, False)
    infinite = ops.Minimum().facts([of_values([-math.inf]), REAL], [kind, kind], kind)
    assert (infinite.bottom, infinite.top, infinite.nan) == (-math.inf, -math.inf, False)


def test_the_logarithm_of_what_is_at_least_one_is_not_negative() -> None:
    kind = TensorType((), DType.F32)
    assert ops.Log().facts([facts_between(1.0, 97.0)], [kind], kind).is_nonnegative
    assert ops.Log().facts([facts_between(0.5, 1.0)], [kind], kind).high == 0
