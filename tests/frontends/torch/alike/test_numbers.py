"""A number that each rank has its own of: what it can do, and what it must not tell."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from rewright.frontends.torch.alike.numbers import Differ, Differences, at_rank, nodes_in, number
from rewright.frontends.torch.alike.results import run_for_all


@pytest.fixture
def differences() -> Differences:
    return Differences()


def values(found: Any) -> tuple[int, ...]:
    return next(nodes_in(found)).values


@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        (lambda r: r * 8 + 1, (1, 9, 17, 25)),
        (lambda r: 3 - r, (3, 2, 1, 0)),
        (lambda r: -r, (0, -1, -2, -3)),
        (lambda r: r // 2, (0, 0, 1, 1)),
        (lambda r: 7 // (r + 1), (7, 3, 2, 1)),
        (lambda r: (r + 1) % 4, (1, 2, 3, 0)),
        (lambda r: torch.sym_min(r, 2), (0, 1, 2, 2)),
    ],
)
def test_arithmetic_is_that_of_each_rank(
    compute: Callable[[Any], Any], expected: tuple[int, ...], differences: Differences
) -> None:
    assert values(compute(number(range(4), differences))) == expected


def test_a_number_that_all_ranks_have_is_a_plain_one(differences: Differences) -> None:
    rank = number(range(4), differences)
    assert type(number([2, 2, 2], differences)) is int
    assert (rank * 8 + 8) - rank * 8 == 8
    assert (rank < 4, rank >= 0, rank != 5) == (True, True, True)
    assert differences.why == ""


@pytest.mark.parametrize(
    "look",
    [
        lambda r: r == 0,
        bool,
        int,
        float,
        str,
        lambda r: f"rank {r}",
        lambda r: [1, 2, 3, 4][r],
        lambda r: range(r),
        lambda r: max(r, 2),
        lambda r: r / 2,
        lambda r: r**2,
        lambda r: torch.arange(r),
        lambda r: torch.full((3,), r),
        lambda r: torch.tensor(r),
        lambda r: torch.arange(8)[r : r + 2],
    ],
)
def test_who_looks_at_it_is_refused_for_ever(look: Callable[[Any], Any], differences: Differences) -> None:
    with pytest.raises(Differ):
        look(number(range(4), differences))
    assert differences.why


def test_it_is_no_key(differences: Differences) -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(number(range(4), differences))


def test_arguments_of_one_rank(differences: Differences) -> None:
    rank = number(range(4), differences)
    assert at_rank((rank, [rank + 1, 5], {"step": rank * 2}, "x"), 3) == (3, [4, 5], {"step": 6}, "x")


def test_an_operator_whose_results_look_alike_runs_on_the_first_rank(differences: Differences) -> None:
    rank = number(range(4), differences)
    with FakeTensorMode():
        x = torch.empty(8)
        add = torch.ops.aten.add.Tensor
        assert run_for_all(add, (x, rank), {}, _run).shape == (8,)
        with pytest.raises(Differ, match="other shapes, or in other places"):
            run_for_all(torch.ops.aten.arange.default, (rank + 1,), {}, _run)
        with pytest.raises(Differ, match="other shapes, or in other places"):
            run_for_all(torch.ops.aten.slice.Tensor, (x, 0, rank * 2, rank * 2 + 2), {}, _run)


def _run(func: Any, args: Any, kwargs: Any) -> Any:
    return func(*args, **kwargs)
