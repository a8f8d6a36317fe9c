"""Custom operators: the Python function of one is what it computes, unless it reads memory by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.library import custom_op

import rewright as rw
from rewright.interp.program import run
from rewright.ir.errors import CaptureError, UnsupportedOperator

library: Any = torch.ops


def run_elsewhere(x: torch.Tensor) -> torch.Tensor:
    """Stands for an extension, which no operator tells of."""
    return x + 1


@pytest.fixture(autouse=True, scope="module")
def operators() -> None:
    @custom_op("rewright_tests::scaled", mutates_args=())
    def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
        return x * by + 1

    scaled.register_fake(lambda x, by: torch.empty_like(x))
    scaled.register_autograd(
        lambda ctx, gradient: (gradient * ctx.by, None),
        setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1]),
    )

    @custom_op("rewright_tests::by_numpy", mutates_args=())
    def by_numpy(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(np.sin(x.numpy()))

    by_numpy.register_fake(torch.empty_like)

    @custom_op("rewright_tests::two_kernels", mutates_args=())
    def two_kernels(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    @custom_op("rewright_tests::by_other_code", mutates_args=())
    def by_other_code(x: torch.Tensor) -> torch.Tensor:
        return run_elsewhere(x)

    by_other_code.register_fake(torch.empty_like)

    @custom_op("rewright_tests::writes", mutates_args={"x"})
    def writes(x: torch.Tensor) -> torch.Tensor:
        return x.add_(1) * 2

    writes.register_fake(torch.empty_like)

    two_kernels.register_kernel("cuda")(lambda x: x + 2)
    two_kernels.register_fake(torch.empty_like)


def test_the_function_of_an_operator_is_recorded_with_its_own_gradient() -> None:
    def step(x: torch.Tensor) -> dict[str, torch.Tensor]:
        loss = library.rewright_tests.scaled(x, 3.0).square().sum()
        loss.backward()
        return {"loss": loss}

    x = torch.randn(4, requires_grad=True)
    step(x)
    for real in (False, True):
        graph = rw.capture(step, (torch.zeros(4, requires_grad=True),), run=real)
        found = run(graph, {"x": x.detach().numpy()})
        np.testing.assert_allclose(found["grad:x"], x.grad, rtol=1e-5)


@pytest.mark.parametrize("name", ["by_numpy", "two_kernels", "by_other_code", "writes"])
def test_what_no_operator_tells_of_stays_an_operator_without_a_lowering(name: str) -> None:
    call = getattr(library.rewright_tests, name)
    with pytest.raises((CaptureError, UnsupportedOperator), match="no lowering"):
        rw.capture(lambda x: call(x), (torch.zeros(3),))


def test_an_operator_that_may_do_more_is_left_to_who_runs_the_program() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return library.rewright_tests.scaled(x, 2.0).exp()

    graph = rw.capture(program, (torch.zeros(3),), opaque=True)
    assert any("rewright_tests" in str(node.op) for node in graph.nodes)
