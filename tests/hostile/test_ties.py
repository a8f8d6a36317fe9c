"""Which of several equal elements an operator means: the first one, or one that nobody promises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import rewright as rw
from rewright.interp.program import run

Function = Callable[..., Any]
IDS = torch.zeros(4, 33, dtype=torch.long)
SCORES = torch.zeros(4, 33)


def status(left: Function, right: Function, x: torch.Tensor) -> tuple[str, str]:
    verdict = rw.equiv(rw.capture(left, (x,)), rw.capture(right, (x,)))
    return verdict.status, "\n".join(verdict.assumptions)


def test_argmax_and_topk_part_where_elements_must_be_equal() -> None:
    """Was proved without a word; for most rows PyTorch's answers differ. 33 elements are 0 or 1."""
    found, _ = status(lambda i: (i == 2).int().argmax(-1), lambda i: (i == 2).int().topk(1, -1).indices[:, 0], IDS)
    assert found == "unknown"


@pytest.mark.parametrize("cast", [torch.float32, torch.bool, torch.int8])
def test_so_they_do_in_every_dtype(cast: torch.dtype) -> None:
    def numbers(i: torch.Tensor) -> torch.Tensor:
        return (i > 0).to(cast)

    if cast is torch.bool:
        assert (
            status(lambda i: numbers(i).byte().argmax(-1), lambda i: numbers(i).topk(1).indices[:, 0], IDS)[0]
            != "proved"
        )
    else:
        assert status(lambda i: numbers(i).argmax(-1), lambda i: numbers(i).topk(1).indices[:, 0], IDS)[0] != "proved"


def test_where_elements_may_differ_that_is_assumed_by_line() -> None:
    found, assumed = status(lambda x: x.argmax(-1), lambda x: x.topk(1, -1).indices[:, 0], SCORES)
    assert found == "proved"
    assert "no two elements are equal among which topk chooses at test_ties.py:" in assumed


def test_the_largest_values_are_the_same_ones_whichever_is_first() -> None:
    found, assumed = status(lambda x: x.amax(-1), lambda x: x.topk(1, -1).values[:, 0], SCORES)
    assert found == "proved"
    assert "equal" not in assumed


def test_one_operator_is_itself_among_equals() -> None:
    def tokens(i: torch.Tensor) -> torch.Tensor:
        return (i == 2).int().topk(3, -1).indices

    assert status(tokens, lambda i: tokens(i) * 1, IDS)[0] == "proved"


PLACES: dict[str, Function] = {
    "argmax": lambda x: x.argmax(-1),
    "max": lambda x: x.max(-1).indices,
    "stable sort": lambda x: x.sort(dim=-1, descending=True, stable=True).indices[:, 0],
    "stable argsort": lambda x: x.argsort(dim=-1, descending=True, stable=True)[:, 0],
}


@pytest.mark.parametrize("name", PLACES)
def test_what_promises_the_first_place_assumes_nothing(name: str) -> None:
    other = name if "sort" in name else "argmax"
    found, assumed = status(PLACES[name], PLACES[other], SCORES)
    assert found == "proved"
    assert "equal" not in assumed


@pytest.mark.parametrize("places", [lambda x: x.sort(-1).indices, lambda x: x.argsort(-1)], ids=["sort", "argsort"])
def test_a_sort_that_does_not_say_it_is_stable_is_taken_for_one(places: Function) -> None:
    found, assumed = status(places, lambda x: x.sort(dim=-1, stable=True).indices, SCORES)
    assert found == "proved"
    assert "equal elements keep their order in the sort at test_ties.py:" in assumed


def test_places_that_nothing_reads_need_no_promise() -> None:
    _, assumed = status(lambda x: x.sort(-1).values, lambda x: x.sort(-1).values, SCORES)
    assert "equal" not in assumed


SMALLEST: dict[str, Function] = {
    "argmin": lambda x: x.argmin(-1),
    "min": lambda x: x.min(-1).indices,
    "topk": lambda x: x.topk(3, -1, largest=False).values,
}


@pytest.mark.parametrize("name", SMALLEST)
@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int64, torch.float32])
def test_the_least_number_of_a_type_has_no_negative(name: str, dtype: torch.dtype) -> None:
    """``argmin`` was the ``argmax`` of negatives, which wrap: another place for -128, and for every uint8."""
    ends = (-3.5, 7.0) if dtype.is_floating_point else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    x = torch.tensor([[3, ends[0], 5, 1], [ends[1], 2, 7, ends[0]]], dtype=dtype)
    graph = rw.capture(SMALLEST[name], (x,))
    found = run(graph, {next(iter(graph.inputs)): x.numpy()})
    assert found["output"].tolist() == SMALLEST[name](x).tolist()


@pytest.mark.parametrize("axis", [0, 1])
def test_the_smallest_of_flags_are_places_that_nothing_is_known_of(axis: int) -> None:
    """The capture of these ended in an AssertionError."""

    def smallest(i: torch.Tensor) -> torch.Tensor:
        return (i == 2).int().topk(3, axis, largest=False).indices

    def by_sorting(i: torch.Tensor) -> torch.Tensor:
        return (i == 2).int().sort(dim=axis, stable=True).indices.narrow(axis, 0, 3)

    tall = torch.zeros(33, 33, dtype=torch.long)
    assert status(smallest, smallest, tall) == ("proved", "floats are exact real numbers")
    assert status(smallest, by_sorting, tall)[0] != "proved"


def test_kthvalue_gives_the_place_of_any_of_equal_elements() -> None:
    """PyTorch's kernel gives another place than a sort does, so that captures were refused."""

    def by_sorting(x: torch.Tensor) -> torch.Tensor:
        return x.sort(dim=-1, stable=True).indices[:, 2]

    found, assumed = status(lambda x: x.kthvalue(3, -1).indices, by_sorting, SCORES)
    assert found == "proved"
    assert "no two elements are equal among which kthvalue chooses at test_ties.py:" in assumed


def test_kthvalue_and_topk_may_choose_differently_among_flags() -> None:
    def flags(i: torch.Tensor) -> torch.Tensor:
        return (i == 2).int()

    def kth(i: torch.Tensor) -> torch.Tensor:
        return flags(i).kthvalue(2, -1).indices

    assert status(kth, lambda i: flags(i).topk(2, -1, largest=False).indices[:, 1], IDS)[0] != "proved"
    assert status(kth, lambda i: flags(i).kthvalue(3, -1).indices, IDS)[0] != "proved"
    values = status(lambda i: flags(i).kthvalue(2, -1).values, lambda i: flags(i).sort(-1).values[:, 1], IDS)
    assert values[0] == "proved"
