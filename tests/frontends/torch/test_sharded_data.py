"""Fully sharded data parallelism: parameters are gathered, gradients averaged and scattered through flat buffers."""

import numpy as np
import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard

from rewright.frontends.torch.capture import capture
from rewright.frontends.torch.ranks import capture_ranks
from rewright.interp.ranks import run, run_ranks
from tests.zoo.agreement import part, random_inputs


def model() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 7), nn.Tanh(), nn.Linear(7, 3))


def loss(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return model(x).square().mean()


def build(mesh: DeviceMesh) -> tuple[object, tuple[object, ...]]:
    return loss, (fully_shard(model(), mesh=mesh), torch.zeros(2, 4))


def test_gradients_are_the_shards_of_the_sequential_ones() -> None:
    program = capture_ranks(build, {"dp": 2}, backward=True)
    sequential = capture(loss, (model(), torch.zeros(4, 4)), backward=True)
    values = random_inputs(sequential)
    halves = [{"x": half} for half in np.split(values["x"], 2)]
    own = [{n: part(values[n], p, rank) for n, p in program.inputs.items()} | halves[rank] for rank in (0, 1)]
    expected = run(sequential, values).outputs
    for rank, execution in enumerate(run_ranks(program.graphs, own)):
        for name, placement in program.outputs.items():
            np.testing.assert_allclose(execution.outputs[name], part(expected[name], placement, rank))
    assert str(program.outputs["grad:0.weight"]) == "Shard(0)"
