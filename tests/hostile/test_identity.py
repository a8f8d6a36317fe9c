"""Two things are one because of what they are, and not because they look alike: memory, buffers, weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import rewright as rw

Function = Callable[[torch.Tensor], torch.Tensor]
X = torch.zeros(3, 4)


def first_row_written(x: torch.Tensor) -> torch.Tensor:
    made = torch.empty_like(x)
    made[:1] = x[:1]
    return made


MEMORY: dict[str, Function] = {
    "empty": lambda x: torch.empty(3, 4) + x,
    "empty_like": lambda x: torch.empty_like(x) + x,
    "new_empty": lambda x: x.new_empty(3, 4) + x,
    "empty_strided": lambda x: torch.empty_strided((3, 4), (4, 1)) + x,
    "two of them": lambda x: torch.empty_like(x) - torch.empty_like(x) + x,
    "written in part": first_row_written,
    "chosen": lambda x: torch.where(x > 0, x, torch.empty_like(x)),
}


@pytest.mark.parametrize("name", MEMORY)
def test_no_two_programs_share_memory_that_nothing_was_written_to(name: str) -> None:
    """``torch.empty(3, 4) + x`` was proved equal to itself, and equal to what rank 0 computes."""
    graph = rw.capture(MEMORY[name], (X,))
    ranks, whole = rw.capture_ranks(lambda mesh: (MEMORY[name], (X,)), {"tp": 2}), {"x": "Replicate()"}
    for verdict in (rw.equiv(graph, rw.capture(MEMORY[name], (X,)), audit=True), rw.refine(graph, ranks, whole)):
        assert verdict.status == "unknown"
        assert "memory of test_identity.py:" in verdict.reason


def test_two_reads_in_one_program_are_two_memories() -> None:
    twice = rw.capture(MEMORY["two of them"], (X,))
    assert rw.equiv(twice, rw.capture(lambda x: x * 1, (X,))).status == "unknown"


def test_a_read_inside_of_an_operator_is_a_memory_of_its_own() -> None:
    """PyTorch's own decompositions call ``empty`` under equal names."""

    def twice(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x).exp() - torch.empty_like(x).exp()

    assert rw.equiv(rw.capture(twice, (X,)), rw.capture(lambda x: x * 0, (X,))).status != "proved"


WRITTEN: dict[str, Function] = {
    "written": lambda x: torch.empty_like(x).copy_(x) + 1,
    "read where it was written": lambda x: first_row_written(x)[:1],
}


@pytest.mark.parametrize("name", WRITTEN)
def test_memory_that_was_written_is_what_was_written(name: str) -> None:
    verdict = rw.equiv(rw.capture(WRITTEN[name], (X,)), rw.capture(WRITTEN[name], (X,)), audit=True)
    assert verdict.status == "proved"
    assert not any("memory" in line for line in verdict.assumptions)


def test_a_number_times_zero_is_zero_where_it_is_one() -> None:
    """What memory holds may be no number: that it is one is said."""
    verdict = rw.equiv(rw.capture(lambda x: torch.empty_like(x) * 0 + x, (X,)), rw.capture(lambda x: x * 1, (X,)))
    assert verdict.status != "proved" or any("memory of test_identity.py:" in line for line in verdict.assumptions)


class Table(nn.Module):
    """A product with a table that no optimizer changes."""

    def __init__(self, table: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("table", table)
        self.table: torch.Tensor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.table.T


def tables(rows: int, width: int, seed: int) -> torch.Tensor:
    return torch.randn(rows, width, generator=torch.Generator().manual_seed(seed))


def product(table: torch.Tensor, **options: Any) -> Any:
    x = torch.zeros(2, table.shape[1], dtype=table.dtype, device=table.device)
    return rw.capture(Table(table), (x,), **options)


def on_ranks(table: torch.Tensor) -> Any:
    return rw.capture_ranks(lambda mesh: (Table(table), (torch.zeros(1, table.shape[1]),)), {"dp": 2})


@pytest.mark.parametrize(("rows", "width"), [(20, 30), (1100, 1000)], ids=["small", "large"])
@pytest.mark.parametrize("run", [False, True], ids=["traced", "run"])
def test_buffers_of_one_name_and_other_values_are_two(rows: int, width: int, run: bool) -> None:
    """Above 2**20 elements, and in runs, equal names were taken for one tensor."""
    one, other = tables(rows, width, 1), tables(rows, width, 2)
    verdict = rw.equiv(product(one, run=run), product(other, run=run))
    assert verdict.status == "unknown"
    assert "table" in verdict.reason
    assert rw.equiv(product(one, run=run), product(one.clone(), run=run)).status == "proved"


def test_the_last_element_of_a_large_buffer_counts() -> None:
    one = tables(1100, 1000, 1)
    other = one.clone()
    other[-1, -1] += 1
    assert rw.equiv(product(one), product(other)).status == "unknown"


def test_a_buffer_in_another_dtype_is_the_same_numbers() -> None:
    table = tables(3, 4, 1).bfloat16()
    assert rw.equiv(product(table), product(table.float())).status == "proved"


def test_ranks_hold_the_buffers_of_one_device() -> None:
    """Ranks with another table were proved."""
    one, other = tables(3, 4, 1), tables(3, 4, 2)
    verdict = rw.refine(product(one), on_ranks(other))
    assert verdict.status == "unknown"
    assert "table is a buffer that held other values on rank 0 than on one device" in verdict.reason
    assert rw.refine(product(one), on_ranks(one)).status == "proved"
    assert rw.refine(product(one), on_ranks(other), {"table": "Replicate()"}).status == "proved"  # the caller says so


def test_buffers_without_values_are_one_by_a_named_assumption() -> None:
    table = torch.empty(3, 4, device="meta")
    for other in (table, tables(3, 4, 1)):
        verdict = rw.equiv(product(table), product(other))
        assert verdict.status == "proved"
        assert any("the buffer table holds the same values on both sides" in line for line in verdict.assumptions)
    assert not any("buffer" in line for line in rw.equiv(product(other), product(other)).assumptions)


def angles() -> torch.Tensor:
    return torch.outer(torch.arange(8.0), 1 / 10000 ** (torch.arange(0, 4, 2) / 4))


class Held(nn.Module):
    """A table of angles that is held."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.cat([angles().sin(), angles().cos()], 1))
        self.table: torch.Tensor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.table[: x.shape[0]]


class Computed(nn.Module):
    """The same table, computed; a copy in another order is held and never read."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.cat([angles().cos(), angles().sin()], 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.cat([angles().sin(), angles().cos()], 1)[: x.shape[0]]


def test_a_buffer_that_is_never_read_is_nobodys_partner() -> None:
    """It was matched by its values with the table that the other side reads, which refuted equal programs."""
    left, right = Held(), Computed()
    values = dict(left.named_buffers()), dict(right.named_buffers())
    verdict = rw.equiv(rw.capture(left, (torch.zeros(6, 4),)), rw.capture(right, (torch.zeros(6, 4),)), values)
    assert verdict.status == "proved"


class Apart(nn.Module):
    """Queries, keys and values by three layers."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        draw = torch.Generator().manual_seed(seed)
        self.q, self.k, self.v = nn.Linear(16, 64), nn.Linear(16, 32), nn.Linear(16, 32)
        for parameter in self.parameters():
            parameter.data = (torch.randn(parameter.shape, generator=draw) * 0.15).bfloat16()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.q(x), self.k(x), self.v(x)], -1)


class Fused(nn.Module):
    """The same by one."""

    def __init__(self, apart: Apart) -> None:
        super().__init__()
        parts = apart.q, apart.k, apart.v
        self.qkv = nn.Linear(16, 128)
        self.qkv.weight = nn.Parameter(torch.cat([part.weight for part in parts]))
        self.qkv.bias = nn.Parameter(torch.cat([part.bias for part in parts]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.qkv(x)


@pytest.mark.parametrize("seed", [0, 3, 7])
@pytest.mark.parametrize("equal", [False, True], ids=["drawn", "all biases equal"])
def test_names_decide_before_equal_numbers(seed: int, equal: bool) -> None:
    """Numbers of few digits are often equal by chance: the map of a bias was wrong, or partial."""
    left = Apart(seed)
    if equal:
        for part in (left.q, left.k, left.v):
            part.bias.data.fill_(1.0)
    right, x = Fused(left), torch.zeros(2, 16).bfloat16()
    values = dict(left.named_parameters()), dict(right.named_parameters())
    verdict = rw.equiv(rw.capture(left, (x,)), rw.capture(right, (x,)), values)
    assert verdict.status == "proved"


def test_values_still_decide_where_names_are_wrong() -> None:
    """Layers that are put together in another order than their names say."""
    left = Apart(1)
    left.q, left.k, left.v = left.q, left.v, left.k
    right, x = Fused(left), torch.zeros(2, 16).bfloat16()
    values = dict(left.named_parameters()), dict(right.named_parameters())
    swapped = {name.replace("k.", "t.").replace("v.", "k.").replace("t.", "v."): v for name, v in values[0].items()}
    verdict = rw.equiv(rw.capture(left, (x,)), rw.capture(right, (x,)), (swapped, values[1]))
    assert verdict.status != "proved"
