"""Bugs that were fixed in deepspeedai/DeepSpeed: in how ZeRO reduces, keeps, scales and measures gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch.distributed.device_mesh import DeviceMesh

from zoo.patterns.pattern import Pattern, Program, dist, exchange, gathered, keep, reduced, scattered, weight

ROWS, WIDTH, INNER, RANKS = 8, 4, 6, 2
SPLIT = {"x": "Shard(0)", "w": "Replicate()"}


def mean_loss(x: torch.Tensor, w: torch.Tensor) -> Any:
    """The loss of a layer."""
    return (x @ w).tanh().square().mean()


def one_layer(parts: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of one of so many ranks, and a weight."""
    return torch.zeros(ROWS // parts, WIDTH), weight(WIDTH, INNER)


def partitioned(gradient: Any) -> torch.Tensor:
    """The own rows of the average over the ranks."""
    return scattered(gradient / RANKS)


@torch.no_grad()
def stepped(w: Any, update: torch.Tensor, zeroed: bool = True) -> None:
    """One device, or every rank of ZeRO-0, updates all rows."""
    w.sub_(0.1 * update)
    if zeroed:
        w.grad = None


@torch.no_grad()
def stepped_rows(w: Any, update: torch.Tensor) -> None:
    """Every rank updates its own rows and gathers those of the others."""
    rows = update.shape[0]
    own = w[dist.get_rank() * rows : (dist.get_rank() + 1) * rows]
    dist.all_gather_into_tensor(w.detach(), own - 0.1 * update)
    w.grad = None


def _one_step(x: torch.Tensor, w: Any) -> dict[str, torch.Tensor]:
    loss = mean_loss(x, w)
    loss.backward()
    stepped(w, w.grad)
    return {"loss": loss}


def updated_scale() -> Pattern:
    """The norm of the gradients is divided by the loss scale of the next step."""
    first_scale = 1024.0

    def whole(x: torch.Tensor, w: Any) -> dict[str, torch.Tensor]:
        loss = mean_loss(x, w)
        loss.backward()
        norm, w.grad = w.grad.square().sum().sqrt(), None
        return {"loss": loss, "norm": norm}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def step(x: torch.Tensor, w: Any) -> dict[str, torch.Tensor]:
            scale = first_scale
            loss = mean_loss(x, w)
            (loss * scale).backward()
            own, w.grad = partitioned(w.grad), None
            previous, scale = scale, 2 * scale
            norm = reduced(own.square().sum()).sqrt() / (scale if wrong else previous)
            return {"loss": reduced(loss.detach()) / RANKS, "norm": norm}

        return step, one_layer(RANKS)

    references = ("DeepSpeed #2686", "DeepSpeed #2695")
    return Pattern(references, lambda: (whole, one_layer()), parallel, SPLIT, "scale if wrong", gradient=True)


def not_zeroed() -> Pattern:
    """The gradients of a step are still there in the next one."""

    def whole(x: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
        return {f"loss {number}": _one_step(part, w)["loss"] for number, part in enumerate(x)}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def step(x: torch.Tensor, w: Any) -> dict[str, torch.Tensor]:
            losses: dict[str, torch.Tensor] = {}
            for number, part in enumerate(x):
                loss = mean_loss(part, w)
                loss.backward()
                dist.all_reduce(w.grad.div_(RANKS))
                stepped(w, w.grad, zeroed=not wrong)
                losses[f"loss {number}"] = reduced(loss.detach()) / RANKS
            w.grad = None
            return losses

        return step, (torch.zeros(2, ROWS // RANKS, WIDTH), weight(WIDTH, INNER))

    arguments = (torch.zeros(2, ROWS, WIDTH), weight(WIDTH, INNER))
    relations = {"x": "Shard(1)", "w": "Replicate()"}
    references = ("DeepSpeed #7837", "DeepSpeed #7839")
    return Pattern(references, lambda: (whole, arguments), parallel, relations, "w.grad.div_(RANKS)", gradient=True)


def divided_twice() -> Pattern:
    """A bucket that has gradients of experts is averaged, and averaged again where it is reduced."""

    def mixed(x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
        chosen = torch.softmax(x @ gate, -1)
        return (torch.einsum("rw,ewi->rei", x, up).tanh() * chosen[:, :, None]).sum(1)

    def whole(x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor) -> dict[str, torch.Tensor]:
        loss: Any = mixed(x, gate, up).square().mean()
        loss.backward()
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def allreduce_bucket(bucket: torch.Tensor, divide: bool) -> torch.Tensor:
            if divide:
                bucket.div_(RANKS)
            dist.all_reduce(bucket)
            return bucket

        def step(x: torch.Tensor, gate: Any, up: Any) -> dict[str, torch.Tensor]:
            loss: Any = mixed(x, gate, up).square().mean()
            loss.backward()
            bucket = torch.cat([gate.grad.view(-1), up.grad.view(-1)]).div_(RANKS)
            bucket = allreduce_bucket(bucket, divide=wrong)
            gate.grad.copy_(bucket[: gate.numel()].view_as(gate))
            up.grad.copy_(bucket[gate.numel() :].view_as(up))
            return {"loss": reduced(loss.detach()) / RANKS}

        return step, (torch.zeros(ROWS // RANKS, WIDTH), weight(WIDTH, 2), weight(2, WIDTH, INNER))

    arguments = (torch.zeros(ROWS, WIDTH), weight(WIDTH, 2), weight(2, WIDTH, INNER))
    relations = {"x": "Shard(0)", "gate": "Replicate()", "up": "Replicate()"}
    references = ("DeepSpeed #4957", "DeepSpeed #4695")
    return Pattern(references, lambda: (whole, arguments), parallel, relations, "mixed(x, gate, up)", gradient=True)


def flat_norm() -> Pattern:
    """Flattened gradients have no mark of tensor parallelism: only those of its first rank are in the norm."""

    def whole(x: torch.Tensor, up: Any, down: Any, bias: Any) -> dict[str, torch.Tensor]:
        loss: Any = ((x @ up).tanh() @ down + bias).square().mean()
        loss.backward()
        flat = torch.cat([tensor.grad.view(-1) for tensor in (up, down, bias)])
        up.grad = down.grad = bias.grad = None
        return {"loss": loss, "norm": flat.square().sum().sqrt()}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        over_batch, over_width = mesh["dp"].get_group(), mesh["tp"].get_group()
        replica, shard = mesh.get_local_rank("dp"), mesh.get_local_rank("tp")

        def summed(tensor: torch.Tensor, group: Any) -> torch.Tensor:
            total = tensor.clone()
            dist.all_reduce(total, group=group)
            return total

        def step(x: torch.Tensor, up: Any, down: Any, bias: Any) -> dict[str, torch.Tensor]:
            inner = exchange((x @ up).tanh() @ down, partial(summed, group=over_width), keep)
            loss: Any = (inner + bias).square().mean()
            loss.backward()
            flat = torch.cat([tensor.grad.view(-1) for tensor in (up, down, bias)]).div_(RANKS)
            up.grad = down.grad = bias.grad = None
            part = flat.new_empty(flat.numel() // RANKS)
            dist.reduce_scatter_tensor(part, flat, group=over_batch)
            counted = torch.ones(flat.numel())
            if shard:
                counted[0 if wrong else -bias.numel() :] = 0
            part = part * counted.chunk(RANKS)[replica]
            norm = summed(summed(part.square().sum(), over_batch), over_width).sqrt()
            return {"loss": summed(loss.detach(), over_batch) / RANKS, "norm": norm}

        shapes = ((WIDTH, INNER // 2), (INNER // 2, WIDTH), (WIDTH,))
        return step, (torch.zeros(ROWS // RANKS, WIDTH), *(weight(*shape) for shape in shapes))

    arguments = (torch.zeros(ROWS, WIDTH), weight(WIDTH, INNER), weight(INNER, WIDTH), weight(WIDTH))
    relations = {
        "x": ["Shard(0)", "Replicate()"],
        "up": ["Replicate()", "Shard(1)"],
        "down": ["Replicate()", "Shard(0)"],
        "bias": "Replicate()",
    }
    return Pattern(
        ("DeepSpeed #5411",),
        lambda: (whole, arguments),
        parallel,
        relations,
        "part.square().sum()",
        gradient=True,
        mesh={"dp": RANKS, "tp": 2},
    )


def sequence_averaged() -> Pattern:
    """Gradients of parts of a sequence are addends, and they are averaged over these parts too."""
    length = 4

    def losses(x: torch.Tensor, labels: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy((x @ w).flatten(0, 1), labels.flatten(), reduction="none").view_as(labels)

    def whole(x: torch.Tensor, labels: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
        loss: Any = losses(x, labels, w).mean()
        loss.backward()
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        over_batch, over_sequence = mesh["dp"].get_group(), mesh["sp"].get_group()
        rows, rank = length // 2, mesh.get_local_rank("sp")
        replicas = mesh.size() if wrong else mesh["dp"].size()

        def of_all(own: torch.Tensor) -> torch.Tensor:
            every = own.new_empty(length, own.shape[1])
            dist.all_gather_into_tensor(every, own.contiguous(), group=over_sequence)
            return every

        def of_own(every: torch.Tensor) -> torch.Tensor:
            return every[rank * rows : (rank + 1) * rows]

        def step(x: torch.Tensor, labels: torch.Tensor, w: Any) -> dict[str, torch.Tensor]:
            own = losses(x, labels, w).transpose(0, 1)
            loss: Any = exchange(own, of_all, of_own).mean()
            loss.backward()
            w.grad.div_(replicas)
            dist.all_reduce(w.grad)
            mean = loss.detach().clone()
            dist.all_reduce(mean, group=over_batch)
            return {"loss": mean / 2}

        return step, (torch.zeros(2, rows, WIDTH), torch.zeros(2, rows, dtype=torch.long), weight(WIDTH, INNER))

    arguments = (torch.zeros(4, length, WIDTH), torch.zeros(4, length, dtype=torch.long), weight(WIDTH, INNER))
    both = ("Shard(0)", "Shard(1)")
    relations = {"x": both, "labels": both, "w": "Replicate()"}
    return Pattern(
        ("DeepSpeed #5555",),
        lambda: (whole, arguments),
        parallel,
        relations,
        "exchange(own, of_all",
        gradient=True,
        mesh={"dp": 2, "sp": 2},
    )


def full_bucket() -> Pattern:
    """A gradient that is as large as the bucket is not copied into it, and the bucket is reduced all the same."""
    size = WIDTH * INNER

    def whole(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor) -> dict[str, torch.Tensor]:
        loss: Any = (x @ w + bias).tanh().square().mean()
        loss.backward()
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def step(x: torch.Tensor, w: Any, bias: Any) -> dict[str, torch.Tensor]:
            loss: Any = (x @ w + bias).tanh().square().mean()
            loss.backward()
            bucket = torch.zeros(size)
            for tensor in (bias, w):  # each has the bucket for itself, as together they are too large
                used = tensor.grad.numel()
                if used < size or (used == size and not wrong):
                    bucket[:used].copy_(tensor.grad.view(-1))
                dist.all_reduce(bucket[:used].div_(RANKS))
                tensor.grad.copy_(bucket[:used].view_as(tensor))
            return {"loss": reduced(loss.detach()) / RANKS}

        return step, (torch.zeros(ROWS // RANKS, WIDTH), weight(WIDTH, INNER), weight(INNER))

    arguments = (torch.zeros(ROWS, WIDTH), weight(WIDTH, INNER), weight(INNER))
    relations = {**SPLIT, "bias": "Replicate()"}
    return Pattern(
        ("DeepSpeed #4321",), lambda: (whole, arguments), parallel, relations, "tensor.grad.copy_", gradient=True
    )


def _on_host(
    references: tuple[str, ...], accumulate: Callable[[bool, int, torch.Tensor, torch.Tensor], None], place: str
) -> Pattern:
    """Three backward passes before a step of ZeRO-2 whose gradients are offloaded.

    ``accumulate`` gets whether it is the wrong one, the number of the pass, its gradient, and the buffer on the host.
    """

    def whole(x: torch.Tensor, w: Any) -> dict[str, torch.Tensor]:
        losses = torch.zeros(())
        for part in x.chunk(3):
            loss = mean_loss(part, w)
            loss.backward()
            losses = losses + loss.detach()
        stepped(w, w.grad)
        return {"loss": losses}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def step(x: torch.Tensor, w: Any) -> dict[str, torch.Tensor]:
            buffer = own = torch.zeros(WIDTH // RANKS, INNER)
            losses = torch.zeros(())
            for number, part in enumerate(x.chunk(3)):
                loss = mean_loss(part, w)
                loss.backward()
                own, w.grad = partitioned(w.grad), None
                accumulate(wrong, number, own, buffer)
                losses = losses + loss.detach()
            stepped_rows(w, own)
            return {"loss": reduced(losses) / RANKS}

        return step, (torch.zeros(6, WIDTH), weight(WIDTH, INNER))

    equation = ", ".join(f"x@{rank}[{2 * part}:{2 * part + 2}, :]" for part in range(3) for rank in range(RANKS))
    arguments = (torch.zeros(12, WIDTH), weight(WIDTH, INNER))
    relations = {"x": f"concat([{equation}], axis=0)", "w": "Replicate()"}
    return Pattern(references, lambda: (whole, arguments), parallel, relations, place, gradient=True)


def kept_once() -> Pattern:
    """The buffer on the host is read at every micro-batch but the first, and written at the first only."""

    def accumulate(wrong: bool, number: int, own: torch.Tensor, buffer: torch.Tensor) -> None:
        if number > 0:
            own.add_(buffer)
        if number == 0 if wrong else number < 2:
            buffer.copy_(own)

    return _on_host(("DeepSpeed #7967", "DeepSpeed #6550"), accumulate, "own.add_(buffer)")


def kept_last() -> Pattern:
    """The buffer on the host is used only where more than one micro-batch was configured, whoever calls backward."""
    configured = 1

    def accumulate(wrong: bool, number: int, own: torch.Tensor, buffer: torch.Tensor) -> None:
        boundary = number == 2
        if configured > 1 if wrong else number > 0 or not boundary:
            own.add_(buffer)
            buffer.copy_(own)

    return _on_host(("DeepSpeed #7981",), accumulate, "loss.backward()")


def used_twice() -> Pattern:
    """A layer is used twice, and its gradient is reduced as soon as there is the first of two contributions."""

    def whole(x: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
        loss: Any = ((x @ w).tanh() @ w).tanh().square().mean()
        loss.backward()
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def step(x: torch.Tensor, w: Any) -> dict[str, torch.Tensor]:
            reduces = iter((wrong, not wrong))  # at the first contribution, and at the second one
            with torch.no_grad():
                inner: Any = (x @ w).tanh()
            inner.requires_grad_()
            loss: Any = (inner @ w).tanh().square().mean()

            def ready(parameter: Any) -> None:
                if next(reduces):
                    dist.all_reduce(parameter.grad.div_(RANKS))

            handle = w.register_post_accumulate_grad_hook(ready)
            loss.backward()
            (x @ w).tanh().backward(inner.grad)
            handle.remove()
            return {"loss": reduced(loss.detach()) / RANKS}

        return step, (torch.zeros(ROWS // RANKS, WIDTH), weight(WIDTH, WIDTH))

    arguments = (torch.zeros(ROWS, WIDTH), weight(WIDTH, WIDTH))
    references = ("DeepSpeed #8224", "DeepSpeed #8245")
    return Pattern(references, lambda: (whole, arguments), parallel, SPLIT, "(inner @ w).tanh()", gradient=True)


def partly_reduced() -> Pattern:
    """A matrix is orthogonalised of which a rank has reduced its own rows, and the others not."""

    def iterated(x: torch.Tensor) -> torch.Tensor:
        squared = x @ x.T
        return 3.4445 * x + (-4.775 * squared + 2.0315 * squared @ squared) @ x

    def whole(x: torch.Tensor, w: Any) -> dict[str, torch.Tensor]:
        loss = mean_loss(x, w)
        loss.backward()
        stepped(w, iterated(w.grad / (w.grad.square().sum().sqrt() + 1e-7)))
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        rows, rank = WIDTH // RANKS, mesh.get_local_rank()
        own = slice(rank * rows, (rank + 1) * rows)

        def step(x: torch.Tensor, w: Any) -> dict[str, torch.Tensor]:
            loss = mean_loss(x, w)
            loss.backward()
            part, full = partitioned(w.grad), w.grad.clone()
            if wrong:
                full[own].copy_(part)
            else:
                full.copy_(gathered(part))
            update = iterated(full / (full.square().sum().sqrt() + 1e-7))
            stepped_rows(w, update[own])
            return {"loss": reduced(loss.detach()) / RANKS}

        return step, one_layer(RANKS)

    references = ("DeepSpeed #7807", "DeepSpeed #8090", "DeepSpeed #8141")
    whole_step = lambda: (whole, one_layer())  # noqa: E731 - a program in one line
    return Pattern(references, whole_step, parallel, SPLIT, "full.square().sum().sqrt()", gradient=True)


def unaligned_fetch() -> Pattern:
    """Parameters stand in a buffer one after the other without the padding of their parts, which is then added."""

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        rank = mesh.get_local_rank()

        def step(x: torch.Tensor, bias: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
            padded = F.pad(bias, (0, rank), value=7777.0)  # whatever was in memory
            flat, start = torch.zeros(4 + 6), 0
            parameters: list[torch.Tensor] = []
            for part, elements in ((padded, 3), (w.reshape(-1), 6)):
                parameters.append(flat[start : start + elements])
                first = start + rank * part.numel()
                flat[first : first + part.numel()].copy_(part)
                start += elements if wrong else RANKS * part.numel()
            dist.all_reduce(flat)
            return {"y": (x + parameters[0]).tanh() @ parameters[1].view(2, 3).T}

        return step, (torch.zeros(ROWS // RANKS, 3), torch.zeros(2 - rank), torch.zeros(1, 3))

    def whole(x: torch.Tensor, bias: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"y": (x + bias).tanh() @ w.T}

    return Pattern(
        ("DeepSpeed #8158",),
        lambda: (whole, (torch.zeros(ROWS, 3), torch.zeros(3), torch.zeros(2, 3))),
        parallel,
        dict.fromkeys(("x", "bias", "w"), "Shard(0)"),
        "(x + parameters[0]).tanh()",
    )


DEEPSPEED = {
    "norm divided by the loss scale of the next step": updated_scale(),
    "gradients kept from one step to the next": not_zeroed(),
    "bucket of experts averaged twice": divided_twice(),
    "norm of flattened gradients on the first rank only": flat_norm(),
    "gradients averaged over parts of the sequence": sequence_averaged(),
    "gradient as large as the bucket not copied": full_bucket(),
    "gradients on the host written once": kept_once(),
    "gradients on the host of the last backward pass only": kept_last(),
    "gradient reduced after the first of two uses": used_twice(),
    "orthogonalised matrix reduced in part": partly_reduced(),
    "parameters fetched without their padding": unaligned_fetch(),
}
"""Patterns by name."""
