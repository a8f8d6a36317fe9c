"""Sums of differences, each part of which follows its own running values."""

from __future__ import annotations

import pytest
import torch

import rewright as rw
from tests.optimize.programs import PROGRAMS, normal


def test_two_softmaxes_subtracted_are_two_states_of_one_pass() -> None:
    program, args = PROGRAMS["differential"]()

    plan = rw.optimize(program, args, target="torch", verify=False).plan

    assert plan is not None
    ((sweep,),) = [kernel.sweeps for kernel in plan.kernels]
    assert sum(running.factors is not None for running in sweep.running) == 2


@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_an_entropy_keeps_its_digits(offset: float) -> None:
    """The sums of ``p x`` and of ``p m`` are a thousand times larger than their difference: they stay one sum."""

    def program(x: torch.Tensor) -> torch.Tensor:
        logarithms = torch.log_softmax(x, -1)
        return -(logarithms.exp() * logarithms).sum(-1)

    x = normal(7, 301) * 30 + offset
    found = rw.optimize(program, (x,), target="torch")

    own = (program(x).double() - program(x.double())).abs().max()
    assert (found(x).double() - program(x.double())).abs().max() <= 4 * own + 1e-7


def test_a_sum_of_what_its_maximum_chooses_is_one_pass() -> None:
    """A row is left out where its largest element is small, as a softmax over nothing is."""

    def program(s: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.where(s.amax(-1, keepdim=True) > 2.5, torch.softmax(s, -1), 0.0) @ v

    s, v = normal(9, 70), normal(70, 16, seed=1)
    found = rw.optimize(program, (s, v), target="torch")
    s[3] = float("nan")

    assert found.status == "proved", found.reason
    assert found.plan is not None and [len(kernel.sweeps) for kernel in found.plan.kernels] == [1]
    torch.testing.assert_close(found(s, v), program(s, v))
    assert 0 < (program(s, v) != 0).any(-1).sum() < len(s)
