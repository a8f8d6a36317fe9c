"""Steps of generation: few queries, and keys and values that are read as they lie in memory."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

import rewright as rw
from tests.optimize.programs import normal


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ k.to(q.dtype).transpose(-1, -2) / math.sqrt(q.shape[-1]), -1) @ v.to(q.dtype)


def grouped(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Heads of a group, which share keys, are rows; they are one axis of the result."""
    return attend(q.unflatten(1, (k.shape[1], -1)).squeeze(3), k, v).flatten(1, 2)[..., None, :]


def code(function: object, args: tuple[torch.Tensor, ...], folder: Path) -> tuple[str, torch.Tensor]:
    """The C++ of a program and its result."""
    fast = rw.optimize(function, args, target="cpu", floor=False, remember=False)
    assert fast.status == "proved", fast.reason
    fast.emit(folder)
    text = (folder / "kernels.cpp").read_text()
    return text[text.index('extern "C"') :], fast(*args)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("queries", [1, 2, 3, 8])
def test_few_queries_read_keys_as_they_lie(queries: int, dtype: torch.dtype, tmp_path: Path) -> None:
    q, k, v = (normal(2, n, 48, seed=n, dtype=dtype) for n in (queries, 333, 333))

    text, found = code(attend, (q, k, v), tmp_path)

    assert "product_of_rows" in text and "turn_rows" not in text
    bound = {torch.float32: 2e-6, torch.float64: 1e-12, torch.float16: 2e-3, torch.bfloat16: 2e-2}[dtype]
    exact = attend(q.double(), k.double(), v.double())
    torch.testing.assert_close(found.double(), exact, rtol=bound, atol=bound)


@pytest.mark.parametrize("width", [16, 24, 40])
def test_rows_that_end_within_a_vector(width: int, tmp_path: Path) -> None:
    """Nothing beyond a row is read: the last one ends where memory does."""
    args = normal(1, 2, width), normal(1, 50, width, seed=1), normal(1, 50, width, seed=2)

    _, found = code(attend, args, tmp_path)

    torch.testing.assert_close(found, attend(*args), rtol=1e-5, atol=1e-6)


def test_keys_of_eight_bits_are_read_as_they_lie(tmp_path: Path) -> None:
    draw = torch.Generator().manual_seed(0)
    k, v = (torch.randint(-127, 128, (2, 100, 32), dtype=torch.int8, generator=draw) for _ in range(2))
    args = normal(2, 1, 32) / 100, k, v

    text, found = code(attend, args, tmp_path)

    assert "product_of_rows" in text
    torch.testing.assert_close(found, attend(*args), rtol=1e-5, atol=1e-4)


def test_many_queries_have_a_copy_of_the_keys(tmp_path: Path) -> None:
    text, _ = code(attend, (normal(2, 9, 32), normal(2, 100, 32), normal(2, 100, 32)), tmp_path)

    assert "product_of_rows" not in text and "turn_rows" in text


def test_what_two_kernels_compute_has_one_order(tmp_path: Path) -> None:
    """Weights that are compared with their own maximum, in a kernel by queries and in one by keys."""

    def largest(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        s = q @ k.transpose(-1, -2)
        return torch.softmax(s, -1) @ v, (s == s.amax(-1, keepdim=True)).any(-2)

    args = normal(2, 2, 64), normal(2, 200, 64, seed=1), normal(2, 200, 64, seed=2)

    _, (_, found) = code(largest, args, tmp_path)

    assert torch.equal(found, largest(*args)[1])


def test_heads_of_a_group_are_rows_though_the_result_has_one_axis_of_them(tmp_path: Path) -> None:
    args = normal(1, 8, 1, 64), normal(1, 2, 500, 64, seed=1), normal(1, 2, 500, 64, seed=2)
    fast = rw.optimize(grouped, args, target="cpu", floor=False, remember=False)

    assert fast.status == "proved" and fast.plan is not None, fast.reason
    (kernel,) = fast.plan.kernels
    assert kernel.row.size == 4 and kernel.has_products
    assert "a view of what is stored" in fast.explain()
    torch.testing.assert_close(fast(*args), grouped(*args), rtol=1e-5, atol=1e-6)
