"""Operators on lists of tensors compute what PyTorch computes, and what they write is an output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from rewright.frontends.torch.capture import capture
from rewright.frontends.torch.foreach import foreach_decompositions
from rewright.interp.program import run

X, Y, Z = (torch.rand(3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(k)) + 0.5 for k in range(3))
aten: Any = torch

CASES: dict[str, Callable[[list[torch.Tensor]], Any]] = {
    "lists": lambda xs: aten._foreach_add(xs, [Y, Z], alpha=2.0),
    "a number": lambda xs: aten._foreach_mul(xs, 3.0),
    "numbers": lambda xs: aten._foreach_div(xs, [2.0, 4.0]),
    "no operand": lambda xs: aten._foreach_sqrt(xs),
    "maximum": lambda xs: aten._foreach_maximum(xs, [Y, Z]),
    "norm": lambda xs: aten._foreach_norm(xs, 2),
    "other norm": lambda xs: aten._foreach_norm(xs, 1),
    "interpolation": lambda xs: aten._foreach_lerp(xs, [Y, Z], 0.25),
    "product": lambda xs: aten._foreach_addcmul(xs, [Y, Z], [Z, Y], 0.5),
    "quotient": lambda xs: aten._foreach_addcdiv(xs, [Y, Z], [Z, Y], [0.5, 2.0]),
    "quotient by tensor": lambda xs: aten._foreach_addcdiv(xs, [Y, Z], [Z, Y], torch.tensor([0.5, 2.0])),
}


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_pytorch(name: str) -> None:
    graph = capture(lambda x, y: CASES[name]([x, y]), (X, Y))
    found = run(graph, {"x": X.numpy(), "y": Y.numpy()})
    for index, expected in enumerate(CASES[name]([X, Y])):
        np.testing.assert_allclose(found[f"output.{index}"], expected.numpy())


def test_what_is_written_in_place_is_an_output() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        aten._foreach_copy_([x], [y])
        aten._foreach_addcmul_([x], [y], [y], 3.0)
        return x

    graph = capture(program, (X, Y))
    found = run(graph, {"x": X.numpy(), "y": Y.numpy()})
    np.testing.assert_allclose(found["updated:x"], (Y + 3 * Y * Y).numpy())
    assert "updated:y" not in graph.outputs


def test_every_entry_is_an_overload_on_lists() -> None:
    for overload in foreach_decompositions():
        assert "List[Tensor]" in {str(argument.type) for argument in overload._schema.arguments[:2]}
