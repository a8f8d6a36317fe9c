"""Kernels that take sizes: one plan and one proof, called with whatever sizes the program has."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import rewright as rw
from rewright.ir.errors import RewrightError, TypeMismatch
from rewright.ir.graph import Graph
from rewright.optimize.api import Optimized
from rewright.optimize.calls import dispatch
from rewright.optimize.printing.loops import packing
from rewright.optimize.sizes import inputs, testing
from rewright.optimize.sizes.runner import FlexibleRunner
from tests.optimize.programs import normal

Program = Callable[..., Any]


def optimized(program: Program, *args: Any, **dynamic: Mapping[int, str]) -> Optimized:
    """Kernels in C++ for all sizes that have names."""
    found = rw.optimize(program, args, target="cpu", dynamic=dynamic, floor=False, remember=False)
    assert isinstance(found.runner, FlexibleRunner), (found.reason, found.notes)
    return found


def causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Causal attention."""
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    keeps = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril()
    return torch.softmax(scores.masked_fill(~keeps, -torch.inf), -1) @ v


def heads(batch: int, length: int, seed: int = 0) -> torch.Tensor:
    return normal(batch, 3, length, 16, seed=seed)


@pytest.mark.parametrize("threads", [1, 2])
def test_one_plan_of_attention_is_for_every_length(threads: int) -> None:
    named = {0: "batch", 2: "length"}
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        fast = optimized(causal, *(heads(2, 8, n) for n in range(3)), q=named, k=named, v=named)
        for batch, length in ((2, 8), (1, 7), (3, 47), (2, 48), (2, 49), (1, 64), (1, 65), (2, 200), (5, 3)):
            given = [heads(batch, length, n) for n in range(3)]
            torch.testing.assert_close(fast(*given), causal(*given))
    finally:
        torch.set_num_threads(before)

    assert fast.status == "proved"
    assert fast.certificate is not None
    assert fast.notes == []


def mean_of_rows(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.mean(0), x - x.mean(0)


def logits(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return x.argmax(0), torch.log_softmax(x, 0), x.amax(1)


def shifted(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x[1:], x[:1]]) * x + F.pad(x, (0, 0, 1, 0))[:-1]


def windows(x: torch.Tensor) -> torch.Tensor:
    i = torch.arange(x.shape[0])
    near = (i[:, None] - i[None]).abs() < 5
    return torch.softmax((x @ x.T).masked_fill(~near, -torch.inf), -1) @ x


@pytest.mark.parametrize("program", [mean_of_rows, logits, shifted, windows])
@pytest.mark.parametrize("size", [9, 300])
def test_values_at_other_sizes_than_the_example(program: Program, size: int) -> None:
    fast = optimized(program, normal(size, 6), x={0: "rows"})

    for rows in (2, 3, 5, 6, 8, 63, 64, 65, 1023, 1025):
        x = normal(rows, 6, seed=rows)
        torch.testing.assert_close(fast(x), program(x))
    assert fast.notes == []


def test_infinities_and_ties_at_another_size() -> None:
    fast = optimized(logits, normal(9, 6), x={0: "rows"})
    x = torch.zeros(70, 6)
    x[3], x[5, 0], x[69, 1] = -torch.inf, torch.inf, torch.nan

    for got, expected in zip(fast(x), logits(x), strict=True):
        torch.testing.assert_close(got, expected, equal_nan=True)


def test_sizes_of_a_graph() -> None:
    graph = rw.capture(mean_of_rows, (normal(9, 6),), dynamic={"x": {0: "rows"}})
    fast = rw.optimize(graph, target="cpu", floor=False, remember=False)

    for rows in (1, 2, 100):
        x = normal(rows, 6)
        found = fast(x=x)
        torch.testing.assert_close(tuple(found.values()), mean_of_rows(x))
    with pytest.raises(RewrightError, match="no size 'rows' of at least 1 makes rows equal to 0"):
        fast(x=normal(0, 6))
    with pytest.raises(RewrightError, match="x"):
        fast(x=normal(3, 7))


def test_a_program_that_branches_on_a_size_runs_itself_on_the_other_side() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, 0) if x.shape[0] > 4 else torch.softmax(-x, 0)

    fast = optimized(program, normal(9, 6), x={0: "rows"})

    for rows in (5, 100, 4, 2, 5):
        torch.testing.assert_close(fast(normal(rows, 6)), program(normal(rows, 6)))
    assert fast.notes == [
        "its sizes are not those of a call before, and with them it is another program: the original program ran"
    ]


def test_one_name_is_one_size() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x + y, 0)

    fast = optimized(program, normal(9, 6), normal(9, 6), x={0: "rows"}, y={0: "rows"})

    torch.testing.assert_close(fast(normal(5, 6), normal(5, 6)), program(normal(5, 6), normal(5, 6)))
    torch.testing.assert_close(fast(normal(5, 6), normal(1, 6)), program(normal(5, 6), normal(1, 6)))
    with pytest.raises(RuntimeError, match="must match the size"):
        fast(normal(5, 6), normal(4, 6))


def test_arguments_that_are_no_rows_in_memory() -> None:
    fast = optimized(mean_of_rows, normal(9, 6), x={0: "rows"})

    for x in (normal(6, 12).T, normal(24, 6)[::2], normal(1, 6).expand(12, 6), normal(0, 6)):
        torch.testing.assert_close(fast(x), mean_of_rows(x), equal_nan=True)


def test_what_is_written_to_an_argument_is_written() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        x.mul_(2)
        return torch.softmax(x, 0)

    fast = optimized(program, normal(9, 6), x={0: "rows"})

    for rows in (9, 12):
        mine, theirs = normal(rows, 6), normal(rows, 6)
        torch.testing.assert_close(fast(mine), program(theirs))
        torch.testing.assert_close(mine, theirs)


def test_where_tiles_of_all_lengths_have_no_room_others_are_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "PACKED_LIMIT", 64 * 100 * 4)
    named = {2: "length"}
    fast = optimized(causal, *(heads(1, 8, n) for n in range(3)), q=named, k=named, v=named)

    for length in (10, 80, 300, 80):
        given = [heads(1, length, n) for n in range(3)]
        torch.testing.assert_close(fast(*given), causal(*given))
    assert fast.notes == []


def test_what_is_kept_for_sizes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "MOST", 3)
    monkeypatch.setattr(dispatch, "SIZES", 3)
    fast = optimized(mean_of_rows, normal(9, 6), x={0: "rows"})
    assert isinstance(fast.runner, FlexibleRunner)
    assert fast.calls is not None

    for rows in range(2, 12):
        torch.testing.assert_close(fast(normal(rows, 6)), mean_of_rows(normal(rows, 6)))
    assert len(fast.runner.runners.known) == len(fast.calls.known) == 3
    assert fast.notes == []


def test_where_no_plan_is_for_all_sizes_there_is_one_for_the_example() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, 0) / math.sqrt(x.shape[0])

    fast = rw.optimize(program, (normal(9, 6),), target="cpu", dynamic={"x": {0: "rows"}}, floor=False, remember=False)

    assert fast.status == "proved"
    assert fast.notes[0].startswith("kernels are for the sizes of the example: ")
    for rows in (9, 12):
        torch.testing.assert_close(fast(normal(rows, 6)), program(normal(rows, 6)))


@pytest.mark.parametrize("dynamic", [{"y": {0: "rows"}}, {"x": {2: "rows"}}, {"x": {0: "2+"}}])
def test_names_for_what_is_not_there_are_a_note(dynamic: Mapping[str, Mapping[int, str]]) -> None:
    fast = rw.optimize(mean_of_rows, (normal(9, 6),), target="torch", dynamic=dynamic)

    assert fast.status == "proved"
    assert "kernels are for the sizes of the example: " in fast.notes[0]


def test_the_plain_target_has_one_plan_too() -> None:
    fast = rw.optimize(mean_of_rows, (normal(9, 6),), target="torch", dynamic={"x": {0: "rows"}})

    for rows in (9, 2, 70):
        torch.testing.assert_close(fast(normal(rows, 6)), mean_of_rows(normal(rows, 6)))
    assert fast.notes == []


def test_a_program_of_no_other_size_is_tested_at_that_of_the_example(monkeypatch: pytest.MonkeyPatch) -> None:
    real = testing.with_sizes

    def only_nine(graph: Graph, sizes: Mapping[str, int]) -> Graph:
        if sizes["rows"] != 9:
            raise TypeMismatch("there are not nine rows")
        return real(graph, sizes)

    monkeypatch.setattr(testing, "with_sizes", only_nine)
    fast = optimized(mean_of_rows, normal(9, 6), x={0: "rows"})

    assert fast.checked is not None and fast.checked.reason.endswith("where rows = 9")


def test_a_program_that_is_too_large_to_be_tested_has_a_plan_for_the_example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testing, "MOST_OF_ALL", 20)
    fast = rw.optimize(
        mean_of_rows, (normal(9, 6),), target="cpu", dynamic={"x": {0: "rows"}}, floor=False, remember=False
    )

    assert fast.status == "proved"
    assert "elements, too many to test kernels that take its sizes" in fast.notes[0]


@pytest.mark.parametrize("runs", ["eager", "kernels"])
def test_what_is_fastest_is_so_at_all_sizes(runs: str) -> None:
    graph = rw.capture(mean_of_rows, (normal(9, 6),), dynamic={"x": {0: "rows"}})
    by_name = rw.optimize(graph, target="cpu", floor=["eager"], remember=False)
    by_place = rw.optimize(
        mean_of_rows, (normal(9, 6),), target="cpu", dynamic={"x": {0: "rows"}}, floor=["eager"], remember=False
    )
    by_name.runs = by_place.runs = runs

    for rows in (9, 3, 200):
        x = normal(rows, 6)
        torch.testing.assert_close(tuple(by_name(x=x).values()), mean_of_rows(x))
        torch.testing.assert_close(by_place(x), mean_of_rows(x))


def test_a_graph_says_itself_what_changes() -> None:
    graph = rw.capture(mean_of_rows, (normal(9, 6),))
    fast = rw.optimize(graph, target="torch", dynamic={"x": {0: "rows"}})

    assert "a graph says itself which of its sizes are symbols" in fast.notes[0]


def test_kernels_that_fail_on_numbers_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    from rewright.optimize.sizes import making

    real = making.print_sources

    def wrong(*given: Any) -> Any:
        return tuple(replace(source, text=source.text.replace("+= v", "-= v")) for source in real(*given))

    monkeypatch.setattr(making, "print_sources", wrong)
    fast = rw.optimize(
        mean_of_rows, (normal(9, 6),), target="cpu", dynamic={"x": {0: "rows"}}, floor=False, remember=False
    )

    assert "kernels failed where rows = 1" in fast.notes[0]
    torch.testing.assert_close(fast(normal(9, 6)), mean_of_rows(normal(9, 6)))
