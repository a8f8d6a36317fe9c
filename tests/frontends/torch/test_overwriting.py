"""Whether two tensors share an element, against a look at every byte."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from rewright.frontends.torch.overwriting import Unfinished


@st.composite
def views(draw: st.DrawFn) -> list[tuple[int, int, int, int, int]]:
    """Offset, sizes and strides of two views of 64 elements."""
    found: list[tuple[int, int, int, int, int]] = []
    for _ in range(2):
        rows, columns = draw(st.integers(0, 4)), draw(st.integers(0, 4))
        step, inner = draw(st.integers(0, 9)), draw(st.integers(0, 4))
        found.append((draw(st.integers(0, 20)), rows, columns, step, inner))
    return found


@given(views())
def test_views_of_one_memory(places: list[tuple[int, int, int, int, int]]) -> None:
    memory = torch.arange(64)
    one, other = (memory.as_strided((rows, n), (step, inner), first) for first, rows, n, step, inner in places)
    shared = set(one.flatten().tolist()) & set(other.flatten().tolist())
    assert Unfinished.of("all_reduce", [one]).shares([other]) == bool(shared)


def test_other_memory_is_never_shared() -> None:
    assert not Unfinished.of("all_reduce", [torch.zeros(4)]).shares([torch.zeros(4)])


def test_the_line_of_the_call_is_known() -> None:
    assert Unfinished.of("all_reduce", [torch.zeros(1)]).where.startswith("test_overwriting.py:")
