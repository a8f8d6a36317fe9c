"""What is stored so that readers do not compute it anew: what is shifted, and what is looked up for many."""

from __future__ import annotations

import torch
import torch.nn.functional as F

import rewright as rw
from rewright.optimize.planning.plan import Plan
from rewright.optimize.planning.work import plan_work, program_work
from tests.optimize.programs import normal


def optimized(program: object, *args: torch.Tensor) -> Plan:
    found = rw.optimize(program, args, target="torch")
    assert found.status == "proved" and found.plan is not None, found.reason
    torch.testing.assert_close(found(*args), program(*args), rtol=1e-5, atol=1e-5)  # type: ignore[operator]
    return found.plan


def stored(plan: Plan) -> list[str]:
    return [plan.graph.nodes[s.tensor].op.name for kernel in plan.kernels for s in kernel.stores]


def shifted(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """A normalisation of an image, moved by two places both ways, cut into windows, and a product with each."""
    y = torch.roll(F.layer_norm(x, (x.shape[-1],)), (-2, -2), (0, 1))
    size, width = x.shape[0] // 4, x.shape[-1]
    return y.reshape(size, 4, size, 4, width).transpose(1, 2) @ w


def test_a_normalisation_is_not_computed_anew_for_each_part_of_what_is_shifted() -> None:
    plan = optimized(shifted, normal(8, 8, 16), normal(16, 16, seed=1))

    reductions = [r for kernel in plan.kernels for sweep in kernel.sweeps for r in sweep.running]
    assert len(reductions) <= 3, "the sums of a row, and what is left of its mean"


def test_pairs_of_a_normalised_head_are_turned_in_the_pass_of_the_norm() -> None:
    def turned(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        y = F.rms_norm(x, (x.shape[-1],))
        a, b = y.chunk(2, -1)
        return y * cos + torch.cat([-b, a], -1) * sin

    plan = optimized(turned, normal(2, 3, 9, 16), normal(9, 16, seed=1), normal(9, 16, seed=2))

    assert len(plan.kernels) == 1


def test_a_bias_that_is_looked_up_is_stored_where_many_windows_read_it() -> None:
    def windows(q: torch.Tensor, k: torch.Tensor, table: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        bias = table[places.reshape(-1)].reshape(9, 9, 2).permute(2, 0, 1)
        return torch.softmax(q @ k.transpose(-1, -2) + bias, -1) @ k

    def run(count: int) -> list[str]:
        args = normal(count, 2, 9, 16), normal(count, 2, 9, 16, seed=1), normal(17, 2, seed=2)
        return stored(optimized(windows, *args, torch.arange(81).reshape(9, 9) % 17))

    assert "gather" in run(6)
    assert "gather" not in run(1)


def test_products_that_are_put_side_by_side_are_stored_each_by_itself() -> None:
    def three(p: torch.Tensor, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        parts = p @ k, (p * p) @ k, p.mT @ q
        return torch.cat([part.transpose(0, 1).reshape(96, 64) for part in parts], -1)

    plan = optimized(three, 0.1 * normal(4, 96, 96), normal(4, 96, 16, seed=1), normal(4, 96, 16, seed=2))

    assert plan_work(plan) < 1.5 * program_work(plan.graph)


def test_what_two_halves_of_a_product_are_put_side_by_side_with_does_not_compute_it_twice() -> None:
    def turned(p: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        a, b = (torch.softmax(p, -1) @ x).chunk(2, -1)
        return F.pad(-b, (0, 32)) + F.pad(a, (32, 0))

    plan = optimized(turned, normal(200, 200), normal(200, 64, seed=1))

    assert "dot_general" in stored(plan)
    assert plan_work(plan) < 1.5 * program_work(plan.graph)


def inverse(x: torch.Tensor) -> torch.Tensor:
    """Newton's iteration for a pseudo-inverse, as in Nyström attention: each step reads the one before six times."""
    one = torch.eye(x.shape[-1])
    z = x.transpose(-1, -2) / (x.abs().sum(-1).amax() * x.abs().sum(-2).amax())
    for _ in range(6):
        xz = x @ z
        z = 0.25 * z @ (13 * one - xz @ (15 * one - xz @ (7 * one - xz)))
    return z


def test_a_matrix_that_is_multiplied_by_itself_again_and_again_is_planned() -> None:
    plan = optimized(inverse, torch.softmax(normal(2, 6, 6), -1))

    assert plan_work(plan) < 3 * program_work(plan.graph)
