"""Tensors that only some ranks of a mesh hold."""

from rewright.ir.holders import Holders, holders_of
from rewright.ir.placement import Mesh, place
from tests.programs import Builder

MESH = Mesh.of({"pp": 2, "tp": 2})


def test_a_stage_is_a_mesh_of_its_own() -> None:
    stage = Holders.of(MESH, [2, 3])
    assert stage is not None
    assert stage.mesh == Mesh.of({"pp": 1, "tp": 2})
    everywhere = place((4, 6), MESH, ["Replicate()", "Shard(0)"])
    part = stage.restrict(everywhere)
    assert part is not None
    assert part.runs == (((((0, 2),), ((0, 6),))), ((((2, 2),), ((0, 6),))))
    again = stage.extend(part)
    assert again.runs[2:] == part.runs
    assert again.runs[0] == ((), ())
    assert str(again) == "[Replicate() on 1, Shard(0)]"


def test_ranks_that_are_no_box_are_no_mesh() -> None:
    assert Holders.of(MESH, [0, 3]) is None


def test_a_sum_over_ranks_that_are_missing_is_no_placement() -> None:
    stage = Holders.of(MESH, [0, 1])
    assert stage is not None
    assert stage.restrict(place((4,), MESH, ["Partial(sum)", "Replicate()"])) is None
    assert stage.restrict(place((4,), MESH, ["Replicate()", "Partial(sum)"])) is not None


def test_who_reads_a_parameter_returns_its_gradient() -> None:
    def rank(reads: bool, returns: bool) -> Builder:
        build = Builder("rank")
        weight = build.tensor("weight", (2,))
        if reads:
            build.output("loss", weight)
        if returns:
            build.output("grad:weight", weight)
        return build

    idle, missing, whole = rank(False, False).build(), rank(True, False).build(), rank(True, True).build()
    mesh = Mesh.of({"pp": 2})
    assert holders_of("grad:weight", [whole, missing], mesh) is None
    found = holders_of("grad:weight", [whole, idle], mesh)
    assert found is not None
    assert found.ranks == (0,)
