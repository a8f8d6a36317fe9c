"""The parts of plans, and that torch computes for each what its kernels do."""

from __future__ import annotations

import pytest
import torch

import rewright as rw
from rewright.optimize.floor.parts import Eager, parts_of
from rewright.optimize.planning.costs import Machine
from rewright.optimize.planning.outline import Outline
from rewright.optimize.planning.plan import widen_storage
from rewright.optimize.planning.planner import Planner
from rewright.optimize.planning.preparing import prepare_graph
from rewright.optimize.planning.splitting import split_plan
from rewright.optimize.running import reference
from tests.optimize.programs import PROGRAMS, normal

WIDE = Machine("a wide machine", 128, 1e10, 1e11, 1e-6, 16, 8)


@pytest.mark.parametrize("name", ["causal", "weights_entropy", "masked_mean", "quantised_norm"])
@pytest.mark.parametrize("is_split", [False, True])
def test_torch_computes_for_every_part_what_its_kernels_do(name: str, is_split: bool) -> None:
    program, args = PROGRAMS[name]()
    captured = rw.capture(program, args)
    plan = Planner(prepare_graph(captured)).plan()
    plan = widen_storage(split_plan(plan, WIDE, 3) if is_split else plan)
    runner = reference.runner(plan)
    parts = {part.steps[0]: part for part in parts_of(Outline.of(plan))}
    assert parts
    values = runner.bare.start(dict(zip(captured.inputs, args, strict=True)))

    for number in range(len(plan.steps)):
        expected = None
        if number in parts and all(p in values for p in parts[number].given):
            expected = parts[number].by_torch()(*[values[p] for p in parts[number].given])
        kept = dict(values)
        if expected is not None:
            for step in parts[number].steps:
                runner.bare.steps[step](kept)
            for position, value in zip(parts[number].made, expected, strict=True):
                assert value.dtype == kept[position].dtype
                torch.testing.assert_close(value, kept[position], rtol=1e-3, atol=1e-4)
        runner.bare.run_step(number, values)


def test_parts_of_equal_layers_have_one_key() -> None:
    def program(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.softmax(x, -1), torch.softmax(y, -1), torch.softmax(z, -1)

    args = normal(3, 8), normal(3, 8, seed=1), normal(4, 8)
    keys = [part.key for part in parts_of(Outline.of(Planner(prepare_graph(rw.capture(program, args))).plan()))]

    assert len(keys) == 3 and len(set(keys)) == 2


def test_a_graph_by_torch_gives_its_outputs_in_order() -> None:
    graph = rw.capture(lambda x, y: (x @ y, torch.relu(x)), (normal(2, 3), normal(3, 4)))

    product, positive = Eager(graph)(normal(2, 3), normal(3, 4))

    torch.testing.assert_close(product, normal(2, 3) @ normal(3, 4))
    torch.testing.assert_close(positive, torch.relu(normal(2, 3)))
