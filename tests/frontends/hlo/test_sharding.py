"""Shardings of HLO as placements, and the short forms of lists of devices."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewright.frontends.hlo.devices import AxisPart, DeviceMesh, iota_groups, mesh_groups
from rewright.frontends.hlo.sharding import Sharding, factors, of_text, placement
from rewright.frontends.hlo.text import split
from rewright.ir.errors import RewrightError
from rewright.ir.placement import Mesh, place


def sharding(text: str) -> Sharding:
    return of_text(text, split)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("{replicated}", ["Replicate()", "Replicate()"]),
        ("{devices=[2,2]<=[4]}", ["Shard(0)", "Shard(1)"]),
        ("{devices=[2,2]<=[2,2]T(1,0)}", ["Shard(1)", "Shard(0)"]),
        ("{devices=[2,1,2]<=[4] last_tile_dim_replicate}", ["Shard(0)", "Replicate()"]),
        ("{devices=[1,2,2]<=[2,2]T(1,0) last_tile_dim_replicate}", ["Replicate()", "Shard(1)"]),
        ("{devices=[4,1]0,1,2,3}", ["Shard(0)", "Shard(0)"]),
        ("{devices=[1,2,2]<=[4] last_tile_dims={unreduced}}", ["Shard(1)", "Partial(sum)"]),
    ],
)
def test_a_sharding_is_a_placement(text: str, wanted: list[str]) -> None:
    mesh = Mesh.of({"a": 2, "b": 2})
    found, expected = placement(sharding(text), (8, 4), mesh), place((8, 4), mesh, wanted)
    assert found is not None
    assert (found.runs, found.printed, found.partial) == (expected.runs, expected.printed, expected.partial)


def test_an_axis_that_later_mesh_axes_shard_first_has_other_parts() -> None:
    found = placement(sharding("{devices=[4]<=[2,2]T(1,0)}"), (8,), Mesh.of({"a": 2, "b": 2}))
    assert found is not None
    assert [rank[0] for rank in found.runs] == [((0, 2),), ((4, 2),), ((2, 2),), ((6, 2),)]


@pytest.mark.parametrize(
    "text", ["{manual}", "{maximal device=0}", "{unknown}", "{devices=[2,2]<=[4] last_tile_dims={manual}}"]
)
def test_some_shardings_say_nothing_of_the_parts(text: str) -> None:
    assert placement(sharding(text), (8,), Mesh.of({"a": 4})) is None


def test_a_tuple_has_a_sharding_for_every_part() -> None:
    found = sharding("{{replicated}, {devices=[2]<=[2]}}").leaves(2)
    assert [part.kind for part in found] == ["replicated", "tiled"]


@pytest.mark.parametrize(
    "text", ["{devices=[2,2]<=[3]}", "{devices=[2]<=[2]T(7)}", "{devices=[99999999]<=[99999999]}", "{devices=[2]0,x}"]
)
def test_a_sharding_that_does_not_fit_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(RewrightError, match="print"):
        placement(sharding(text), (8, 4), Mesh.of({"a": 4}))


def test_shardings_tell_the_axes_of_the_mesh() -> None:
    rows, columns = sharding("{devices=[2,1,4]<=[8] last_tile_dim_replicate}"), sharding("{devices=[4,2]<=[2,4]T(1,0)}")
    assert factors([], 8) == (8,)
    assert factors([rows, columns], 8) == (2, 4)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("mesh['x'=2,'y'=2] {'y'}", ((0, 1), (2, 3))),
        ("mesh['x'=2,'y'=2] {'x'}", ((0, 2), (1, 3))),
        ("mesh['x'=2,'y'=2] {'y','x'}", ((0, 2, 1, 3),)),
        ("mesh['x'=4], device_ids=([2,2]T(1,0)) {'x'}", ((0, 2, 1, 3),)),
        ("mesh['x'=4] {'x':(1)2}", ((0, 2), (1, 3))),
        ("mesh['x'=4] {'x':(2)2}", ((0, 1), (2, 3))),
        ("mesh['x'=2,'y'=1] {}", ((0,), (1,))),
    ],
)
def test_groups_along_the_axes_of_a_mesh(text: str, wanted: tuple[tuple[int, ...], ...]) -> None:
    assert mesh_groups(text) == wanted


@pytest.mark.parametrize("text", ["mesh['x'=2] {'y'}", "mesh['x'=3] {'x':(2)2}", "everybody", "mesh['x'=2] {'x','x'}"])
def test_groups_in_no_known_form_are_refused(text: str) -> None:
    with pytest.raises(RewrightError, match=r"print|does not have"):
        mesh_groups(text)


@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.data())
def test_every_device_is_in_one_group(sizes: list[int], data: st.DataObject) -> None:
    axes = data.draw(st.lists(st.sampled_from(range(len(sizes))), unique=True))
    groups = DeviceMesh.of(sizes).groups([AxisPart(axis) for axis in axes])
    assert sorted(device for group in groups for device in group) == list(range(len(DeviceMesh.of(sizes).devices)))
    order = [*(a for a in range(len(sizes)) if a not in axes), *axes]
    members = len(groups[0])
    assert groups == iota_groups((len(groups), members), sizes, order)
