"""A step: outputs and gradients of arguments, and of parameters where the program is a module."""

from __future__ import annotations

import pytest
import torch

from bench.optimize import outputs
from bench.optimize.gradients import error, gradients_of
from bench.optimize.program import Built
from bench.optimize.programs import PROGRAMS


def test_a_step_gives_the_outputs_and_the_gradients_of_what_is_floating() -> None:
    built = Built(lambda x, n: x.square() * n, (torch.tensor([3.0]), torch.tensor([2])))
    (result, gradient) = gradients_of(built)()
    assert (result.item(), gradient.item()) == (18.0, pytest.approx(12.0 / 7))
    assert not built.args[0].requires_grad


def test_a_module_has_gradients_of_its_parameters() -> None:
    layer = torch.nn.Linear(3, 2)
    found = gradients_of(Built(layer, (torch.ones(1, 3),)))()
    assert [tuple(t.shape) for t in found] == [(1, 2), (1, 3), (2, 3), (2,)]


@pytest.mark.parametrize("name", [p.name for p in PROGRAMS.values() if p.backward])
def test_gradients_are_what_they_are_in_float64(name: str) -> None:
    built = PROGRAMS[name].build(size="tiny")
    found, exact = gradients_of(built)(), gradients_of(outputs.in_double(built))()
    assert len(found) >= 2
    assert error(found, exact) < 2e-5
