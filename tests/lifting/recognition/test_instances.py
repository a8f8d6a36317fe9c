"""A rank's sums, products and guards as terms of the sequential program that are read elsewhere."""

from __future__ import annotations

from fractions import Fraction

from rewright.claims.language import Access, Addend
from rewright.lifting.recognition.instances import instance
from rewright.lifting.terms.store import ONE, Terms

HEAD = 4


def momentum(terms: Terms, rows: Access, heads: Access) -> Addend:
    """What a program adds: a tensor of rows, and nine times one of heads and rows of a head."""
    state, gradient = terms.input("state", 1), terms.input("gradient", 2)
    total = terms.add([(ONE, state, rows), (Fraction(9), gradient, heads)])
    assert total is not None
    return total


def whole(terms: Terms) -> Addend:
    """The sum of the sequential program, with a variable for the head."""
    made = momentum(terms, ((0, ((0, HEAD), (1, 1))),), ((0, ((0, 1),)), (0, ((1, 1),))))
    terms.finish_sequential()
    return made


def test_two_rows_of_one_head() -> None:
    terms = Terms()
    known = whole(terms)
    own = momentum(terms, ((2 * HEAD + 1, ((0, 1),)),), ((2, ()), (1, ((0, 1),))))
    found = instance(terms, own)
    assert own.term != known.term
    assert found is not None
    assert (found.term, found.coefficient) == (known.term, known.coefficient)
    assert found.access == ((2, ()), (1, ((0, 1),)))


def test_rows_of_another_head_are_no_instance() -> None:
    terms = Terms()
    whole(terms)
    assert instance(terms, momentum(terms, ((HEAD + 1, ((0, 1),)),), ((2, ()), (1, ((0, 1),))))) is None


def test_another_coefficient_is_no_instance() -> None:
    terms = Terms()
    whole(terms)
    state, gradient = terms.input("state", 1), terms.input("gradient", 2)
    rows: Access = ((2 * HEAD, ((0, 1),)),)
    total = terms.add([(ONE, state, rows), (Fraction(8), gradient, ((2, ()), (0, ((0, 1),))))])
    assert total is not None
    assert instance(terms, total) is None


def test_a_multiple_is_an_instance_with_a_factor() -> None:
    terms = Terms()
    state, gradient = terms.input("state", 1), terms.input("gradient", 2)
    known = whole(terms)
    rows: Access = ((2 * HEAD, ((0, 1),)),)
    total = terms.add([(Fraction(2), state, rows), (Fraction(18), gradient, ((2, ()), (0, ((0, 1),))))])
    assert total is not None
    found = instance(terms, total)
    assert found is not None
    assert (found.term, found.coefficient) == (known.term, 2 * known.coefficient)


def test_an_index_of_one_value_is_read_as_it_is_or_not_at_all() -> None:
    terms = Terms()
    known = whole(terms)
    own = momentum(terms, ((2 * HEAD, ((1, 1),)),), ((2, ((0, 1),)), (0, ((1, 1),))))  # the head of one operand only
    assert instance(terms, own) is None
    with terms.over((1, 2)):
        found = instance(terms, own)
    assert found is not None
    assert (found.term, found.access) == (known.term, ((2, ()), (0, ((1, 1),))))


def test_operands_that_change_places() -> None:
    terms = Terms()
    x = terms.input("x", 2)
    rows, columns = (((0, ((0, 1),)), (0, ((1, 1),))), ((0, ((1, 1),)), (0, ((2, 1),))))
    known = terms.apply("multiply", [(x, rows), (x, columns)])
    terms.finish_sequential()
    fixed: Access = ((0, ((2, 1),)), (7, ()))
    beside: Access = ((7, ()), (0, ((5, 1),)))
    for pair in ([(x, fixed), (x, beside)], [(x, beside), (x, fixed)]):
        term, access = terms.apply("multiply", pair)
        found = instance(terms, Addend(ONE, term, access))
        assert found is not None
        assert found.term == known[0]


def test_equal_terms_in_another_order_and_times_a_negative_number() -> None:
    """``u[i] + 3 u[j]``, of which ``-6 u[5] - 2 u[7]`` is minus twice what is at ``i = 7, j = 5``."""
    terms = Terms()
    u = terms.input("u", 1)
    known = terms.add([(ONE, u, ((0, ((0, 1),)),)), (Fraction(3), u, ((0, ((1, 1),)),))])
    terms.finish_sequential()
    own = terms.add([(Fraction(-6), u, ((5, ()),)), (Fraction(-2), u, ((7, ()),))])
    assert known is not None and own is not None
    found = instance(terms, own)
    assert found == Addend(-2 * known.coefficient, known.term, ((7, ()), (5, ())))


def test_other_proportions_are_no_instance() -> None:
    """``u[5] + 2 u[7]`` and ``u[5] - 3 u[7]`` are none of ``u[i] + 3 u[j]``."""
    terms = Terms()
    u = terms.input("u", 1)
    terms.add([(ONE, u, ((0, ((0, 1),)),)), (Fraction(3), u, ((0, ((1, 1),)),))])
    terms.finish_sequential()
    for second in (2, -3):
        own = terms.add([(ONE, u, ((5, ()),)), (Fraction(second), u, ((7, ()),))])
        assert own is not None
        assert instance(terms, own) is None
