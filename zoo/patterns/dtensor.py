"""Bugs that PyTorch's own DTensor, FSDP2 and pipelines have had, each as its broken rule computed it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, placement_types

from zoo.patterns.pattern import (
    Pattern,
    Program,
    dist,
    enter,
    exchange,
    gathered,
    keep,
    reduced,
    weight,
)

ROWS, WIDTH, INNER, CLASSES = 8, 4, 6, 4
MICRO_BATCHES = 2
HYBRID = {"fsdp": 2, "tp": 2}

strided: Any = vars(placement_types)["_StridedShard"]  # what an axis is that a later mesh axis has cut first
linalg: Any = torch.linalg  # not annotated


def local(x: torch.Tensor, mesh: DeviceMesh, *placements: Any) -> Any:
    """A DTensor of what a rank has."""
    return DTensor.from_local(x, mesh, list(placements), run_check=False)


def uneven_mean() -> Pattern:
    """The mean of rows that do not divide is taken for the average of the ranks' own means."""
    rows = 5

    def whole(x: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"mean": (x @ w).mean()}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def step(x: Any, w: Any) -> dict[str, torch.Tensor]:
            y = x @ w
            if wrong:
                mean = local(y.to_local().mean(), mesh, Partial("avg"))
            else:
                mean = y.redistribute(placements=[Replicate()]).mean()
            return {"mean": mean.full_tensor()}

        own = torch.zeros(rows, WIDTH).chunk(2)[mesh.get_local_rank()]
        x = DTensor.from_local(
            own, mesh, [Shard(0)], run_check=False, shape=torch.Size((rows, WIDTH)), stride=(WIDTH, 1)
        )
        return step, (x, local(torch.zeros(WIDTH, INNER), mesh, Replicate()))

    arguments = (torch.zeros(rows, WIDTH), torch.zeros(WIDTH, INNER))
    references = ("pytorch #162692", "pytorch #163241")
    return Pattern(references, lambda: (whole, arguments), parallel, {}, "y.to_local().mean()")


def norm_of_addends() -> Pattern:
    """The norm of a sum over ranks is made of the norms of its addends."""

    def whole(x: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"norm": linalg.vector_norm(x @ w)}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def step(x: Any, w: Any) -> dict[str, torch.Tensor]:
            y = x @ w  # an addend on every rank
            if wrong:
                norm = reduced(linalg.vector_norm(y.to_local()).square()).sqrt()
            else:
                norm = linalg.vector_norm(y.full_tensor())
            return {"norm": norm}

        return step, (
            local(torch.zeros(ROWS, WIDTH // 2), mesh, Shard(1)),
            local(torch.zeros(WIDTH // 2, INNER), mesh, Shard(0)),
        )

    arguments = (torch.zeros(ROWS, WIDTH), torch.zeros(WIDTH, INNER))
    return Pattern(
        ("pytorch #159856",), lambda: (whole, arguments), parallel, {}, "vector_norm(y.to_local())", mesh={"tp": 2}
    )


def local_winner() -> Pattern:
    """The index of the largest value is the largest of the indices that ranks found in their own parts."""

    def whole(x: torch.Tensor, router: torch.Tensor, table: torch.Tensor) -> dict[str, torch.Tensor]:
        values, chosen = (x @ router).max(-1)
        return {"values": values, "rows": table[chosen]}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def step(x: Any, router: Any, table: torch.Tensor) -> dict[str, torch.Tensor]:
            scores = x @ router
            if wrong:
                largest, found = scores.to_local().max(-1)
                values = local(largest, mesh, Partial("max")).full_tensor()
                chosen = local(found, mesh, Partial("max")).full_tensor()
            else:
                values, chosen = scores.full_tensor().max(-1)
            return {"values": values, "rows": table[chosen]}

        x = local(torch.zeros(ROWS, WIDTH), mesh, Replicate())
        return step, (x, local(torch.zeros(WIDTH, CLASSES // 2), mesh, Shard(1)), torch.zeros(CLASSES, INNER))

    arguments = (torch.zeros(ROWS, WIDTH), torch.zeros(WIDTH, CLASSES), torch.zeros(CLASSES, INNER))
    references = ("pytorch #168940", "pytorch #175776", "pytorch #173936")
    relations = {"table": "Replicate()"}
    return Pattern(references, lambda: (whole, arguments), parallel, relations, "to_local().max(-1)", mesh={"tp": 2})


def hybrid_divisor() -> Pattern:
    """Gradients that were divided by a factor of one's own are averaged over the replicas all the same."""
    factor = 4.0

    def whole(x: torch.Tensor, w: torch.Tensor, head: torch.Tensor) -> dict[str, torch.Tensor]:
        loss: Any = ((x @ w).tanh() @ head).square().mean()
        loss.backward()
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        shards, replicas = mesh["dp_shard"].get_group(), mesh["dp_replicate"].get_group()

        def gather(own: torch.Tensor) -> torch.Tensor:
            every = own.new_empty(2 * len(own), own.shape[1])
            dist.all_gather_into_tensor(every, own, group=shards)
            return every

        def averaged(gradient: torch.Tensor) -> torch.Tensor:
            own = gradient.new_empty(len(gradient) // 2, gradient.shape[1])
            dist.reduce_scatter_tensor(own, gradient, op=dist.ReduceOp.AVG, group=shards)
            dist.all_reduce(own, op=dist.ReduceOp.AVG, group=replicas)
            return own

        def divided(gradient: torch.Tensor) -> torch.Tensor:
            own = gradient.new_empty(len(gradient) // 2, gradient.shape[1])
            dist.reduce_scatter_tensor(own, gradient / factor, group=shards)
            dist.all_reduce(own, op=dist.ReduceOp.AVG if wrong else dist.ReduceOp.SUM, group=replicas)
            return own

        def step(x: torch.Tensor, w: torch.Tensor, head: torch.Tensor) -> dict[str, torch.Tensor]:
            inner = (x @ exchange(w, gather, divided)).tanh()
            loss: Any = (inner @ exchange(head, gather, averaged)).square().mean()
            loss.backward()
            return {"loss": reduced(loss.detach()) / mesh.size()}

        return step, (torch.zeros(ROWS // 4, WIDTH), weight(WIDTH // 2, INNER), weight(INNER // 2, CLASSES))

    arguments = (torch.zeros(ROWS, WIDTH), weight(WIDTH, INNER), weight(INNER, CLASSES))
    held = ["Replicate()", "Shard(0)"]
    return Pattern(
        ("pytorch #155903",),
        lambda: (whole, arguments),
        parallel,
        {"x": ["Shard(0)", "Shard(0)"], "w": held, "head": held},
        "dist.ReduceOp.AVG if wrong",
        gradient=True,
        mesh={"dp_replicate": 2, "dp_shard": 2},
    )


@dataclass(frozen=True)
class Stage:
    """One of two stages of a pipeline, with the layer that it has."""

    mesh: DeviceMesh
    layer: Callable[[torch.Tensor], Any]
    weights: tuple[Any, ...]

    def step(self, x: torch.Tensor, target: torch.Tensor, loss_of: Callable[..., Any], scale_grads: bool) -> Any:
        """GPipe: all forwards, all backwards; the losses of the micro-batches, which are zeros on the first stage."""
        group, first = self.mesh.get_group(), self.mesh.get_local_rank() == 0
        other, losses = dist.get_global_rank(group, int(first)), [torch.zeros(()) for _ in range(MICRO_BATCHES)]
        parts = list(zip(x.chunk(MICRO_BATCHES), target.chunk(MICRO_BATCHES), strict=True))
        if first:
            sent = [self.layer(part) for part, _ in parts]
            for hidden in sent:
                dist.send(hidden.detach(), other, group)
            for hidden in sent:
                gradient = torch.empty_like(hidden)
                dist.recv(gradient, other, group)
                hidden.backward(gradient)
        else:
            entered = [torch.empty(len(part), INNER) for part, _ in parts]
            for hidden in entered:
                dist.recv(hidden, other, group)
            every = zip(entered, parts, strict=True)
            losses = [loss_of(self.layer(hidden.requires_grad_()), wanted) for hidden, (_, wanted) in every]
            for loss, hidden in zip(losses, entered, strict=True):
                loss.backward()
                dist.send(hidden.grad, other, group)
        for tensor in self.weights if scale_grads else ():
            tensor.grad.div_(MICRO_BATCHES)
        return torch.stack(losses).detach()


def stage_of(mesh: DeviceMesh, w: torch.Tensor, head: torch.Tensor) -> Stage:
    """The stage that this rank has of the two of :func:`two_layers`."""
    if mesh.get_local_rank():
        return Stage(mesh, lambda x: x @ head, (head,))
    return Stage(mesh, lambda x: (x @ w).tanh(), (w,))


def two_layers(x: torch.Tensor, target: torch.Tensor, w: torch.Tensor, head: torch.Tensor) -> dict[str, torch.Tensor]:
    """Both stages on one device."""
    loss: Any = ((x @ w).tanh() @ head - target).square().mean()
    loss.backward()
    return {"loss": loss}


def stages() -> tuple[torch.Tensor, ...]:
    """Their arguments."""
    return torch.zeros(ROWS, WIDTH), torch.zeros(ROWS, CLASSES), weight(WIDTH, INNER), weight(INNER, CLASSES)


STAGES: dict[str, str] = dict.fromkeys(("x", "target", "w", "head"), "Replicate()")


def micro_batches() -> Pattern:
    """Every micro-batch has the gradient of its own mean, and nobody divides their sum by how many there are."""

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def step(x: torch.Tensor, target: torch.Tensor, w: torch.Tensor, head: torch.Tensor) -> dict[str, torch.Tensor]:
            def loss_of(output: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
                return (output - wanted).square().mean()

            losses = stage_of(mesh, w, head).step(x, target, loss_of, scale_grads=not wrong)
            return {"loss": reduced(losses.mean())}

        return step, stages()

    references = ("pytorch #144352",)
    whole = lambda: (two_layers, stages())  # noqa: E731 - a program in one line
    return Pattern(references, whole, parallel, STAGES, "(output - wanted)", gradient=True, mesh={"pp": 2})


def split_backward() -> Pattern:
    """A backward pass that is split in two scales no gradient of weights, as the one that is not split does."""

    def first(x: torch.Tensor, w: Any) -> torch.Tensor:
        for part in x.chunk(MICRO_BATCHES):
            hidden: Any = (part @ w).tanh()
            dist.send(hidden.detach(), 1)
            gradient = torch.empty_like(hidden)
            dist.recv(gradient, 1)
            hidden.backward(gradient)
        w.grad.div_(MICRO_BATCHES)
        return torch.zeros(())

    def last(target: torch.Tensor, head: Any, wrong: bool) -> torch.Tensor:
        losses: list[Any] = []
        for wanted in target.chunk(MICRO_BATCHES):
            hidden = torch.empty(len(wanted), INNER)
            dist.recv(hidden, 0)
            losses.append((hidden.requires_grad_() @ head - wanted).square().mean())
            dist.send(torch.autograd.grad(losses[-1], hidden, retain_graph=True)[0], 0)
        for loss in losses:
            loss.backward(inputs=[head])
        if not wrong:
            head.grad.div_(MICRO_BATCHES)
        return torch.stack(losses).detach().mean()

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def step(x: torch.Tensor, target: torch.Tensor, w: torch.Tensor, head: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"loss": reduced(last(target, head, wrong) if mesh.get_local_rank() else first(x, w))}

        return step, stages()

    place = "loss.backward(inputs=[head])"
    whole = lambda: (two_layers, stages())  # noqa: E731
    return Pattern(("pytorch #164777",), whole, parallel, STAGES, place, gradient=True, mesh={"pp": 2})


def strided_softmax() -> Pattern:
    """An axis that two mesh axes have cut, the inner one first, is not seen to be cut: each part gets a softmax."""

    def whole(x: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
        loss: Any = (torch.softmax(x, -1) @ w).square().sum()
        loss.backward()
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        cut = strided(1, split_factor=2), Shard(1)

        def step(x: Any, w: Any) -> dict[str, torch.Tensor]:
            if wrong:
                chances = local(torch.softmax(x.to_local(), -1), mesh, *cut)
            else:
                chances = torch.softmax(x.redistribute(placements=[Replicate(), Replicate()]), -1)
            loss = (chances @ w).square().sum().full_tensor()
            loss.backward()
            return {"loss": loss}

        rows = local(torch.zeros(2, INNER), mesh, strided(0, split_factor=2), Shard(0))
        return step, (local(torch.zeros(ROWS, 2), mesh, *cut).requires_grad_(), rows)

    arguments = (weight(ROWS, 8), torch.zeros(8, INNER))
    references = ("pytorch #178785",)
    return Pattern(references, lambda: (whole, arguments), parallel, {}, "softmax(x.to_local(), -1)", mesh=HYBRID)


def copied_addends() -> Pattern:
    """A sum over ranks is written to where every rank keeps an addend: it is added up once more."""

    def whole(x: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"y": (x @ w).tanh()}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def step(x: Any, w: Any) -> dict[str, torch.Tensor]:
            y, kept = x @ w, torch.empty(ROWS, INNER)
            kept.copy_(y.full_tensor() if wrong else y.to_local())
            return {"y": local(kept, mesh, Partial()).full_tensor().tanh()}

        return step, (
            local(torch.zeros(ROWS, WIDTH // 2), mesh, Shard(1)),
            local(torch.zeros(WIDTH // 2, INNER), mesh, Shard(0)),
        )

    arguments = (torch.zeros(ROWS, WIDTH), torch.zeros(WIDTH, INNER))
    return Pattern(("pytorch #162460",), lambda: (whole, arguments), parallel, {}, "local(kept", mesh={"tp": 2})


def divided_backward() -> Pattern:
    """The gradient of an addend is that of the sum, and was divided by the number of ranks."""

    def whole(x: torch.Tensor, w: torch.Tensor, head: torch.Tensor) -> dict[str, torch.Tensor]:
        loss: Any = ((x @ w).tanh() @ head).square().sum()
        loss.backward()
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def divided(gradient: torch.Tensor) -> torch.Tensor:
            return gradient / mesh.size()

        def step(x: torch.Tensor, w: torch.Tensor, head: torch.Tensor) -> dict[str, torch.Tensor]:
            y = exchange(x @ w, reduced, divided if wrong else keep)
            loss: Any = (y.tanh() @ head).square().sum()
            loss.backward()
            return {"loss": loss}

        return step, (torch.zeros(ROWS, WIDTH // 2), weight(WIDTH // 2, INNER), weight(INNER, CLASSES))

    arguments = (torch.zeros(ROWS, WIDTH), weight(WIDTH, INNER), weight(INNER, CLASSES))
    relations = {"x": "Shard(1)", "w": "Shard(0)", "head": "Replicate()"}
    return Pattern(
        ("pytorch #115967",),
        lambda: (whole, arguments),
        parallel,
        relations,
        "gradient / mesh.size()",
        gradient=True,
        mesh={"tp": 2},
    )


def slice_backward() -> Pattern:
    """The gradient of a slice is put where the slice starts in every rank's own rows, not in all rows."""
    start, stop = 2, 6

    def whole(x: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
        loss: Any = (x[start:stop] @ w).tanh().square().sum()
        loss.backward()
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        rows, taken, rank = ROWS // 2, (stop - start) // 2, mesh.get_local_rank()

        def sliced(x: torch.Tensor) -> torch.Tensor:
            return gathered(x)[start:stop][rank * taken : (rank + 1) * taken]

        def padded(gradient: torch.Tensor) -> torch.Tensor:
            if wrong:
                return F.pad(gradient, (0, 0, start, rows - start - taken))
            return F.pad(gathered(gradient), (0, 0, start, ROWS - stop))[rank * rows : (rank + 1) * rows]

        def step(x: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
            loss: Any = (exchange(x, sliced, padded) @ enter(w)).tanh().square().sum()
            loss.backward()
            return {"loss": reduced(loss.detach())}

        return step, (weight(rows, WIDTH), weight(WIDTH, INNER))

    arguments = (weight(ROWS, WIDTH), weight(WIDTH, INNER))
    relations = {"x": "Shard(0)", "w": "Replicate()"}
    return Pattern(
        ("pytorch #130287", "pytorch #149071"),
        lambda: (whole, arguments),
        parallel,
        relations,
        "F.pad(gradient",
        gradient=True,
        mesh={"tp": 2},
    )


def gathered_order() -> Pattern:
    """Rows that one mesh axis has cut before the other are put together as if it had been the other way round."""

    def whole(x: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"y": (x @ w.T).tanh()}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        placements = (Shard(0) if wrong else strided(0, split_factor=2), Shard(0))

        def step(x: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
            every = local(w, mesh, *placements).full_tensor()
            return {"y": (x @ every.T).tanh()}

        return step, (torch.zeros(ROWS, WIDTH), torch.zeros(2, WIDTH))

    arguments = (torch.zeros(ROWS, WIDTH), torch.zeros(8, WIDTH))
    relations = {"x": "Replicate()", "w": "concat([w@0, w@2, w@1, w@3], axis=0)"}
    return Pattern(("pytorch #129206",), lambda: (whole, arguments), parallel, relations, "full_tensor()", mesh=HYBRID)


DTENSOR = {
    "mean of the means of uneven rows": uneven_mean(),
    "norm of every rank's addend": norm_of_addends(),
    "largest of the ranks' own indices": local_winner(),
    "divided gradients averaged over replicas": hybrid_divisor(),
    "gradients of micro-batches not divided": micro_batches(),
    "gradients of a split backward pass not divided": split_backward(),
    "softmax of every part of an axis": strided_softmax(),
    "sum kept as an addend": copied_addends(),
    "gradient of an addend divided": divided_backward(),
    "gradient of a slice put among the own rows": slice_backward(),
    "rows gathered in another order": gathered_order(),
}
"""Patterns by name."""
