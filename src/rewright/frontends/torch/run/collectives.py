"""What functional collectives compute from the real tensors of all members of a group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from rewright.ir.errors import CaptureError

Tensors = Sequence[torch.Tensor]

_REDUCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "sum": lambda x: x.sum(0),
    "avg": lambda x: x.sum(0) / x.shape[0],
    "max": lambda x: x.amax(0),
    "min": lambda x: x.amin(0),
    "product": lambda x: x.prod(0),
}


def reduced(kind: str, parts: Tensors) -> torch.Tensor:
    """The reduction over all members, in the dtype of the parts; raises CaptureError for an unknown one."""
    function = _REDUCTIONS.get(kind)
    if function is None:
        raise CaptureError(f"a collective reduces with {kind}; use sum, avg, max, min or product")
    return function(torch.stack(list(parts))).to(parts[0].dtype)


def compute_result(name: str, args: Sequence[Any], parts: Tensors, position: int, sent: Sequence[Any]) -> torch.Tensor:
    """The result on the member at ``position``; ``sent`` has the split sizes of every sender of an all-to-all."""
    if name == "all_reduce":
        return reduced(str(args[1]), parts)
    if name == "all_gather_into_tensor":
        return torch.cat([part if part.dim() else part.reshape(1) for part in parts])
    if name == "reduce_scatter_tensor":
        return reduced(str(args[1]), parts).chunk(len(parts))[position].clone()
    if name == "broadcast":
        return parts[int(args[1])].clone()
    if name == "all_to_all_single":
        return _exchange(list(args[1]), parts, position, sent)
    if name == "shard_dim_alltoall":
        gather, shard = int(args[1]), int(args[2])
        return torch.cat([part.chunk(len(parts), shard)[position] for part in parts], gather).contiguous()
    raise CaptureError(f"the collective {name} cannot be run among threads; use one of torch.distributed's own")


def _exchange(receive: list[int], parts: Tensors, position: int, sent: Sequence[Any]) -> torch.Tensor:
    pieces = [torch.split(part, list(sizes))[position] for part, sizes in zip(parts, sent, strict=True)]
    for member, (piece, expected) in enumerate(zip(pieces, receive, strict=True)):
        if piece.shape[0] != expected:
            raise CaptureError(
                f"all_to_all: member {member} sends {piece.shape[0]} rows and member {position} expects {expected}; "
                "make the split sizes agree"
            )
    return torch.cat(pieces)
