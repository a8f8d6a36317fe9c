"""Programs of many kinds: planned, proved, run against float64, and equal to what PyTorch computes."""

from __future__ import annotations

import time

import pytest
import torch

import rewright as rw
from rewright.optimize.planning.plan import LibraryStep
from rewright.optimize.planning.planner import Planner
from rewright.optimize.planning.preparing import prepare_graph
from tests.optimize.programs import PROGRAMS, normal


def tensors(value: object) -> list[torch.Tensor]:
    return list(value) if isinstance(value, tuple) else [value]  # type: ignore[list-item]


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("target", ["torch", "cpu"])
def test_kernels_compute_what_the_program_computes(name: str, target: str) -> None:
    program, args = PROGRAMS[name]()

    found = rw.optimize(program, args, target=target, floor=False, remember=False)

    assert found.status == "proved", found.reason
    assert found.checked is not None and found.checked.passed
    for mine, expected in zip(tensors(found(*args)), tensors(program(*args)), strict=True):
        torch.testing.assert_close(mine, expected, rtol=1e-5, atol=2e-5)


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_dtypes_are_computed_in_float32(dtype: torch.dtype) -> None:
    program, _ = PROGRAMS["causal"]()
    args = tuple(normal(1, 2, 37, 16, seed=s, dtype=dtype) for s in range(3))
    exact = program(*(a.double() for a in args))

    found = rw.optimize(program, args, floor=False, remember=False)

    for mine, eager, expected in zip(found(*args), program(*args), exact, strict=True):
        own = (eager.double() - expected).abs().max()
        assert (mine.double() - expected).abs().max() <= own + 1e-3


def test_one_pass_holds_attention_and_two_have_the_columns() -> None:
    program, args = PROGRAMS["causal"]()

    plan = rw.optimize(program, args, target="torch").plan

    assert plan is not None
    assert [len(kernel.sweeps) for kernel in plan.kernels] == [1, 1]
    assert all(sweep.products for kernel in plan.kernels for sweep in kernel.sweeps)  # no matrix of weights in memory


def test_a_loss_needs_no_logits_in_memory() -> None:
    program, args = PROGRAMS["loss"]()

    plan = rw.optimize(program, args, target="torch").plan

    assert plan is not None
    stored = [plan.graph.nodes[s.tensor].type for kernel in plan.kernels for s in kernel.stores]
    assert max(t.rank for t in stored) == 1


def test_the_norm_of_a_sum_is_one_kernel_that_stores_both() -> None:
    program, args = PROGRAMS["residual_norm"]()

    plan = rw.optimize(program, args, target="torch").plan

    assert plan is not None
    assert len(plan.steps) == 1 and len(plan.kernels[0].stores) == 2


def passes(name: str) -> list[int]:
    """The number of passes of every kernel of a program, all of which is in kernels."""
    program, args = PROGRAMS[name]()
    plan = rw.optimize(program, args, target="torch", verify=False).plan
    assert plan is not None and len(plan.steps) == len(plan.kernels)
    return [len(kernel.sweeps) for kernel in plan.kernels]


@pytest.mark.parametrize("name", ["sinks", "differential", "documents", "empty_rows", "log_total", "relative"])
def test_a_variant_of_attention_is_one_pass(name: str) -> None:
    assert passes(name) == [1]


@pytest.mark.parametrize(("name", "count"), [("weights_entropy", 2), ("quantised_norm", 3), ("masked_mean", 1)])
def test_outputs_of_the_same_rows_are_one_kernel(name: str, count: int) -> None:
    assert passes(name) == [count]


def test_a_running_total_is_a_librarys_and_not_a_sum_for_every_element() -> None:
    program, args = PROGRAMS["forgetting"]()

    plan = rw.optimize(program, args, target="torch", verify=False).plan

    assert plan is not None
    assert [step.why for step in plan.steps if isinstance(step, LibraryStep)] == [
        next(step.why for step in plan.steps if isinstance(step, LibraryStep) and "a running total" in step.why)
    ]


def test_a_stack_of_layers_is_planned_in_time_that_grows_with_it() -> None:
    """Read from its end without storing anything, a layer has three ways into the one before."""

    def stack(depth: int) -> Planner:
        weights = [normal(8, 8, seed=n) for n in range(depth)]

        def program(x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
            for w in weights:
                x = x + torch.tanh(torch.nn.functional.layer_norm(x, (8,)) @ w)
            return x

        return Planner(prepare_graph(rw.capture(program, (normal(5, 8), *weights))))

    start = time.process_time()
    plan = stack(8).plan()

    assert time.process_time() - start < 8
    assert len(plan.kernels) <= 8 * 3
