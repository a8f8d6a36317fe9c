"""What may do more than compute runs as often as the program says: a collective that one rank runs more often hangs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives

import rewright as rw
from tests.optimize.backend.training import compiled
from tests.optimize.programs import normal

CALLS: list[str] = []


@torch.library.custom_op("rewright_tests::sent", mutates_args=())
def sent(x: torch.Tensor) -> torch.Tensor:
    """A copy; it stands for what exchanges values with other processes."""
    CALLS.append("sent")
    return x.clone()


@sent.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


def _gradient(context: Any, gradient: torch.Tensor) -> torch.Tensor:
    return torch.ops.rewright_tests.sent(gradient)


sent.register_autograd(_gradient)


def program(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """A product, something that is sent, and a softmax."""
    return torch.softmax(torch.ops.rewright_tests.sent(torch.tanh(x @ w)) * 2, -1)


@pytest.fixture(autouse=True)
def nothing_was_called() -> Iterator[None]:
    CALLS.clear()
    yield
    CALLS.clear()


def test_a_graph_runs_once_for_each_call() -> None:
    fast, args = compiled(program, target="cpu", remember=False), (normal(9, 40), normal(40, 30, seed=1))

    for number in range(1, 4):
        with torch.no_grad():
            found = fast(*args)
        assert len(CALLS) == number
    torch.testing.assert_close(found, program(*args))


def test_a_step_runs_once_for_each_call() -> None:
    fast, x = compiled(program, target="cpu", remember=False), normal(9, 40)
    w, copy = (normal(40, 30, seed=1).requires_grad_() for _ in range(2))
    weights = normal(9, 30, seed=2)

    for number in range(1, 4):
        CALLS.clear()
        (found,) = torch.autograd.grad((fast(x, w) * weights).sum(), w)
        assert len(CALLS) == 2, number
    torch.testing.assert_close(found, torch.autograd.grad((program(x, copy) * weights).sum(), copy)[0])


def test_a_program_says_that_it_is_not_timed() -> None:
    args = normal(9, 40), normal(40, 30, seed=1)
    found = rw.optimize(program, args, target="cpu", remember=False)

    assert found.status == "proved" and found.floor is None
    assert found.notes == ["not run on numbers, and not timed: rewright_tests.sent.default may do more than compute"]
    torch.testing.assert_close(found(*args), program(*args))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Inductor's own
def test_what_is_exchanged_is_left_to_inductor(caplog: pytest.LogCaptureFixture) -> None:
    """What a collective gives is not there until it is waited for."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:

        def exchanged(x: torch.Tensor) -> torch.Tensor:
            return torch.softmax(collectives.all_reduce(torch.tanh(x), "sum", dist.group.WORLD) * 2, -1)

        def waited(x: torch.Tensor) -> torch.Tensor:
            return torch.ops._c10d_functional.wait_tensor(x) * 2

        fast, x = compiled(exchanged, target="cpu", remember=False), normal(9, 40)
        torch.testing.assert_close(fast(x), torch.softmax(torch.tanh(x) * 2, -1))
        assert "left to Inductor: operator _c10d_functional.all_reduce.default" in caplog.text

        late = collectives.all_reduce(x, "sum", dist.group.WORLD)
        torch.testing.assert_close(compiled(waited, target="cpu", remember=False)(late), 2 * x)
        assert "left to Inductor: operator _c10d_functional.wait_tensor.default" in caplog.text
    finally:
        dist.destroy_process_group()
