"""Index expressions: one form for equal expressions, and division that agrees with integers."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from rewright.interp.arithmetic import Floats
from rewright.ir.dims import symbol
from rewright.terms.evaluate import Evaluator
from rewright.terms.index import Index, Variable, as_index, element, quotient, remainder, result_index, variable
from rewright.terms.scalar import Fixed, Read

ROW, COLUMN = result_index(2)
B = symbol("b")


def value(index: Index, at: Mapping[str, int]) -> int:
    return Evaluator(Floats(), lambda operand, place: 0).index(index, {Variable(n): v for n, v in at.items()})


@st.composite
def indices(draw: st.DrawFn, depth: int = 2) -> Index:
    """Random affine expressions with nested digits."""
    result = as_index(draw(st.integers(-6, 6)))
    for _ in range(draw(st.integers(0, 3))):
        atom = draw(st.sampled_from([ROW, COLUMN]))
        if depth and draw(st.booleans()):
            inner, divisor = draw(indices(depth - 1)), draw(st.integers(1, 5))
            atom = quotient(inner, divisor) if draw(st.booleans()) else remainder(inner, divisor)
        result = result + atom * draw(st.integers(-4, 4))
    return result


POINTS = st.fixed_dictionaries({"i0": st.integers(-20, 20), "i1": st.integers(-20, 20)})


def test_equal_expressions_are_equal() -> None:
    assert ROW + COLUMN == COLUMN + ROW
    assert ROW * 2 + 3 - ROW == ROW + 3
    assert Index(0) == ROW - ROW
    assert hash(ROW * B + COLUMN) == hash(COLUMN + ROW * B)


def test_a_variable_is_recognised() -> None:
    assert (ROW + 1 - 1).as_variable() == Variable("i0")
    assert (ROW + 1).as_variable() is None
    assert (ROW * 2).as_variable() is None
    assert Index(B).as_size() == B


def test_multiples_leave_a_quotient() -> None:
    assert quotient(ROW * 6 + COLUMN, 3) == ROW * 2 + quotient(COLUMN, 3)
    assert quotient(ROW * B + B, B) == ROW + 1
    assert remainder(ROW * B + COLUMN, B) == remainder(COLUMN, B)
    assert remainder(ROW * 4 + 7, 4) == Index(3)
    assert quotient(ROW, 1) == ROW


def test_printing() -> None:
    assert str(ROW * 2 + COLUMN - 3) == "2*i0 + i1 - 3"
    assert str(quotient(ROW * B + COLUMN, 4)) == "(b*i0 + i1 div 4)"
    assert str(element(Read(1, (ROW,)))) == "<x1[i0]>"


@given(indices(), st.integers(1, 6), POINTS)
def test_division_agrees_with_integers(index: Index, divisor: int, at: dict[str, int]) -> None:
    whole = value(index, at)
    assert value(quotient(index, divisor), at) == whole // divisor
    assert value(remainder(index, divisor), at) == whole % divisor


@given(indices(), indices(), st.integers(-4, 4), POINTS)
def test_arithmetic_agrees_with_integers(left: Index, right: Index, factor: int, at: dict[str, int]) -> None:
    assert value(left + right, at) == value(left, at) + value(right, at)
    assert value(left - right, at) == value(left, at) - value(right, at)
    assert value(left * factor, at) == value(left, at) * factor


def test_elements_count_as_integers() -> None:
    assert value(element(Fixed(3)) * 2 + variable("i0"), {"i0": 1}) == 7
