"""Training steps are proved with loss, gradients, new parameters and new optimizer state; broken ones are refuted."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any
from unittest import mock

import pytest
import torch
import torch.nn.functional as F

import rewright as rw
from rewright.refine.verdict import Verdict
from zoo import steps
from zoo.steps import STEPS, Step


def verdict(step: Step) -> Verdict:
    sequential = rw.capture(*step.sequential())
    return rw.refine(sequential, rw.capture_ranks(step.parallel, step.mesh), relations=step.relations)


def listed(names: Iterable[str], few: set[str], more: set[str]) -> list[Any]:
    """A few of the names; more are long tests, and the others slow ones."""
    marks = {name: pytest.mark.long if name in more else pytest.mark.slow for name in names}
    return [name if name in few else pytest.param(name, marks=mark) for name, mark in marks.items()]


FEW = {"ddp adamw", "fsdp clipped by the largest", "zero-1 by hand"}
MORE = {"ddp by tokens", "hsdp", "zero-1"}


@pytest.mark.parametrize("name", listed(STEPS, FEW, MORE))
def test_steps_are_proved(name: str) -> None:
    found = verdict(STEPS[name])
    assert found.status == "proved", found.reason


def test_what_a_step_proves_of_parameters_and_state() -> None:
    found = verdict(STEPS["fsdp adamw, foreach"]).relation
    assert found["loss"].placement == "Replicate()"
    assert found["grad:up.weight"].placement == "Shard(0)"
    assert (
        found["updated:up.weight"].equation
        == "updated:up.weight = concat([updated:up.weight@0, updated:up.weight@1], axis=0)"
    )
    assert found["updated:optimizer.up.weight.exp_avg"].placement == "Shard(0)"
    assert found["updated:optimizer.up.weight.step"].placement == "Replicate()"


@pytest.mark.slow
def test_state_that_one_rank_has_is_related_on_that_rank() -> None:
    found = verdict(STEPS["zero-1 adamw"])
    assert found.status == "proved", found.reason
    owners = {found.relation[f"updated:optimizer.{name}.exp_avg"].equation[-1] for name in ("up.weight", "down.weight")}
    assert owners == {"0", "1"}
    assert found.relation["updated:up.weight"].placement == "Replicate()"


def kept_to_itself(optimizer: Any) -> None:
    """What a rank updated is not sent to the others."""


def test_parameters_that_their_owner_does_not_send() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of optimizers that are imported beside it
        from torch.distributed.optim import ZeroRedundancyOptimizer

    with mock.patch.object(ZeroRedundancyOptimizer, "_sync_params", kept_to_itself):
        found = verdict(STEPS["zero-1 adamw"])
    assert found.status == "refuted"
    assert not found.relation["updated:up.weight"].holds


def averaged(mesh: Any) -> Any:
    """Gradients that FSDP2 averages although the loss is divided by the tokens of all ranks."""
    model: Any = steps.all_both_ways(mesh)
    for part in (model.embedding, model.up, model.down, model):
        part.set_gradient_divide_factor(2.0)
    return model


@pytest.mark.unaudited("a rounded constant is taken for the root that it stands for")
@pytest.mark.slow
def test_a_trainer_on_two_axes() -> None:
    mesh = {"dp": 2, "tp": 2}
    right = steps.trained(mesh)
    found = verdict(right)
    assert found.status == "proved", found.reason
    assert found.relation["norm"].placement == "[Replicate(), Replicate()]"
    assert found.relation["updated:down.weight"].placement == "[Shard(0), Shard(1)]"
    assert verdict(steps.trained(mesh, averaged)).status == "refuted"
    counted = steps.pair(mesh, steps.all_both_ways, steps.trainer, steps.trainer, optimizer=steps.adamw)
    assert verdict(counted).status == "refuted"  # tokens are counted once for each rank of the other axis


def doubled(model: Any, optimizer: Any, tokens: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
    """Every rank scales by the number of ranks what is averaged already."""
    loss = steps.mean_loss(model, tokens, labels) * steps.world_size()
    loss.backward()
    return steps.finish(model, optimizer, steps.summed(loss.detach() / steps.world_size() ** 2))


def without_scale(model: Any, optimizer: Any, tokens: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
    """Micro-batches whose means are added and not averaged."""
    total = torch.zeros(())
    for number, (part, wanted) in enumerate(zip(tokens.chunk(2), labels.chunk(2), strict=True)):
        with steps.only_last(model, number == 1):
            loss = steps.mean_loss(model, part, wanted)
            loss.backward()
        total = total + loss.detach() / 2
    return steps.finish(model, optimizer, steps.summed(total / steps.world_size()))


def always_silent(model: Any, optimizer: Any, tokens: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
    """Gradients that are never reduced."""
    with steps.only_last(model, False):
        loss = steps.mean_loss(model, tokens, labels)
        loss.backward()
    return steps.finish(model, optimizer, steps.summed(loss.detach() / steps.world_size()))


def own_count(model: Any, optimizer: Any, tokens: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
    """Normalised by the tokens of the rank."""
    loss = F.cross_entropy(model(tokens).flatten(0, 1), labels.flatten())
    loss.backward()
    return steps.finish(model, optimizer, steps.summed(loss.detach() / steps.world_size()))


def update_twice(model: Any, optimizer: Any, tokens: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
    found = steps.train(model, optimizer, tokens, labels)
    optimizer.step()
    return found


def clip_after(model: Any, optimizer: Any, tokens: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
    """Clipped when the parameters are updated already."""
    found = steps.train(model, optimizer, tokens, labels)
    return found | steps.finish(model, None, found["loss"], 2.0)


def tuned(kind: Any, **options: Any) -> Callable[[Any], Any]:
    return lambda model: steps.started(kind(model.parameters(), **{"lr": 0.1, **options}))


ADAMW, ADAM, SGD = torch.optim.AdamW, torch.optim.Adam, torch.optim.SGD
clipped = partial(steps.train, clip=2.0)
MESH = {"dp": 2}
WRONG: dict[str, Step] = {
    "scaled by the number of ranks": steps.pair(MESH, steps.replicated, doubled),
    "micro-batches added": steps.pair(MESH, steps.replicated, without_scale),
    "micro-batches added under FSDP": steps.pair(MESH, steps.sharded, without_scale),
    "never reduced": steps.pair(MESH, steps.replicated, always_silent),
    "tokens of the rank": steps.pair(MESH, steps.sharded, own_count, steps.by_tokens),
    "updated twice": steps.pair(MESH, steps.sharded, update_twice, optimizer=steps.sgd),
    "clipped too late": steps.pair(MESH, steps.sharded, clip_after, clipped, optimizer=steps.sgd),
    "clipped by another norm": steps.pair(MESH, steps.sharded, partial(steps.train, clip=float("inf")), clipped),
    "another learning rate": steps.pair(
        MESH, steps.sharded, optimizer=tuned(SGD), optimizer_of_ranks=tuned(SGD, lr=0.2)
    ),
    "decay in the gradient": steps.pair(
        MESH,
        steps.sharded,
        optimizer=tuned(ADAMW, weight_decay=0.1),
        optimizer_of_ranks=tuned(ADAM, weight_decay=0.1),
    ),
    "no decay": steps.pair(
        MESH, steps.sharded, optimizer=tuned(ADAMW, weight_decay=0.1), optimizer_of_ranks=tuned(ADAMW, weight_decay=0.0)
    ),
    "plain momentum": steps.pair(
        MESH,
        steps.sharded,
        optimizer=tuned(SGD, momentum=0.9, nesterov=True),
        optimizer_of_ranks=tuned(SGD, momentum=0.9),
    ),
    "dampened momentum": steps.pair(
        MESH,
        steps.sharded,
        optimizer=tuned(SGD, momentum=0.9),
        optimizer_of_ranks=tuned(SGD, momentum=0.9, dampening=0.1),
    ),
    "another beta": steps.pair(
        MESH, steps.sharded, optimizer=tuned(ADAMW), optimizer_of_ranks=tuned(ADAMW, betas=(0.9, 0.99))
    ),
    "another epsilon": steps.pair(
        MESH, steps.sharded, optimizer=tuned(ADAMW, eps=1e-2), optimizer_of_ranks=tuned(ADAMW, eps=2e-2)
    ),
    "ascent": steps.pair(MESH, steps.sharded, optimizer=tuned(SGD), optimizer_of_ranks=tuned(SGD, maximize=True)),
}


FEW_BUGS = {"micro-batches added", "never reduced"}
MORE_BUGS = {"updated twice", "decay in the gradient", "plain momentum"}


@pytest.mark.parametrize("name", listed(WRONG, FEW_BUGS, MORE_BUGS))
def test_wrong_steps_are_refuted(name: str) -> None:
    found = verdict(WRONG[name])
    assert found.status == "refuted", found.reason
