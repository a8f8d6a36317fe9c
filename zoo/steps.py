"""Training steps: data parallelism, accumulation, loss by tokens, clipping, optimizers, sharded optimizer state.

Every step has a program for one device and one for the ranks of a mesh. Both are functions that run forward, backward
and the optimizer, on a small classifier of tokens. Parameters and optimizer state that a step overwrites are outputs.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
import torch.distributed
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, ParallelStyle, RowwiseParallel, parallelize_module

from zoo.zero import State, fresh_state, own_rows_step

dist: Any = torch.distributed  # most of it is not annotated
Program = tuple[Callable[..., Any], tuple[Any, ...]]
MakeOptimizer = Callable[[nn.Module], Any]

BATCH, LENGTH, VOCABULARY, WIDTH, INNER = 8, 6, 16, 8, 12


def times(ranks: int) -> int:
    """How many times as large as here everything is, so that many ranks have something of each parameter."""
    return max(1, ranks // 4)


class Classifier(nn.Module):
    """Token ids (batch, length) to logits (batch, length, vocabulary), wide enough for so many ranks."""

    def __init__(self, ranks: int = 1) -> None:
        super().__init__()
        vocabulary, width, inner = (size * times(ranks) for size in (VOCABULARY, WIDTH, INNER))
        self.embedding = nn.Embedding(vocabulary, width)
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, vocabulary)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Two layers on each token."""
        return self.down(F.silu(self.up(self.embedding(tokens))))


@dataclass(frozen=True)
class Step:
    """A step on one device and on a mesh; ``relations`` are what DTensors do not say."""

    mesh: Mapping[str, int]
    sequential: Callable[[], Program]
    parallel: Callable[[DeviceMesh], Program]
    relations: Mapping[str, str | Sequence[str]] = field(default_factory=dict[str, "str | Sequence[str]"])


def world_size() -> int:
    """Number of ranks; one on one device."""
    return dist.get_world_size() if dist.is_initialized() else 1


def summed(x: Any, group: Any = None) -> torch.Tensor:
    """The sum over all ranks, or those of a group, in place."""
    if dist.is_initialized():
        dist.all_reduce(x, group=group)
    return x


def mean_loss(model: nn.Module, tokens: torch.Tensor, labels: torch.Tensor) -> Any:
    """Cross-entropy, the mean over all tokens that a rank has; all of them have a label."""
    likely = F.log_softmax(model(tokens), dim=-1)
    return -likely.gather(-1, labels.unsqueeze(-1)).mean()


def train(
    model: Any, optimizer: Any, tokens: torch.Tensor, labels: torch.Tensor, *, clip: float | None = None
) -> dict[str, torch.Tensor]:
    """One step with the mean loss; gradients are averaged by whoever reduces them."""
    loss = mean_loss(model, tokens, labels)
    loss.backward()
    return finish(model, optimizer, summed(loss.detach() / world_size()), clip)


def finish(model: Any, optimizer: Any, loss: torch.Tensor, clip: float | None = None) -> dict[str, torch.Tensor]:
    """Clip gradients by their norm of that order, and update."""
    found = {"loss": loss}
    if clip is not None:
        norm: Any = nn.utils.clip_grad_norm_(model.parameters(), 0.5, norm_type=clip)
        found["norm"] = norm.full_tensor() if isinstance(norm, DTensor) else norm
    if optimizer is not None:
        optimizer.step()
    return found


def accumulate(model: Any, optimizer: Any, tokens: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
    """One step over two micro-batches; gradients are reduced with the last one only."""
    total = torch.zeros(())
    batches = list(zip(tokens.chunk(2), labels.chunk(2), strict=True))
    for number, (part, wanted) in enumerate(batches):
        with only_last(model, number == len(batches) - 1):
            loss: Any = mean_loss(model, part, wanted) / len(batches)
            loss.backward()
        total = total + loss.detach()
    return finish(model, optimizer, summed(total / world_size()))


def only_last(model: Any, last: bool) -> Any:
    """No communication but with the last micro-batch, as DDP and as FSDP2 want it said."""
    if hasattr(model, "set_requires_gradient_sync"):
        model.set_requires_gradient_sync(last)
        return nullcontext()
    return nullcontext() if last or not hasattr(model, "no_sync") else model.no_sync()


def by_tokens(model: Any, optimizer: Any, tokens: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
    """One step with the mean over the tokens of all ranks that have a label.

    Ranks have different numbers of such tokens; gradients are averaged over ranks afterwards, which is undone here.
    """
    count = summed((labels != -100).sum())
    loss: Any = (
        F.cross_entropy(model(tokens).flatten(0, 1), labels.flatten(), ignore_index=-100, reduction="sum") / count
    )
    (loss * world_size()).backward()
    return finish(model, optimizer, summed(loss.detach().clone()))


def trainer(
    model: Any, optimizer: Any, tokens: torch.Tensor, labels: torch.Tensor, *, group: Any = None
) -> dict[str, torch.Tensor]:
    """The step of torchtitan's trainer: micro-batches, the mean over the tokens of all of them, clipping, an update.

    Gradients are sums over ranks here, which FSDP2 is told; ``group`` has the ranks with other tokens.
    """
    count = summed((labels != -100).sum(), group)
    total = torch.zeros(())
    batches = list(zip(tokens.chunk(2), labels.chunk(2), strict=True))
    for number, (part, wanted) in enumerate(batches):
        with only_last(model, number == len(batches) - 1):
            scores = model(part).flatten(0, 1)
            loss: Any = F.cross_entropy(scores, wanted.flatten(), ignore_index=-100, reduction="sum") / count
            loss.backward()
        total = total + loss.detach()
    return finish(model, optimizer, summed(total, group), 2.0)


def sgd(model: nn.Module) -> torch.optim.Optimizer:
    """Stochastic gradient descent without state."""
    return torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.01)


def nesterov(model: nn.Module, *, foreach: bool = False) -> torch.optim.Optimizer:
    """With Nesterov's momentum."""
    options: dict[str, Any] = {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01, "foreach": foreach}
    return started(torch.optim.SGD(model.parameters(), lr=0.1, **options))


def adam(model: nn.Module, *, foreach: bool = False) -> torch.optim.Optimizer:
    """Adam, decay in the gradient."""
    return started(torch.optim.Adam(model.parameters(), lr=0.1, weight_decay=0.01, foreach=foreach))


def adamw(model: nn.Module, *, foreach: bool = False) -> torch.optim.Optimizer:
    """AdamW, decay of the parameter."""
    return started(torch.optim.AdamW(model.parameters(), lr=0.1, foreach=foreach))


def started(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """The optimizer with state, as after a first step: then the captured step is any later one."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    optimizer.zero_grad()
    return optimizer


def none(model: nn.Module) -> None:
    """No optimizer: the step ends with gradients."""


def batch(parts: int, ranks: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens and labels of one of so many parts."""
    tokens = torch.zeros(BATCH * times(ranks) // parts, LENGTH, dtype=torch.long)
    return tokens, tokens.clone()


def replicated(mesh: DeviceMesh) -> nn.Module:
    """``DistributedDataParallel`` with buckets of few parameters."""
    return nn.parallel.DistributedDataParallel(Classifier(mesh.size()), bucket_cap_mb=0.0005)


def sharded(mesh: DeviceMesh) -> nn.Module:
    """FSDP2, layer by layer; on two mesh axes replicas of shards."""
    model: Any = Classifier(mesh.size())
    for part in (model.embedding, model.up, model.down, model):
        fully_shard(part, mesh=mesh)
    return model


def both_ways(mesh: DeviceMesh) -> nn.Module:
    """Tensor parallelism along ``tp``, FSDP2 along ``dp``."""
    plan: dict[str, ParallelStyle] = {"up": ColwiseParallel(), "down": RowwiseParallel()}
    model: Any = parallelize_module(Classifier(mesh.size()), mesh["tp"], plan)
    for part in (model.embedding, model.up, model.down, model):
        fully_shard(part, mesh=mesh["dp"])
    return model


def all_both_ways(mesh: DeviceMesh) -> nn.Module:
    """The same with every layer on both axes, and with gradients that FSDP2 adds up and does not average."""
    plan: dict[str, ParallelStyle] = {
        "embedding": RowwiseParallel(input_layouts=Replicate()),
        "up": ColwiseParallel(),
        "down": RowwiseParallel(),
    }
    model: Any = parallelize_module(Classifier(mesh.size()), mesh["tp"], plan)
    for part in (model.embedding, model.up, model.down, model):
        fully_shard(part, mesh=mesh["dp"])
        part.set_gradient_divide_factor(1.0)
    return model


def zero_one(model: nn.Module, made: type[torch.optim.Optimizer] = torch.optim.SGD) -> Any:
    """``ZeroRedundancyOptimizer``: each rank updates some of the parameters and sends them to the others.

    Of an optimizer with state a rank has the state of those that it updates.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of optimizers that are imported beside it
        from torch.distributed.optim import ZeroRedundancyOptimizer

    sharded_: Any = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=made, lr=0.1, weight_decay=0.01)
    started(sharded_.optim)
    return sharded_


def pair(
    mesh: Mapping[str, int],
    model: Callable[[DeviceMesh], nn.Module],
    step: Callable[..., Any] = train,
    whole: Callable[..., Any] = train,
    *,
    optimizer: MakeOptimizer = none,
    optimizer_of_ranks: MakeOptimizer | None = None,
) -> Step:
    """A step on ranks that split the batch along all axes but ``tp``, and one on one device."""
    parts = 1
    for name, size in mesh.items():
        parts *= 1 if name == "tp" else size
    ranks = math.prod(mesh.values())
    placed = ["Replicate()" if name == "tp" else "Shard(0)" for name in mesh]

    def sequential() -> Program:
        made = Classifier(ranks)
        return whole, (made, optimizer(made), *batch(1, ranks))

    def parallel(device_mesh: DeviceMesh) -> Program:
        made = model(device_mesh)
        return step, (made, (optimizer_of_ranks or optimizer)(made), *batch(parts, ranks))

    return Step(mesh, sequential, parallel, {"tokens": placed, "labels": placed})


def own_rows() -> Step:
    """ZeRO-1 by hand, against the same AdamW on all rows of one device."""

    def step(model: Any, optimizer: State, tokens: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        loss = mean_loss(model, tokens, labels)
        loss.backward()
        own_rows_step(model, optimizer)
        return {"loss": summed(loss.detach() / world_size())}

    def program(parts: int) -> Program:
        model = Classifier()
        return step, (model, fresh_state(model, parts), *batch(parts))

    state = {"optimizer.*.exp_avg*": "Shard(0)", "optimizer.*.step": "Replicate()"}
    relations = {"tokens": "Shard(0)", "labels": "Shard(0)", **state}
    return Step({"dp": 2}, lambda: program(1), lambda mesh: program(mesh.size()), relations)


def trained(mesh: Mapping[str, int], model: Callable[[DeviceMesh], nn.Module] = all_both_ways) -> Step:
    """The step of a trainer on FSDP2 and tensor parallelism.

    The norm of a gradient that all ranks of ``tp`` have is divided by the root of their number, which is a number where
    that is a square.
    """
    made = pair(mesh, model, trainer, trainer, optimizer=adamw)

    def parallel(device_mesh: DeviceMesh) -> Program:
        step, args = made.parallel(device_mesh)
        return partial(step, group=device_mesh["dp"].get_group()), args

    return Step(mesh, made.sequential, parallel, made.relations)


_DP: Mapping[str, int] = {"dp": 2}
STEPS: dict[str, Step] = {
    "ddp": pair(_DP, replicated),
    "ddp accumulation": pair(_DP, replicated, accumulate),
    "ddp by tokens": pair(_DP, replicated, by_tokens, by_tokens),
    "ddp clipped": pair(_DP, replicated, partial(train, clip=2.0), partial(train, clip=2.0)),
    "ddp clipped by the largest": pair(
        _DP, replicated, partial(train, clip=float("inf")), partial(train, clip=float("inf"))
    ),
    "ddp sgd": pair(_DP, replicated, optimizer=sgd),
    "ddp adamw": pair(_DP, replicated, accumulate, optimizer=adamw),
    "fsdp": pair({"dp": 4}, sharded),
    "fsdp accumulation": pair(_DP, sharded, accumulate),
    "fsdp by tokens": pair(_DP, sharded, by_tokens, by_tokens),
    "fsdp clipped": pair(_DP, sharded, partial(train, clip=2.0), partial(train, clip=2.0), optimizer=sgd),
    "fsdp clipped by the largest": pair(
        _DP, sharded, partial(train, clip=float("inf")), partial(train, clip=float("inf"))
    ),
    "hsdp": pair({"replica": 2, "shard": 2}, sharded, accumulate, optimizer=adamw),
    "tp and fsdp": pair({"dp": 2, "tp": 2}, both_ways, optimizer=adamw),
    "tp and fsdp trainer": trained({"dp": 2, "tp": 4}),
    "fsdp nesterov": pair(_DP, sharded, optimizer=nesterov),
    "fsdp nesterov, foreach": pair(_DP, sharded, optimizer=partial(nesterov, foreach=True)),
    "fsdp adam": pair(_DP, sharded, optimizer=adam),
    "fsdp adam, foreach": pair(_DP, sharded, optimizer=partial(adam, foreach=True)),
    "fsdp adamw, foreach": pair(_DP, sharded, by_tokens, by_tokens, optimizer=partial(adamw, foreach=True)),
    "zero-1": pair(_DP, replicated, optimizer=sgd, optimizer_of_ranks=zero_one),
    "zero-1 adamw": pair(
        _DP, replicated, optimizer=adamw, optimizer_of_ranks=partial(zero_one, made=torch.optim.AdamW)
    ),
    "zero-1 by hand": own_rows(),
}
"""Every step by name."""

MESHES: dict[str, Step] = {
    "tp and fsdp": pair({"dp": 64, "tp": 8}, both_ways),
    "tp and fsdp adamw": pair({"dp": 64, "tp": 8}, both_ways, optimizer=adamw),
    "hsdp": pair({"replica": 8, "shard": 64}, sharded),
    "fsdp": pair({"dp": 512}, sharded),
}
"""Steps on 512 ranks."""
