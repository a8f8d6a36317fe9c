"""Which part of a global tensor a rank holds, read off a DTensor spec.

The spec is applied to one vector of indices per axis instead of to a full index tensor: shards are boxes of indices, so
that the axes are independent, and full-size weights need no memory. Strided, uneven and nested shards come out as
PyTorch makes them, because PyTorch makes them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.tensor import Replicate, distribute_tensor

from rewright.ir.placement import AxisRuns, Mesh, Placement


@dataclass(frozen=True)
class RankPlacement:
    """What one rank knows of a placement; ``printed`` and ``partial`` are about the axes of the whole mesh."""

    runs: tuple[AxisRuns, ...]
    printed: tuple[str, ...]
    partial: tuple[str, ...]
    reduction: str


class SpecReader:
    """Reads specs on one rank; equal specs are read once."""

    def __init__(self, mesh: Mesh, rank: int) -> None:
        self._mesh, self._rank = mesh, rank
        self._known: dict[Any, RankPlacement | None] = {}
        self._meshes: dict[int, Any] = {}
        """The meshes of the specs that were read, kept so that no other one takes the place of their identity."""

    def read(self, spec: Any) -> RankPlacement | None:
        """The placement, or None where the spec's mesh is no part of the program's mesh or sizes are symbolic."""
        shape = tuple(spec.shape)
        if not all(isinstance(size, int) for size in shape):
            return None
        self._meshes[id(spec.mesh)] = spec.mesh
        parts = spec.tensor_meta.dtype.is_complex
        key = (tuple(str(p) for p in spec.placements), id(spec.mesh), shape, parts)
        if key not in self._known:
            self._known[key] = self._read(spec, shape, parts=parts)
        return self._known[key]

    def _read(self, spec: Any, shape: tuple[int, ...], *, parts: bool) -> RankPlacement | None:
        axes = [self._axes(spec.mesh, dimension) for dimension in range(spec.mesh.ndim)]
        if any(names is None for names in axes):
            return None
        printed = dict.fromkeys((name for name, _ in self._mesh.axes), "Replicate()")
        partial: list[str] = []
        reduction = "sum"
        for names, placement in zip(axes, spec.placements, strict=True):
            for name in names or ():
                printed[name] = print_torch_placement(placement)
                if placement.is_partial():
                    partial.append(name)
                    reduction = placement.reduce_op
        whole = [Replicate() if p.is_partial() else p for p in spec.placements]
        runs = tuple(_axis_runs(spec.mesh, whole, axis, size, len(shape)) for axis, size in enumerate(shape))
        if parts:  # a trace has complex tensors as real ones with one more axis
            runs = (*runs, ((0, 2),))
        return RankPlacement(runs, tuple(printed.values()), tuple(partial), reduction)

    def _axes(self, device_mesh: Any, dimension: int) -> tuple[str, ...] | None:
        """The axes of the program's mesh along which the ranks of one dimension of a device mesh differ."""
        return mesh_axes(self._mesh, self._rank, dist.get_process_group_ranks(device_mesh.get_group(dimension)))


def mesh_axes(mesh: Mesh, rank: int, ranks: Sequence[int]) -> tuple[str, ...] | None:
    """The axes along which these ranks, which include the one given, differ; None where they are no such group."""
    for names in _subsets(tuple(name for name, _ in mesh.axes)):
        if mesh.group(rank, names) == tuple(ranks):
            return names
    return None


def assemble(parts: Sequence[RankPlacement]) -> Placement:
    """The placement over all ranks from what each rank read."""
    first = parts[0]
    return Placement(tuple(p.runs for p in parts), first.printed, first.partial, first.reduction)


def print_torch_placement(placement: Any) -> str:
    """DTensor notation as Rewright prints it."""
    if placement.is_partial():
        return f'Partial("{placement.reduce_op}")'
    if placement.is_replicate():
        return "Replicate()"
    factor = getattr(placement, "split_factor", None)
    return f"Shard({placement.dim})" if factor is None else f"StridedShard({placement.dim}, {factor})"


def to_runs(indices: torch.Tensor) -> AxisRuns:
    """Stretches of consecutive indices of a vector as ``(start, length)``, in local order."""
    if indices.numel() == 0:
        return ()
    breaks = (torch.diff(indices) != 1).nonzero().reshape(-1) + 1
    edges = [0, *(int(position) for position in breaks), indices.numel()]
    return tuple((int(indices[low]), high - low) for low, high in itertools.pairwise(edges))


def _axis_runs(mesh: Any, placements: Sequence[Any], axis: int, size: int, rank: int) -> AxisRuns:
    # A strided shard does not count as a shard for is_shard(), but it has an axis like one.
    on_axis: list[Any] = [p if hasattr(p, "dim") and p.dim % rank == axis else Replicate() for p in placements]
    if all(p.is_replicate() for p in on_axis):
        return ((0, size),) if size else ()
    shape = [1] * rank
    shape[axis] = size
    vector = torch.arange(size, device="cpu").view(shape)
    mine: Any = distribute_tensor(vector, mesh, on_axis, src_data_rank=None)
    return to_runs(mine.to_local().reshape(-1))


@cache
def _subsets(names: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Every set of names, small ones first; the empty one for a mesh dimension of size one."""
    found: list[tuple[str, ...]] = [()]
    for name in names:
        found += [(*names, name) for names in found]
    return tuple(sorted(found, key=len))
