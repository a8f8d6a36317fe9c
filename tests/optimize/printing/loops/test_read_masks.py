"""Tiles of which a mask that is read leaves nothing are left out, and every mask gives eager's values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import rewright as rw
from rewright.optimize.api import Optimized

SIZES = 2, 2, 160, 8
Masked = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    return q @ k.transpose(-1, -2) / 8


def chosen(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return torch.softmax(scores(q, k).masked_fill(~mask, float("-inf")), -1) @ v


def by_documents(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, document: torch.Tensor) -> torch.Tensor:
    rows = torch.arange(q.shape[-2])
    mask = (rows[:, None] >= rows[None]) & (document[:, None] == document[None])
    return torch.softmax(scores(q, k).masked_fill(~mask, float("-inf")), -1) @ v


def sigmoids(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return torch.where(mask, torch.sigmoid(scores(q, k)), 0.0) @ v


def tensors() -> tuple[torch.Tensor, ...]:
    draw = torch.Generator().manual_seed(0)
    return tuple(torch.randn(SIZES, generator=draw) for _ in range(3))


MASKS = {
    "all": torch.ones(160, 160, dtype=torch.bool),
    "none": torch.zeros(160, 160, dtype=torch.bool),
    "causal": torch.ones(160, 160, dtype=torch.bool).tril(),
    "a block": torch.zeros(160, 160, dtype=torch.bool).index_fill(1, torch.arange(70, 130), True),
    "one element": torch.zeros(160, 160, dtype=torch.bool).index_fill(1, torch.tensor([131]), True),
    "rows without an element": torch.ones(160, 160, dtype=torch.bool).index_fill(0, torch.arange(40, 110), False),
    "random": torch.rand(160, 160, generator=torch.Generator().manual_seed(1)) < 0.1,
}


def kernels(function: Masked, last: torch.Tensor) -> Optimized:
    found = rw.optimize(function, (*tensors(), last), target="cpu", floor=False, remember=False)
    assert found.status == "proved", found.reason
    return found


@pytest.mark.parametrize("function", [chosen, sigmoids])
def test_every_mask_gives_the_values_of_eager(function: Masked) -> None:
    found = kernels(function, MASKS["all"])
    for mask in MASKS.values():
        given = (*tensors(), mask)
        torch.testing.assert_close(found(*given), function(*given), equal_nan=True, rtol=1e-5, atol=1e-5)


def test_documents_in_any_order() -> None:
    found = kernels(by_documents, torch.arange(160) // 40)
    for document in (torch.arange(160) // 70, torch.zeros(160, dtype=torch.long), torch.arange(160) % 3):
        given = (*tensors(), document)
        torch.testing.assert_close(found(*given), by_documents(*given), rtol=1e-5, atol=1e-5)


def test_tiles_are_left_before_their_products(tmp_path: Path) -> None:
    kernels(by_documents, torch.arange(160) // 40).emit(tmp_path)
    lines = (tmp_path / "kernels.cpp").read_text().splitlines()
    body = lines[next(n for n, line in enumerate(lines) if 'extern "C"' in line) :]
    left = next(n for n, line in enumerate(body) if "the mask, as it was read, absorbs the whole tile" in line)
    first = next(n for n, line in enumerate(body) if "tile_product<" in line)
    assert left < first


def test_nothing_is_left_out_where_counts_need_every_element() -> None:
    def spread(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return torch.where(mask, scores(q, k), 0.0).var(-1)

    found = kernels(spread, MASKS["all"])
    for mask in MASKS.values():
        given = (*tensors(), mask)
        torch.testing.assert_close(found(*given), spread(*given), rtol=1e-4, atol=1e-5)


def by_blocks(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
    """Keys in blocks of 16, of which each query takes those with a positive gate, and the first one."""
    taken = (gate > 0) | (torch.arange(gate.shape[-1]) == 0)
    kept = taken.repeat_interleave(16, -1)
    return torch.softmax(scores(q, k).masked_fill(~kept, float("-inf")), -1) @ v


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8])
def test_gates_by_blocks_of_keys_are_read_into_a_vector(dtype: torch.dtype, tmp_path: Path) -> None:
    """No machine has gathers of 8 and 16 bits."""
    q, k, v = tensors()
    gate = (torch.randn(2, 2, 160, 10, generator=torch.Generator().manual_seed(1)) * 3).to(dtype)
    fast = rw.optimize(by_blocks, (q, k, v, gate), target="cpu", floor=False, remember=False)
    assert fast.status == "proved", fast.reason
    fast.emit(tmp_path)

    assert ("gathered" in (tmp_path / "kernels.cpp").read_text()) == (dtype is not torch.float32)
    torch.testing.assert_close(fast(q, k, v, gate), by_blocks(q, k, v, gate), rtol=1e-5, atol=1e-5)
