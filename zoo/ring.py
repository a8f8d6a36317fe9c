"""Attention over keys that travel around a ring: softmax is put together block by block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh

Program = tuple[Any, tuple[Any, ...], dict[str, Any]]
Tensors = tuple[torch.Tensor, torch.Tensor, torch.Tensor]

HEADS, TOKENS, WIDTH = 2, 3, 4


def scores(query: torch.Tensor, key: torch.Tensor, first: int, other: int, *, causal: bool) -> torch.Tensor:
    """Scaled products of queries that start at token ``first`` with keys that start at ``other``."""
    found = query @ key.transpose(-1, -2) / WIDTH**0.5
    if not causal:
        return found
    rows, columns = torch.arange(query.shape[-2]) + first, torch.arange(key.shape[-2]) + other
    return found.masked_fill(columns > rows.unsqueeze(-1), float("-inf"))


def attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *, causal: bool = False) -> torch.Tensor:
    """Attention of all tokens on one device; (heads, tokens, width) each."""
    return torch.softmax(scores(query, key, 0, 0, causal=causal), -1) @ value


class Ring:
    """The ring of a group: what is sent goes to the next rank, what is received is the previous one's."""

    def __init__(self, group: Any) -> None:
        self.group = group
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)

    def passed_on(self, tensor: torch.Tensor, by: int = 1) -> torch.Tensor:
        """The previous rank's tensor, or with ``by=-1`` the next one's."""
        received = torch.empty_like(tensor)
        following, before = (self.rank + by) % self.size, (self.rank - by) % self.size
        sending = dist.P2POp(dist.isend, tensor.contiguous(), following, self.group)
        receiving = dist.P2POp(dist.irecv, received, before, self.group)
        for work in dist.batch_isend_irecv([sending, receiving]):
            work.wait()
        return received


def online(ring: Ring, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *, causal: bool) -> torch.Tensor:
    """The running maximum, the running sum and the unnormalised result are rescaled at every block."""
    first = ring.rank * query.shape[-2]
    block = scores(query, key, first, first, causal=causal)
    largest = block.amax(-1, keepdim=True)
    weights = torch.exp(block - largest)
    total, result = weights.sum(-1, keepdim=True), weights @ value
    for turn in range(1, ring.size):
        key, value = ring.passed_on(key), ring.passed_on(value)
        owner = (ring.rank - turn) % ring.size
        if causal and owner > ring.rank:
            continue
        block = scores(query, key, first, owner * query.shape[-2], causal=False)
        larger = torch.maximum(largest, block.amax(-1, keepdim=True))
        weights, rescale = torch.exp(block - larger), torch.exp(largest - larger)
        total = total * rescale + weights.sum(-1, keepdim=True)
        result = result * rescale + weights @ value
        largest = larger
    return result / total


def merged(ring: Ring, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *, causal: bool) -> torch.Tensor:
    """Every block has its own softmax; results are merged by the logarithms of their sums of exponentials."""
    first = ring.rank * query.shape[-2]
    block = scores(query, key, first, first, causal=causal)
    result, size = torch.softmax(block, -1) @ value, torch.logsumexp(block, -1, keepdim=True)
    for turn in range(1, ring.size):
        key, value = ring.passed_on(key), ring.passed_on(value)
        owner = (ring.rank - turn) % ring.size
        if causal and owner > ring.rank:
            continue
        block = scores(query, key, first, owner * query.shape[-2], causal=False)
        own = torch.logsumexp(block, -1, keepdim=True)
        both = size + torch.log(1 + torch.exp(own - size))
        result = torch.exp(size - both) * result + torch.exp(own - both) * (torch.softmax(block, -1) @ value)
        size = both
    return result


MERGES: dict[str, Callable[..., torch.Tensor]] = {"online": online, "merged": merged}
"""The plans by how blocks are put together."""


def inputs(length: int) -> dict[str, torch.Tensor]:
    """Queries, keys and values of some tokens."""
    return {name: torch.randn(HEADS, length, WIDTH) for name in ("query", "key", "value")}


def sequential(degree: int, *, causal: bool = False) -> Program:
    """All tokens on one device."""
    return attention, (), {**inputs(TOKENS * degree), "causal": causal}


def parallel(plan: str, degree: int, *, causal: bool = False) -> Callable[[DeviceMesh], Program]:
    """What to build on each rank, which holds the tokens of its place."""

    def build(mesh: DeviceMesh) -> Program:
        ring, merge = Ring(mesh.get_group()), MERGES[plan]

        def program(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
            return merge(ring, query, key, value, causal=causal)

        return program, (), dict(inputs(TOKENS))

    return build
