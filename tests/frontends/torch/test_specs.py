"""Placements read off specs are those that PyTorch makes: checked by sharding a tensor of all indices."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.placement_types import Placement, _StridedShard

from rewright.frontends.torch.specs import SpecReader, assemble, to_runs
from rewright.frontends.torch.tensors import spec_of
from rewright.frontends.torch.world import as_rank
from rewright.ir.placement import Mesh

MESHES = [{"x": 2}, {"x": 3}, {"x": 2, "y": 2}, {"x": 3, "y": 2}]


def check(sizes: dict[str, int], shape: tuple[int, ...], placements: list[Placement]) -> list[str]:
    """Compare with PyTorch on every rank; returns the printed placement."""
    mesh, parts = Mesh.of(sizes), []
    numbers = torch.arange(torch.Size(shape).numel()).view(shape)
    for rank in range(mesh.size):
        with as_rank(rank, mesh) as device_mesh:
            mine = distribute_tensor(numbers, device_mesh, placements, src_data_rank=None)
            part = SpecReader(mesh, rank).read(spec_of(mine))
            assert part is not None
            indices = [torch.cat([torch.arange(s, s + n) for s, n in runs] or [torch.arange(0)]) for runs in part.runs]
            expected = numbers
            for axis, index in enumerate(indices):
                expected = expected.index_select(axis, index)
            assert torch.equal(mine.to_local(), expected)
            parts.append(part)
    return list(assemble(parts).printed)


@given(st.data())
@settings(max_examples=15, deadline=None)
def test_shards_of_any_sizes(data: st.DataObject) -> None:
    sizes = data.draw(st.sampled_from(MESHES))
    shape = tuple(data.draw(st.lists(st.integers(1, 7), min_size=1, max_size=3)))
    placement = st.one_of(st.just(Replicate()), st.builds(Shard, st.integers(0, len(shape) - 1)))
    check(sizes, shape, [data.draw(placement) for _ in sizes])


def test_one_axis_split_twice() -> None:
    assert check({"x": 2, "y": 2}, (7, 2), [Shard(0), Shard(0)]) == ["Shard(0)", "Shard(0)"]


def test_strided_shards_of_fused_weights() -> None:
    assert check({"x": 2}, (12, 3), [_StridedShard(0, split_factor=3)]) == ["StridedShard(0, 3)"]
    assert check({"x": 3}, (2, 10), [_StridedShard(1, split_factor=2)]) == ["StridedShard(1, 2)"]


def test_fewer_rows_than_ranks() -> None:
    check({"x": 3}, (2, 2), [Shard(0)])


@pytest.mark.parametrize(
    ("indices", "runs"),
    [([], ()), ([4], ((4, 1),)), ([0, 1, 2], ((0, 3),)), ([0, 1, 6, 7, 3], ((0, 2), (6, 2), (3, 1)))],
)
def test_runs(indices: list[int], runs: tuple[tuple[int, int], ...]) -> None:
    assert to_runs(torch.tensor(indices)) == runs
