"""What is left to Inductor, and what Inductor takes wrongly, which is left to eager PyTorch."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from rewright.optimize.api import optimize
from rewright.optimize.backend.others import by_inductor, by_inductor_for_all_sizes


def attend(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ k.mT, -1) @ k


@pytest.fixture(scope="module")
def given() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(5, 4, generator=generator) for _ in range(2))
    return q, torch._neg_view(k)  # as the imaginary part of a conjugated tensor is one


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # what PyTorch says to itself
@pytest.mark.parametrize(
    "made", [by_inductor, lambda module, _: by_inductor_for_all_sizes(module, "inductor")], ids=["sizes", "all sizes"]
)
def test_a_view_of_negated_memory_is_not_read_as_it_lies_there(
    made: Callable[..., Any], given: tuple[torch.Tensor, torch.Tensor]
) -> None:
    module = torch.fx.symbolic_trace(attend)
    torch.testing.assert_close(made(module, given)(*given), attend(*given))


def test_a_program_that_inductor_runs_keeps_to_eager_for_such_a_view(given: tuple[torch.Tensor, torch.Tensor]) -> None:
    found = optimize(attend, (given[0], given[1].resolve_neg()), target="cpu", floor=False, remember=False)
    found.runs, found.compiled = "inductor", lambda *_: pytest.fail("Inductor reads memory as it lies there")
    torch.testing.assert_close(found(*given), attend(*given))


@pytest.mark.parametrize("layout", ["negated", "plain"])
def test_gradients_through_the_backend(layout: str, given: tuple[torch.Tensor, torch.Tensor]) -> None:
    """A graph whose saved tensors are a negated view has no kernels."""
    torch._dynamo.reset()
    compiled = torch.compile(attend, backend="rewright", options={"target": "cpu", "floor": False, "remember": False})

    def gradients(function: Callable[..., torch.Tensor]) -> tuple[torch.Tensor, ...]:
        q, k = given[0].clone(), given[1] if layout == "negated" else given[1].resolve_neg()
        q, k = q.requires_grad_(), k.detach().requires_grad_()
        return torch.autograd.grad(function(q, k).square().sum(), (q, k))

    torch.testing.assert_close(gradients(compiled), gradients(attend))
