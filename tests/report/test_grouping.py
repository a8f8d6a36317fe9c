"""Relations that differ only in layer numbers are one line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rewright.refine.verdict import OutputRelation
from rewright.report.grouping import families
from tests.report.verdicts import relation


def test_layers_with_one_placement_are_one_family() -> None:
    [family] = families(relation(f"grad:model.layers.{i}.mlp.up_proj.weight", "Shard(0)") for i in range(32))
    assert family.name == "grad:model.layers.{0..31}.mlp.up_proj.weight"
    assert family.relation == "Shard(0)"
    assert len(family.members) == 32


def test_a_layer_placed_otherwise_stays_apart() -> None:
    relations = [relation(f"layers.{i}.w", "Replicate()" if i == 2 else "Shard(1)") for i in range(5)]
    assert [f.name for f in families(relations)] == ["layers.{0..1,3..4}.w", "layers.2.w"]


def test_experts_of_layers_are_a_grid() -> None:
    relations = [relation(f"layers.{i}.experts.{j}.w", "Shard(0)") for i in range(2) for j in range(4)]
    assert [f.name for f in families(relations)] == ["layers.{0..1}.experts.{0..3}.w"]


def test_a_ragged_grid_is_told_row_by_row() -> None:
    names = ["l.0.e.0", "l.0.e.1", "l.1.e.0"]
    assert [f.name for f in families(relation(n, "Shard(0)") for n in names)] == ["l.0.e.{0..1}", "l.1.e.0"]


def test_equations_are_never_grouped() -> None:
    relations = [OutputRelation(f"l.{i}", "", f"l.{i} = l.{i}@0[0:2]", None, True) for i in range(3)]
    assert [f.relation for f in families(relations)] == [r.equation for r in relations]


@given(st.sets(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1))
def test_every_output_is_in_exactly_one_family(cells: set[tuple[int, int]]) -> None:
    relations = [relation(f"l.{i}.e.{j}", "Shard(0)") for i, j in sorted(cells)]
    members = [member.name for family in families(relations) for member in family.members]
    assert sorted(members) == sorted(r.name for r in relations)
