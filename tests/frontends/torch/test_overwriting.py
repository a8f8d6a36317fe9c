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


@given(views(), st.integers(0, 63), st.integers(1, 30))
def test_a_view_of_a_stretch_of_memory(places: list[tuple[int, int, int, int, int]], start: int, length: int) -> None:
    memory = torch.arange(64)
    first, rows, n, step, inner = places[0]
    view, stretch = memory.as_strided((rows, n), (step, inner), first), memory[start : start + length]
    shared = set(view.flatten().tolist()) & set(stretch.tolist())
    assert Unfinished.of("all_reduce", [stretch]).shares([view]) == bool(shared)


def test_large_tensors_side_by_side_share_nothing() -> None:
    whole = torch.empty(1 << 13, 1 << 10, device="meta")
    gathered = Unfinished.of("all_reduce", [whole[:, :512]])
    assert gathered.shares([whole[5]])
    assert not Unfinished.of("all_reduce", [whole[:4]]).shares([whole[4:, 100:200]])
    assert Unfinished.of("all_reduce", [whole[:5]]).shares([whole[4:, 100:200]])


def test_other_memory_is_never_shared() -> None:
    assert not Unfinished.of("all_reduce", [torch.zeros(4)]).shares([torch.zeros(4)])


def test_the_line_of_the_call_is_known() -> None:
    assert Unfinished.of("all_reduce", [torch.zeros(1)]).where.startswith("test_overwriting.py:")
