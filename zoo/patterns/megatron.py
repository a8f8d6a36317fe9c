"""Bugs of Megatron-LM's losses, counts, norms of gradients and checkpoints, most of them from one long list."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch.distributed.device_mesh import DeviceMesh

from zoo.patterns.pattern import (
    Pattern,
    Program,
    dist,
    enter,
    exchange,
    gathered,
    leave,
    reduced,
    sum_gradients,
    weight,
    world,
)

LIST = "Megatron-LM #7452"
"""A list of silent errors where several ways to split a model meet."""
SAMPLES, LENGTH, ROWS, WIDTH, INNER, CLASSES, HEADS = 2, 4, 8, 4, 6, 6, 2


class Attached(torch.autograd.Function):
    """A tensor as it is, with a loss whose gradient is one: it is trained on, and not part of the value."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, loss: torch.Tensor) -> torch.Tensor:
        """The tensor."""
        ctx.save_for_backward(loss)
        return x

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        """The gradient of the tensor, and ones."""
        (loss,) = ctx.saved_tensors
        return gradients[0], torch.ones_like(loss)


def attached(x: torch.Tensor, loss: torch.Tensor) -> torch.Tensor:
    """Call it."""
    function: Any = Attached
    return function.apply(x, loss)


class VocabularyLoss(torch.autograd.Function):
    """Cross-entropy of logits that are split over the vocabulary."""

    @staticmethod
    def forward(ctx: Any, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Logits (rows, own part of the vocabulary) and labels (rows) to losses (rows)."""
        largest = logits.amax(-1)
        dist.all_reduce(largest, op=dist.ReduceOp.MAX)
        shifted = logits - largest.unsqueeze(-1)
        own = logits.shape[-1]
        start = own * dist.get_rank()
        outside = (labels < start) | (labels >= start + own)
        local = (labels - start).masked_fill(outside, 0)
        wanted = reduced(shifted.gather(-1, local.unsqueeze(-1)).squeeze(-1).masked_fill(outside, 0.0))
        total = reduced(shifted.exp().sum(-1))
        ctx.save_for_backward(shifted.exp() / total.unsqueeze(-1), local, outside)
        return total.log() - wanted

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        """Softmax, minus one at the label."""
        softmax, local, outside = ctx.saved_tensors
        hit = (~outside).to(softmax.dtype).unsqueeze(-1)
        return softmax.scatter_add(-1, local.unsqueeze(-1), -hit) * gradients[0].unsqueeze(-1), None


def token_losses(hidden: torch.Tensor, head: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The loss of every token."""
    return F.cross_entropy((hidden @ head).flatten(0, 1), labels.flatten(), reduction="none").view(labels.shape)


def clipped(squares: torch.Tensor, *tensors: Any) -> None:
    """Gradients whose squares have this sum, scaled down to a norm of a half."""
    for tensor in tensors:
        tensor.grad.mul_((0.5 / (squares.sqrt() + 1e-6)).clamp(max=1.0))


def squares_of(*parameters: tuple[Any, bool]) -> torch.Tensor:
    """The sum of the squares of gradients: a rank adds those that are said to be its own, the first adds all."""
    _, rank = world()
    total = torch.zeros(())
    for tensor, own in parameters:
        if own or rank == 0:
            total = total + tensor.grad.square().sum()
    return reduced(total)


def gathered_logits() -> Pattern:
    """Logits of the whole vocabulary go into a loss that takes them for a rank's part of it."""

    def whole(x: torch.Tensor, labels: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
        likely = F.log_softmax(x @ w.T, dim=-1)
        loss: Any = -likely.gather(-1, labels.unsqueeze(-1)).mean()
        loss.backward()
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        parts, rank = mesh.size(), mesh.get_local_rank()

        def columns(logits: torch.Tensor) -> torch.Tensor:
            return torch.cat(gathered(logits).chunk(parts), -1)

        def own(logits: torch.Tensor) -> torch.Tensor:
            return logits.chunk(parts, -1)[rank]

        def step(x: torch.Tensor, labels: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
            cross_entropy: Any = VocabularyLoss
            logits = enter(x) @ w.T
            if wrong:
                logits = exchange(logits, columns, own)
            loss = cross_entropy.apply(logits, labels).mean()
            loss.backward()
            return {"loss": loss}

        return step, (*rows, weight(CLASSES // parts, WIDTH))

    rows = torch.zeros(ROWS, WIDTH), torch.zeros(ROWS, dtype=torch.long)
    relations = {"x": "Replicate()", "labels": "Replicate()", "w": "Shard(0)"}
    arguments = (*rows, weight(CLASSES, WIDTH))
    return Pattern((LIST,), lambda: (whole, arguments), parallel, relations, "shifted.exp().sum(-1)")


def predicted_tokens() -> Pattern:
    """The loss of later tokens is scaled by a rank's own counts, and all gradients are divided by that of all ranks."""

    def rolled(tokens: torch.Tensor) -> torch.Tensor:
        return F.pad(tokens[:, 1:], (0, 1))

    def step(
        x: torch.Tensor, labels: torch.Tensor, mask: torch.Tensor, w: Any, further: Any, head: Any, wrong: bool = False
    ) -> dict[str, torch.Tensor]:
        hidden = (x @ w).tanh()
        later = rolled(mask)
        losses = token_losses((hidden @ further).tanh(), head, rolled(labels)) * later
        count, left = mask.sum(), later.sum()
        ratio = count / left.clamp(min=1) if wrong else reduced(count) / reduced(left).clamp(min=1)
        hidden = attached(hidden, 0.25 * losses * ratio)
        total: Any = (token_losses(hidden, head, labels) * mask).sum()
        total.backward()
        if world()[0] > 1:
            sum_gradients(w, further, head)
        for tensor in (w, further, head):
            tensor.grad.div_(reduced(count))
        return {"loss": reduced(total.detach()) / reduced(count)}

    def arguments(parts: int) -> tuple[torch.Tensor, ...]:
        tokens = torch.zeros(SAMPLES // parts, LENGTH)
        return (
            torch.zeros(*tokens.shape, WIDTH),
            tokens.long(),
            tokens,
            weight(WIDTH, INNER),
            weight(INNER, INNER),
            weight(INNER, CLASSES),
        )

    return Pattern(
        (LIST, "Megatron-LM #3159", "Megatron-LM #7498", "Megatron-LM #4896"),
        lambda: (step, arguments(1)),
        lambda _, wrong: (step, (*arguments(2), wrong)),
        {
            **dict.fromkeys(("x", "labels", "mask"), "Shard(0)"),
            **dict.fromkeys(("w", "further", "head"), "Replicate()"),
        },
        "count / left.clamp(min=1)",
        gradient=True,
    )


def sinks() -> Pattern:
    """Every head has a sink, and the norm of all gradients counts those of the first rank's heads only."""
    size = 2

    def attention(x: torch.Tensor, query: torch.Tensor, key: torch.Tensor, sink: torch.Tensor) -> torch.Tensor:
        q, k = ((enter(x) @ w).view(ROWS, -1, size).transpose(0, 1) for w in (query, key))
        scores = q @ k.transpose(-1, -2) / math.sqrt(size)
        ends = sink.view(-1, 1, 1).expand(-1, ROWS, 1)
        weights = torch.softmax(torch.cat([scores, ends], -1), -1)[..., :-1]
        return (weights @ k).transpose(0, 1).flatten(1)

    def step(
        x: torch.Tensor, query: Any, key: Any, sink: Any, down: Any, bias: Any, wrong: bool = False
    ) -> dict[str, torch.Tensor]:
        loss: Any = (leave(attention(x, query, key, sink) @ down) + bias).square().sum()
        loss.backward()
        squares = squares_of((query, True), (key, True), (down, True), (bias, False), (sink, not wrong))
        clipped(squares, query, key, sink, down, bias)
        return {"loss": loss}

    def arguments(parts: int) -> tuple[torch.Tensor, ...]:
        heads = HEADS // parts
        columns = weight(WIDTH, heads * size), weight(WIDTH, heads * size)
        return torch.zeros(ROWS, WIDTH), *columns, weight(heads), weight(heads * size, WIDTH), weight(WIDTH)

    return Pattern(
        (LIST, "Megatron-LM #7530"),
        lambda: (step, arguments(1)),
        lambda _, wrong: (step, (*arguments(2), wrong)),
        {
            **dict.fromkeys(("x", "bias"), "Replicate()"),
            **dict.fromkeys(("query", "key"), "Shard(1)"),
            **dict.fromkeys(("sink", "down"), "Shard(0)"),
        },
        "tensor.grad.square().sum()",
        gradient=True,
    )


def context_counts() -> Pattern:
    """The loss of a part of the sequence is divided by that part's own number of tokens."""

    def whole(x: torch.Tensor, labels: torch.Tensor, mask: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
        losses = (token_losses(x, w, labels) * mask).sum(1) / mask.sum(1).clamp(min=1)
        loss: Any = losses.mean()
        loss.backward()
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        group: Any = mesh.get_group("cp")

        def step(x: torch.Tensor, labels: torch.Tensor, mask: torch.Tensor, w: Any) -> dict[str, torch.Tensor]:
            count = mask.sum()
            total: Any = (token_losses(x, w, labels) * mask).sum()
            if wrong:
                loss = total / count.clamp(min=1)
            else:
                dist.all_reduce(count, group=group)
                loss = total / count.clamp(min=1) * group.size()
            loss.backward()
            sum_gradients(w)
            w.grad.div_(mesh.size())
            return {"loss": reduced(loss.detach()) / mesh.size()}

        tokens = torch.zeros(1, LENGTH // 2)
        return step, (torch.zeros(*tokens.shape, WIDTH), tokens.long(), tokens, weight(WIDTH, CLASSES))

    tokens = torch.zeros(SAMPLES, LENGTH)
    arguments = (torch.zeros(*tokens.shape, WIDTH), tokens.long(), tokens, weight(WIDTH, CLASSES))
    return Pattern(
        (LIST, "Megatron-LM #7513", "Megatron-LM #673", "Megatron-LM #906"),
        lambda: (whole, arguments),
        parallel,
        {**dict.fromkeys(("x", "labels", "mask"), "[Shard(0), Shard(1)]"), "w": "[Replicate(), Replicate()]"},
        "total / count.clamp(min=1)",
        mesh={"dp": 2, "cp": 2},
    )


def gated_norm() -> Pattern:
    """All heads share the weight of a gated norm, and a rank's gradient of it is that of its own heads."""

    def step(
        x: torch.Tensor, value: Any, gate: Any, scale: Any, down: Any, wrong: bool = False
    ) -> dict[str, torch.Tensor]:
        heads, gates = ((enter(x) @ w).view(ROWS, -1, INNER) for w in (value, gate))
        normed = heads * torch.rsqrt(heads.square().mean(-1, keepdim=True) + 1e-5)
        y = normed * scale * F.silu(gates)
        loss: Any = leave(y.flatten(1) @ down).square().sum()
        loss.backward()
        if world()[0] > 1 and not wrong:
            sum_gradients(scale)
        return {"loss": loss}

    def arguments(parts: int) -> tuple[torch.Tensor, ...]:
        inner = HEADS * INNER // parts
        return torch.zeros(ROWS, WIDTH), weight(WIDTH, inner), weight(WIDTH, inner), weight(INNER), weight(inner, WIDTH)

    return Pattern(
        (LIST,),
        lambda: (step, arguments(1)),
        lambda _, wrong: (step, (*arguments(2), wrong)),
        {
            **dict.fromkeys(("x", "scale"), "Replicate()"),
            **dict.fromkeys(("value", "gate"), "Shard(1)"),
            "down": "Shard(0)",
        },
        "normed * scale",
        gradient=True,
    )


def restored_stages() -> Pattern:
    """A stage of a pipeline reads its layers from a checkpoint by numbers that begin at zero on every stage."""
    layers, stages = 4, 2

    def run(x: torch.Tensor, checkpoint: torch.Tensor, numbers: range) -> torch.Tensor:
        for number in numbers:
            x = x + (x @ checkpoint[number]).relu()
        return x

    def whole(x: torch.Tensor, checkpoint: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"y": run(x, checkpoint, range(layers))}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        own, stage = layers // stages, mesh.get_local_rank()
        first = 0 if wrong else stage * own

        def step(x: torch.Tensor, checkpoint: torch.Tensor) -> dict[str, torch.Tensor]:
            if stage:
                x = torch.empty_like(x)
                dist.recv(x, stage - 1)
            y = run(x, checkpoint, range(first, first + own))
            if stage + 1 < stages:
                dist.send(y, stage + 1)
                y = torch.zeros_like(y)
            return {"y": reduced(y)}

        return step, arguments

    arguments = torch.zeros(ROWS, WIDTH), torch.zeros(layers, WIDTH, WIDTH)
    relations = {"x": "Replicate()", "checkpoint": "Replicate()"}
    return Pattern((LIST,), lambda: (whole, arguments), parallel, relations, "checkpoint[number]")


MEGATRON = {
    "gathered logits in a loss over parts of the vocabulary": gathered_logits(),
    "loss of later tokens scaled by a rank's own counts": predicted_tokens(),
    "gradients of sinks left out of the norm": sinks(),
    "loss divided by the tokens of a part of the sequence": context_counts(),
    "gradient of a gated norm not summed": gated_norm(),
    "layers of a checkpoint numbered by stage": restored_stages(),
}
"""Patterns by name."""
