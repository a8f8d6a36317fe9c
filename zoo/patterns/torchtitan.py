"""Bugs that torchtitan has had: losses, experts, pipelines and clipping over several mesh axes."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, experimental
from torch.distributed.tensor.parallel import loss_parallel

from zoo.patterns.dtensor import MICRO_BATCHES, STAGES, Stage, local, stage_of, stages, two_layers
from zoo.patterns.losses import labelled, summed_loss
from zoo.patterns.pattern import Pattern, Program, dist, exchange, leave, reduced, sum_gradients, weight

ROWS, WIDTH, INNER, CLASSES, EXPERTS = 8, 4, 6, 4, 2

local_map: Any = vars(experimental)["local_map"]  # its annotations are not whole


def chunked_loss() -> Pattern:
    """The gradients of all chunks are addends, and the buffer that has them is said to hold their sum."""

    def whole(x: torch.Tensor, labels: torch.Tensor, w: torch.Tensor, head: torch.Tensor) -> dict[str, torch.Tensor]:
        loss: Any = F.cross_entropy((x @ w).tanh() @ head.T, labels, reduction="sum") / ROWS
        loss.backward()
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def step(x: Any, labels: torch.Tensor, w: Any, head: Any) -> dict[str, torch.Tensor]:
            hidden = (x @ w).tanh()
            total, buffer, placements = torch.zeros(()), torch.empty(ROWS, WIDTH), hidden.placements
            for number, wanted in enumerate(labels.chunk(2)):
                rows = slice(number * ROWS // 2, (number + 1) * ROWS // 2)
                chunk = hidden.detach()[rows].requires_grad_()
                with loss_parallel():
                    loss: Any = F.cross_entropy(F.linear(chunk, head), wanted, reduction="sum") / ROWS
                    loss.backward()
                total = total + loss.detach().full_tensor()
                buffer[rows] = chunk.grad.to_local()
                if not wrong:
                    placements = chunk.grad.placements
            hidden.backward(local(buffer, mesh, *placements))
            return {"loss": total}

        rows = local(torch.zeros(ROWS, WIDTH), mesh, Replicate()), torch.zeros(ROWS, dtype=torch.long)
        w = local(torch.zeros(WIDTH, WIDTH), mesh, Replicate()).requires_grad_()
        return step, (*rows, w, local(torch.zeros(CLASSES // 2, WIDTH), mesh, Shard(0)).requires_grad_())

    arguments = (torch.zeros(ROWS, WIDTH), torch.zeros(ROWS, dtype=torch.long))
    weights = weight(WIDTH, WIDTH), weight(CLASSES, WIDTH)
    references = ("torchtitan #3412", "torchtitan #3418")
    return Pattern(
        references,
        lambda: (whole, (*arguments, *weights)),
        parallel,
        {"labels": "Replicate()"},
        "chunk.grad.to_local()",
        gradient=True,
        mesh={"tp": 2},
    )


class ScaledBias(torch.autograd.Function):
    """A bias that is divided by the number of ranks, and its gradient is not."""

    @staticmethod
    def forward(ctx: Any, bias: torch.Tensor, ranks: int) -> torch.Tensor:
        """One addend of it."""
        return bias / ranks

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        """As it is."""
        return gradients[0], None


def biased_addend() -> Pattern:
    """The gradient of an addend is the same on all ranks, and is said to be an addend: it is summed once more."""

    def whole(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor) -> dict[str, torch.Tensor]:
        loss: Any = (x @ w + bias).tanh().square().sum()
        loss.backward()
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        scaled: Any = ScaledBias

        def step(x: Any, w: Any, bias: Any) -> dict[str, torch.Tensor]:
            z = x @ w
            addend = z.to_local(grad_placements=[Partial() if wrong else Replicate()])
            own = addend + scaled.apply(bias.to_local(), mesh.size())
            loss = local(own, mesh, Partial()).redistribute(placements=[Replicate()]).tanh().square().sum().to_local()
            loss.backward()
            return {"loss": loss}

        x = local(torch.zeros(ROWS, WIDTH // 2), mesh, Shard(1))
        w = local(torch.zeros(WIDTH // 2, INNER), mesh, Shard(0)).requires_grad_()
        return step, (x, w, local(torch.zeros(INNER), mesh, Replicate()).requires_grad_())

    arguments = (torch.zeros(ROWS, WIDTH), weight(WIDTH, INNER), weight(INNER))
    references = ("torchtitan #2106",)
    return Pattern(references, lambda: (whole, arguments), parallel, {}, "z = x @ w", gradient=True, mesh={"tp": 2})


def _routed(x: torch.Tensor, scores: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
    """Every expert on every row, weighted by the router."""
    inner = torch.bmm(x.expand(EXPERTS, -1, -1), up).relu()
    return (torch.bmm(inner, down) * scores.T.unsqueeze(-1)).sum(0)


def _experts(x: torch.Tensor, gate: Any, up: Any, down: Any) -> dict[str, torch.Tensor]:
    loss: Any = _routed(x, torch.softmax(x @ gate, -1), up, down).tanh().square().sum()
    loss.backward()
    return {"loss": loss}


def _of_experts() -> tuple[torch.Tensor, ...]:
    weights = weight(WIDTH, EXPERTS), weight(EXPERTS, WIDTH, INNER), weight(EXPERTS, INNER, WIDTH)
    return torch.zeros(ROWS, WIDTH), *weights


def router_slices() -> Pattern:
    """Every rank routes some of the rows, and the gradient of the scores is said to be the same on all of them."""

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        rows = slice(mesh.get_local_rank() * ROWS // 2, (mesh.get_local_rank() + 1) * ROWS // 2)

        def step(x: torch.Tensor, gate: Any, up: torch.Tensor, down: torch.Tensor) -> dict[str, torch.Tensor]:
            scores: Any = torch.softmax(local(x, mesh, Replicate()) @ gate, -1)
            own = scores.to_local() if wrong else scores.to_local(grad_placements=[Partial()])
            found = F.pad(_routed(x[rows], own[rows], up, down), (0, 0, rows.start, ROWS - rows.stop))
            loss: Any = leave(found).tanh().square().sum()
            loss.backward()
            sum_gradients(up, down)
            return {"loss": loss}

        x, gate, up, down = _of_experts()
        return step, (x, local(gate.detach(), mesh, Replicate()).requires_grad_(), up, down)

    references = ("torchtitan #2387", "torchtitan #2416", "torchtitan #2388")
    relations: dict[str, str] = dict.fromkeys(("x", "up", "down"), "Replicate()")
    whole = lambda: (_experts, _of_experts())  # noqa: E731 - a program in one line
    return Pattern(references, whole, parallel, relations, "torch.softmax(local(x", gradient=True, mesh={"tp": 2})


def mapped_experts() -> Pattern:
    """Gradients of what enters a region of local tensors are addends, and are taken for their sum."""

    def whole(x: torch.Tensor, w: torch.Tensor, gate: Any, up: Any, down: Any) -> dict[str, torch.Tensor]:
        return _experts((x @ w).tanh(), gate, up, down)

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        inputs: Any = ([Replicate()], [Replicate()], [Shard(2)], [Shard(1)])
        gradients: Any = None if wrong else ([Partial()], [Partial()], [Shard(2)], [Shard(1)])
        mapped = local_map(_routed, [Partial()], inputs, gradients, mesh)

        def step(x: Any, w: Any, gate: Any, up: Any, down: Any) -> dict[str, torch.Tensor]:
            hidden = (x @ w).tanh()
            scores = torch.softmax(hidden @ gate, -1)
            loss = mapped(hidden, scores, up, down).redistribute(placements=[Replicate()]).tanh().square().sum()
            loss.backward()
            return {"loss": loss.to_local()}

        x = local(torch.zeros(ROWS, WIDTH), mesh, Replicate())
        both = [local(torch.zeros(WIDTH, size), mesh, Replicate()).requires_grad_() for size in (WIDTH, EXPERTS)]
        up = local(torch.zeros(EXPERTS, WIDTH, INNER // 2), mesh, Shard(2)).requires_grad_()
        return step, (x, *both, up, local(torch.zeros(EXPERTS, INNER // 2, WIDTH), mesh, Shard(1)).requires_grad_())

    x, *weights = _of_experts()
    references = ("torchtitan #4054", "torchtitan #1878")
    arguments = (x, weight(WIDTH, WIDTH), *weights)
    return Pattern(
        references,
        lambda: (whole, arguments),
        parallel,
        {},
        "torch.softmax(hidden @ gate",
        gradient=True,
        mesh={"tp": 2},
    )


def stage_norm() -> Pattern:
    """Every stage of a pipeline clips its gradients by their own norm."""

    def clipped(model: nn.Module, pp: DeviceMesh | None) -> None:
        norm: Any = nn.utils.get_total_norm([p.grad for p in model.parameters() if p.grad is not None])
        norm = norm.full_tensor() if isinstance(norm, DTensor) else norm
        if pp is not None:
            norm = norm**2
            dist.all_reduce(norm, group=pp.get_group())
            norm = norm**0.5
        nn.utils.clip_grads_with_norm_(model.parameters(), 0.5, norm)

    def layers() -> dict[str, nn.Module]:
        return {"up": nn.Linear(WIDTH, INNER, bias=False), "head": nn.Linear(INNER, CLASSES, bias=False)}

    def whole(model: Any, x: torch.Tensor, target: torch.Tensor) -> dict[str, torch.Tensor]:
        loss: Any = F.mse_loss(model["head"](model["up"](x).tanh()), target)
        loss.backward()
        clipped(model, None)
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        pp = mesh["pp"]
        last = pp.get_local_rank()

        def step(model: Any, x: torch.Tensor, target: torch.Tensor) -> dict[str, torch.Tensor]:
            def layer(x: torch.Tensor) -> torch.Tensor:
                return model["head"](x) if last else model["up"](x).tanh()

            stage = Stage(pp, layer, tuple(model.parameters()))
            losses = stage.step(x, target, F.mse_loss, scale_grads=True)
            clipped(model, None if wrong else pp)
            return {"loss": reduced(losses.mean()) / 2}

        own = nn.ModuleDict(dict(list(layers().items())[last : last + 1]))
        for module in own.values():
            fully_shard(module, mesh=mesh["dp"])
        return step, (own, torch.zeros(ROWS // 2, WIDTH), torch.zeros(ROWS // 2, CLASSES))

    arguments = (torch.zeros(ROWS, WIDTH), torch.zeros(ROWS, CLASSES))
    split = ["Replicate()", "Shard(0)"]
    return Pattern(
        ("torchtitan #596", "torchtitan #649"),
        lambda: (whole, (nn.ModuleDict(layers()), *arguments)),
        parallel,
        {"x": split, "target": split},
        "clipped(model, None if wrong",
        gradient=True,
        mesh={"pp": 2, "dp": 2},
    )


def accumulated_stages() -> Pattern:
    """Each of several steps of a schedule divides all gradients so far by its number of micro-batches."""
    steps = 2

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        count = steps if wrong else steps * MICRO_BATCHES

        def loss_of(output: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
            return (output - wanted).square().mean() / count

        def step(x: torch.Tensor, target: torch.Tensor, w: torch.Tensor, head: torch.Tensor) -> dict[str, torch.Tensor]:
            stage, total = stage_of(mesh, w, head), torch.zeros(())
            for rows, wanted in zip(x.chunk(steps), target.chunk(steps), strict=True):
                total = total + stage.step(rows, wanted, loss_of, scale_grads=wrong).sum()
            return {"loss": reduced(total / (MICRO_BATCHES if wrong else 1))}

        return step, stages()

    references = ("torchtitan #1733", "torchtitan #1732")
    whole = lambda: (two_layers, stages())  # noqa: E731
    return Pattern(references, whole, parallel, STAGES, "tensor.grad.div_(", gradient=True, mesh={"pp": 2})


def validated_twice() -> Pattern:
    """Losses are divided by the number of all labels, and their sum by the number of micro-batches besides."""

    def whole(x: torch.Tensor, labels: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": summed_loss(x, labels, w) / labelled(labels)}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def step(x: torch.Tensor, labels: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
            count = reduced(labelled(labels))
            parts = zip(x.chunk(MICRO_BATCHES), labels.chunk(MICRO_BATCHES), strict=True)
            losses = torch.stack([summed_loss(part, wanted, w) / count for part, wanted in parts])
            return {"loss": reduced(losses.mean() if wrong else losses.sum())}

        return step, (torch.zeros(ROWS // 2, WIDTH), torch.zeros(ROWS // 2, dtype=torch.long), w)

    w = torch.zeros(WIDTH, CLASSES)
    arguments = (torch.zeros(ROWS, WIDTH), torch.zeros(ROWS, dtype=torch.long), w)
    relations = {"x": "Shard(0)", "labels": "Shard(0)", "w": "Replicate()"}
    references = ("torchtitan #2366",)
    return Pattern(references, lambda: (whole, arguments), parallel, relations, "losses.mean()", mesh={"dp": 2})


def logged_loss() -> Pattern:
    """The loss to show is a DTensor of one mesh axis, and is not summed over the other, which has the sequence."""

    def whole(x: torch.Tensor, labels: torch.Tensor, head: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": F.cross_entropy(x @ head.T, labels, reduction="sum") / ROWS}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        tp, cp = mesh["tp"], mesh["cp"].get_group()

        def step(x: torch.Tensor, labels: torch.Tensor, head: Any) -> dict[str, torch.Tensor]:
            with loss_parallel():
                scores = F.linear(local(x, tp, Replicate()), head)
                loss: Any = F.cross_entropy(scores, labels, reduction="sum") / ROWS
            total = loss.full_tensor()
            if not wrong:
                dist.all_reduce(total, group=cp)
            return {"loss": total}

        own = torch.zeros(ROWS // 2, WIDTH), torch.zeros(ROWS // 2, dtype=torch.long)
        return step, (*own, local(torch.zeros(CLASSES // 2, WIDTH), tp, Shard(0)))

    arguments = (torch.zeros(ROWS, WIDTH), torch.zeros(ROWS, dtype=torch.long), torch.zeros(CLASSES, WIDTH))
    references = ("torchtitan #3280", "torchtitan #3329", "torchtitan #3313")
    split = ["Shard(0)", "Replicate()"]
    relations = {"x": split, "labels": split}
    return Pattern(
        references, lambda: (whole, arguments), parallel, relations, "F.cross_entropy(scores", mesh={"cp": 2, "tp": 2}
    )


def unnormalised_stages() -> Pattern:
    """A schedule takes the gradient of the sum, which is divided by the number of labels when that is done."""

    def whole(x: torch.Tensor, target: torch.Tensor, w: torch.Tensor, head: torch.Tensor) -> dict[str, torch.Tensor]:
        loss = summed_loss((x @ w).tanh(), target, head) / labelled(target)
        loss.backward()
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def step(x: torch.Tensor, target: torch.Tensor, w: torch.Tensor, head: torch.Tensor) -> dict[str, torch.Tensor]:
            count = labelled(target)

            def loss_of(output: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
                loss = F.cross_entropy(output, wanted, reduction="sum", ignore_index=-100)
                return loss if wrong else loss / count

            losses = stage_of(mesh, w, head).step(x, target, loss_of, scale_grads=False).sum()
            return {"loss": reduced(losses / count if wrong else losses)}

        return step, arguments

    x, _, *weights = stages()
    arguments = (x, torch.zeros(ROWS, dtype=torch.long), *weights)
    references = ("torchtitan #2972", "torchtitan #2984", "torchtitan #4194")
    return Pattern(
        references,
        lambda: (whole, arguments),
        parallel,
        STAGES,
        "F.cross_entropy(output",
        gradient=True,
        mesh={"pp": 2},
    )


class Experts(nn.Module):
    """Experts, each with rows of its own."""

    def __init__(self, ep: DeviceMesh | None = None) -> None:
        super().__init__()
        own = torch.zeros(1 if ep else EXPERTS, WIDTH, INNER)
        self.up = nn.Parameter(local(own, ep, Shard(0)) if ep else own)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Rows (experts, rows, width) to (experts, rows, inner)."""
        return torch.bmm(rows, self.up.to_local() if isinstance(self.up, DTensor) else self.up)


def expert_average() -> Pattern:
    """Gradients of experts, which have the rows of all ranks, are averaged over the ranks that share an expert."""

    def whole(experts: Any, head: Any, x: torch.Tensor) -> dict[str, torch.Tensor]:
        rows = x.view(-1, EXPERTS, WIDTH).transpose(0, 1)
        loss: Any = head(experts(rows).tanh()).square().mean()
        loss.backward()
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        group = mesh["ep"].get_group()

        def swapped(rows: torch.Tensor) -> torch.Tensor:
            found = torch.empty_like(rows)
            dist.all_to_all_single(found, rows.contiguous(), group=group)
            return found

        def step(experts: Any, head: Any, x: torch.Tensor) -> dict[str, torch.Tensor]:
            rows = exchange(x, swapped, swapped)  # row e goes to expert e
            found = exchange(experts(rows[None])[0], swapped, swapped)
            loss: Any = head(found.tanh()).square().mean()
            loss.backward()
            return {"loss": reduced(loss.detach()) / mesh.size()}

        experts: Any = fully_shard(Experts(mesh["ep"]), mesh=mesh["edp"], shard_placement_fn=lambda _: Shard(1))
        if not wrong:
            experts.set_gradient_divide_factor(mesh.size())
        head = fully_shard(nn.Linear(INNER, CLASSES, bias=False), mesh=mesh)
        return step, (experts, head, torch.zeros(ROWS // 4, WIDTH))

    references = ("torchtitan #1551", "pytorch #160285")
    return Pattern(
        references,
        lambda: (whole, (Experts(), nn.Linear(INNER, CLASSES, bias=False), torch.zeros(ROWS, WIDTH))),
        parallel,
        {"x": ["Shard(0)", "Shard(0)"]},
        "torch.bmm(rows",
        gradient=True,
        mesh={"edp": 2, "ep": 2},
    )


TORCHTITAN = {
    "gradients of chunks taken for their sum": chunked_loss(),
    "gradient of an addend summed again": biased_addend(),
    "gradient of routed rows taken for that of all": router_slices(),
    "gradient of a mapped region not summed": mapped_experts(),
    "stages clipped by their own norm": stage_norm(),
    "gradients divided with every accumulated step": accumulated_stages(),
    "validation loss divided twice": validated_twice(),
    "logged loss not summed over the sequence": logged_loss(),
    "gradient of a pipeline's sum not divided": unnormalised_stages(),
    "gradients of experts averaged over too few": expert_average(),
}
"""Patterns by name."""
