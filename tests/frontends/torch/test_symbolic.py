"""Sizes that stay symbols, by name or as a polynomial."""

import math

import pytest
import torch
from torch import nn

from rewright.frontends.torch.capture import capture
from rewright.ir.errors import CaptureError


def shape(graph: object) -> list[str]:
    return [str(s) for s in graph.nodes[graph.outputs["output"]].type.shape]  # pyright: ignore


def test_named_sizes_reach_the_types_and_the_assumptions() -> None:
    graph = capture(nn.Linear(3, 5), (torch.ones(2, 7, 3),), dynamic={"input": {0: "batch", 1: "sequence"}})
    assert shape(graph) == ["batch", "sequence", "5"]
    assert graph.metadata["assumptions"] == "batch >= 2; sequence >= 2"


def test_polynomials_of_names() -> None:
    graph = capture(lambda x: x.view(2, -1, 3), (torch.ones(8, 3),), dynamic={"x": {0: "2*half"}})
    assert shape(graph) == ["2", "half", "3"]


def test_one_name_on_two_arguments_is_one_size() -> None:
    sizes = {"x": {0: "rows"}, "y": {0: "rows"}}
    graph = capture(lambda x, y: x + y, (torch.ones(4, 2), torch.ones(4, 2)), dynamic=sizes)
    assert shape(graph) == ["rows", "2"]


def test_gradients_have_symbolic_sizes_inside() -> None:
    graph = capture(
        lambda model, x: model(x).square().mean(),
        (nn.Linear(3, 2), torch.ones(4, 3)),
        backward=True,
        dynamic={"x": {0: "n"}},
    )
    assert str(graph.nodes[graph.outputs["grad:weight"]].type) == "2x3xf32"


def test_a_size_that_is_not_that_of_another_tensor_is_no_fault_of_the_program() -> None:
    with pytest.raises(
        CaptureError, match=r"\(n\) must match .* the size n is any number here: make that axis a number"
    ):
        capture(lambda x: x + torch.ones(12), (torch.ones(12),), dynamic={"x": {0: "n"}})


def test_a_word_of_the_user_that_begins_like_a_size_stays() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        raise ValueError("s_proj is missing")

    for dynamic in ({"x": {0: "n"}}, None):
        with pytest.raises(CaptureError, match="s_proj is missing; correct the program"):
            capture(program, (torch.ones(12),), dynamic=dynamic)


def test_a_size_that_becomes_a_number_of_python_is_refused() -> None:
    with pytest.raises(CaptureError, match="'n' to be one number, as for a square root"):
        capture(lambda x: x / math.sqrt(x.shape[0]), (torch.ones(12),), dynamic={"x": {0: "n"}})


def test_a_size_that_the_program_fixes_is_refused() -> None:
    with pytest.raises(CaptureError, match="forces the symbolic size 'n'"):
        capture(lambda x: x + torch.ones(6), (torch.ones(6),), dynamic={"x": {0: "n"}})


@pytest.mark.parametrize(
    ("sizes", "message"),
    [({"y": {0: "n"}}, "no argument 'y'"), ({"x": {3: "n"}}, "no axis 3"), ({"x": {0: "n/2"}}, "is no size")],
)
def test_mistakes_are_refused(sizes: dict[str, dict[int, str]], message: str) -> None:
    with pytest.raises(CaptureError, match=message):
        capture(lambda x: x * 2, (torch.ones(4),), dynamic=sizes)
