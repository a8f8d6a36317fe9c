"""Forward and backward graphs on kernels, with eager PyTorch's values and gradients."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from tests.optimize.backend.training import PROGRAMS, Program, Twins, compiled, layer_norm, mlp
from tests.optimize.programs import normal


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dtype", [torch.float32, pytest.param(torch.float64, marks=pytest.mark.long)])
def test_a_step_of_training_runs_on_kernels(name: str, dtype: torch.dtype, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="rewright.optimize")
    torch.manual_seed(0)
    module, x = PROGRAMS[name]()
    twins = Twins.of(module.to(dtype))

    for _ in range(2):  # gradients are added to those of the step before
        twins.step(x.to(dtype) if x.is_floating_point() else x)

    twins.agree()
    assert [line.split()[0] for line in caplog.messages] == ["forward:", "backward:"]
    assert all("kernels, proved" in line for line in caplog.messages)


def test_what_is_dropped_is_scaled_and_has_the_same_place_in_the_gradient(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="rewright.optimize")
    twins = Twins.of(Program(lambda m, x: functional.dropout(torch.exp(x), 0.25)))
    x = normal(40, 50).requires_grad_()

    y = twins.compiled(x)
    y.sum().backward()

    kept = y != 0
    torch.testing.assert_close(y[kept], torch.exp(x)[kept] / 0.75)
    torch.testing.assert_close(x.grad, y)
    assert 0.7 < kept.float().mean() < 0.8
    assert not torch.equal(kept, twins.compiled(x) != 0)
    assert "forward: 1 kernels, proved" in caplog.text


def test_the_same_seed_drops_the_same() -> None:
    twins = Twins.of(Program(lambda m, x: functional.dropout(torch.exp(x), 0.5)))
    x, found = normal(20, 20), list[torch.Tensor]()

    for _ in range(2):  # the first call makes the kernels
        torch.manual_seed(3)
        found.append(twins.compiled(x))

    assert torch.equal(*found)


def test_without_gradients_and_with_them() -> None:
    module, x = layer_norm()
    twins = Twins.of(module)

    with torch.no_grad():
        torch.testing.assert_close(twins.compiled(x), module(x))
    twins.step(x)
    with torch.no_grad():
        torch.testing.assert_close(twins.compiled(x), module(x))

    twins.agree()


def test_a_graph_that_is_kept_is_gone_back_through_twice() -> None:
    module, x = mlp()
    twins = Twins.of(module)

    for run in (twins.eager, twins.compiled):
        loss = run(x).sum()
        loss.backward(retain_graph=True)
        loss.backward()

    twins.agree()


def test_a_part_that_no_gradient_goes_through() -> None:
    def run(m: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            scale = x.abs().amax(-1, keepdim=True)
        return torch.softmax(x / scale, -1)

    Twins.of(Program(run)).step(normal(4, 5))


def test_results_that_share_memory_are_as_in_eager_pytorch() -> None:
    def run(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = torch.softmax(x, -1)
        return x, x.t(), y, y.t()

    x = normal(4, 5)
    same, turned, y, other = compiled(run)(x)

    assert same is x
    assert turned.data_ptr() == x.data_ptr()
    assert turned.stride() == x.t().stride()
    assert other.data_ptr() == y.data_ptr()
    torch.testing.assert_close(other, torch.softmax(x, -1).t())
