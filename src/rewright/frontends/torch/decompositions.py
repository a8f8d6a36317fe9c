"""Operators of PyTorch's own libraries that copy into flat buffers, written with ordinary copies.

FSDP2 packs parameters with operators whose alias annotations say less than they do; here they are what they compute.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch

Decompositions = dict[Any, Callable[..., Any]]


def library_decompositions() -> Decompositions:
    """Decompositions of what PyTorch calls on a GPU, and for the libraries that are loaded: none is imported for it."""
    library: Any = torch
    core, table = library.ops.aten, importlib.import_module("torch._decomp").decomposition_table
    on_gpu = (core.cudnn_batch_norm.default, core.cudnn_batch_norm_backward.default)
    found: Decompositions = {core.as_strided_.default: as_strided_in_place, **{o: table[o] for o in on_gpu}}
    found[library.ops.prims.device_put.default] = device_put
    if "torch.distributed.fsdp._fully_shard._fsdp_collectives" not in sys.modules:
        return found
    operators: Any = torch.ops.fsdp
    return found | {
        operators.all_gather_copy_in.default: all_gather_copy_in,
        operators.split_with_sizes_copy.default: split_with_sizes_copy,
        operators.chunk_cat.default: chunk_cat,
    }


def as_strided_in_place(
    given: torch.Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> torch.Tensor:
    """The tensor itself where only the strides of axes of one element change, as pooling does to mark a layout."""
    own: Sequence[int] = given.stride()
    same = all(n == 1 or a == b for n, a, b in zip(size, own, stride, strict=False))
    if tuple(size) != tuple(given.shape) or not same or storage_offset not in (None, given.storage_offset()):
        return NotImplemented
    return given


def device_put(given: torch.Tensor, device: torch.device, non_blocking: bool = False) -> torch.Tensor:
    """The tensor itself where it is on that device already, as whoever writes to it will see; else a copy."""
    return given if given.device == torch.device(device) else given.to(device, copy=True)


def all_gather_copy_in(
    inputs: Sequence[torch.Tensor], output: torch.Tensor, sizes: Sequence[int], length: int, rank: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Copy this rank's tensors into its stretch of the buffer to gather; returns the stretch and the buffer."""
    mine = output.narrow(0, length * rank, length)
    start = 0
    for given, size in zip(inputs, sizes, strict=True):
        mine.narrow(0, start, size).copy_(given.reshape(-1))
        start += size
    return mine, output


def split_with_sizes_copy(
    given: torch.Tensor, sizes: Sequence[int], dim: int = 0, *, out: Sequence[torch.Tensor]
) -> None:
    """Copy consecutive parts along an axis into the given tensors."""
    start = 0
    for destination, size in zip(out, sizes, strict=True):
        destination.copy_(given.narrow(dim, start, size))
        start += size


def chunk_cat(tensors: Sequence[torch.Tensor], dim: int, chunks: int, *, out: torch.Tensor) -> None:
    """Split every tensor into chunks, and put the first chunks of all, then the second ones, into the output."""
    untyped: Any = torch
    out.copy_(untyped._chunk_cat(tensors, dim, chunks))
