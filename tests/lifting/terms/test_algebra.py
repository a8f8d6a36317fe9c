"""Sums of which parts are counted more than once."""

from __future__ import annotations

from fractions import Fraction

from rewright.claims.language import Addend
from rewright.lifting.terms import regions
from rewright.lifting.terms.algebra import Algebra
from rewright.lifting.terms.regions import Region, whole
from rewright.lifting.terms.store import ONE


def sums_of_sums(algebra: Algebra) -> tuple[int, int]:
    """The row sums of a matrix and the sum of these, none of them with a range yet."""
    matrix = algebra.terms.input("x", 2)
    rows = algebra.terms.fold("sum", matrix, (1,))
    return rows, algebra.terms.fold("sum", rows, (0,))


def twice(region: Region) -> Region:
    return regions.scale(region, Fraction(2))


def test_a_sum_that_counts_every_point_twice_is_twice_the_sum() -> None:
    algebra = Algebra()
    rows, _ = sums_of_sums(algebra)
    everything = whole(((0, 4),))
    once = algebra.part(ONE, rows, everything, ((0, ((0, 1),)),))
    algebra.finish_sequential()
    again = algebra.part(ONE, rows, twice(everything), ((0, ((0, 1),)),))
    assert (again.term, again.parts, again.coefficient) == (once.term, (), 2)


def test_twice_in_an_inner_and_an_outer_sum_is_four_times() -> None:
    algebra = Algebra()
    rows, total = sums_of_sums(algebra)
    inner, outer = whole(((0, 4),)), whole(((0, 3),))
    once = algebra.complete(Addend(ONE, total, (), ((total, outer), (rows, inner))))
    algebra.finish_sequential()
    again = algebra.complete(Addend(ONE, total, (), ((total, twice(outer)), (rows, twice(inner)))))
    assert (again.term, again.parts, again.coefficient) == (once.term, (), 4)
    mixed = algebra.complete(Addend(ONE, total, (), ((total, twice(outer)), (rows, inner))))
    assert (mixed.term, mixed.parts, mixed.coefficient) == (once.term, (), 2)
