"""Bugs of Megatron-LM's process groups, routers and experts, most of them from one long list.

Where a part of a model is given a process group of its own, another part of it still takes the global one. Here the
own one is of ranks 0 and 1, and of 2 and 3; the global one is of ranks 0 and 2, and of 1 and 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch.distributed.device_mesh import DeviceMesh

from zoo.patterns.megatron import LIST, attached, clipped, squares_of
from zoo.patterns.pattern import (
    Pattern,
    Program,
    dist,
    exchange,
    gathered,
    keep,
    reduced,
    scattered,
    sum_gradients,
    weight,
    world,
)

SAMPLES, LENGTH, ROWS, WIDTH, INNER, EXPERTS, HEADS = 4, 4, 8, 4, 6, 2, 2
MESH = {"dp": 2, "tp": 2}


def added(x: torch.Tensor, group: Any) -> torch.Tensor:
    """The sum over a group; no group is one device."""
    total = x.clone()
    if group is not None:
        dist.all_reduce(total, group=group)
    return total


def joined(x: torch.Tensor, group: Any) -> torch.Tensor:
    """The tensors of a group one after the other along axis 0."""
    if group is None:
        return keep(x)
    whole = x.new_empty((x.shape[0] * group.size(), *x.shape[1:]))
    dist.all_gather_into_tensor(whole, x.contiguous(), group=group)
    return whole


def cut(x: torch.Tensor, group: Any) -> torch.Tensor:
    """The own part along axis 0."""
    size, rank = (1, 0) if group is None else (group.size(), group.rank())
    return keep(x.chunk(size)[rank])


def added_part(x: torch.Tensor, group: Any) -> torch.Tensor:
    """The own part along axis 0 of the sum over a group."""
    if group is None:
        return keep(x)
    part = x.new_empty((x.shape[0] // group.size(), *x.shape[1:]))
    dist.reduce_scatter_tensor(part, x.contiguous(), group=group)
    return part


def between(x: torch.Tensor, group: Any, operation: Callable[..., Any], adjoint: Callable[..., Any]) -> torch.Tensor:
    """An operation over a group whose gradient is another one."""
    return exchange(x, partial(operation, group=group), partial(adjoint, group=group))


def alone(x: torch.Tensor, group: Any) -> torch.Tensor:
    """The tensor itself, whatever the group."""
    return keep(x)


def sum_over(group: Any, *tensors: Any) -> None:
    """Gradients that are addends become their sums over a group."""
    for tensor in tensors if group is not None else ():
        dist.all_reduce(tensor.grad, group=group)


class Recomputed(torch.autograd.Function):
    """A layer that keeps a part of its input, and has the whole one gathered before it runs again."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, layer: Callable[..., Any], group: Any) -> torch.Tensor:
        """The layer."""
        ctx.layer, ctx.group, ctx.shape = layer, group, x.shape
        ctx.save_for_backward(cut(x.flatten(), group))
        return layer(x)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        """The layer again, and its gradients."""
        (part,) = ctx.saved_tensors
        x = joined(part, ctx.group).view(ctx.shape).requires_grad_()
        with torch.enable_grad():
            y = ctx.layer(x)
        torch.autograd.backward(y, gradients[0])
        return x.grad, None, None


def recomputed() -> Pattern:
    """A layer gathers what it kept of its input over the wrong group, and runs again on parts of two batches."""

    def step(
        x: torch.Tensor, w: Any, up: Any, down: Any, tp: Any = None, dp: Any = None, kept: Any = None
    ) -> dict[str, torch.Tensor]:
        def layer(hidden: torch.Tensor) -> torch.Tensor:
            return between((between(hidden, tp, alone, added) @ up).relu() @ down, tp, added, alone)

        function: Any = Recomputed
        loss: Any = function.apply(x @ w, layer, kept).square().sum()
        loss.backward()
        sum_over(dp, w, up, down)
        return {"loss": added(loss.detach(), dp)}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        tp, dp = mesh.get_group("tp"), mesh.get_group("dp")
        return step, (*arguments(2), tp, dp, dp if wrong else tp)

    def arguments(parts: int) -> tuple[torch.Tensor, ...]:
        inner = INNER // parts
        return torch.zeros(ROWS // parts, WIDTH), weight(WIDTH, WIDTH), weight(WIDTH, inner), weight(inner, WIDTH)

    return Pattern(
        (LIST, "Megatron-LM #6760", "Megatron-LM #7403"),
        lambda: (step, arguments(1)),
        parallel,
        {
            "x": "[Shard(0), Replicate()]",
            "w": "[Replicate(), Replicate()]",
            "up": "[Replicate(), Shard(1)]",
            "down": "[Replicate(), Shard(0)]",
        },
        "all_gather_into_tensor(whole",
        gradient=True,
        mesh=MESH,
    )


def padding_group() -> Pattern:
    """The mask of padding is cut for another group than the tokens are, so that it is about other tokens."""

    def step(
        x: torch.Tensor,
        padding: torch.Tensor,
        w: Any,
        router: Any,
        experts: Any,
        tp: Any = None,
        dp: Any = None,
        of_mask: Any = None,
    ) -> dict[str, torch.Tensor]:
        hidden = between(x @ w, tp, cut, joined)
        valid = ~cut(padding.T, of_mask).unsqueeze(-1)
        chances = torch.softmax(hidden @ router, -1)
        chosen = F.one_hot(chances.argmax(-1), EXPERTS) * valid
        counts = added(chosen.sum(0), tp)
        total = counts.sum(-1, keepdim=True)
        balance = EXPERTS * ((chances * valid).sum(0) * counts / (total * total)).sum() / SAMPLES
        loss: Any = (hidden + attached(chances, 0.25 * balance) @ experts).square().sum()
        loss.backward()
        sum_over(tp, router, experts)
        sum_over(dp, router, experts, w)
        return {"loss": added(added(loss.detach(), tp), dp), "balance": added(added(balance.detach(), tp), dp)}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        tp, dp = mesh.get_group("tp"), mesh.get_group("dp")
        return step, (*arguments(2), tp, dp, dp if wrong else tp)

    def arguments(parts: int) -> tuple[torch.Tensor, ...]:
        samples = SAMPLES // parts
        tokens, padding = torch.zeros(LENGTH, samples, WIDTH), torch.zeros(samples, LENGTH, dtype=torch.bool)
        return tokens, padding, weight(WIDTH, WIDTH), weight(WIDTH, EXPERTS), weight(EXPERTS, WIDTH)

    return Pattern(
        (LIST, "Megatron-LM #5563", "Megatron-LM #5088"),
        lambda: (step, arguments(1)),
        parallel,
        {
            "x": "[Shard(1), Replicate()]",
            "padding": "[Shard(0), Replicate()]",
            **dict.fromkeys(("w", "router", "experts"), "[Replicate(), Replicate()]"),
        },
        "cut(padding.T, of_mask)",
        mesh=MESH,
    )


def cross_attention() -> Pattern:
    """The projections of a cross-attention gather parts of sequences over the wrong group."""
    size = 2

    def step(
        x: torch.Tensor,
        context: torch.Tensor,
        query: Any,
        key_value: Any,
        down: Any,
        tp: Any = None,
        dp: Any = None,
        of_linear: Any = None,
    ) -> dict[str, torch.Tensor]:
        every, contexts = (between(t, of_linear, joined, added_part) for t in (x, context))
        q = (every @ query).unflatten(-1, (-1, size)).movedim(0, -2)
        k, v = (contexts @ key_value).unflatten(-1, (-1, 2 * size)).movedim(0, -2).chunk(2, -1)
        weights = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(size), -1)
        y = between((weights @ v).movedim(-2, 0).flatten(-2) @ down, tp, added_part, joined)
        loss: Any = y.square().sum()
        loss.backward()
        sum_over(dp, query, key_value, down)
        return {"loss": added(added(loss.detach(), tp), dp)}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        tp, dp = mesh.get_group("tp"), mesh.get_group("dp")
        return step, (*arguments(2), tp, dp, dp if wrong else tp)

    def arguments(parts: int) -> tuple[torch.Tensor, ...]:
        samples, inner = SAMPLES // parts, HEADS // parts * size
        return (
            torch.zeros(LENGTH // parts, samples, WIDTH),
            torch.zeros(2 * LENGTH // parts, samples, WIDTH),
            weight(WIDTH, inner),
            weight(WIDTH, 2 * inner),
            weight(inner, WIDTH),
        )

    return Pattern(
        (LIST,),
        lambda: (step, arguments(1)),
        parallel,
        {
            **dict.fromkeys(("x", "context"), "[Shard(1), Shard(0)]"),
            **dict.fromkeys(("query", "key_value"), "[Replicate(), Shard(1)]"),
            "down": "[Replicate(), Shard(0)]",
        },
        "all_gather_into_tensor(whole",
        mesh=MESH,
    )


def combined_embeddings() -> Pattern:
    """Embeddings of images and words are cut for another group than the one over which the first layer gathers them."""

    def step(
        images: torch.Tensor,
        words: torch.Tensor,
        wanted: torch.Tensor,
        vision: Any,
        up: Any,
        down: Any,
        tp: Any = None,
        dp: Any = None,
        of_cut: Any = None,
    ) -> dict[str, torch.Tensor]:
        combined = between(torch.cat([images @ vision, words]), of_cut, cut, joined)
        inner = (between(combined, tp, joined, added_part) @ up).relu()
        y = combined + between(inner @ down, tp, added_part, joined)
        loss: Any = (between(y, tp, joined, cut) - wanted).square().sum()
        loss.backward()
        sum_over(dp, vision, up, down)
        return {"loss": added(loss.detach(), dp)}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        tp, dp = mesh.get_group("tp"), mesh.get_group("dp")
        return step, (*arguments(2), tp, dp, dp if wrong else tp)

    def arguments(parts: int) -> tuple[torch.Tensor, ...]:
        samples, inner = SAMPLES // parts, INNER // parts
        images, words, wanted = (torch.zeros(rows, samples, WIDTH) for rows in (2, 4, 6))
        return images, words, wanted, weight(WIDTH, WIDTH), weight(WIDTH, inner), weight(inner, WIDTH)

    return Pattern(
        (LIST, "Megatron-Bridge #4371"),
        lambda: (step, arguments(1)),
        parallel,
        {
            **dict.fromkeys(("images", "words", "wanted"), "[Shard(1), Replicate()]"),
            "vision": "[Replicate(), Replicate()]",
            "up": "[Replicate(), Shard(1)]",
            "down": "[Replicate(), Shard(0)]",
        },
        "of_cut, cut, joined",
        mesh=MESH,
    )


def router_counts() -> Pattern:
    """A rank's own count of tokens is read after the sum over the ranks was written over it."""

    def overwritten(counts: torch.Tensor) -> torch.Tensor:
        if world()[0] > 1:
            dist.all_reduce(counts)
        return counts

    def step(
        x: torch.Tensor, padding: torch.Tensor, w: Any, router: Any, wrong: bool = False
    ) -> dict[str, torch.Tensor]:
        valid = ~padding.unsqueeze(-1)
        chances = torch.softmax(x @ router, -1)
        counts = (F.one_hot(chances.argmax(-1), EXPERTS) * valid).sum((0, 1))
        every = overwritten(counts) if wrong else reduced(counts)
        own, total = counts.sum(), every.sum()
        balance = EXPERTS * ((chances * valid).sum((0, 1)) * every / (total * total)).sum()
        chances = attached(chances, 0.25 * balance * own * world()[0])
        loss: Any = ((chances @ w) * valid).square().sum()
        loss.backward()
        tokens = reduced(valid.expand(x.shape[0], -1, -1).sum())
        if world()[0] > 1:
            sum_gradients(w, router)
        for tensor in (w, router):
            tensor.grad.div_(tokens)
        return {"loss": reduced(loss.detach()) / tokens, "balance": reduced(balance.detach())}

    def arguments(parts: int) -> tuple[torch.Tensor, ...]:
        padding = torch.zeros(SAMPLES, dtype=torch.bool)
        return torch.zeros(LENGTH // parts, SAMPLES, WIDTH), padding, weight(EXPERTS, WIDTH), weight(WIDTH, EXPERTS)

    return Pattern(
        (LIST, "Megatron-LM #7481", "Megatron-LM #5047"),
        lambda: (step, arguments(1)),
        lambda _, wrong: (step, (*arguments(2), wrong)),
        {"x": "Shard(0)", **dict.fromkeys(("padding", "w", "router"), "Replicate()")},
        "balance * own",
        gradient=True,
    )


def mixture(x: torch.Tensor, router: torch.Tensor, experts: torch.Tensor, first: int = 0) -> torch.Tensor:
    """The weighted sum of what experts give, the first of which has this number."""
    chances = torch.softmax(x @ router, -1)[:, first : first + experts.shape[0]]
    return (chances.T.unsqueeze(-1) * torch.matmul(x, experts).relu()).sum(0)


def expert_norm() -> Pattern:
    """Every rank has an expert, and the norm of all gradients counts that of the first rank only."""

    def whole(x: torch.Tensor, scale: Any, router: Any, experts: Any) -> dict[str, torch.Tensor]:
        loss: Any = mixture(x * scale, router, experts).square().sum()
        loss.backward()
        clipped(squares_of((scale, False), (router, False), (experts, True)), scale, router, experts)
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        rank = mesh.get_local_rank()

        def step(x: torch.Tensor, scale: Any, router: Any, experts: Any) -> dict[str, torch.Tensor]:
            every = exchange(x * scale, gathered, scattered)
            loss: Any = exchange(mixture(every, router, experts, rank), scattered, gathered).square().sum()
            loss.backward()
            sum_gradients(scale, router)
            clipped(squares_of((scale, False), (router, False), (experts, not wrong)), scale, router, experts)
            return {"loss": reduced(loss.detach())}

        return step, arguments(2)

    def arguments(parts: int) -> tuple[torch.Tensor, ...]:
        tokens, experts = torch.zeros(ROWS // parts, WIDTH), weight(EXPERTS // parts, WIDTH, WIDTH)
        return tokens, weight(WIDTH), weight(WIDTH, EXPERTS), experts

    relations = {**dict.fromkeys(("x", "experts"), "Shard(0)"), **dict.fromkeys(("scale", "router"), "Replicate()")}
    return Pattern(
        ("Megatron-LM #5916", "Megatron-LM #6470", "Megatron-LM #6099"),
        lambda: (whole, arguments(1)),
        parallel,
        relations,
        "tensor.grad.square().sum()",
        gradient=True,
        mesh={"tp": 2},
    )


def expert_replicas() -> Pattern:
    """All ranks have the same experts, whose gradients are summed over the group of weights that are split."""

    def step(x: torch.Tensor, router: Any, experts: Any, replicas: Any = None) -> dict[str, torch.Tensor]:
        loss: Any = mixture(x, router, experts).square().sum()
        loss.backward()
        if world()[0] > 1:
            sum_gradients(router)
        sum_over(replicas, experts)
        return {"loss": reduced(loss.detach())}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        return step, (*arguments(4), mesh.get_group("dp") if wrong else dist.group.WORLD)

    def arguments(parts: int) -> tuple[torch.Tensor, ...]:
        return torch.zeros(ROWS // parts, WIDTH), weight(WIDTH, EXPERTS), weight(EXPERTS, WIDTH, WIDTH)

    return Pattern(
        ("Megatron-LM #5916", "Megatron-LM #6080"),
        lambda: (step, arguments(1)),
        parallel,
        {
            "x": "[Shard(0), Shard(0)]",
            **dict.fromkeys(("router", "experts"), "[Replicate(), Replicate()]"),
        },
        "torch.matmul(x, experts)",
        gradient=True,
        mesh=MESH,
    )


MEGATRON_GROUPS = {
    "input of a recomputed layer gathered over the wrong group": recomputed(),
    "mask of padding cut for the wrong group": padding_group(),
    "projections of a cross-attention gather over the wrong group": cross_attention(),
    "embeddings cut for the wrong group": combined_embeddings(),
    "own count of tokens overwritten by the sum": router_counts(),
    "gradients of experts left out of the norm": expert_norm(),
    "gradients of experts summed over the wrong group": expert_replicas(),
}
"""Patterns by name."""
