"""Substitution without capture."""

from rewright.terms.index import Variable, element, result_index, variable
from rewright.terms.scalar import Apply, Choose, Fixed, Fold, Number, Read, Scalar, at_least
from rewright.terms.walk import substitute, subterms, variables

ROW, COLUMN = result_index(2)
K = Variable("k0")


def row_sum(body: Scalar) -> Fold:
    return Fold("sum", K, 3, body, Fixed(0.0))


def test_a_free_variable_is_replaced_everywhere() -> None:
    value = Choose(at_least(ROW, 1), Read(0, (ROW, COLUMN)), Number(ROW))
    assert substitute(value, {Variable("i0"): COLUMN + 2}) == Choose(
        at_least(COLUMN, -1), Read(0, (COLUMN + 2, COLUMN)), Number(COLUMN + 2)
    )


def test_a_binder_keeps_its_name_where_that_is_safe() -> None:
    value = row_sum(Read(0, (ROW, variable("k0"))))
    assert substitute(value, {Variable("i0"): COLUMN}) == row_sum(Read(0, (COLUMN, variable("k0"))))


def test_a_binder_that_would_capture_is_renamed() -> None:
    value = row_sum(Read(0, (ROW, variable("k0"))))
    fresh = variable("k0_0")
    assert substitute(value, {Variable("i0"): variable("k0")}) == Fold(
        "sum", Variable("k0_0"), 3, Read(0, (variable("k0"), fresh)), Fixed(0.0)
    )


def test_a_bound_variable_is_not_replaced() -> None:
    value = row_sum(Read(0, (variable("k0"),)))
    assert substitute(value, {K: ROW}) == value


def test_subterms_reach_into_indices() -> None:
    inner = Read(1, (ROW,))
    value = Apply("negate", (Read(0, (element(inner),)),))
    assert inner in list(subterms(value))
    assert variables(value) == {Variable("i0")}
