"""Calls of an optimised program inside of what traces, transforms or compiles the program around it."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

import rewright as rw
from rewright.ir.errors import RewrightError
from tests.optimize.programs import normal
from tests.versions import since


def norm(x: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-6) * gain


X, GAIN = normal(6, 32), normal(32, seed=1)
OTHER = normal(6, 32, seed=2)
FAST = rw.optimize(norm, (X, GAIN), target="torch", remember=False)


class Larger(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return FAST(x.exp(), GAIN) + 1


WANTED = norm(OTHER.exp(), GAIN) + 1


def traced(x: torch.Tensor) -> torch.Tensor:
    return torch.jit.trace(Larger(), (X,), check_trace=False)(x)


SURROUNDINGS: dict[str, Callable[[torch.Tensor], Any]] = {
    "vmap": lambda x: torch.func.vmap(Larger())(x[None])[0],
    "jvp": lambda x: torch.func.jvp(Larger(), (x,), (x,))[0],
    "torch.jit.trace": traced,
    "make_fx": lambda x: make_fx(Larger())(X)(x),
    "torch.fx.symbolic_trace": lambda x: torch.fx.symbolic_trace(lambda x: FAST(x.exp(), GAIN) + 1)(x),
    "torch.export": lambda x: torch.export.export(Larger(), (X,), strict=True).module()(x),
    "torch.export, not strict": lambda x: torch.export.export(Larger(), (X,), strict=False).module()(x),
    "torch.compile": lambda x: torch.compile(Larger(), backend="eager")(x),
}


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning", "ignore:`torch.jit:FutureWarning")
@pytest.mark.parametrize("name", SURROUNDINGS)
def test_values_are_those_of_the_program(name: str) -> None:
    assert FAST.runs == "kernels"
    torch.testing.assert_close(SURROUNDINGS[name](OTHER), WANTED)


@since("2.13", "traces the original program")
def test_kernels_run_between_the_graphs_that_dynamo_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    runner = FAST.runner
    assert runner is not None
    monkeypatch.setattr(type(runner), "__call__", counted(type(runner).__call__, ran))
    torch.compile(Larger(), backend="eager")(OTHER)
    assert ran == ["kernels"]


def counted(call: Callable[..., Any], ran: list[str]) -> Callable[..., Any]:
    def counting(self: Any, inputs: Any) -> Any:
        ran.append("kernels")
        return call(self, inputs)

    return counting


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # Dynamo looks at it wherever a graph ends
def test_gradients_through_a_compiled_call() -> None:
    x, y = (OTHER.clone().requires_grad_() for _ in range(2))
    torch.compile(Larger(), backend="eager")(x).sum().backward()
    (norm(y.exp(), GAIN) + 1).sum().backward()
    torch.testing.assert_close(x.grad, y.grad)
    assert torch.is_grad_enabled()


def test_tensors_without_values() -> None:
    with FakeTensorMode():
        assert FAST(torch.empty(6, 32), torch.empty(32)).shape == (6, 32)
    assert FAST(X.to("meta"), GAIN.to("meta")).device.type == "meta"


def test_calls_of_many_threads() -> None:
    found: list[torch.Tensor] = []
    threads = [Thread(target=lambda: found.append(FAST(OTHER, GAIN))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    for value in found:
        torch.testing.assert_close(value, norm(OTHER, GAIN))


@pytest.mark.parametrize("make", [copy.deepcopy, pickle.dumps])
def test_machine_code_has_no_copy(make: Callable[[Any], Any]) -> None:
    with pytest.raises(RewrightError, match="cannot be copied or pickled; copy the program"):
        make(FAST)
