"""Bugs where several ways to split a program meet: pipelines, context, experts and replicas of heads."""

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
    scattered,
    sum_gradients,
    weight,
    world,
)

ROWS, WIDTH, INNER, CLASSES, HEADS = 8, 4, 6, 5, 2


def masked_context() -> Pattern:
    """Every rank masks its queries as if they were the first ones."""

    def step(x: torch.Tensor, wq: Any, wk: Any, wrong: bool = False) -> dict[str, torch.Tensor]:
        parts, rank = world()
        rows = x.shape[0]
        keys: Any = x @ wk
        keys = exchange(keys, gathered, scattered) if parts > 1 else keys
        scores = (x @ wq) @ keys.T / math.sqrt(WIDTH)
        own = torch.arange(rows) + (0 if wrong else rank * rows)
        later = torch.arange(rows * parts) > own[:, None]
        loss: Any = (torch.softmax(scores.masked_fill(later, float("-inf")), -1) @ keys).square().mean() / parts
        loss.backward()
        if parts > 1:
            sum_gradients(wq, wk)
        return {"loss": reduced(loss.detach())}

    def arguments(parts: int) -> tuple[torch.Tensor, ...]:
        return torch.zeros(ROWS // parts, WIDTH), weight(WIDTH, WIDTH), weight(WIDTH, WIDTH)

    return Pattern(
        ("Megatron-LM #1612", "NeMo Automodel #1482"),
        lambda: (step, arguments(1)),
        lambda _, wrong: (step, (*arguments(2), wrong)),
        {"x": "Shard(0)", "wq": "Replicate()", "wk": "Replicate()"},
        "torch.arange(rows * parts) > own",
    )


def shifted_labels() -> Pattern:
    """Labels are the next tokens of a rank's own part, so that the last of each part has none."""

    def whole(x: torch.Tensor, tokens: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
        loss: Any = F.cross_entropy(x @ w, torch.roll(tokens, -1), reduction="sum") / ROWS
        loss.backward()
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        rows, rank = ROWS // 2, mesh.get_local_rank()

        def step(x: torch.Tensor, tokens: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
            if wrong:
                labels = torch.roll(tokens, -1)
            else:
                labels = torch.roll(gathered(tokens), -1)[rank * rows : (rank + 1) * rows]
            loss: Any = F.cross_entropy(x @ w, labels, reduction="sum") / ROWS
            loss.backward()
            sum_gradients(w)
            return {"loss": reduced(loss.detach())}

        return step, (torch.zeros(rows, WIDTH), torch.zeros(rows, dtype=torch.long), weight(WIDTH, CLASSES))

    arguments = (torch.zeros(ROWS, WIDTH), torch.zeros(ROWS, dtype=torch.long), weight(WIDTH, CLASSES))
    relations = {"x": "Shard(0)", "tokens": "Shard(0)", "w": "Replicate()"}
    return Pattern(("bionemo-recipes #1449",), lambda: (whole, arguments), parallel, relations, "torch.roll(tokens")


def shared_heads() -> Pattern:
    """Heads of queries are split and all read one head of keys, whose gradient is an addend on every rank."""

    def step(x: torch.Tensor, query: Any, key: Any, wrong: bool = False) -> dict[str, torch.Tensor]:
        parts, _ = world()
        heads, shared = (x @ query).view(ROWS, -1, WIDTH).transpose(0, 1), x @ key
        loss: Any = (torch.softmax(heads @ shared.T, -1) @ shared).square().sum()
        loss.backward()
        if parts > 1 and not wrong:
            sum_gradients(key)
        return {"loss": reduced(loss.detach())}

    def arguments(parts: int) -> tuple[torch.Tensor, ...]:
        return torch.zeros(ROWS, WIDTH), weight(WIDTH, HEADS * WIDTH // parts), weight(WIDTH, WIDTH)

    return Pattern(
        ("bigcode Megatron-LM #37",),
        lambda: (step, arguments(1)),
        lambda _, wrong: (step, (*arguments(2), wrong)),
        {"x": "Replicate()", "query": "Shard(1)", "key": "Replicate()"},
        "heads @ shared.T",
        gradient=True,
    )


def low_rank() -> Pattern:
    """The first factor of an adapter is on every rank, before a factor that is split: its gradient is an addend."""

    def step(x: torch.Tensor, w: Any, a: Any, b: Any, wrong: bool = False) -> dict[str, torch.Tensor]:
        narrow = x @ a if wrong else enter(x @ a)
        loss: Any = (enter(x) @ w + narrow @ b).tanh().square().sum()
        loss.backward()
        return {"loss": reduced(loss.detach())}

    def arguments(parts: int) -> tuple[torch.Tensor, ...]:
        return torch.zeros(ROWS, WIDTH), weight(WIDTH, INNER // parts), weight(WIDTH, 2), weight(2, INNER // parts)

    return Pattern(
        ("mcore-bridge #173",),
        lambda: (step, arguments(1)),
        lambda _, wrong: (step, (*arguments(2), wrong)),
        {"x": "Replicate()", "w": "Shard(1)", "a": "Replicate()", "b": "Shard(1)"},
        "narrow",
        gradient=True,
    )


def balance() -> Pattern:
    """How often experts are chosen is counted by every rank for itself: products of means are no means of products."""

    def losses(x: torch.Tensor, router: torch.Tensor, w: torch.Tensor, local: bool) -> Any:
        chances = torch.softmax(x @ router, -1)
        chosen = F.one_hot(chances.argmax(-1), CLASSES).to(x.dtype).mean(0)
        chosen = chosen if local else reduced(chosen) / world()[0]
        return ((chances @ w).square().mean() + (chosen * chances.mean(0)).sum()) / world()[0]

    def step(x: torch.Tensor, router: Any, w: Any, wrong: bool = False) -> dict[str, torch.Tensor]:
        loss = losses(x, router, w, wrong)
        loss.backward()
        if world()[0] > 1:
            sum_gradients(router, w)
        return {"loss": reduced(loss.detach())}

    def arguments(parts: int) -> tuple[torch.Tensor, ...]:
        return torch.zeros(ROWS // parts, WIDTH), weight(WIDTH, CLASSES), weight(CLASSES, WIDTH)

    return Pattern(
        ("torchtitan #3000",),
        lambda: (step, arguments(1)),
        lambda _, wrong: (step, (*arguments(2), wrong)),
        {"x": "Shard(0)", "router": "Replicate()", "w": "Replicate()"},
        "chosen * chances.mean(0)",
    )


def expert_gradients() -> Pattern:
    """An expert has seen the tokens of all ranks: its gradient is divided by their number all the same."""

    def whole(x: torch.Tensor, up: torch.Tensor, norm: torch.Tensor) -> dict[str, torch.Tensor]:
        rows = (x * norm).view(2, 2, -1, WIDTH).transpose(0, 1).flatten(1, 2)  # (experts, tokens of all, width)
        loss: Any = torch.bmm(rows, up).tanh().square().sum() / 2
        loss.backward()
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def swapped(x: torch.Tensor) -> torch.Tensor:
            found = torch.empty_like(x)
            dist.all_to_all_single(found, x.contiguous())
            return found

        def step(x: torch.Tensor, up: Any, norm: Any) -> dict[str, torch.Tensor]:
            rows = exchange((x * norm).view(2, -1, WIDTH), swapped, swapped).flatten(0, 1)
            loss: Any = torch.bmm(rows[None], up).tanh().square().sum()
            loss.backward()
            sum_gradients(norm)
            norm.grad.div_(2)
            if not wrong:
                up.grad.div_(2)
            return {"loss": reduced(loss.detach()) / 2}

        return step, (torch.zeros(ROWS // 2, WIDTH), weight(1, WIDTH, INNER), weight(WIDTH))

    arguments = (torch.zeros(ROWS, WIDTH), weight(2, WIDTH, INNER), weight(WIDTH))
    relations = {"x": "Shard(0)", "up": "Shard(0)", "norm": "Replicate()"}
    references = ("Megatron-LM #5956", "megablocks #20", "DeepSpeed #5259")
    return Pattern(references, lambda: (whole, arguments), parallel, relations, "torch.bmm", gradient=True)


def reduced_again() -> Pattern:
    """The gradients of all micro-batches so far are summed over the ranks after every one of them."""

    def whole(x: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
        loss: Any = (x @ w).tanh().square().sum()
        loss.backward()
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def step(x: torch.Tensor, w: Any) -> dict[str, torch.Tensor]:
            total = torch.zeros(())
            for number, part in enumerate(x.chunk(2)):
                loss: Any = (part @ w).tanh().square().sum()
                loss.backward()
                total = total + loss.detach()
                if wrong or number:
                    sum_gradients(w)
            return {"loss": reduced(total)}

        return step, (torch.zeros(ROWS // 2, WIDTH), weight(WIDTH, INNER))

    arguments = (torch.zeros(ROWS, WIDTH), weight(WIDTH, INNER))
    relations = {"x": "Shard(0)", "w": "Replicate()"}
    references = ("InfiniTrain #213", "torchtitan #292")
    return Pattern(references, lambda: (whole, arguments), parallel, relations, "dist.all_reduce(tensor.grad)", True)


def local_clip() -> Pattern:
    """Gradients that are split are clipped by the norm of a rank's own part."""

    def whole(x: torch.Tensor, w: Any) -> dict[str, torch.Tensor]:
        loss: Any = (x @ w).square().sum()
        loss.backward()
        w.grad.mul_((0.5 / (w.grad.square().sum().sqrt() + 1e-6)).clamp(max=1.0))
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def step(x: torch.Tensor, w: Any) -> dict[str, torch.Tensor]:
            loss: Any = leave(enter(x) @ w).square().sum()
            loss.backward()
            squares = w.grad.square().sum()
            squares = squares if wrong else reduced(squares)
            w.grad.mul_((0.5 / (squares.sqrt() + 1e-6)).clamp(max=1.0))
            return {"loss": loss.detach()}

        return step, (torch.zeros(ROWS, WIDTH // 2), weight(WIDTH // 2, INNER))

    arguments = (torch.zeros(ROWS, WIDTH), weight(WIDTH, INNER))
    relations = {"x": "Shard(1)", "w": "Shard(0)"}
    references = ("Megatron-LM #5916", "torchtune #2641")
    return Pattern(references, lambda: (whole, arguments), parallel, relations, "w.grad.square().sum()", gradient=True)


def staged_counts() -> Pattern:
    """The last stage divides the loss of every micro-batch by that one's own number of labels."""

    def losses(hidden: torch.Tensor, labels: torch.Tensor, head: torch.Tensor) -> Any:
        return F.cross_entropy(hidden.tanh() @ head, labels, reduction="sum", ignore_index=-100)

    def whole(x: torch.Tensor, labels: torch.Tensor, w: torch.Tensor, head: torch.Tensor) -> dict[str, torch.Tensor]:
        loss = losses(x @ w, labels, head) / (labels != -100).sum()
        loss.backward()
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def first(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
            for part in x.chunk(2):
                hidden: Any = part @ w
                dist.send(hidden.detach(), 1)
                gradient = torch.empty_like(hidden)
                dist.recv(gradient, 1)
                hidden.backward(gradient)
            return torch.zeros(())

        def last(labels: torch.Tensor, head: torch.Tensor) -> torch.Tensor:
            total = torch.zeros(())
            for wanted in labels.chunk(2):
                hidden = torch.empty(ROWS // 2, INNER)
                dist.recv(hidden, 0)
                count = 2 * (wanted != -100).sum() if wrong else (labels != -100).sum()
                loss = losses(hidden.requires_grad_(), wanted, head) / count
                loss.backward()
                dist.send(hidden.grad, 0)
                total = total + loss.detach()
            return total

        def step(x: torch.Tensor, labels: torch.Tensor, w: torch.Tensor, head: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"loss": reduced(last(labels, head) if mesh.get_local_rank() else first(x, w))}

        return step, (*rows, weight(WIDTH, INNER), weight(INNER, CLASSES))

    rows = torch.zeros(ROWS, WIDTH), torch.zeros(ROWS, dtype=torch.long)
    arguments = (*rows, weight(WIDTH, INNER), weight(INNER, CLASSES))
    relations = {"x": "Replicate()", "labels": "Replicate()", "w": "Replicate()", "head": "Replicate()"}
    references = ("transformers #34191", "transformers #35651")
    return Pattern(references, lambda: (whole, arguments), parallel, relations, "/ count")


COMBINED = {
    "mask counted from the own part of the sequence": masked_context(),
    "labels shifted within a part of the sequence": shifted_labels(),
    "gradient of shared heads not summed": shared_heads(),
    "gradient of an adapter's first factor not summed": low_rank(),
    "experts counted by every rank": balance(),
    "gradients of experts not divided": expert_gradients(),
    "gradients summed after every micro-batch": reduced_again(),
    "split gradients clipped by their own norm": local_clip(),
    "micro-batches of a pipeline divided by their own counts": staged_counts(),
}
"""Patterns by name."""
