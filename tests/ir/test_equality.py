"""Hash-consing and union-find, against partitions written out."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from rewright.ir.equality import Numbering, UnionFind

PAIRS = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=20)


def test_equal_values_have_one_number() -> None:
    numbering = Numbering(["a", "b"])
    assert [numbering.number(value) for value in ("b", "c", "a", "c")] == [1, 2, 0, 2]
    assert numbering.values == ["a", "b", "c"]


def test_values_that_were_given_twice_keep_their_places() -> None:
    """A file may name one value twice; both numbers stay good."""
    numbering = Numbering([Fraction(1, 2), Fraction(2, 4)])
    assert len(numbering.values) == 2
    assert numbering.values[numbering.number(Fraction(1, 2))] == Fraction(1, 2)


@given(PAIRS)
def test_classes_are_the_connected_components(pairs: list[tuple[int, int]]) -> None:
    classes, parts = UnionFind[int](), [{number} for number in range(12)]
    for one, other in pairs:
        own, others = (next(part for part in parts if number in part) for number in (one, other))
        assert classes.union(one, other) == (own is not others)
        if own is not others:
            parts.remove(others)
            own |= others
    assert [[classes.find(n) == classes.find(m) for m in range(12)] for n in range(12)] == [
        [any({n, m} <= part for part in parts) for m in range(12)] for n in range(12)
    ]


def test_the_first_class_names_both() -> None:
    classes = UnionFind[str]()
    classes.union("a", "b")
    classes.union("c", "b")
    assert {classes.find(name) for name in "abc"} == {"c"}
