"""Bugs that were fixed in NVIDIA/Megatron-LM: second losses, positions, and what is counted in norms and sums."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch.distributed.device_mesh import DeviceMesh

from zoo.patterns.pattern import Pattern, Program, dist, enter, gathered, leave, reduced, scattered, weight

WIDTH, INNER, EXPERTS, CLASSES, LENGTH = 4, 3, 3, 5, 8


class LossAutoScaler(torch.autograd.Function):
    """What ``MoEAuxLossAutoScaler`` and ``MTPLossAutoScaler`` are: a second loss rides on an activation.

    The value is the activation; in the backward pass the second loss gets its scale as its gradient.
    """

    @staticmethod
    def forward(ctx: Any, activation: torch.Tensor, loss: torch.Tensor, scale: float) -> torch.Tensor:
        """The activation."""
        ctx.scale = scale
        ctx.save_for_backward(loss)
        return activation.view_as(activation)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        """The gradient, and the scale."""
        (loss,) = ctx.saved_tensors
        return gradients[0], torch.ones_like(loss) * ctx.scale, None


def riding(activation: torch.Tensor, loss: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
    """Attach a loss."""
    function: Any = LossAutoScaler
    return function.apply(activation, loss, scale)


def summed(tensor: torch.Tensor, group: Any) -> torch.Tensor:
    """The sum over a group."""
    total = tensor.detach().clone()
    dist.all_reduce(total, group=group)
    return total


def balance_scale() -> Pattern:
    """Every part of the sequence has an addend of the balance loss, and these are averaged over the parts."""

    def chosen(chances: torch.Tensor) -> torch.Tensor:
        """How many tokens of every sequence choose an expert; (sequences, tokens, experts) are the chances."""
        return F.one_hot(chances.argmax(-1), EXPERTS).to(chances.dtype).sum(1)

    def whole(x: torch.Tensor, router: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
        chances = torch.softmax(x @ router, -1)
        balance = (chances.sum(1) * chosen(chances)).sum(-1).mean() / LENGTH**2
        loss: Any = (riding(chances, balance) @ w).square().mean()
        loss.backward()
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        parts, over_sequence = mesh["cp"].size(), mesh["cp"].get_group()

        def step(x: torch.Tensor, router: Any, w: Any) -> dict[str, torch.Tensor]:
            chances = torch.softmax(x @ router, -1)
            counts = summed(chosen(chances), over_sequence)
            balance = (chances.sum(1) * counts).sum(-1).mean() / LENGTH**2
            loss: Any = (riding(chances, balance, 1 if wrong else parts) @ w).square().mean()
            loss.backward()
            for tensor in (router, w):
                dist.all_reduce(tensor.grad.div_(mesh.size()))
            return {"loss": reduced(loss.detach()) / mesh.size()}

        return step, (torch.zeros(1, LENGTH // 2, WIDTH), weight(WIDTH, EXPERTS), weight(EXPERTS, WIDTH))

    arguments = (torch.zeros(2, LENGTH, WIDTH), weight(WIDTH, EXPERTS), weight(EXPERTS, WIDTH))
    return Pattern(
        ("Megatron-LM #2217", "Megatron-LM #2237", "Megatron-LM #1652"),
        lambda: (whole, arguments),
        parallel,
        {"x": ["Shard(0)", "Shard(1)"], "router": "Replicate()", "w": "Replicate()"},
        "(chances.sum(1) * counts).sum(-1)",
        gradient=True,
        mesh={"dp": 2, "cp": 2},
    )


def token_scale() -> Pattern:
    """A mean over the own tokens is scaled by their number, although its coefficient is divided among the ranks."""
    coefficient = 0.125

    def whole(x: torch.Tensor, router: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
        logits = x @ router
        logits = riding(logits, torch.logsumexp(logits, -1).square().mean() * coefficient)
        loss: Any = (torch.softmax(logits, -1) @ w).square().sum(-1).mean()
        loss.backward()
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        parts = mesh.size()

        def step(x: torch.Tensor, router: Any, w: Any) -> dict[str, torch.Tensor]:
            logits = x @ router
            number = logits.shape[0] if wrong else logits.shape[0] * parts
            z_loss = torch.logsumexp(logits, -1).square().mean() * (coefficient / parts)
            logits = riding(logits, z_loss * number)
            loss: Any = (torch.softmax(logits, -1) @ w).square().sum()
            loss.backward()
            tokens = reduced(torch.tensor(float(x.shape[0])))
            for tensor in (router, w):
                dist.all_reduce(tensor.grad)
                tensor.grad.div_(tokens)
            return {"loss": reduced(loss.detach()) / tokens}

        return step, (torch.zeros(LENGTH // 4, WIDTH), weight(WIDTH, EXPERTS), weight(EXPERTS, WIDTH))

    arguments = (torch.zeros(LENGTH, WIDTH), weight(WIDTH, EXPERTS), weight(EXPERTS, WIDTH))
    return Pattern(
        ("Megatron-LM #5047", "Megatron-LM #1652"),
        lambda: (whole, arguments),
        parallel,
        {"x": ["Shard(0)", "Shard(0)"], "router": "Replicate()", "w": "Replicate()"},
        "logits = x @ router",
        gradient=True,
        mesh={"cp": 2, "tp": 2},
    )


def rolled_count() -> Pattern:
    """The loss of the tokens after the next is divided by the number of next tokens, of which there are more."""
    share = 0.25

    def losses(logits: torch.Tensor, labels: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        found = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
        return (found.view_as(mask) * mask).sum()

    def rolled(tensor: torch.Tensor) -> torch.Tensor:
        tensor = torch.roll(tensor, -1, dims=1)
        return torch.cat([tensor[:, :-1], torch.zeros_like(tensor[:, :1])], dim=1)

    def whole(
        x: torch.Tensor, labels: torch.Tensor, block: torch.Tensor, head: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        mask, following = torch.ones(labels.shape), rolled(torch.ones(labels.shape))
        first: Any = losses(x @ head, labels, mask) / mask.sum()
        second = losses((x @ block).tanh() @ head, rolled(labels), following) / following.sum()
        (first + share * second).backward()
        return {"loss": first}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def step(x: torch.Tensor, labels: torch.Tensor, block: Any, head: Any) -> dict[str, torch.Tensor]:
            mask, following = torch.ones(labels.shape), rolled(torch.ones(labels.shape))
            second = losses((x @ block).tanh() @ head, rolled(labels), following)
            if not wrong:
                second = second * (mask.sum() / following.sum())
            loss: Any = losses(riding(x @ head, second, share), labels, mask)
            loss.backward()
            tokens = reduced(mask.sum())
            for tensor in (block, head):
                dist.all_reduce(tensor.grad)
                tensor.grad.div_(tokens)
            return {"loss": reduced(loss.detach()) / tokens}

        rows = torch.zeros(1, LENGTH, WIDTH), torch.zeros(1, LENGTH, dtype=torch.long)
        return step, (*rows, weight(WIDTH, WIDTH), weight(WIDTH, CLASSES))

    rows = torch.zeros(2, LENGTH, WIDTH), torch.zeros(2, LENGTH, dtype=torch.long)
    arguments = (*rows, weight(WIDTH, WIDTH), weight(WIDTH, CLASSES))
    relations = {"x": "Shard(0)", "labels": "Shard(0)", "block": "Replicate()", "head": "Replicate()"}
    return Pattern(
        ("Megatron-LM #2417", "Megatron-LM #3159"),
        lambda: (whole, arguments),
        parallel,
        relations,
        "second = losses((x @ block).tanh() @ head",
        gradient=True,
        mesh={"dp": 2},
    )


def packed_positions() -> Pattern:
    """Sequences are packed one after the other, and all of them take the angles of the first one."""
    starts = (0, 4)

    def half_turned(x: torch.Tensor) -> torch.Tensor:
        first, second = x.chunk(2, dim=-1)
        return torch.cat([-second, first], dim=-1)

    def whole(x: torch.Tensor, angles: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
        query = x @ w
        turned = query * angles.cos() + half_turned(query) * angles.sin()
        loss: Any = turned.sigmoid().sum()
        loss.backward()
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        parts, rank = mesh.size(), mesh.get_local_rank()

        def own(angles: torch.Tensor, length: int, offset: int) -> torch.Tensor:
            half = length // (2 * parts)
            front, back = offset + rank * half, offset + length - (rank + 1) * half
            return torch.cat([angles[front : front + half], angles[back : back + half]])

        def step(x: torch.Tensor, angles: torch.Tensor, w: Any) -> dict[str, torch.Tensor]:
            query = x @ w
            packed = torch.cat([own(angles, 4, 0 if wrong else start) for start in starts])
            turned = query * packed.cos() + half_turned(query) * packed.sin()
            loss: Any = turned.sigmoid().sum()
            loss.backward()
            dist.all_reduce(w.grad)
            return {"loss": reduced(loss.detach())}

        return step, (torch.zeros(4, WIDTH), torch.zeros(8, WIDTH), weight(WIDTH, WIDTH))

    places = [(0, 0), (1, 0), (1, 1), (0, 1), (0, 2), (1, 2), (1, 3), (0, 3)]
    equation = ", ".join(f"x@{rank}[{row}:{row + 1}, :]" for rank, row in places)
    return Pattern(
        ("Megatron-LM #5243", "Megatron-LM #3674"),
        lambda: (whole, (torch.zeros(8, WIDTH), torch.zeros(8, WIDTH), weight(WIDTH, WIDTH))),
        parallel,
        {"x": f"concat([{equation}], axis=0)", "angles": "Replicate()", "w": "Replicate()"},
        "0 if wrong else start",
        mesh={"cp": 2},
    )


def expert_biases() -> Pattern:
    """Biases of experts are taken for replicas of the tensor parallel ranks: the norm has those of the first rank."""

    def expert(x: torch.Tensor, up: torch.Tensor, bias: torch.Tensor, chance: torch.Tensor) -> torch.Tensor:
        return (x @ up + bias).tanh() * chance[:, None]

    def whole(x: torch.Tensor, router: Any, up: Any, bias: Any) -> dict[str, torch.Tensor]:
        chances = torch.softmax(x @ router, -1)
        first, second = (expert(x, up[number], bias[number], chances[:, number]) for number in range(2))
        loss: Any = (first + second).square().mean()
        loss.backward()
        squares = [tensor.grad.square().sum() for tensor in (router, up, bias)]
        return {"loss": loss, "norm": sum(squares, torch.zeros(())).sqrt()}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        rank = mesh.get_local_rank()
        of_experts = rank if wrong else 0  # every expert is on one rank: the first of its group of one

        def step(x: torch.Tensor, router: Any, up: Any, bias: Any) -> dict[str, torch.Tensor]:
            chances = enter(torch.softmax(x @ router, -1))
            loss: Any = leave(expert(enter(x), up[0], bias[0], chances[:, rank])).square().mean()
            loss.backward()
            squares = up.grad.square().sum()
            squares = squares + router.grad.square().sum() if rank == 0 else squares
            squares = squares + bias.grad.square().sum() if of_experts == 0 else squares
            return {"loss": loss, "norm": reduced(squares).sqrt()}

        return step, (torch.zeros(LENGTH, WIDTH), weight(WIDTH, 2), weight(1, WIDTH, INNER), weight(1, INNER))

    arguments = (torch.zeros(LENGTH, WIDTH), weight(WIDTH, 2), weight(2, WIDTH, INNER), weight(2, INNER))
    return Pattern(
        ("Megatron-LM #6099",),
        lambda: (whole, arguments),
        parallel,
        {"x": "Replicate()", "router": "Replicate()", "up": "Shard(0)", "bias": "Shard(0)"},
        "squares = up.grad.square().sum()",
        gradient=True,
        mesh={"tp": 2},
    )


def scaled_accumulator() -> Pattern:
    """What is accumulated is divided by the number of ranks instead of the gradient that is added to it."""

    def whole(x: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
        total = torch.zeros(())
        for part in x:
            loss: Any = (part @ w).tanh().square().mean()
            loss.backward()
            total = total + loss.detach()
        return {"loss": total}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        ranks = mesh.size()

        def step(x: torch.Tensor, w: Any) -> dict[str, torch.Tensor]:
            total, accumulated = torch.zeros(()), torch.zeros(w.shape)
            for part in x:
                full: Any = gathered(w.detach()).requires_grad_()
                loss: Any = (part @ full).tanh().square().mean()
                loss.backward()
                (accumulated if wrong else full.grad).mul_(1 / ranks)
                accumulated.add_(scattered(full.grad))
                total = total + loss.detach()
            w.grad = accumulated
            return {"loss": reduced(total) / ranks}

        return step, (torch.zeros(2, LENGTH // 2, WIDTH), weight(WIDTH // 2, INNER))

    return Pattern(
        ("Megatron-LM #3023",),
        lambda: (whole, (torch.zeros(2, LENGTH, WIDTH), weight(WIDTH, INNER))),
        parallel,
        {"x": "Shard(1)", "w": "Shard(0)"},
        "(part @ full).tanh()",
        gradient=True,
        mesh={"dp": 2},
    )


MEGATRON_FIXES = {
    "addends of a balance loss averaged": balance_scale(),
    "mean over own tokens scaled by their number": token_scale(),
    "loss of later tokens divided by the number of next ones": rolled_count(),
    "packed sequences with the angles of the first": packed_positions(),
    "norm without the biases of other ranks' experts": expert_biases(),
    "accumulated gradient scaled instead of the new one": scaled_accumulator(),
}
"""Patterns by name."""
