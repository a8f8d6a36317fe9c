"""Data parallelism: what FSDP2 and DDP do is captured and proved, and what hides its work from a trace is refused."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

import rewright as rw
from rewright.ir.errors import CaptureError

BATCH = 8
Mesh = dict[str, int]
Step = Callable[[nn.Module, torch.Tensor], dict[str, torch.Tensor]]


class FeedForward(nn.Module):
    def __init__(self, *, bias: bool = False) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(4, 8, bias=bias), nn.Linear(8, 4, bias=bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(torch.relu(self.up(x)))


def step(model: nn.Module, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Forward and backward; the loss is that of the whole batch."""
    loss = model(x).square().mean()
    loss.backward()
    total = loss.detach().clone()
    if dist.is_initialized():
        dist.all_reduce(total)
        total /= dist.get_world_size()
    return {"loss": total}


def in_two_parts(model: Any, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Gradients are accumulated, and reduced with the second half of the batch."""
    for part, last in zip(x.chunk(2), (False, True), strict=True):
        model.set_requires_gradient_sync(last)
        (model(part).square().mean() / 2).backward()
    return {}


def gradients(model: nn.Module, x: torch.Tensor) -> dict[str, torch.Tensor]:
    model(x).square().mean().backward()
    return {}


def with_adam(model: nn.Module, x: torch.Tensor) -> dict[str, torch.Tensor]:
    model(x).square().mean().backward()
    torch.optim.AdamW(model.parameters(), lr=0.1).step()
    return {}


def with_momentum(model: nn.Module, x: torch.Tensor) -> dict[str, torch.Tensor]:
    model(x).square().mean().backward()
    torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1, foreach=True).step()
    return {}


def each(model: FeedForward, **options: Any) -> nn.Module:
    """Shard layer by layer."""
    for layer in (model.up, model.down, model):
        fully_shard(layer, **options)
    return model


def verdict(model: Callable[[DeviceMesh], nn.Module], mesh: Mesh, ranks: Step, whole: Step, x: list[str]) -> Any:
    """On ranks that hold equal parts of the batch, cut over the mesh axes that ``x`` shards, against one device."""
    parts = math.prod(size for size, placement in zip(mesh.values(), x, strict=True) if placement == "Shard(0)")
    sequential = rw.capture(whole, (FeedForward(), torch.zeros(BATCH, 4)))
    program = rw.capture_ranks(lambda m: (ranks, (model(m), torch.zeros(BATCH // parts, 4))), mesh)
    return rw.refine(sequential, program, relations={"x": x})


def sharded(mesh: DeviceMesh) -> nn.Module:
    return each(FeedForward(), mesh=mesh)


def narrowed(mesh: DeviceMesh) -> nn.Module:
    return each(FeedForward(), mesh=mesh, mp_policy=MixedPrecisionPolicy(torch.bfloat16, torch.float32))


def split_both_ways(mesh: DeviceMesh) -> nn.Module:
    plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
    return each(parallelize_module(FeedForward(), mesh["tp"], plan), mesh=mesh["dp"])


PROGRAMS: dict[str, tuple[Callable[[DeviceMesh], nn.Module], Mesh, Step, Step, list[str]]] = {
    "two ranks": (sharded, {"dp": 2}, step, step, ["Shard(0)"]),
    "groups of replicas": (sharded, {"replica": 2, "shard": 2}, step, step, ["Shard(0)", "Shard(0)"]),
    "tensor parallelism": (split_both_ways, {"dp": 2, "tp": 2}, gradients, gradients, ["Shard(0)", "Replicate()"]),
    "mixed precision": (narrowed, {"dp": 2}, gradients, gradients, ["Shard(0)"]),
    "accumulation": (sharded, {"dp": 2}, in_two_parts, gradients, ["Shard(0)"]),
    "adam": (sharded, {"dp": 2}, with_adam, with_adam, ["Shard(0)"]),
    "momentum": (sharded, {"dp": 2}, with_momentum, with_momentum, ["Shard(0)"]),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_fully_sharded_programs_are_proved(name: str) -> None:
    found = verdict(*PROGRAMS[name])
    assert found.status == "proved", found.reason
    assert {output for output in found.relation if output.startswith("grad:")} == {"grad:up.weight", "grad:down.weight"}


@pytest.mark.parametrize("name", ["adam", "momentum"])
def test_parameters_that_an_optimizer_updates_are_outputs_of_every_rank(name: str) -> None:
    found = verdict(*PROGRAMS[name])
    assert found.relation["updated:up.weight"].placement == "Shard(0)"


def test_parameters_that_are_gathered_together_are_proved() -> None:
    def at_once(mesh: DeviceMesh) -> nn.Module:
        return fully_shard(FeedForward(), mesh=mesh)

    assert verdict(at_once, {"dp": 2}, step, step, ["Shard(0)"]).status == "proved"


@pytest.mark.parametrize("rows", [4, 5])
def test_padding_writes_no_parameter(rows: int) -> None:
    def build(mesh: DeviceMesh) -> tuple[Step, tuple[nn.Module, torch.Tensor]]:
        return gradients, (fully_shard(nn.Linear(4, rows, bias=False), mesh=mesh), torch.zeros(2, 4))

    program = rw.capture_ranks(build, {"dp": 2})
    assert [list(graph.outputs) for graph in program.graphs] == [["grad:weight"]] * 2


def test_an_average_that_is_forgotten_is_refuted() -> None:
    def summed(mesh: DeviceMesh) -> nn.Module:
        model: Any = each(FeedForward(), mesh=mesh)
        for layer in (model.up, model.down, model):
            layer.set_gradient_divide_factor(1.0)
        return model

    assert verdict(summed, {"dp": 2}, gradients, gradients, ["Shard(0)"]).status == "refuted"


def test_gradients_that_nobody_reduces_are_refuted() -> None:
    assert verdict(lambda _: FeedForward(), {"dp": 2}, step, step, ["Shard(0)"]).status == "refuted"


def test_gradients_reduced_by_hand_are_proved() -> None:
    def reduced(model: nn.Module, x: torch.Tensor) -> dict[str, torch.Tensor]:
        model(x).square().mean().backward()
        for parameter in model.parameters():
            assert parameter.grad is not None
            dist.all_reduce(parameter.grad, op=dist.ReduceOp.AVG)
        return {}

    assert verdict(lambda _: FeedForward(), {"dp": 2}, reduced, gradients, ["Shard(0)"]).status == "proved"


class Trainer:
    def __init__(self, model: nn.Module) -> None:
        self.models = [model]

    def step(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return step(self.models[0], x)


def nested(model: nn.Module) -> Callable[[torch.Tensor], Any]:
    def inner(x: torch.Tensor) -> Any:
        return step(model, x)

    return lambda x: inner(x)


def made_inside(x: torch.Tensor) -> Any:
    return step(DistributedDataParallel(FeedForward()), x)


ROUTES: dict[str, Callable[[nn.Module], Any]] = {
    "in a closure": lambda model: lambda x: step(model, x),
    "in a container of a closure": lambda model: (lambda models: lambda x: step(models["m"][0], x))({"m": [model]}),
    "in a partial function": lambda model: functools.partial(step, model),
    "in an object": lambda model: Trainer(model).step,
}


@pytest.mark.parametrize("route", ROUTES)
def test_the_reducer_of_ddp_is_traced_however_it_is_reached(route: str) -> None:
    def build(mesh: DeviceMesh) -> tuple[Any, tuple[torch.Tensor]]:
        return ROUTES[route](DistributedDataParallel(FeedForward())), (torch.zeros(BATCH // 2, 4),)

    whole = rw.capture(lambda model, x: {"loss": step(model, x)["loss"]}, (FeedForward(), torch.zeros(BATCH, 4)))
    found = rw.refine(whole, rw.capture_ranks(build, {"dp": 2}), relations={"x": "Shard(0)"})
    assert found.status == "proved", found.reason


HIDDEN: dict[str, Callable[[nn.Module], Any]] = {
    "made by the program": lambda model: made_inside,
    "in a function of a function": nested,
}


@pytest.mark.parametrize("route", HIDDEN)
def test_a_wrapper_that_a_program_makes_or_hides_is_refused(route: str) -> None:
    def build(mesh: DeviceMesh) -> tuple[Any, tuple[torch.Tensor]]:
        return HIDDEN[route](DistributedDataParallel(FeedForward())), (torch.zeros(2, 4),)

    with pytest.raises(CaptureError, match=r"makes a DistributedDataParallel .*; make it before") as caught:
        rw.capture_ranks(build, {"dp": 2})
    assert "\n" not in str(caught.value)


def silent_first(model: Any, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Two parts of the batch; what the first adds to the gradients is reduced with the second."""
    first, second = x.chunk(2)
    with model.no_sync():
        (model(first).square().mean() / 2).backward()
    (model(second).square().mean() / 2).backward()
    return {}


def never_reduced(model: Any, x: torch.Tensor) -> dict[str, torch.Tensor]:
    with model.no_sync():
        model(x).square().mean().backward()
    return {}


def forgotten_half(model: Any, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Means over halves are added as if they were means over the whole."""
    first, second = x.chunk(2)
    with model.no_sync():
        model(first).square().mean().backward()
    model(second).square().mean().backward()
    return {}


OPTIONS: dict[str, dict[str, Any]] = {
    "one bucket": {},
    "a bucket for each parameter": {"bucket_cap_mb": 0.00001},
    "gradients that are views": {"gradient_as_bucket_view": True},
    "unused parameters": {"find_unused_parameters": True},
    "a graph that stays": {"static_graph": True},
}


def by_ddp(ranks: Step, **options: Any) -> Any:
    return verdict(
        lambda _: DistributedDataParallel(FeedForward(bias=False), **options), {"dp": 2}, ranks, gradients, ["Shard(0)"]
    )


@pytest.mark.parametrize("options", OPTIONS)
def test_the_reducer_of_ddp_is_proved_with_its_options(options: str) -> None:
    found = by_ddp(gradients, **OPTIONS[options])
    assert found.status == "proved", found.reason
    assert found.relation["grad:up.weight"].placement == "Replicate()"


def test_ddp_reduces_what_was_accumulated_without_synchronisation() -> None:
    assert by_ddp(silent_first).status == "proved"


@pytest.mark.parametrize("ranks", [never_reduced, forgotten_half])
def test_gradients_that_ddp_never_reduces_or_that_count_twice_are_refuted(ranks: Step) -> None:
    assert by_ddp(ranks).status == "refuted"


@pytest.mark.parametrize("options", [{}, {"find_unused_parameters": True}])
def test_a_bucket_that_waits_for_an_unused_parameter_is_a_capture_error(options: dict[str, Any]) -> None:
    def build(_: DeviceMesh) -> nn.Module:
        model = FeedForward()
        model.unused = nn.Linear(2, 2)
        return DistributedDataParallel(model, **options)

    with pytest.raises(CaptureError, match="waits for gradients of parameters that the step does not use"):
        rw.capture_ranks(lambda mesh: (gradients, (build(mesh), torch.zeros(2, 4))), {"dp": 2})


def test_a_hook_of_ddp_takes_part() -> None:
    def without_mean(group, bucket):
        future: Any = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
        return future.then(lambda done: done.value()[0])

    def build(_: DeviceMesh) -> nn.Module:
        model: Any = DistributedDataParallel(FeedForward())
        model.register_comm_hook(None, without_mean)
        return model

    assert verdict(build, {"dp": 2}, gradients, gradients, ["Shard(0)"]).status == "refuted"


def test_flat_parameters_of_the_first_fsdp_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    def build(mesh: DeviceMesh) -> tuple[Any, tuple[Any, ...]]:
        model = FullyShardedDataParallel(FeedForward(), mesh.get_group(), device_id=torch.device("cpu"))
        return step, (model, torch.zeros(2, 4))

    with pytest.raises(CaptureError, match=r"FullyShardedDataParallel, .*; shard the module with fully_shard"):
        rw.capture_ranks(build, {"dp": 2})
    assert capsys.readouterr().err == ""
