"""Walks over scalars and indices."""

from rewright.terms.index import Variable, element, result_index, variable
from rewright.terms.scalar import Apply, Choose, Fixed, Read, at_least
from rewright.terms.walk import elements, index_variables, own_indices, subterms

ROW, COLUMN = result_index(2)


def test_subterms_reach_into_indices() -> None:
    inner = Read(1, (ROW,))
    value = Apply("negate", (Read(0, (element(inner),)),))
    assert inner in list(subterms(value))


def test_what_is_inside_of_data_is_no_variable_of_an_index() -> None:
    gathered = element(Read(1, (ROW,))) + variable("i1")
    assert [*index_variables(gathered)] == [Variable("i1")]
    assert [found.value for found in elements(gathered)] == [Read(1, (ROW,))]


def test_the_indices_of_a_choice_are_those_of_its_condition() -> None:
    assert own_indices(Choose(at_least(ROW, 1), Read(0, (COLUMN,)), Fixed(0.0))) == (ROW - 1,)
