"""Loss and gradients of attention around a ring: what autograd makes of the loop, and a backward pass by hand.

The backward pass by hand is that of ring-flash-attention: keys, values and their gradients travel once more, softmax is
made again from the logarithm of its sum, and its gradient from ``dO O`` summed over the width.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch.distributed.device_mesh import DeviceMesh

from zoo.ring import WIDTH, Program, Ring, attention

HEADS, TOKENS = 2, 4
NAMES: tuple[str, ...] = ("query", "key", "value", "weight")
Tensor = torch.Tensor
Order = Callable[[int, int, int], Tensor]
"""The places of the tokens that a rank holds: of the rank, how many ranks there are, and how many tokens it holds."""


def contiguous(rank: int, size: int, count: int) -> Tensor:
    """One stretch of tokens."""
    return torch.arange(count) + rank * count


def balanced(rank: int, size: int, count: int) -> Tensor:
    """A stretch from the head and one from the tail, so that all ranks mask equally much."""
    half = count // 2
    tail = 2 * size - 1 - rank
    return torch.cat([torch.arange(half) + rank * half, torch.arange(half) + tail * half])


ORDERS: dict[str, Order] = {"contiguous": contiguous, "balanced": balanced}


class PassedOn(torch.autograd.Function):
    """A tensor passed on, whose gradient is passed back."""

    @staticmethod
    def forward(ctx: Any, ring: Ring, tensor: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The previous rank's tensor."""
        ctx.ring = ring
        return ring.passed_on(tensor)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The gradient of what was sent, which the next rank has."""
        return None, ctx.ring.passed_on(gradient, -1)


def scores(query: Tensor, key: Tensor, rows: Tensor | None, columns: Tensor | None) -> Tensor:
    """Scaled products, minus infinity where a key comes after the query; without places there is no mask."""
    found = query @ key.transpose(-1, -2) / WIDTH**0.5
    return found if rows is None or columns is None else found.masked_fill(columns > rows.unsqueeze(-1), float("-inf"))


class Places:
    """Where the tokens of all ranks stand; nowhere without a mask."""

    def __init__(self, ring: Ring, count: int, order: str | None) -> None:
        self._ring, self._count, self._order = ring, count, order

    def of(self, rank: int) -> Tensor | None:
        """The places of a rank's tokens."""
        return None if self._order is None else ORDERS[self._order](rank, self._ring.size, self._count)

    def block(self, turn: int) -> tuple[Tensor | None, Tensor | None]:
        """The places of the own queries, and of the keys that are there after some turns."""
        return self.of(self._ring.rank), self.of((self._ring.rank - turn) % self._ring.size)


def looped(ring: Ring, query: Tensor, key: Tensor, value: Tensor, order: str | None) -> Tensor:
    """Attention of the own queries to all keys; gradients are autograd's."""

    def passed(tensor: Tensor) -> Tensor:
        return cast("Tensor", PassedOn.apply(ring, tensor))  # pyright: ignore[reportUnknownMemberType]

    result, total, _ = blocks(ring, query, key, value, Places(ring, query.shape[-2], order), passed)
    return result / total


def blocks(
    ring: Ring, query: Tensor, key: Tensor, value: Tensor, places: Places, passed: Callable[[Tensor], Tensor]
) -> tuple[Tensor, Tensor, Tensor]:
    """The unnormalised result, the sum and the maximum, rescaled at every block."""
    largest = total = result = None
    for turn in range(ring.size):
        if turn:
            key, value = passed(key), passed(value)
        block = scores(query, key, *places.block(turn))
        larger = block.detach().amax(-1, keepdim=True)
        larger = larger if largest is None else torch.maximum(largest, larger)
        weights = torch.exp(block - larger)
        own = weights.sum(-1, keepdim=True), weights @ value
        if largest is None or total is None or result is None:
            total, result = own
        else:
            shrink = rescaling(largest, larger)
            total, result = total * shrink + own[0], result * shrink + own[1]
        largest = larger
    assert largest is not None and total is not None and result is not None
    return result, total, largest


def rescaling(largest: Tensor, larger: Tensor) -> Tensor:
    """What a sum of exponentials is multiplied by where another maximum is subtracted."""
    return torch.exp(largest - larger)


class Around(torch.autograd.Function):
    """The same blocks, and a backward pass by hand around the ring."""

    @staticmethod
    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, ring: Ring, query: Tensor, key: Tensor, value: Tensor, order: str | None
    ) -> Tensor:
        """Attention of the own queries to all keys."""
        places = Places(ring, query.shape[-2], order)
        result, total, largest = blocks(ring, query, key, value, places, ring.passed_on)
        output = result / total
        ctx.save_for_backward(query, key, value, output, logarithms(largest, total))
        ctx.ring, ctx.places = ring, places
        return output

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Gradients of the own queries, keys and values."""
        query, key, value, output, size = ctx.saved_tensors
        ring = ctx.ring
        delta = deltas(gradient, output)
        of_query, of_key, of_value = (torch.zeros_like(x) for x in (query, key, value))
        for turn in range(ring.size):
            if turn:
                key, value = ring.passed_on(key), ring.passed_on(value)
                of_key, of_value = with_keys(ring, of_key), with_keys(ring, of_value)
            weights = torch.exp(scores(query, key, *ctx.places.block(turn)) - size)
            of_value = of_value + weights.transpose(-1, -2) @ gradient
            of_scores = weights * (gradient @ value.transpose(-1, -2) - delta) / WIDTH**0.5
            of_query = of_query + of_scores @ key
            of_key = of_key + of_scores.transpose(-1, -2) @ query
        return None, of_query, home(ring, of_key), home(ring, of_value), None


def logarithms(largest: Tensor, total: Tensor) -> Tensor:
    """The logarithms of the sums of exponentials of which the largest exponents were subtracted."""
    return largest + torch.log(total)


def deltas(gradient: Tensor, output: Tensor) -> Tensor:
    """What the gradient of every row's softmax subtracts."""
    return (gradient * output).sum(-1, keepdim=True)


def with_keys(ring: Ring, gradient: Tensor) -> Tensor:
    """The gradient of the keys that have come, from where they were before."""
    return ring.passed_on(gradient)


def home(ring: Ring, gradient: Tensor) -> Tensor:
    """The gradient of the own keys, from where they were at last."""
    return ring.passed_on(gradient)


def by_hand(ring: Ring, query: Tensor, key: Tensor, value: Tensor, order: str | None) -> Tensor:
    """Attention with the backward pass by hand."""
    return Around.apply(ring, query, key, value, order)  # pyright: ignore


PLANS: dict[str, Callable[..., Tensor]] = {"looped": looped, "by hand": by_hand}


def step(attend: Callable[..., Tensor], given: dict[str, Tensor]) -> dict[str, Tensor]:
    """Attention, and a loss in which each of its numbers has a weight of its own."""
    output = attend(given["query"], given["key"], given["value"])
    loss: Any = (output * given["weight"]).sum()
    loss.backward()
    return {"output": output, "loss": loss}


def inputs(length: int) -> dict[str, Tensor]:
    """Queries, keys, values and weights of some tokens, (heads, tokens, width) each."""
    return {name: torch.randn(HEADS, length, WIDTH, requires_grad=name != "weight") for name in NAMES}


def sequential(degree: int, *, causal: bool) -> Program:
    """All tokens on one device."""

    def program(**given: Tensor) -> dict[str, Tensor]:
        return step(lambda *qkv: attention(*qkv, causal=causal), given)

    return program, (), inputs(TOKENS * degree)


def parallel(plan: str, order: str | None) -> Callable[[DeviceMesh], Program]:
    """What to build on each rank, which holds tokens in some order; without one there is no mask."""

    def build(mesh: DeviceMesh) -> Program:
        ring = Ring(mesh.get_group())

        def program(**given: Tensor) -> dict[str, Tensor]:
            return step(lambda *qkv: PLANS[plan](ring, *qkv, order), given)

        return program, (), inputs(TOKENS)

    return build
