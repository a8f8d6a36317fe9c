"""Classes, against partitions written out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rewright.ir.union_find import UnionFind

PAIRS = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=20)


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
