"""Kernels are proved for all sizes, and wrong ones refuted by what Triton's interpreter does."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import rewright as rw

pytest.importorskip("triton", reason="Triton is the extra [gpu]")

from tests.kernel import programs

VECTORS = {"x": {0: "n"}, "y": {0: "n"}}
ROWS = {"x": {0: "rows", 1: "columns"}}
MATRICES = {"a": {0: "m", 1: "k"}, "b": {0: "k", 1: "n"}}


def sum_of(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x + y


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a @ b


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("dynamic", [None, VECTORS])
def test_vectors_of_any_length_are_added(dynamic: Any) -> None:
    found = rw.kernel(sum_of, programs.add, (normal(300), normal(300)), dynamic=dynamic)

    assert found.status == "proved" and found.evidence.value == "proved", found.reason
    assert found.runs > 2


def test_an_online_softmax_for_rows_of_any_length() -> None:
    found = rw.kernel(softmax, programs.softmax, (normal(5, 70),), dynamic=ROWS)

    assert found.status == "proved", found.reason
    assert any("running maximum" in text for text in found.assumptions)


def test_a_product_of_matrices_of_any_size() -> None:
    found = rw.kernel(product, programs.matmul, (normal(20, 35), normal(35, 18)), dynamic=MATRICES)

    assert found.status == "proved", found.reason


@pytest.mark.parametrize(
    ("reference", "launcher", "args", "dynamic", "text"),
    [
        (sum_of, "unmasked", (300, 300), VECTORS, "outside of the memory"),
        (sum_of, "last_tile", (300, 300), VECTORS, "by the kernel"),
        (softmax, "without_rescaling", ((5, 70),), ROWS, "by the kernel"),
        (product, "dropped_tile", ((20, 35), (35, 18)), MATRICES, "by the kernel"),
        (lambda x: x[-1], "racing", ((3, 40),), {}, ""),
    ],
)
def test_wrong_kernels_are_not_proved(reference: Any, launcher: str, args: Any, dynamic: Any, text: str) -> None:
    tensors = tuple(normal(*(shape if isinstance(shape, tuple) else (shape,))) for shape in args)
    found = rw.kernel(reference, getattr(programs, launcher), tensors, dynamic=dynamic)

    if text:
        assert found.status == "refuted" and text in found.reason, found.reason
    else:  # one order of instances gives the right result
        assert found.status == "unknown" and "order decides" in found.reason, found.reason
