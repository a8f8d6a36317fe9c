"""Views, and in-place operators that every alias sees."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rewright.ir.errors import UnsupportedOperator
from tests.frontends.torch.lower.executing import agree, gradients, integers, lowered, numbers, operators

X = numbers(4, 6)
CUBE = numbers(2, 3, 4)

READS: dict[str, Callable[[torch.Tensor], Any]] = {
    "view": lambda x: x.view(2, 12),
    "reshape of transpose": lambda x: x.t().reshape(3, 8),
    "flatten": lambda x: x.flatten(),
    "unflatten": lambda x: x.unflatten(1, (2, 3)),
    "transpose": lambda x: x.transpose(0, 1),
    "permute": lambda x: x.view(2, 2, 6).permute(2, 0, 1),
    "movedim": lambda x: x.view(2, 2, 6).movedim(2, 0),
    "expand": lambda x: x.unsqueeze(1).expand(4, 3, 6),
    "squeeze": lambda x: x.view(1, 4, 1, 6).squeeze(),
    "squeeze dims": lambda x: x.view(1, 4, 1, 6).squeeze((0, 2)),
    "slice": lambda x: x[1:3, ::2],
    "slice from the end": lambda x: x[-3:-1, -100:5],
    "empty slice": lambda x: x[3:1],
    "select": lambda x: x[-1] + x[0],
    "narrow": lambda x: x.narrow(1, 2, 3),
    "split": lambda x: x.split(4, dim=1),
    "split sizes": lambda x: x.split([1, 3], dim=0),
    "chunk": lambda x: x.chunk(4, dim=1),
    "unbind": lambda x: x.unbind(1),
    "diagonal": lambda x: x[:, :4].diagonal(),
    "unfold": lambda x: x.unfold(1, 3, 3),
    "unfold that overlaps": lambda x: (x.unfold(1, 3, 1), x.unfold(0, 2, 1).unfold(1, 3, 2)),
    "unfold that leaves a rest": lambda x: x.unfold(1, 4, 4),
    "as_strided": lambda x: x.as_strided((6, 2), (1, 6), 6),
    "as_strided of all": lambda x: x.as_strided((2, 12), (12, 1)),
    "contiguous": lambda x: x.t().contiguous(),
    "detach": lambda x: torch.ops.aten.alias(x.detach()).clone(),
}


@pytest.mark.parametrize("function", READS.values(), ids=READS)
def test_views(function: Callable[[torch.Tensor], Any]) -> None:
    agree(function, X)


def add_to_a_row(x: torch.Tensor) -> Any:
    y = x.clone()
    y[1] += 2
    return y


def write_through_a_view_of_a_view(x: torch.Tensor) -> Any:
    y = x * 1.5
    seen = y.t()[2:5]
    y.view(2, 12)[1, ::3].mul_(10)
    seen[0].fill_(7)
    return y, seen


def copy_into_a_strided_slice(x: torch.Tensor) -> Any:
    y = torch.zeros(4, 9, dtype=x.dtype)
    y[:, 1:7] = x
    y[::2, 0] = 3.0
    y[1::2, 8:] = x[:2, :1]
    return y


def copy_into_an_empty_strided_slice(x: torch.Tensor) -> Any:
    y = x.clone()
    y[:, 6:40:3] = x[:, 6:40:3] + 1
    return y


def fill_an_empty_buffer(x: torch.Tensor) -> Any:
    buffer = torch.empty(6, 6, dtype=x.dtype)
    buffer[:4].copy_(x)
    buffer[4:].zero_()
    return buffer.sum(0)


def masked_and_scattered(x: torch.Tensor) -> Any:
    y = x.clone()
    y.masked_fill_(y > 1, 0.0)
    y[y < -1] = 5.0
    y.scatter_(1, torch.tensor([[0, 2]]), -1.0)
    y.index_put_((torch.tensor([0, 3]),), torch.ones(6, dtype=x.dtype), accumulate=True)
    flags = y > 0
    flags.logical_and_(x > 0)
    flags.logical_or_(y.t().contiguous().t() == -1)
    return y, flags


def reads_before_writes_stay(x: torch.Tensor) -> Any:
    y = x.clone()
    before = y + 0.5
    view = y[0]
    y.add_(1).div_(2)
    return before, view


def integer_target_keeps_its_type(x: torch.Tensor) -> Any:
    counts = torch.zeros(3, dtype=torch.int64)
    counts[1:] += 2
    counts.copy_(torch.tensor([1.9, 2.9, -1.9], dtype=torch.float64))
    return counts


WRITES = [
    add_to_a_row,
    write_through_a_view_of_a_view,
    copy_into_a_strided_slice,
    copy_into_an_empty_strided_slice,
    fill_an_empty_buffer,
    masked_and_scattered,
    reads_before_writes_stay,
    integer_target_keeps_its_type,
]


@pytest.mark.parametrize("function", WRITES, ids=lambda f: f.__name__)
def test_writes(function: Callable[[torch.Tensor], Any]) -> None:
    agree(function, X)


def test_a_written_input_is_not_lost() -> None:
    graph = lowered(lambda x: x.add_(1), X)
    assert operators(graph)[-1] == "add"


VIEW_STEPS: list[Callable[[torch.Tensor], torch.Tensor]] = [
    lambda t: t.transpose(0, -1),
    lambda t: t[1:],
    lambda t: t[..., ::2],
    lambda t: t.unsqueeze(0),
    lambda t: t[0] if t.dim() > 1 else t,
    lambda t: t.flatten() if t.is_contiguous() else t,
    lambda t: t.narrow(-1, 0, 1),
]
EDITS: list[Callable[[torch.Tensor], torch.Tensor]] = [
    lambda t: t.mul_(3),
    lambda t: t.fill_(0.25),
    lambda t: t.sub_(t.mean()),
    lambda t: t.copy_(t.flip(0)),
]


@given(
    chains=st.lists(
        st.tuples(st.lists(st.integers(0, len(VIEW_STEPS) - 1), max_size=3), st.integers(0, len(EDITS) - 1)),
        min_size=1,
        max_size=3,
    )
)
@settings(max_examples=15, deadline=None, derandomize=True)
def test_any_chain_of_views_sees_any_write(chains: list[tuple[list[int], int]]) -> None:
    def function(x: torch.Tensor) -> Any:
        base = x.clone()
        views: list[torch.Tensor] = []
        for steps, edit in chains:
            view = base
            for step in steps:
                view = VIEW_STEPS[step](view)
            if view.numel():
                EDITS[edit](view)
            views.append(view)
        return base, views

    agree(function, CUBE)


def test_gradients_of_views() -> None:
    agree(gradients(lambda x: x[1:3, ::2] * x.t()[:3, :2].t().flatten()[2:4].unsqueeze(1)), X)
    agree(gradients(lambda x: x.unbind(0)[2] + x.select(1, 1).sum()), X)
    agree(gradients(lambda x: torch.cat([x, x[:, :2]], 1).expand(2, 4, 8)), X)
    agree(gradients(lambda x: x[:, :4].diagonal() ** 2), X)


@pytest.mark.parametrize("axes", [(0, 2), (2, 0), (0, 1), (1, 2)])
def test_gradients_of_diagonals(axes: tuple[int, int]) -> None:
    agree(gradients(lambda x: torch.diagonal(x, 0, *axes) ** 2), numbers(3, 3, 3))


def test_memory_with_gaps_and_overlaps() -> None:
    agree(lambda x: torch.ones(3, dtype=x.dtype).as_strided((3,), (1,)) + x[:1, :3], X)
    agree(lambda x: (x.as_strided((2, 3), (2, 1)), x.as_strided((3, 2), (0, 5), 1)), X)


def written_diagonals(x: torch.Tensor) -> torch.Tensor:
    x = x.clone()
    x.diagonal(1).mul_(2)
    x.diagonal(-1, 1, 0)[1:] = 0
    x.as_strided((2, 2), (5, 2), 1).add_(1)
    return x


def test_writing_to_diagonals_and_to_memory_with_gaps() -> None:
    agree(written_diagonals, X)


def test_bits_read_as_another_type_are_refused() -> None:
    with pytest.raises(UnsupportedOperator, match="has no meaning over the reals"):
        lowered(lambda x: x.view(torch.int64), X)


def test_scattered_writes_of_slices() -> None:
    agree(lambda x: torch.slice_scatter(x, x[:, :2] + 1, 1, 3, 5), X)
    agree(lambda x: torch.select_scatter(x, x[0] + 1, 0, -1), X)
    agree(lambda x: torch.as_strided_scatter(x, x[0] + 1, (6,), (1,), 6), X)


def test_layout_is_composed() -> None:
    assert operators(lowered(lambda x: x.t().t().view(2, 12).view(4, 6), X)) == ["input"]
    assert operators(lowered(lambda x: x[1:][:2].unsqueeze(0), X)) == ["input", "slice", "broadcast_in_dim"]
    assert operators(lowered(lambda x: torch.cat([x[:2], x[2:]]), X)) == ["input"]
    assert operators(lowered(lambda x: torch.cat([x, x * 2])[4:], X)) == ["input", "constant", "multiply"]


def test_a_filled_buffer_is_a_concatenation() -> None:
    graph = lowered(fill_an_empty_buffer, X)
    assert "custom_call" not in operators(graph)
    assert operators(graph) == ["input", "constant", "concatenate", "reduce"]


def test_unwritten_memory_stays_unknown() -> None:
    def half_written(x: torch.Tensor) -> torch.Tensor:
        buffer = torch.empty(6, 6, dtype=x.dtype)
        buffer[:4].copy_(x)
        return buffer

    assert "custom_call" in operators(lowered(half_written, X))


def test_integers_of_every_width() -> None:
    agree(lambda x: (x.to(torch.int32) + 1, x.to(torch.int8), x.to(torch.uint8)), integers(0, 9, 5))
