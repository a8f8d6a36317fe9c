"""Placements of one tensor over a mesh, as torch.chunk and DTensor make them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewright.ir.dims import symbol
from rewright.ir.errors import RewrightError
from rewright.ir.placement import Mesh, Placement, chunk, place
from rewright.refine.relations.known import texts_of

torch = pytest.importorskip("torch")
TENSOR_PARALLEL = Mesh.of({"tp": 4})
GRID = Mesh.of({"dp": 2, "tp": 3})


def test_ranks_are_numbered_in_row_major_order() -> None:
    assert [GRID.coordinates(rank) for rank in range(6)] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert GRID.group(4, ["tp"]) == (3, 4, 5)
    assert GRID.group(4, ["dp"]) == (1, 4)
    assert GRID.group(4, ["dp", "tp"]) == tuple(range(6))


@given(st.integers(0, 20), st.integers(1, 6))
def test_chunks_are_those_of_torch(size: int, parts: int) -> None:
    tensor = torch.arange(size)
    expected = [piece.tolist() for piece in tensor.chunk(parts)] + [[]] * parts
    for position in range(parts):
        start, length = chunk((0, size), parts, position)
        assert list(range(start, start + length)) == expected[position]


def test_a_symbolic_size_is_split_where_it_divides() -> None:
    size = symbol("s")
    assert chunk((0, 4 * size), 4, 1) == (size, size)
    with pytest.raises(RewrightError, match="an axis of size s cannot be split evenly into 4"):
        chunk((0, size), 4, 1)


@pytest.mark.parametrize("text", ["Shard(1)", " Shard( dim=1 ) ", "S(1)", "Shard('1')"])
def test_notations_of_a_shard(text: str) -> None:
    assert place((2, 6), Mesh.of({"tp": 2}), [text]) == place((2, 6), Mesh.of({"tp": 2}), ["Shard(1)"])


@pytest.mark.parametrize(
    "text", ["", "Shard", "Shard()", "Shard(--0)", "Shard(²)", "Shard(0", "Shard(0))", "Replicate(1)", "Partial(avg)"]
)
def test_what_is_no_placement(text: str) -> None:
    with pytest.raises(RewrightError, match=r"is no placement; write Replicate\(\), Shard\(0\) or Partial\(sum\)"):
        place((2, 6), Mesh.of({"tp": 2}), [text])


def indices(placement: Placement, rank: int) -> list[list[int]]:
    return [[i for start, length in runs for i in range(start, start + length)] for runs in placement.runs[rank]]


@given(st.integers(0, 9), st.integers(0, 9))
def test_shards_cover_a_tensor_once(rows: int, columns: int) -> None:
    placement = place((rows, columns), GRID, ["Shard(0)", "Shard(1)"])
    seen = np.zeros((rows, columns), int)
    for rank in range(GRID.size):
        mine = indices(placement, rank)
        seen[np.ix_(*mine)] += 1
        assert placement.local_shape(rank) == tuple(len(axis) for axis in mine)
    assert np.all(seen == 1)


def test_an_axis_sharded_twice_is_split_by_the_earlier_mesh_axis_first() -> None:
    placement = place((12,), GRID, ["Shard(0)", "Shard(-1)"])
    assert [placement.runs[rank][0] for rank in range(6)] == [((2 * rank, 2),) for rank in range(6)]


def test_replicas_and_addends() -> None:
    placement = place((4, 2), GRID, ["Replicate()", "Partial(sum)"])
    assert str(placement) == '[Replicate(), Partial("sum")]'
    assert placement.partial == ("tp",)
    assert placement.local_shape(5) == (4, 2)


def test_a_rank_beyond_the_tensor_holds_nothing() -> None:
    placement = place((2,), TENSOR_PARALLEL, ["Shard(0)"])
    assert placement.runs[3] == ((),)
    assert placement.local_shape(3) == (0,)


@pytest.mark.parametrize(
    ("placements", "message"),
    [
        (["Shard(2)"], r"Shard\(2\) of a tensor with 2 axes; name an axis it has"),
        (["Split(0)"], r"'Split\(0\)' is no placement; write Replicate\(\), Shard\(0\) or Partial\(sum\)"),
        (["Partial(mean)"], "is no placement"),
        (["Shard(0)", "Shard(1)"], "2 placements for a mesh of 1 axes; give one each"),
    ],
)
def test_bad_placements(placements: list[str], message: str) -> None:
    with pytest.raises(RewrightError, match=message):
        place((4, 4), TENSOR_PARALLEL, placements)


def test_placements_may_be_said_as_they_are_printed() -> None:
    mesh = Mesh.of({"dp": 2, "tp": 2})
    for texts in (["Shard(0)", "Replicate()"], ["Replicate()", 'Partial("sum")']):
        assert place((4, 4), mesh, texts_of(str(place((4, 4), mesh, texts)))) == place((4, 4), mesh, texts)
    assert place((4, 4), mesh, ["Replicate()"]) == place((4, 4), mesh, ["Replicate()", "Replicate()"])


def test_reductions_cannot_be_mixed() -> None:
    with pytest.raises(RewrightError, match="mix reductions"):
        place((4,), GRID, ["Partial(sum)", "Partial(max)"])
