"""A graph with symbols, from captures at several sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
import torch

from rewright.frontends.torch.capture import capture
from rewright.ir.digest import digest
from rewright.ir.graph import Graph
from rewright.ir.sizes import size_symbols
from rewright.optimize.sizes.alike import NotAlike, choose_samples
from rewright.optimize.sizes.fitting import fit_graph, is_at
from tests.optimize.programs import normal

Function = Callable[[torch.Tensor], torch.Tensor]
SAMPLES = choose_samples({"s": 8}, taken={4})


def captures(function: Function) -> Callable[[Mapping[str, int]], Graph]:
    """Captures of a function of s times 4 numbers."""
    return lambda sizes: capture(function, (normal(sizes["s"], 4),))


def deviations(x: torch.Tensor) -> torch.Tensor:
    return x - x.mean(0)


def halves(x: torch.Tensor) -> torch.Tensor:
    return x[: x.shape[0] // 2]


def listed(x: torch.Tensor) -> torch.Tensor:
    return x * torch.tensor([1.0, 2.0, 3.0, float(x.shape[0])])


def smallest(x: torch.Tensor) -> torch.Tensor:
    return x[: min(x.shape[0], 40)] * 2


def longer(x: torch.Tensor) -> torch.Tensor:
    return x.exp() if x.shape[0] > 100 else x.sin()


def scaled(x: torch.Tensor) -> torch.Tensor:
    return x * x.shape[0] ** -0.5


def but_the_last(x: torch.Tensor) -> torch.Tensor:
    return x[1:] - x[:-1] + (x.shape[0] - 1)


@pytest.mark.parametrize("function", [deviations, but_the_last])
def test_a_program_with_counts_is_one_graph_at_all_sizes(function: Function) -> None:
    graph = fit_graph(SAMPLES, captures(function))

    assert size_symbols(graph) == ("s",)
    assert all(is_at(graph, {"s": size}, captures(function)({"s": size})) for size in (2, 3, 40, 1000))


@pytest.mark.parametrize("function", [halves, scaled, listed])
def test_sizes_that_are_no_polynomials_are_told(function: Function) -> None:
    with pytest.raises(NotAlike):
        fit_graph(SAMPLES, captures(function))


@pytest.mark.parametrize(("function", "other"), [(longer, 100), (longer, 5)])
def test_a_size_at_which_the_program_is_another_one_is_told(function: Function, other: int) -> None:
    graph = fit_graph(SAMPLES, captures(function))

    assert is_at(graph, {"s": 101}, captures(function)({"s": 101}))
    assert not is_at(graph, {"s": other}, captures(function)({"s": other}))


def test_a_size_that_is_a_constant_at_the_samples_is_no_symbol() -> None:
    graph = fit_graph(SAMPLES, captures(smallest))

    assert is_at(graph, {"s": 64}, captures(smallest)({"s": 64}))
    assert not is_at(graph, {"s": 16}, captures(smallest)({"s": 16}))


def test_counts_are_compared_and_not_only_named() -> None:
    graph = fit_graph(SAMPLES, captures(deviations))

    assert not is_at(graph, {"s": 12}, capture(lambda x: x - x.sum(0) / 13, (normal(12, 4),)))
    assert digest(graph) == digest(fit_graph(choose_samples({"s": 300}, taken={4}), captures(deviations)))
