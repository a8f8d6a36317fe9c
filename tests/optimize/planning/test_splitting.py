"""Lanes in pieces: any number of pieces gives the same values, and pieces are taken where units have no work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

import rewright as rw
from rewright.optimize.planning.costs import Machine, pieces_for
from rewright.optimize.planning.plan import Plan
from rewright.optimize.planning.planner import Planner
from rewright.optimize.planning.preparing import prepare_graph
from rewright.optimize.planning.splitting import split_plan
from rewright.optimize.proving.proofs import unproved_identity
from rewright.optimize.proving.regraph import regraph
from rewright.optimize.running import targets
from rewright.terms.claim import Claim
from rewright.terms.normal.prove import prove
from tests.optimize.programs import PROGRAMS, attention, normal, places, tensors_by_name

WIDE = Machine("a wide machine", 128, 1e10, 1e11, 1e-6, 16, 8)
"""Many units: what has few tasks is split."""


def plan_of(program: Callable[..., Any], args: tuple[torch.Tensor, ...]) -> Plan:
    return Planner(prepare_graph(rw.capture(program, args))).plan()


def run(plan: Plan, target: targets.Target, program: Callable[..., Any], args: tuple[torch.Tensor, ...]) -> Any:
    runner, *_ = targets.runners(target, plan, None, targets.print_kernels(target, plan, None))
    return list(runner(tensors_by_name(program, args, {})).values())


def tensors(value: Any) -> list[torch.Tensor]:
    return list(value) if isinstance(value, tuple) else [value]


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", ["decode", "causal", "window", "grouped", "threshold", "loss"])
@pytest.mark.parametrize("pieces", [2, 3, 5])
def test_any_number_of_pieces_gives_the_values(name: str, pieces: int) -> None:
    program, args = PROGRAMS[name]()  # lengths that no number of pieces divides, and pieces that are wholly masked
    split = split_plan(plan_of(program, args), targets.machine("torch"), pieces)

    assert any("merge" in kernel.name for kernel in split.kernels)
    for mine, expected in zip(run(split, "torch", program, args), tensors(program(*args)), strict=True):
        torch.testing.assert_close(mine, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["decode", "threshold", "deviation"])
def test_pieces_in_cpp(name: str) -> None:
    program, args = PROGRAMS[name]()
    split = split_plan(plan_of(program, args), targets.machine("torch"), 3)

    assert len(split.kernels) > 1
    for mine, expected in zip(run(split, "cpu", program, args), tensors(program(*args)), strict=True):
        torch.testing.assert_close(mine, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("pieces", [2, 5, 7])
def test_places_of_largest_elements_survive_ties_and_nan_in_other_pieces(pieces: int) -> None:
    program, _ = PROGRAMS["largest"]()
    x = (normal(7, 131) * 2).round()  # 131 is a prime: the last piece sees the last element more than once
    x[1, 40], x[2, 130], x[3, 0], x[4, 12] = float("nan"), float("inf"), float("nan"), float("-inf")
    x[3, 99] = float("nan")
    split = split_plan(plan_of(program, (x,)), targets.machine("torch"), pieces)

    found, first = run(split, "torch", program, (x,))[:2], x.max(-1)
    assert len(split.kernels) == 2
    torch.testing.assert_close(found[0], first.values, equal_nan=True)
    assert torch.equal(found[1], first.indices)


def test_mean_and_variance_need_equal_pieces() -> None:
    def program(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        mean = x.mean(-1)
        return mean, ((x - mean[:, None]) ** 2).mean(-1)

    x = normal(3, 4 * 45) * 0.1 + 1000
    split = split_plan(plan_of(program, (x,)), targets.machine("torch"), 4)
    exact = program(x.double())

    assert [len(kernel.sweeps) for kernel in split.kernels] == [1, 2]  # the mean of all pieces, and then the rest
    for mine, expected in zip(run(split, "torch", program, (x,)), exact, strict=True):
        torch.testing.assert_close(mine.double(), expected, rtol=1e-4, atol=1e-6)
    uneven = plan_of(program, (normal(3, 181),))
    assert split_plan(uneven, targets.machine("torch"), 4).kernels == uneven.kernels


def test_rows_that_are_masked_everywhere_are_what_they_were() -> None:
    def program(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        i, j = places(q.shape[-2], k.shape[-2])
        return attention(q, k, v, torch.where((j <= i) & (i != 2), 0.0, float("-inf")))[1]

    args = (normal(1, 1, 5, 16), normal(1, 1, 40, 16, seed=1), normal(1, 1, 40, 16, seed=2))
    split = split_plan(plan_of(program, args), targets.machine("torch"), 4)

    torch.testing.assert_close(run(split, "torch", program, args)[0], program(*args), equal_nan=True)


def test_pieces_are_taken_where_units_have_no_work() -> None:
    program, _ = PROGRAMS["decode"]()

    def wanted(heads: int, queries: int, keys: int) -> int:
        args = tuple(normal(1, heads, n, 16, seed=n) for n in (queries, keys, keys))
        plan = plan_of(program, args)
        return pieces_for(plan.graph, plan.kernels[0], WIDE, 64)

    assert wanted(1, 1, 4096) > wanted(16, 1, 4096) > 1  # the more heads, the fewer pieces
    assert wanted(64, 256, 512) == 1  # there are tasks enough
    assert wanted(1, 1, 12) == 1  # a lane this short is one task


def test_the_states_of_a_merge_have_their_identities_proved() -> None:
    for name in ("decode", "deviation", "largest"):
        program, args = PROGRAMS[name]()
        split = split_plan(plan_of(program, args), targets.machine("torch"), 3)
        updates: list[str] = []

        assert unproved_identity(split, updates, 5.0, whole=False) == ""
        assert any("merge" in text for text in updates) != (name == "deviation"), name  # it has the mean first


def test_equal_pieces_of_a_sum_are_proved_to_be_the_program_and_a_wrong_merge_is_not() -> None:
    plan = plan_of(lambda x: (x * x).sum(-1), (normal(2, 600),))
    split = split_plan(plan, targets.machine("torch"), 3)
    merge = split.kernels[-1]
    table, first = split.table, merge.finals[0]
    wrong = replace(first, value=table.apply("multiply", first.value, table.constant(3.0, first.value.dtype)))
    steps = (*split.steps[:-1], replace(split.steps[-1], kernel=replace(merge, finals=(wrong,))))  # type: ignore[arg-type]

    assert len(split.kernels) == 2
    assert prove(Claim(plan.graph, regraph(split)), 5.0).status == "proved"
    assert prove(Claim(plan.graph, regraph(replace(split, steps=steps))), 5.0).status != "proved"


def test_optimize_splits_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "machine", lambda target, device: WIDE)
    program, _ = PROGRAMS["decode"]()
    args = tuple(normal(1, 2, n, 16, seed=n) for n in (1, 2000, 2000))

    found = rw.optimize(program, args, target="torch")

    assert found.status == "proved", found.reason
    assert "pieces" in found.explain() and "kernel0_merge0" in found.explain()
    torch.testing.assert_close(found(*args), program(*args), rtol=1e-5, atol=1e-5)
