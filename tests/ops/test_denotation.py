"""Execution agrees with the denotation, for every operator, on random shapes and attributes."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rewright import ops
from rewright.interp.arithmetic import Floats
from rewright.interp.exact import evaluate, lift
from rewright.interp.rationals import Rationals
from rewright.ir.operator import Unsupported
from rewright.ir.types import DType, TensorType
from rewright.ops.base import array_dtype
from tests.ops.cases import CASES, Case

WITHOUT_DENOTATION = {
    "input": "given and not computed",
    "custom_call": "opaque",
    "all_gather": "other ranks",
    "all_reduce": "other ranks",
    "all_to_all": "other ranks",
    "collective_broadcast": "other ranks",
    "collective_permute": "other ranks",
    "recv": "other ranks",
    "reduce_scatter": "other ranks",
    "send": "other ranks",
}
TRANSCENDENTAL = {
    "exponential",
    "exponential_minus_one",
    "log",
    "log_plus_one",
    "sqrt",
    "rsqrt",
    "tanh",
    "logistic",
    "sine",
    "cosine",
    "erf",
    "erfc",
    "erfc_scaled",
    "erf_inverse",
    "log_gamma",
    "digamma",
    "bessel_i0e",
    "bessel_i1e",
    "atan2",
    "zeta",
    "power",
    "divide",
}
EXACT = sorted(set(CASES) - TRANSCENDENTAL)


def test_every_operator_is_covered() -> None:
    assert set(CASES) | set(WITHOUT_DENOTATION) == set(ops.REGISTRY)


@pytest.mark.parametrize("name", sorted(CASES))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_execution_reads_the_formula(name: str, data: st.DataObject) -> None:
    case: Case = data.draw(CASES[name])
    found = case.op.execute(case.operands)
    result = case.op.infer(case.types)
    assert found.shape == result.shape
    assert found.dtype == array_dtype(result.dtype)
    expected = evaluate(case.op, case.types, [_plain(o) for o in case.operands], Floats())
    if result.dtype.is_float:
        assert np.allclose(found, expected.astype(np.float64), rtol=1e-12, atol=1e-12, equal_nan=True)
    else:
        assert np.array_equal(found, _held(expected, found.dtype))


def _held(expected: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Integers of any size as a dtype holds them: a product may overflow, and then wraps around."""
    return np.asarray(expected % 2 ** (8 * dtype.itemsize)).astype(np.uint64).astype(dtype)


@pytest.mark.parametrize("name", EXACT)
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_rational_evaluation_is_exact(name: str, data: st.DataObject) -> None:
    case: Case = data.draw(CASES[name])
    found = case.op.execute(case.operands)
    operands = [lift(o, t, Rationals()) for o, t in zip(case.operands, case.types, strict=True)]
    expected = evaluate(case.op, case.types, operands, Rationals())
    assert [_fraction(v) for v in found.reshape(-1).tolist()] == expected.reshape(-1).tolist()


@pytest.mark.parametrize("name", sorted(CASES))
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_single_precision_stays_single(name: str, data: st.DataObject) -> None:
    case: Case = data.draw(CASES[name])
    narrow = [o.astype(np.float32) if o.dtype == np.float64 else o for o in case.operands]
    found = case.op.execute(narrow, np.float32)
    assert found.dtype == array_dtype(case.op.infer(case.types).dtype, np.float32)
    wide = case.op.execute(case.operands)
    with np.errstate(all="ignore"):
        assert np.allclose(found, wide.astype(found.dtype), rtol=1e-4, atol=1e-5, equal_nan=True)


def test_operators_without_a_denotation_say_why() -> None:
    group = ((0, 1),)
    tensor = TensorType((2, 2), DType.F64)
    instances = [
        ops.Input("x", tensor),
        ops.CustomCall("f", (), (tensor,), 0),
        ops.AllReduce("sum", group),
        ops.AllGather(0, group),
        ops.ReduceScatter("sum", 0, group),
        ops.AllToAll(0, 0, group),
        ops.CollectivePermute(((0, 1),)),
        ops.CollectiveBroadcast(0, group),
        ops.Send(1, 0),
        ops.Recv(1, 0, tensor),
    ]
    assert {op.name for op in instances} == set(WITHOUT_DENOTATION)
    for op in instances:
        found = op.denote([] if op.name in ("input", "recv") else [tensor])
        assert isinstance(found, Unsupported)
        assert WITHOUT_DENOTATION[op.name] in found.why


def _plain(operand: np.ndarray) -> np.ndarray:
    """The same numbers as Python's own."""
    result = np.empty(operand.shape, object)
    for index in np.ndindex(*operand.shape):
        result[index] = operand[index].item()
    return result


def _fraction(value: float | int | bool) -> Fraction | float | int | bool:
    return Fraction(value) if isinstance(value, float) and np.isfinite(value) else value
