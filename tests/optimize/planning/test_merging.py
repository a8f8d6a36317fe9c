"""Which stored tensors become one kernel: those of one pass, however their axes are written."""

from __future__ import annotations

import math

import torch

from rewright.optimize.planning.plan import Plan
from tests.optimize.planning.test_splitting import plan_of
from tests.optimize.programs import normal

HEADS, LENGTH, WIDTH = 2, 96, 8


def test_a_result_and_its_statistics_have_one_pass_where_one_of_them_has_a_unit_axis_more() -> None:
    def forward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, ...]:
        s = (q[None] @ k[None].transpose(-1, -2)) / math.sqrt(WIDTH)
        m = s.amax(-1, keepdim=True)
        e = torch.exp(s - m)
        total = e.sum(-1, keepdim=True)
        return torch.bmm((e / total).reshape(HEADS, LENGTH, LENGTH), v), m, total

    plan = plan_of(forward, heads(3))

    assert [len(kernel.stores) for kernel in plan.kernels] == [3]
    assert [len(kernel.sweeps) for kernel in plan.kernels] == [1]


def test_gradients_by_keys_and_values_read_the_same_scores() -> None:
    """And those by queries, which share no product of tiles with them, are a kernel of their own."""

    def backward(
        q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, m: torch.Tensor, g: torch.Tensor, d: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        p = torch.exp(q @ k.transpose(-1, -2) - m)
        ds = p * (g @ v.transpose(-1, -2) - d)
        return ds @ k, ds.transpose(-1, -2) @ q, p.transpose(-1, -2) @ g

    rows = normal(HEADS, LENGTH, 1)
    plan = plan_of(backward, (*heads(3), rows, normal(HEADS, LENGTH, WIDTH), rows))

    assert sorted(outputs(plan)) == [["output.0"], ["output.1", "output.2"]]
    assert sorted(sum(len(s.products) for s in kernel.sweeps) for kernel in plan.kernels) == [2, 2]


def heads(count: int) -> tuple[torch.Tensor, ...]:
    """Tensors of some heads."""
    return tuple(normal(HEADS, LENGTH, WIDTH, seed=seed) for seed in range(count))


def outputs(plan: Plan) -> list[list[str]]:
    """The outputs that each kernel stores."""
    names = {position: name for name, position in plan.graph.outputs.items()}
    return [sorted(names[s.tensor] for s in kernel.stores if s.tensor in names) for kernel in plan.kernels]
