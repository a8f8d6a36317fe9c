"""Evaluation of formulas: folds, choices and data-dependent indices mean what they say."""

import pytest

from rewright.interp.arithmetic import Floats
from rewright.ir.dims import symbol
from rewright.ir.errors import RewrightError
from rewright.terms.evaluate import Evaluator
from rewright.terms.index import Index, Variable, element, result_index, variable
from rewright.terms.scalar import (
    Absent,
    Apply,
    Choose,
    Fixed,
    Fold,
    IsZero,
    Number,
    Read,
    Scalar,
    Table,
    all_of,
    at_least,
    choose,
    less_than,
    otherwise,
)

(ROW,) = result_index(1)
K = variable("k")
DATA = [3.0, 1.0, 4.0, 1.0, 5.0]


def value(scalar: Scalar, i: int = 0) -> object:
    evaluator = Evaluator(Floats(), lambda operand, index: DATA[index[0]] if operand == 0 else index[0] + 1)
    return evaluator.scalar(scalar, {Variable("i0"): i})


def fold(kind: str, size: int, body: Scalar, identity: Fixed | Absent) -> Fold:
    return Fold(kind, Variable("k"), size, body, identity)


def test_sum_over_a_window() -> None:
    assert value(fold("sum", 3, Read(0, (ROW + K,)), Fixed(0.0)), 1) == 1 + 4 + 1


def test_maximum_and_its_identity() -> None:
    assert value(fold("maximum", 5, Read(0, (K,)), Fixed(float("-inf")))) == 5.0
    assert value(fold("maximum", 0, Read(0, (K,)), Fixed(float("-inf")))) == float("-inf")


def test_the_last_value_that_is_there() -> None:
    ones = choose(all_of([IsZero(element(Apply("convert_i64", (Read(0, (K,)),))) - 1)]), Number(K), Absent())
    assert value(fold("last", 5, ones, Absent())) == 3
    assert value(fold("last", 1, ones, Absent())) is None
    assert value(otherwise(fold("last", 1, ones, Absent()), Fixed(9))) == 9


def test_only_the_chosen_branch_is_read() -> None:
    padded = Choose(all_of([at_least(ROW, 0), less_than(ROW, 5)]), Read(0, (ROW,)), Fixed(0.0))
    assert [value(padded, i) for i in (-1, 0, 4, 5)] == [0.0, 3.0, 5.0, 0.0]


def test_conditions_that_always_hold_vanish() -> None:
    size = symbol("s")
    assert all_of([at_least(Index(size), 1), IsZero(Index(0))]).conditions == ()
    assert choose(all_of([]), Fixed(1), Fixed(2)) == Fixed(1)
    assert len(all_of([at_least(Index(size), 2), IsZero(ROW)]).conditions) == 2


def test_reading_at_an_index_from_data() -> None:
    assert value(Read(0, (element(Read(1, (ROW,))),)), 1) == DATA[2]


def test_tables() -> None:
    assert value(Table((10, 20, 30), ROW * 2)) == 10
    assert value(Table((10, 20, 30), ROW * 2), 1) == 30


def test_a_symbolic_size_needs_a_number() -> None:
    with pytest.raises(RewrightError, match="cannot be evaluated at size s; give every size symbol a number"):
        value(Fold("sum", Variable("k"), symbol("s"), Fixed(1.0), Fixed(0.0)))


def test_printing() -> None:
    softened = Fold(
        "sum", Variable("k"), symbol("s"), Apply("multiply", (Read(0, (ROW, K)), Read(1, (K,)))), Fixed(0.0)
    )
    assert str(softened) == "sum[k < s] multiply(x0[i0, k], x1[k])"
    assert (
        str(choose(all_of([less_than(ROW, 3)]), Read(0, (ROW,)), Fixed(0))) == "(if -1*i0 + 2 >= 0 then x0[i0] else 0)"
    )
