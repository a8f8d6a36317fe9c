"""Bugs in losses and in what they are divided by."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch.distributed.device_mesh import DeviceMesh

from zoo.patterns.pattern import Pattern, Program, dist, exchange, keep, reduced, sum_gradients, weight

ROWS, WIDTH, CLASSES = 8, 4, 6
SPLIT = {"x": "Shard(0)", "labels": "Shard(0)", "w": "Replicate()"}


def data(parts: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows and labels of one of so many ranks."""
    return torch.zeros(ROWS // parts, WIDTH), torch.zeros(ROWS // parts, dtype=torch.long)


def summed_loss(x: torch.Tensor, labels: torch.Tensor, w: torch.Tensor) -> Any:
    """Cross-entropy of the rows that have a label."""
    return F.cross_entropy(x @ w, labels, reduction="sum", ignore_index=-100)


def labelled(labels: torch.Tensor) -> torch.Tensor:
    """How many rows have a label."""
    return (labels != -100).sum()


def _by_count(x: torch.Tensor, labels: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
    loss = summed_loss(x, labels, w) / labelled(labels)
    loss.backward()
    return {"loss": loss}


def accumulation() -> Pattern:
    """Micro-batches have different numbers of labels: the mean of their means is not the mean."""

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def step(x: torch.Tensor, labels: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
            count, total = reduced(labelled(labels)), torch.zeros(())
            for part, wanted in zip(x.chunk(2), labels.chunk(2), strict=True):
                if wrong:
                    loss = summed_loss(part, wanted, w) / labelled(wanted) / (2 * mesh.size())
                else:
                    loss = summed_loss(part, wanted, w) / count
                loss.backward()
                total = total + loss.detach()
            sum_gradients(w)
            return {"loss": reduced(total)}

        return step, (*data(2), weight(WIDTH, CLASSES))

    references = ("transformers #34191", "transformers #35203", "transformers #37766")
    return Pattern(references, lambda: (_by_count, (*data(), weight(WIDTH, CLASSES))), parallel, SPLIT, "labelled")


def ignored_labels() -> Pattern:
    """Ranks have different numbers of labels: gradients averaged over ranks are not those of the mean."""

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def step(x: torch.Tensor, labels: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
            count = labelled(labels)
            loss = summed_loss(x, labels, w) / reduced(count)
            (summed_loss(x, labels, w) / count / mesh.size() if wrong else loss).backward()
            sum_gradients(w)
            return {"loss": reduced(loss.detach())}

        return step, (*data(2), weight(WIDTH, CLASSES))

    references = ("transformers #35651", "transformers #35438")
    whole = lambda: (_by_count, (*data(), weight(WIDTH, CLASSES)))  # noqa: E731 - a program in one line
    return Pattern(references, whole, parallel, SPLIT, "count / mesh.size()", gradient=True)


def _mean(x: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
    loss: Any = (x @ w).tanh().mean()
    loss.backward()
    return {"loss": loss}


def context_scale() -> Pattern:
    """The loss of a part of the sequence is scaled by the number of parts although gradients are summed."""

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def step(x: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
            loss: Any = (x @ w).tanh().mean() / mesh.size()
            (loss * mesh.size() if wrong else loss).backward()
            sum_gradients(w)
            return {"loss": reduced(loss.detach())}

        return step, (torch.zeros(ROWS // 2, WIDTH), weight(WIDTH, CLASSES))

    relations = {"x": "Shard(0)", "w": "Replicate()"}
    whole = lambda: (_mean, (torch.zeros(ROWS, WIDTH), weight(WIDTH, CLASSES)))  # noqa: E731
    return Pattern(
        ("Megatron-LM #673", "Megatron-LM #906"), whole, parallel, relations, ".mean() / mesh.size()", gradient=True
    )


def auxiliary_loss() -> Pattern:
    """A second loss of the router is added to the value, and its graph is lost on the way."""

    def losses(x: torch.Tensor, w: torch.Tensor, router: torch.Tensor, parts: int, cut: bool) -> Any:
        chosen = torch.softmax(x @ router, dim=-1)
        balance = chosen.square().mean() / parts
        if cut:
            balance = balance.detach()
        return (chosen @ w).square().mean() / parts + 0.01 * balance

    def whole(x: torch.Tensor, w: torch.Tensor, router: torch.Tensor) -> dict[str, torch.Tensor]:
        loss = losses(x, w, router, 1, False)
        loss.backward()
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def step(x: torch.Tensor, w: torch.Tensor, router: torch.Tensor) -> dict[str, torch.Tensor]:
            loss = losses(x, w, router, mesh.size(), wrong)
            loss.backward()
            sum_gradients(w, router)
            return {"loss": reduced(loss.detach())}

        return step, (torch.zeros(ROWS // 2, WIDTH), weight(3, CLASSES), weight(WIDTH, 3))

    relations = {"x": "Shard(0)", "w": "Replicate()", "router": "Replicate()"}
    arguments = (torch.zeros(ROWS, WIDTH), weight(3, CLASSES), weight(WIDTH, 3))
    return Pattern(("NeMo Automodel #1412",), lambda: (whole, arguments), parallel, relations, "chosen", gradient=True)


def padding() -> Pattern:
    """A sequence that does not divide is padded, and the padding is counted in the mean."""
    length, step_size = 7, 4

    def whole(x: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
        loss: Any = (x @ w).sigmoid().mean()
        loss.backward()
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        start = step_size * mesh.get_local_rank()

        def step(x: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
            own = F.pad(x, (0, 0, 0, 1))[start : start + step_size]
            scores = (own @ w).sigmoid()
            if wrong:
                loss: Any = scores.mean() / mesh.size()
            else:
                loss = scores[: length - start].sum() / (length * w.shape[1])
            loss.backward()
            sum_gradients(w)
            return {"loss": reduced(loss.detach())}

        return step, (torch.zeros(length, WIDTH), weight(WIDTH, CLASSES))

    references = ("VeOmni #1139", "TensorRT-LLM #14012", "Megatron-LM #2121")
    arguments = (torch.zeros(length, WIDTH), weight(WIDTH, CLASSES))
    return Pattern(
        references, lambda: (whole, arguments), parallel, {"x": "Replicate()", "w": "Replicate()"}, "scores.mean()"
    )


class SmoothedCrossEntropy(torch.autograd.Function):
    """Cross-entropy with label smoothing of logits that are split over the vocabulary, after Megatron-core's.

    Megatron-core (0.16) takes the mean of the logarithms over its own part of the vocabulary, and the size of that part
    for the size of the vocabulary: ``wrong`` does as it does, forwards and backwards.
    """

    @staticmethod
    def forward(ctx: Any, logits: torch.Tensor, labels: torch.Tensor, smoothing: float, wrong: bool) -> torch.Tensor:
        """Logits (rows, local vocabulary) and labels (rows) to losses (rows)."""
        largest = logits.amax(-1)
        dist.all_reduce(largest, op=dist.ReduceOp.MAX)
        shifted = logits - largest.unsqueeze(-1)
        own = logits.shape[-1]
        start = own * dist.get_rank()
        outside = (labels < start) | (labels >= start + own)
        local = (labels - start).masked_fill(outside, 0)
        wanted = reduced(shifted.gather(-1, local.unsqueeze(-1)).squeeze(-1).masked_fill(outside, 0.0))
        total = reduced(shifted.exp().sum(-1))
        logarithms = shifted - total.log().unsqueeze(-1)
        size = own if wrong else own * dist.get_world_size()
        smooth = smoothing * size / (size - 1)
        mean = logarithms.mean(-1) if wrong else reduced(logarithms.sum(-1)) / size
        ctx.save_for_backward(logarithms.exp(), local, outside)
        ctx.smooth, ctx.size = smooth, size
        return (1 - smooth) * (total.log() - wanted) - smooth * mean

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        """Softmax minus the smoothed label."""
        softmax, local, outside = ctx.saved_tensors
        hit = (1 - ctx.smooth) * (~outside).to(softmax.dtype).unsqueeze(-1)
        gradient = softmax.scatter_add(-1, local.unsqueeze(-1), -hit) - ctx.smooth / ctx.size
        return gradient * gradients[0].unsqueeze(-1), None, None, None


def label_smoothing() -> Pattern:
    """The mean over the vocabulary is taken over the part of it that a rank has."""
    smoothing, size = 0.375, 4

    def whole(x: torch.Tensor, labels: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
        likely = F.log_softmax(x @ w.T, dim=-1)
        smooth = smoothing * size / (size - 1)
        wanted = -likely.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
        loss: Any = ((1 - smooth) * wanted - smooth * likely.mean(-1)).mean()
        loss.backward()
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def step(x: torch.Tensor, labels: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
            function: Any = SmoothedCrossEntropy
            loss = function.apply(exchange(x, keep, reduced) @ w.T, labels, smoothing, wrong).mean()
            loss.backward()
            return {"loss": loss}

        return step, (*data(), weight(size // mesh.size(), WIDTH))

    references = ("Megatron-LM #7452", "Megatron-LM #737", "Megatron-LM #7464", "Megatron-LM #5522")
    relations = {"x": "Replicate()", "labels": "Replicate()", "w": "Shard(0)"}
    arguments = (*data(), weight(size, WIDTH))
    return Pattern(references, lambda: (whole, arguments), parallel, relations, "logarithms.mean")


LOSSES = {
    "mean of the means of micro-batches": accumulation(),
    "mean of the means of ranks": ignored_labels(),
    "loss scaled by the number of parts": context_scale(),
    "graph of an auxiliary loss dropped": auxiliary_loss(),
    "padding counted": padding(),
    "label smoothing over the local vocabulary": label_smoothing(),
}
"""Patterns by name."""
