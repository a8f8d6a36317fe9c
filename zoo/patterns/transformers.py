"""Bugs that were fixed in huggingface/transformers: expert parallelism, and what its trainer divides losses by."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch.distributed.device_mesh import DeviceMesh

from zoo.patterns.pattern import Pattern, Program, dist, enter, exchange, keep, leave, reduced, sum_gradients, weight

ROWS, WIDTH, INNER, CLASSES, IGNORED = 8, 4, 3, 5, -100
TOKENS, EXPERTS, CHOSEN, RANKS = 3, 4, 2, 2
OWN = EXPERTS // RANKS
EXPERT_SHARDS = {"x": "Replicate()", "router": "Replicate()", "up": "Shard(0)", "down": "Shard(0)"}


def looped(
    x: torch.Tensor, indices: torch.Tensor, scores: torch.Tensor, up: torch.Tensor, down: torch.Tensor
) -> torch.Tensor:
    """The eager experts: one after the other, each on the tokens that chose it; nobody has the number of experts."""
    total = torch.zeros_like(x)
    for number in range(up.shape[0]):
        chosen = (scores * (indices == number)).sum(-1, keepdim=True)
        total = total + F.silu(x @ up[number]) @ down[number] * chosen
    return total


def batched(
    x: torch.Tensor, indices: torch.Tensor, scores: torch.Tensor, up: torch.Tensor, down: torch.Tensor
) -> torch.Tensor:
    """The experts of ``batched_mm``: the weights of the chosen expert are looked up for every token and slot."""
    rows, numbers = x.repeat_interleave(CHOSEN, dim=0), indices.reshape(-1).clamp(0, up.shape[0] - 1)
    inner = F.silu(torch.bmm(rows[:, None], up[numbers]))
    slots = torch.bmm(inner, down[numbers])[:, 0] * scores.reshape(-1, 1)
    return slots.view(-1, CHOSEN, x.shape[-1]).sum(1)


def own_numbers(indices: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Numbers among the own experts; slots whose expert another rank has get the number after the last one."""
    return torch.fmod(indices, OWN).masked_fill(others, OWN)


def expert_weights(number: int, gradient: bool = True) -> tuple[torch.Tensor, ...]:
    """Tokens, a router, and the two weights of so many experts."""
    tensors = (torch.zeros(WIDTH, EXPERTS), torch.zeros(number, WIDTH, INNER), torch.zeros(number, INNER, WIDTH))
    return torch.zeros(TOKENS, WIDTH), *(tensor.requires_grad_(gradient) for tensor in tensors)


def router_scores() -> Pattern:
    """Every rank has the gradient of the scores of its own experts, and nobody adds them up for the router."""

    def whole(x: torch.Tensor, router: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> dict[str, torch.Tensor]:
        scores, indices = torch.softmax(x @ router, -1).topk(CHOSEN, dim=-1)
        loss: Any = looped(x, indices, scores, up, down).square().sum()
        loss.backward()
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        rank = mesh.get_local_rank()

        def step(
            x: torch.Tensor, router: torch.Tensor, up: torch.Tensor, down: torch.Tensor
        ) -> dict[str, torch.Tensor]:
            scores, indices = torch.softmax(x @ router, -1).topk(CHOSEN, dim=-1)
            if not wrong:
                scores = enter(scores)
            others = (indices // OWN) != rank
            weights = enter(scores.masked_fill(others, 0.0))
            loss: Any = leave(looped(enter(x), own_numbers(indices, others), weights, up, down)).square().sum()
            loss.backward()
            return {"loss": loss}

        return step, expert_weights(OWN)

    return Pattern(
        ("transformers #48205",),
        lambda: (whole, expert_weights(EXPERTS)),
        parallel,
        EXPERT_SHARDS,
        "torch.softmax(x @ router, -1)",
        gradient=True,
        mesh={"tp": RANKS},
    )


def sentinel_slots() -> Pattern:
    """A slot whose expert is elsewhere has weight zero, and a gradient for that weight all the same."""

    def whole(x: torch.Tensor, router: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> dict[str, torch.Tensor]:
        scores, indices = torch.softmax(x @ router, -1).topk(CHOSEN, dim=-1)
        loss: Any = batched(x, indices, scores, up, down).square().sum()
        loss.backward()
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        rank = mesh.get_local_rank()

        def step(
            x: torch.Tensor, router: torch.Tensor, up: torch.Tensor, down: torch.Tensor
        ) -> dict[str, torch.Tensor]:
            scores, indices = torch.softmax(x @ router, -1).topk(CHOSEN, dim=-1)
            others = (indices // OWN) != rank
            weights, indices = enter(enter(scores).masked_fill(others, 0.0)), own_numbers(indices, others)
            if not wrong:
                weights = weights.masked_fill(indices >= OWN, 0.0)
            loss: Any = leave(batched(enter(x), indices, weights, up, down)).square().sum()
            loss.backward()
            return {"loss": loss}

        return step, expert_weights(OWN)

    return Pattern(
        ("transformers #48687", "transformers #48689"),
        lambda: (whole, expert_weights(EXPERTS)),
        parallel,
        EXPERT_SHARDS,
        "(indices // OWN) != rank",
        gradient=True,
        mesh={"tp": RANKS},
    )


def scattered_scores() -> Pattern:
    """Scores are laid out by expert while the chosen experts are laid out by slot, and both are paired in order."""

    def whole(x: torch.Tensor, router: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> dict[str, torch.Tensor]:
        scores, indices = torch.softmax(x @ router, -1).topk(CHOSEN, dim=-1)
        return {"output": batched(x, indices, scores, up, down)}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        rank = mesh.get_local_rank()
        own = slice(OWN * rank, OWN * (rank + 1))

        def step(
            x: torch.Tensor, router: torch.Tensor, up: torch.Tensor, down: torch.Tensor
        ) -> dict[str, torch.Tensor]:
            scores, indices = torch.softmax(x @ router, -1).topk(CHOSEN, dim=-1)
            others = (indices // OWN) != rank
            if wrong:
                scores = x.new_zeros(TOKENS, EXPERTS).scatter(1, indices, scores)[:, own]
            else:
                scores = scores.masked_fill(others, 0.0)
            return {"output": reduced(batched(x, own_numbers(indices, others), scores, up, down))}

        return step, expert_weights(OWN, False)

    return Pattern(
        ("transformers #45473",),
        lambda: (whole, expert_weights(EXPERTS, False)),
        parallel,
        EXPERT_SHARDS,
        "(indices // OWN) != rank",
        mesh={"tp": RANKS},
    )


def filled_with_zero() -> Pattern:
    """Slots whose expert is elsewhere get number 0, which is an expert that the rank has."""

    def by_expert(x: torch.Tensor, router: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scores, indices = torch.softmax(x @ router, -1).topk(CHOSEN, dim=-1)
        return x.new_zeros(TOKENS, EXPERTS).scatter(1, indices, scores), indices

    def whole(x: torch.Tensor, router: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> dict[str, torch.Tensor]:
        scores, indices = by_expert(x, router)
        slots, total = F.one_hot(indices, EXPERTS + 1), torch.zeros_like(x)
        for number in range(EXPERTS):
            times = slots[..., number].sum(-1) * scores[:, number]
            total = total + F.silu(x @ up[number]) @ down[number] * times[:, None]
        return {"output": total}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        rank = mesh.get_local_rank()

        def numbered(indices: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
            local = torch.fmod(indices.masked_fill(others, -1), OWN)
            return local.masked_fill(local == -1, OWN)

        def step(
            x: torch.Tensor, router: torch.Tensor, up: torch.Tensor, down: torch.Tensor
        ) -> dict[str, torch.Tensor]:
            scores, indices = by_expert(x, router)
            own, others = scores[:, OWN * rank : OWN * (rank + 1)], (indices // OWN) != rank
            local = indices.masked_fill(others, 0) % OWN if wrong else numbered(indices, others)
            slots, total = F.one_hot(local, OWN + 1), torch.zeros_like(x)
            for number in range(OWN):
                times = slots[..., number].sum(-1) * own[:, number]
                total = total + F.silu(x @ up[number]) @ down[number] * times[:, None]
            return {"output": reduced(total)}

        return step, expert_weights(OWN, False)

    return Pattern(
        ("transformers #40545",),
        lambda: (whole, expert_weights(EXPERTS, False)),
        parallel,
        EXPERT_SHARDS,
        "slots[..., number].sum(-1) * own",
        mesh={"tp": RANKS},
    )


def batch(parts: int = 1) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Rows and labels of one of so many ranks, and a weight."""
    return (
        torch.zeros(ROWS // parts, WIDTH),
        torch.zeros(ROWS // parts, dtype=torch.long),
        weight(WIDTH, CLASSES),
    )


SPLIT = {"x": "Shard(0)", "labels": "Shard(0)", "w": "Replicate()"}


def summed_loss(x: torch.Tensor, labels: torch.Tensor, w: torch.Tensor) -> Any:
    """Cross-entropy of the rows that have a label."""
    return F.cross_entropy(x @ w, labels, reduction="sum", ignore_index=IGNORED)


def labelled(labels: torch.Tensor) -> torch.Tensor:
    """How many rows have a label."""
    return (labels != IGNORED).sum()


def _by_count(x: torch.Tensor, labels: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
    loss = summed_loss(x, labels, w) / labelled(labels)
    loss.backward()
    return {"loss": loss}


def averaged(*tensors: Any) -> None:
    """What DistributedDataParallel does with gradients."""
    sum_gradients(*tensors)
    for tensor in tensors:
        tensor.grad.div_(dist.get_world_size())


def label_smoother() -> Pattern:
    """Label smoothing divides by the labels of a micro-batch, although the trainer counts on those of the batch."""
    smoothing = 0.125

    def smoothed(x: torch.Tensor, labels: torch.Tensor, w: torch.Tensor, items: torch.Tensor | None) -> Any:
        likely = -F.log_softmax(x @ w, dim=-1)
        ignored = labels.eq(IGNORED)[:, None]
        wanted = likely.gather(-1, labels.clamp(min=0)[:, None]).masked_fill(ignored, 0.0)
        every = likely.sum(-1, keepdim=True).masked_fill(ignored, 0.0)
        count = labelled(labels) if items is None else items
        return (1 - smoothing) * (wanted.sum() / count) + smoothing * (every.sum() / (count * CLASSES))

    def whole(x: torch.Tensor, labels: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
        loss = smoothed(x, labels, w, None)
        loss.backward()
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def step(x: torch.Tensor, labels: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
            count, total = reduced(labelled(labels)), torch.zeros(())
            for part, wanted in zip(x.chunk(2), labels.chunk(2), strict=True):
                loss = smoothed(part, wanted, w, None if wrong else count) * mesh.size()
                loss.backward()
                total = total + loss.detach()
            averaged(w)
            return {"loss": reduced(total) / mesh.size()}

        return step, batch(RANKS)

    references = ("transformers #46731", "transformers #47261")
    return Pattern(references, lambda: (whole, batch()), parallel, SPLIT, "wanted.sum() / count", mesh={"dp": RANKS})


def replicas_averaged() -> Pattern:
    """Every replica divides by the labels of all of them, and then the mean over the replicas is taken."""

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def step(x: torch.Tensor, labels: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
            items = reduced(labelled(labels))
            loss = summed_loss(x, labels, w) / items
            if not wrong:
                loss = loss * mesh.size()
            losses: Any = exchange(loss, reduced, keep) / mesh.size()
            losses.backward()
            sum_gradients(w)
            return {"loss": losses}

        return step, batch(RANKS)

    references = ("transformers #37474", "transformers #40799")
    return Pattern(
        references,
        lambda: (_by_count, batch()),
        parallel,
        SPLIT,
        "exchange(loss, reduced, keep) / mesh.size()",
        mesh={"dp": RANKS},
    )


def scaled_late() -> Pattern:
    """The loss of a micro-batch is divided by the number of micro-batches after its backward pass."""
    steps = 2

    def whole(x: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
        loss: Any = (x @ w).tanh().square().mean()
        loss.backward()
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def step(x: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
            total = torch.zeros(())
            for part in x.chunk(steps):
                loss: Any = (part @ w).tanh().square().mean()
                if not wrong:
                    loss = loss / steps
                loss.backward()
                total = total + (loss.detach() / steps if wrong else loss.detach())
            averaged(w)
            return {"loss": reduced(total) / mesh.size()}

        return step, (torch.zeros(ROWS // RANKS, WIDTH), weight(WIDTH, CLASSES))

    arguments = (torch.zeros(ROWS, WIDTH), weight(WIDTH, CLASSES))
    relations = {"x": "Shard(0)", "w": "Replicate()"}
    return Pattern(
        ("transformers #35207",),
        lambda: (whole, arguments),
        parallel,
        relations,
        ".square().mean()",
        gradient=True,
        mesh={"dp": RANKS},
    )


def border_labels() -> Pattern:
    """Labels are shifted within a part of the sequence: the last token of each part has none, and is not counted."""

    def shifted(labels: torch.Tensor) -> torch.Tensor:
        return F.pad(labels, (0, 1), value=IGNORED)[1:]

    def whole(x: torch.Tensor, labels: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
        return _by_count(x, shifted(labels), w)

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        rows, rank = ROWS // RANKS, mesh.get_local_rank()
        own = slice(rank * rows, (rank + 1) * rows)

        def step(x: torch.Tensor, labels: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
            wanted = shifted(labels[own]) if wrong else shifted(labels)[own]
            loss = summed_loss(x, wanted, w) / reduced(labelled(wanted))
            loss.backward()
            sum_gradients(w)
            return {"loss": reduced(loss.detach())}

        return step, (torch.zeros(rows, WIDTH), torch.zeros(ROWS, dtype=torch.long), weight(WIDTH, CLASSES))

    return Pattern(
        ("transformers #36607",),
        lambda: (whole, batch()),
        parallel,
        {**SPLIT, "labels": "Replicate()"},
        "reduced(labelled(wanted))",
        mesh={"sp": RANKS},
    )


def all_processes() -> Pattern:
    """The loss is multiplied by the number of all processes, although tensor parallel ranks share a batch."""

    def losses(x: torch.Tensor, labels: torch.Tensor, inner: torch.Tensor) -> Any:
        return F.cross_entropy(inner, labels, reduction="sum", ignore_index=IGNORED)

    def whole(x: torch.Tensor, labels: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> dict[str, torch.Tensor]:
        loss = losses(x, labels, (x @ up).relu() @ down) / labelled(labels)
        loss.backward()
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        over_batch, over_width = mesh["dp"].get_group(), mesh["tp"].get_group()
        replicas = mesh["dp"].size()

        def summed(tensor: torch.Tensor, group: Any) -> torch.Tensor:
            total = tensor.clone()
            dist.all_reduce(total, group=group)
            return total

        def step(x: torch.Tensor, labels: torch.Tensor, up: Any, down: Any) -> dict[str, torch.Tensor]:
            inner = (x @ up).relu() @ down
            logits = exchange(inner, partial(summed, group=over_width), keep)
            loss = losses(x, labels, logits) / summed(labelled(labels), over_batch)
            loss = loss * (mesh.size() if wrong else replicas)
            loss.backward()
            for tensor in (up, down):
                dist.all_reduce(tensor.grad, op=dist.ReduceOp.AVG, group=over_batch)
            return {"loss": summed(loss.detach(), over_batch) / replicas}

        own = (torch.zeros(ROWS // 2, WIDTH), torch.zeros(ROWS // 2, dtype=torch.long))
        return step, (*own, weight(WIDTH, INNER), weight(INNER, CLASSES))

    arguments = (*batch()[:2], weight(WIDTH, 2 * INNER), weight(2 * INNER, CLASSES))
    relations = {
        "x": ["Shard(0)", "Replicate()"],
        "labels": ["Shard(0)", "Replicate()"],
        "up": ["Replicate()", "Shard(1)"],
        "down": ["Replicate()", "Shard(0)"],
    }
    references = ("transformers #39648", "transformers #45994")
    return Pattern(
        references,
        lambda: (whole, arguments),
        parallel,
        relations,
        "op=dist.ReduceOp.AVG, group=over_batch",
        mesh={"dp": 2, "tp": 2},
    )


TRANSFORMERS = {
    "gradients of the scores of own experts not summed": router_scores(),
    "gradient for slots whose expert is elsewhere": sentinel_slots(),
    "scores by expert paired with choices by slot": scattered_scores(),
    "choices of experts elsewhere numbered zero": filled_with_zero(),
    "label smoothing divided by the labels of a micro-batch": label_smoother(),
    "mean over replicas of shares of the mean": replicas_averaged(),
    "loss divided after its backward pass": scaled_late(),
    "labels lost at the borders of parts of the sequence": border_labels(),
    "loss multiplied by all processes": all_processes(),
}
"""Patterns by name."""
