"""Reductions of which a few elements are something else."""

from __future__ import annotations

from rewright.ir.types import DType
from rewright.optimize.planning.parting import FEW, parted_at
from rewright.optimize.scalars.expressions import Bound, Expression, Table
from rewright.terms.index import Index, Variable

K = Index(0, ((Variable("k"), 1),))


def load(table: Table, tensor: int, index: Index) -> Expression:
    return table.load(tensor, (table.index(index),), DType.F32)


def chosen(table: Table, index: Index, yes: Expression, no: Expression) -> Expression:
    """One value where an index is at least zero, else another."""
    return table.apply("select", table.plain("at_least_zero", (table.index(index),)), yes, no)


def test_a_sink_at_the_end_is_an_element_of_its_own() -> None:
    table = Table()
    scores, sink = load(table, 0, K), load(table, 1, Index(0))

    found = parted_at(table, "k", chosen(table, K * -1 + 9, scores, sink), 11)

    assert found is not None
    assert (found.most, found.size, found.elements) == (scores, 10, (sink,))


def test_what_comes_after_the_first_elements_is_counted_from_zero() -> None:
    table = Table()
    first, rest = load(table, 1, K), load(table, 0, K - 2)

    found = parted_at(table, "k", chosen(table, K - 2, rest, first), 16)

    assert found is not None
    assert (found.most, found.size) == (load(table, 0, K), 14)
    assert found.elements == (load(table, 1, Index(0)), load(table, 1, Index(1)))


def test_many_elements_stay_where_they_are() -> None:
    table = Table()
    body = chosen(table, K - FEW - 1, load(table, 0, K), load(table, 1, K))

    assert parted_at(table, "k", body, 100) is None


def test_halves_stay_together_however_short_they_are() -> None:
    table = Table()
    body = chosen(table, K - 4, load(table, 0, K - 4), load(table, 1, K + 4))

    assert parted_at(table, "k", body, 8) is None


def test_an_element_that_is_a_reduction_itself_stays_where_it_is() -> None:
    """Three new keys after the cached ones: their scores are a part of the product of tiles."""
    table = Table()
    d = Index(0, ((Variable("d"), 1),))
    score = table.reduce(Bound("sum", "d", 16), load(table, 2, K * 16 + d))

    assert parted_at(table, "k", chosen(table, K * -1 + 9, load(table, 0, K), score), 11) is None


def test_a_statistic_of_the_row_may_be_in_an_element() -> None:
    table = Table()
    largest = table.reduce(Bound("maximum", "r", 10), load(table, 0, Index(0, ((Variable("r"), 1),))))
    body = table.apply("subtract", chosen(table, K * -1 + 9, load(table, 0, K), load(table, 1, Index(0))), largest)

    found = parted_at(table, "k", body, 11)

    assert found is not None and found.elements == (table.apply("subtract", load(table, 1, Index(0)), largest),)
