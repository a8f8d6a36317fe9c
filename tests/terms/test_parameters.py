"""Parameters of rules: sizes, attributes that may be zero or negative, and rounded quotients."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewright import ops
from rewright.ir.dims import ceil_quotient, symbol
from rewright.ir.errors import RewrightError
from rewright.ir.types import DType, TensorType
from rewright.terms.conditions import AnyOf, AtMost, Different, IsFloor, IsMaximum, Same, cases, holds
from rewright.terms.parameters import integer, natural, parameters, size, value_of

n, s, shift = size("n"), natural("s"), integer("shift")


@given(st.integers(1, 9), st.integers(0, 9), st.integers(-9, 9))
def test_an_expression_has_the_value_of_its_parameters(length: int, start: int, offset: int) -> None:
    values = {"n": length, "s": start, "shift": offset}
    assert value_of(n * s + shift, values) == length * start + offset
    assert value_of(s - n, values) == start - length


def test_the_parameters_of_expressions() -> None:
    assert parameters((n * s, shift, 3)) == {"n": "size", "s": "natural", "shift": "integer"}


@given(st.integers(0, 40), st.integers(1, 7))
def test_a_rounded_quotient_is_computed_once_it_can_be(length: int, step: int) -> None:
    rounded = ceil_quotient(symbol("length"), symbol("step"))
    assert value_of(rounded, {"length": length, "step": step}) == -(-length // step)
    if length >= 1:
        assert rounded.substitute({"length": length, "step": step}) == -(-length // step)  # type: ignore[union-attr]


def test_a_strided_slice_of_symbolic_size() -> None:
    op = ops.Slice((0,), (n,), (size("step"),))  # type: ignore[arg-type]
    (found,) = op.infer([TensorType((n,), DType.F32)]).shape
    assert value_of(found, {"n": 7, "step": 3}) == 3
    assert parameters((found,)) == {"n": "size", "step": "size"}


def test_reserved_names_are_refused() -> None:
    with pytest.raises(RewrightError, match="double underscores"):
        size("a__above")


def test_conditions_are_disjunctions_of_simple_ones() -> None:
    either = AnyOf(((AtMost(n, 3),), (Different(s, 2),)))
    ways = list(cases((either, IsMaximum(shift, s, n))))
    assert len(ways) == (1 + 2) * 2
    for length, start, offset in ((2, 2, 2), (5, 2, 5), (5, 1, 5), (2, 4, 4), (5, 2, 4)):
        values = {"n": length, "s": start, "shift": offset}

        def at(expression: object, values: dict[str, int] = values) -> int:
            return value_of(expression, values)  # type: ignore[arg-type]

        direct = all(holds(c, at) for c in (either, IsMaximum(shift, s, n)))
        assert direct == any(all(holds(part, at) for part in way) for way in ways)


def test_a_floor_condition_needs_a_positive_denominator() -> None:
    condition = IsFloor(shift, s, shift + 3)
    assert not holds(condition, lambda expression: value_of(expression, {"s": 4, "shift": -3}))
    assert holds(Same(n, n), lambda expression: value_of(expression, {"n": 1}))
