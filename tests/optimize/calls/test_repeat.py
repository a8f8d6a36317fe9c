"""Calls like one that ran are told so at once, and what is not alike never is."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import rewright as rw
from tests.optimize.programs import normal


def scaled(x: torch.Tensor, y: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
    return torch.softmax(x * factor + y, -1) * (3.0 if getattr(x, "marked", False) else 1.0)


def optimized(program: Any, *args: Any) -> Any:
    found = rw.optimize(program, args, target="torch", verify=False, floor=False, remember=False)
    assert found.status == "proved", found.reason
    return found


def held(found: Any, *args: Any) -> bool:
    """Whether a call is told at once to be like one that ran."""
    return any(repeat.holds(args) for repeat, _ in found.calls.repeats)


def test_a_second_call_is_told_at_once() -> None:
    x, y = normal(4, 8), normal(4, 8, seed=1)
    found = optimized(scaled, x, y, 2.0)
    with torch.no_grad():
        assert not found.calls.repeats
        assert torch.allclose(found(x, y, 2.0), scaled(x, y, 2.0), atol=1e-6)
        assert held(found, y, x, 2.0)
        assert torch.allclose(found(y, x, 2.0), scaled(y, x, 2.0), atol=1e-6)


def test_what_differs_is_looked_at_again() -> None:
    x, y = normal(4, 8), normal(4, 8, seed=1)
    found = optimized(scaled, x, y, 2.0)
    marked = x.clone()
    setattr(marked, "marked", True)  # noqa: B010
    with torch.no_grad():
        found(x, y, 2.0)
        calls: list[tuple[Any, ...]] = [
            (x, x, 2.0),
            (x, y, 2),
            (x, y, 3.0),
            (x, y, True),
            (x, y, torch.tensor(2.0)),
            (marked, y, 2.0),
            (x.double(), y, 2.0),
            (normal(8, 4).t(), y, 2.0),
            (x[:3], y[:3], 2.0),
            (nn.Parameter(x), y, 2.0),
            (torch.complex(x, x).conj().imag, y, 2.0),
        ]
        for call in calls:
            assert not held(found, *call), call
            expected = scaled(*call)
            assert torch.allclose(found(*call), expected.to(found(*call).dtype), atol=1e-6), call
            found(x, y, 2.0)
        with torch.autocast("cpu"):
            assert not held(found, x, y, 2.0)
    x.requires_grad_(True)
    assert found(x, y, 2.0).requires_grad


def test_parameters_of_another_kind_are_noticed() -> None:
    norm = nn.LayerNorm(8)
    module = nn.Sequential(norm, nn.Softmax(-1)).eval()
    x = normal(4, 8)
    found = optimized(module, x)
    with torch.no_grad():
        found(x)
        assert held(found, x)
        norm.weight.data = norm.weight.data.double()
        norm.bias.data = norm.bias.data.double()
        assert not held(found, x)
        norm.float()
        norm.weight.fill_(3.0)
        assert torch.allclose(found(x), module(x), atol=1e-6)
        norm.eps = 10.0
        assert not held(found, x)
        assert torch.allclose(found(x), module(x), atol=1e-6)


def test_results_in_fresh_memory_are_never_shared() -> None:
    def both(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        y = torch.softmax(x, -1)
        return y, y.clone(), x.contiguous()

    x = normal(4, 8)
    found = optimized(both, x)
    with torch.no_grad():
        for _ in range(3):
            first, second, third = found(x)
            assert first.data_ptr() != second.data_ptr()
            assert third.data_ptr() == x.data_ptr()


class Hiding(dict[str, float]):
    """A dictionary whose values are a list of its own, as they were."""

    def values(self) -> Any:
        return list(super().values())


SETTINGS = Hiding(factor=2.0)


class Holder:
    def __init__(self) -> None:
        self.factor = 2.0


HOLDER = Holder()


def test_entries_and_attributes_that_are_exchanged_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a class has its own ideas of its entries, and where all attributes of an object are exchanged."""

    def by_entry(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x * SETTINGS["factor"], -1)

    def by_attribute(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x * HOLDER.factor, -1)

    x = normal(4, 8)
    first, second = optimized(by_entry, x), optimized(by_attribute, x)
    for _ in range(2):
        first(x), second(x)
    monkeypatch.setitem(SETTINGS, "factor", 5.0)
    monkeypatch.setattr(HOLDER, "__dict__", {"factor": 5.0})

    assert torch.allclose(first(x), by_entry(x), atol=1e-6)
    assert torch.allclose(second(x), by_attribute(x), atol=1e-6)
