"""Convolutions over ranks: channels are split, or the input is and its borders are exchanged."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.distributed.device_mesh import DeviceMesh

import rewright as rw
from rewright.refine.verdict import Verdict
from zoo.patterns.pattern import dist, enter, leave, reduced, weight

Tensor = torch.Tensor
IMAGE, CHANNELS = (2, 3, 6, 6), 8


def whole(x: Tensor, first: Tensor, scale: Tensor, second: Tensor) -> dict[str, Tensor]:
    """Two convolutions with groups of channels that are normalised between them."""
    hidden = F.silu(F.group_norm(F.conv2d(x, first, padding=1), 4, scale))
    loss: Any = F.conv2d(hidden, second, stride=2, padding=1).square().mean()
    if scale.requires_grad:
        loss.backward()
    return {"loss": loss.detach()}


def by_channels(*, groups: int = 2, summed: bool = True, learned: bool = False) -> Verdict:
    """A rank has half of the channels between both, in two of the four groups, and adds up what it makes of them."""

    def step(x: Tensor, first: Tensor, scale: Tensor, second: Tensor) -> dict[str, Tensor]:
        hidden = F.silu(F.group_norm(F.conv2d(enter(x), first, padding=1), groups, scale))
        made = F.conv2d(hidden, second, stride=2, padding=1)
        loss: Any = (leave(made) if summed else made).square().mean()
        if learned:
            loss.backward()
        return {"loss": loss.detach()}

    def given(count: int) -> tuple[Tensor, ...]:
        shapes = (count, 3, 3, 3), (count,), (3, count, 3, 3)
        return torch.zeros(IMAGE), *(torch.zeros(shape, requires_grad=learned) for shape in shapes)

    relations = {"x": "Replicate()", "first": "Shard(0)", "scale": "Shard(0)", "second": "Shard(1)"}
    ranks = rw.capture_ranks(lambda mesh: (step, given(CHANNELS // 2)), {"tp": 2})
    return rw.refine(rw.capture(whole, given(CHANNELS)), ranks, relations, audit=True)


@pytest.mark.parametrize("learned", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_channels_that_are_split(learned: bool) -> None:
    verdict = by_channels(learned=learned)
    assert verdict.status == "proved", verdict.reason
    assert not learned or verdict.relation["grad:second"].placement == "Shard(1)"


@pytest.mark.parametrize("slip", [{"groups": 1}, {"summed": False}])
def test_channels_in_other_groups_or_never_added_up(slip: dict[str, Any]) -> None:
    assert by_channels(**slip).status == "refuted"


class Bordered(torch.autograd.Function):
    """An input with one element of each neighbour around it, and zeros where there is none."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, axis: int, turned: bool) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx.axis, size = axis, x.shape[axis]
        first, last = x.narrow(axis, 0, 1), x.narrow(axis, size - 1, 1)
        below, above = exchanged(*((last, first) if turned else (first, last)))
        return torch.cat([below, x, above], axis)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        axis, size = ctx.axis, gradient.shape[ctx.axis]
        below, above = exchanged(gradient.narrow(axis, 0, 1), gradient.narrow(axis, size - 1, 1))
        own = gradient.narrow(axis, 1, size - 2)
        first, last = own.narrow(axis, 0, 1) + below, own.narrow(axis, size - 3, 1) + above
        return torch.cat([first, own.narrow(axis, 1, size - 4), last], axis), None, None


def exchanged(down: Tensor, up: Tensor) -> tuple[Tensor, Tensor]:
    """What the ranks below and above send of theirs."""
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    below, above = torch.zeros_like(down), torch.zeros_like(up)
    messages: list[Any] = []
    for there, sent, received in ((rank - 1, down, below), (rank + 1, up, above)):
        if 0 <= there <= last:
            messages += [dist.P2POp(dist.isend, sent.contiguous(), there), dist.P2POp(dist.irecv, received, there)]
    for request in dist.batch_isend_irecv(messages):
        request.wait()
    return below, above


def in_time(ranks: int, *, turned: bool = False) -> Verdict:
    """A sequence that is split, forwards and backwards; where it is ``turned``, the other end of it is sent."""

    def sequential(x: Tensor, kernel: Tensor) -> dict[str, Tensor]:
        loss: Any = F.conv1d(x, kernel, padding=1).square().sum()
        loss.backward()
        return {"loss": loss.detach()}

    def build(mesh: DeviceMesh) -> Any:
        def step(x: Tensor, kernel: Any) -> dict[str, Tensor]:
            loss: Any = F.conv1d(Bordered.apply(x, 2, turned), kernel).square().sum()
            loss.backward()
            dist.all_reduce(kernel.grad)
            return {"loss": reduced(loss.detach())}

        return step, (weight(2, 3, 4), weight(4, 3, 3))

    given = weight(2, 3, 4 * ranks), weight(4, 3, 3)
    program = rw.capture_ranks(build, {"sp": ranks})
    return rw.refine(rw.capture(sequential, given), program, {"x": "Shard(2)", "kernel": "Replicate()"}, audit=True)


def test_borders_of_a_sequence_and_their_gradients() -> None:
    verdict = in_time(2)
    assert verdict.status == "proved", verdict.reason
    assert verdict.relation["grad:x"].placement == "Shard(2)"


def test_the_wrong_ends_of_a_sequence() -> None:
    verdict = in_time(2, turned=True)
    assert verdict.status == "refuted"


@pytest.mark.parametrize("ranks", [2, 3])
def test_rows_of_an_image_with_borders_of_both_kinds(ranks: int) -> None:
    """Rows are exchanged, and columns padded on every rank."""

    def sequential(x: Tensor, kernel: Tensor) -> Tensor:
        return F.conv2d(x, kernel, padding=1)

    def step(x: Tensor, kernel: Tensor) -> Any:
        return F.conv2d(Bordered.apply(x, 2, False), kernel, padding=(0, 1))

    def given(rows: int) -> tuple[Tensor, Tensor]:
        return torch.zeros(2, 3, rows, 5), torch.zeros(4, 3, 3, 3)

    program = rw.capture_ranks(lambda mesh: (step, given(4)), {"sp": ranks})
    relations = {"x": "Shard(2)", "kernel": "Replicate()"}
    verdict = rw.refine(rw.capture(sequential, given(4 * ranks)), program, relations, audit=True)
    assert verdict.status == "proved", verdict.reason
