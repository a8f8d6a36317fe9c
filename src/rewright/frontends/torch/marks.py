"""What plain parameters say of how they are split: the attributes that Megatron-LM puts on them.

``tensor_model_parallel`` says that ranks of the tensor-parallel group hold parts along ``partition_dim``. With a
``partition_stride`` of ``s`` the whole axis is cut into ``s`` blocks and a rank holds its part of each, one after the
other: the gate and the projection of a gated layer are blocks of one weight.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor

from rewright.frontends.torch.specs import RankPlacement, mesh_axes
from rewright.ir.placement import AxisRuns, Mesh

_STATE = "megatron.core.parallel_state"


@dataclass(frozen=True)
class Mark:
    """The attributes of a parameter with the shape that this rank has of it."""

    axis: int
    stride: int
    shape: tuple[int, ...]


def mark_of(value: torch.Tensor) -> Mark | None:
    """The mark of a plain tensor that is split over the tensor-parallel group; None where there is none that fits."""
    if isinstance(value, DTensor) or getattr(value, "tensor_model_parallel", False) is not True:
        return None
    axis, stride = getattr(value, "partition_dim", None), getattr(value, "partition_stride", 1)
    shape = tuple(value.shape)
    if not isinstance(axis, int) or not isinstance(stride, int) or not 0 <= axis < len(shape):
        return None
    return Mark(axis, stride, shape) if stride > 0 and shape[axis] % stride == 0 else None


def read_mark(mark: Mark, mesh: Mesh, rank: int) -> RankPlacement | None:
    """The placement on one rank; None where it is not known which ranks share the tensor."""
    axes = _tensor_parallel(mesh, rank)
    if axes is None:
        return None
    group = mesh.group(rank, axes)
    runs: list[AxisRuns] = [((0, size),) if size else () for size in mark.shape]
    runs[mark.axis] = _parts(mark.shape[mark.axis], mark.stride, group.index(rank), len(group))
    text = f"Shard({mark.axis})" if mark.stride == 1 else f"StridedShard({mark.axis}, {mark.stride})"
    printed = tuple(text if name in axes else "Replicate()" for name, _ in mesh.axes)
    return RankPlacement(tuple(runs), printed, (), "sum")


def _parts(size: int, stride: int, place: int, ranks: int) -> AxisRuns:
    """The stretches of the whole axis that one of the ranks holds, ``size`` elements in all."""
    part = size // stride
    if part == 0:
        return ()
    if ranks == 1:
        return ((0, size),)
    return tuple(((block * ranks + place) * part, part) for block in range(stride))


def _tensor_parallel(mesh: Mesh, rank: int) -> Sequence[str] | None:
    """The axes of the mesh along which Megatron's tensor-parallel group lies, else the mesh's only axis.

    Nothing is imported to find out.
    """
    state: Any = sys.modules.get(_STATE)
    if state is not None and state.model_parallel_is_initialized():
        return mesh_axes(mesh, rank, dist.get_process_group_ranks(state.get_tensor_model_parallel_group()))
    return [name for name, _ in mesh.axes] if len(mesh.axes) == 1 else None


__all__ = ["Mark", "mark_of", "read_mark"]
