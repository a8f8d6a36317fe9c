"""Tokens of all sequences one after the other on one side, and rotary tables that are looked up."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

import torch
from torch import nn

import rewright as rw
from rewright.equiv.engine import equiv

SEQUENCE, SIZE = 5, 8


class Turned(nn.Module):
    """A rotary embedding of (sequences, positions, size); the tables are computed for the positions."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        angles = torch.arange(SEQUENCE)[:, None] * 10.0 ** -torch.arange(SIZE // 2)
        both = torch.cat([angles, angles], -1)
        swapped = torch.cat([-x[..., SIZE // 2 :], x[..., : SIZE // 2]], -1)
        return x * both.cos() + swapped * both.sin()


class Looked(nn.Module):
    """The same on (tokens, size), from one table of cosines and sines, ``first`` being the first position."""

    def __init__(self, first: int = 0, *, each: bool = False) -> None:
        super().__init__()
        self.first, self.each = first, each

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        angles = torch.arange(16.0)[:, None] * 10.0 ** -torch.arange(SIZE // 2)
        table = torch.cat([angles.cos(), angles.sin()], -1)
        places = torch.arange(self.first, self.first + SEQUENCE).repeat(len(x))
        if self.each:
            rows = torch.gather(table, 0, places[:, None].expand(-1, SIZE))
        else:
            rows = table[places]
        cos, sin = rows.chunk(2, -1)
        one, two = x.reshape(-1, SIZE).chunk(2, -1)
        return torch.cat([one * cos - two * sin, two * cos + one * sin], -1).reshape(x.shape)


@pytest.mark.parametrize(("first", "status"), [(0, "proved"), (1, "refuted")])
@pytest.mark.parametrize("each", [False, True], ids=["by rows", "by elements"])
def test_tables_are_looked_up(first: int, status: str, each: bool) -> None:
    x = torch.zeros(2, SEQUENCE, SIZE)
    verdict = equiv(rw.capture(Turned(), (x,)), rw.capture(Looked(first, each=each), (x,)))
    assert verdict.status == status, verdict.reason


class Kept(Looked):
    """The same with a table that was made, and rounded, with the module."""

    def __init__(self, base: float) -> None:
        super().__init__()
        angles = torch.arange(SEQUENCE)[:, None] * base ** -torch.arange(SIZE // 2)
        self.register_buffer("table", torch.cat([angles, angles], -1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        swapped = torch.cat([-x[..., SIZE // 2 :], x[..., : SIZE // 2]], -1)
        return x * self.table.cos() + swapped * self.table.sin()


@pytest.mark.parametrize(("base", "status"), [(10.0, ("proved", "unknown")), (10.01, ("refuted",))])
def test_the_rounding_of_a_table_is_no_difference(base: float, status: tuple[str, ...]) -> None:
    x, kept = torch.zeros(2, SEQUENCE, SIZE), Kept(base)
    verdict = equiv(rw.capture(Turned(), (x,)), rw.capture(kept, (x,)), ({}, dict(kept.named_buffers())))
    assert verdict.status in status, verdict.reason


class Pairs(nn.Module):
    """Neighbours turned by an angle after a product: over sequences, or over all tokens at once."""

    def __init__(self, *, flat: bool, sign: int = 1) -> None:
        super().__init__()
        self.flat, self.sign = flat, sign

    def forward(self, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        angles = torch.arange(SEQUENCE)[:, None] * 10.0 ** -torch.arange(SIZE // 2)
        if not self.flat:
            hidden = x @ w
            cos, sin = (part.repeat_interleave(2, -1) for part in (angles.cos(), angles.sin()))
            turned = torch.stack([-hidden[..., 1::2], hidden[..., ::2]], -1).flatten(-2)
            return hidden * cos + turned * sin
        hidden = x.reshape(-1, SIZE) @ w
        cos, sin = (part.repeat(len(x), 1) for part in (angles.cos(), angles.sin()))
        one, two = hidden[..., ::2], hidden[..., 1::2]
        both = torch.stack([one * cos - two * sin * self.sign, two * cos + one * sin], -1)
        return both.flatten(-2).reshape(x.shape)


@pytest.mark.parametrize(("sign", "status"), [(1, "proved"), (-1, "refuted")])
def test_parts_over_tensors_of_other_shapes(sign: int, status: str) -> None:
    args = torch.zeros(2, SEQUENCE, SIZE), torch.zeros(SIZE, SIZE)
    left, right = rw.capture(Pairs(flat=False), args), rw.capture(Pairs(flat=True, sign=sign), args)
    verdict = equiv(left, right)
    assert verdict.status == status, verdict.reason
