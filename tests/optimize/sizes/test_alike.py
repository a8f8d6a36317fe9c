"""What is the same at several sizes but for numbers."""

from __future__ import annotations

import pytest

from rewright.ir.dims import symbol
from rewright.ir.types import DType, TensorType
from rewright.optimize.sizes.alike import NotAlike, choose_samples, interpolate, merge, tuples_of

B, S = symbol("b"), symbol("s")


def test_symbols_stand_for_primes_of_their_size_in_the_order_of_the_example() -> None:
    samples = choose_samples({"s": 200, "b": 2}, taken={131, 211})

    assert samples == [("b", 127, 137), ("s", 223, 227)]


def test_sizes_come_in_the_order_that_interpolation_has_them() -> None:
    samples = [("b", 2, 3), ("s", 5, 7)]

    values = [3 * t["b"] * t["s"] + t["s"] - 4 for t in tuples_of(samples)]

    assert interpolate(samples, values) == 3 * B * S + S - 4


@pytest.mark.parametrize("values", [(131 // 2, 137 // 2), (min(131, 135), min(137, 135)), (131 // 6, 137 // 6)])
def test_what_is_no_polynomial_is_told(values: tuple[int, int]) -> None:
    with pytest.raises(NotAlike):
        interpolate([("s", 131, 137)], values)


def test_records_are_merged_field_by_field() -> None:
    types = [TensorType((2, n, n + 1), DType.F32) for n in (131, 137)]

    assert merge(types, lambda v: interpolate([("s", 131, 137)], v)) == TensorType((2, S, S + 1), DType.F32)


@pytest.mark.parametrize(
    "values",
    [
        (TensorType((131,), DType.F32), TensorType((137,), DType.F64)),
        (TensorType((131,), DType.F32), TensorType((137, 1), DType.F32)),
        ("sum", "maximum"),
        (True, False),
        (True, 1),
        (0.5, 0.25),
        (0.0, -0.0),
        (1, 1.0),
    ],
)
def test_what_differs_in_more_than_numbers_is_not_alike(values: tuple[object, object]) -> None:
    with pytest.raises(NotAlike):
        merge(values, lambda v: interpolate([("s", 131, 137)], v))


@pytest.mark.parametrize("hints", [{}, dict.fromkeys("abcd", 5)])
def test_there_are_one_to_three_symbols(hints: dict[str, int]) -> None:
    with pytest.raises(NotAlike, match="one to 3 sizes"):
        choose_samples(hints, taken=())


def test_a_number_that_is_no_size_has_no_primes_near_it() -> None:
    with pytest.raises(NotAlike, match="no size"):
        choose_samples({"shift": 2**63 - 1}, taken=())
