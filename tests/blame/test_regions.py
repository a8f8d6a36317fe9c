"""Walking back from what is wrong to where programs part."""

from rewright.blame.regions import unknown_behind

READS = {"y": ["a", "b"], "a": ["x"], "b": ["a", "c"], "c": [], "x": []}


def test_the_walk_ends_at_what_is_known() -> None:
    found = unknown_behind(["y"], READS.__getitem__, {"x", "c"}.__contains__)
    assert found == {"y": ["a", "b"], "b": ["a"], "a": []}


def test_programs_part_where_all_that_is_read_is_known() -> None:
    found = unknown_behind(["y"], READS.__getitem__, {"a", "c"}.__contains__)
    assert [node for node, unknown in found.items() if not unknown] == ["b"]
