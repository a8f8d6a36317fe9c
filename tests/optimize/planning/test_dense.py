"""Which matrix products are a library's, and how much work plans are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import rewright as rw
from rewright.optimize.planning import planner
from rewright.optimize.planning.costs import CPU
from rewright.optimize.planning.dense import dense_products
from rewright.optimize.planning.plan import LibraryStep, Plan
from rewright.optimize.planning.planner import Planner
from rewright.optimize.planning.preparing import prepare_graph
from rewright.optimize.planning.work import program_work, work_of
from tests.optimize.programs import normal

Tensors = tuple[torch.Tensor, ...]


def sigmoid_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.sigmoid(q @ k.mT / 8 - 6) @ v


def linear_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    q, k = F.elu(q) + 1, F.elu(k) + 1
    return (q @ (k.mT @ v)) / (q * k.sum(-2, keepdim=True)).sum(-1, keepdim=True)


def normalised_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    q, k = F.rms_norm(q, (64,)), F.rms_norm(k, (64,))
    return torch.softmax(q @ k.mT / 8, -1) @ v


def gated(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (F.silu(x @ a) * (x @ a)) @ b


def experts(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.einsum("teh,ehd->ted", F.gelu(torch.einsum("td,edh->teh", x, a)), b).sum(1)


PROGRAMS: dict[str, tuple[Callable[..., torch.Tensor], Tensors]] = {
    "sigmoid attention": (sigmoid_attention, tuple(normal(1, 2, 96, 64, seed=s) for s in range(3))),
    "linear attention": (linear_attention, tuple(normal(1, 2, 256, 64, seed=s) for s in range(3))),
    "attention of normalised queries": (normalised_attention, tuple(normal(1, 2, 96, 64, seed=s) for s in range(3))),
    "gated layer": (gated, (normal(64, 256), normal(256, 512), normal(512, 256))),
    "experts": (experts, (normal(48, 64), normal(4, 64, 96), normal(4, 96, 64))),
    "two layers": (lambda x, a, b: torch.relu(x @ a) @ b, (normal(80, 48), normal(48, 96), normal(96, 40))),
}


def plan_of(name: str) -> Plan:
    program, args = PROGRAMS[name]
    return Planner(prepare_graph(rw.capture(program, args))).plan()


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_plan_does_half_as_much_again_as_its_program(name: str) -> None:
    """Before, the hidden layer of a product was computed anew for each output feature: hundreds of times the work."""
    plan = plan_of(name)

    assert work_of(plan, plan.graph).ratio < 1.5, plan.decisions


@pytest.mark.parametrize("name", ["sigmoid attention", "attention of normalised queries"])
def test_attention_stores_no_scores(name: str) -> None:
    plan = plan_of(name)

    assert not any(isinstance(step, LibraryStep) for step in plan.steps)
    assert all(plan.graph.nodes[s.tensor].type.shape[-2:] != (96, 96) for k in plan.kernels for s in k.stores)


def test_wide_layers_are_a_librarys_and_narrow_ones_and_scores_are_not() -> None:
    def graph(name: str) -> list[int]:
        program, args = PROGRAMS[name]
        return dense_products(prepare_graph(rw.capture(program, args)), CPU)

    assert len(graph("gated layer")) == 3
    assert not graph("sigmoid attention")
    assert not graph("two layers")


def test_what_is_computed_more_than_once_is_said_with_the_reason() -> None:
    def columns(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Tensors:
        p = torch.softmax(q @ k.mT / 8, -1)
        return p @ v, p.sum(-2)

    args = tuple(normal(1, 2, 192, 64, seed=s) for s in range(3))
    plan = Planner(prepare_graph(rw.capture(columns, args))).plan()

    assert work_of(plan, plan.graph).ratio > 1.2
    assert any("is computed 2.0 times: it is too large to be stored" in d for d in plan.decisions)


def test_work_counts_each_product_and_each_element_once() -> None:
    graph = prepare_graph(rw.capture(lambda x, y: torch.relu(x @ y).sum(-1), (normal(4, 8), normal(8, 16))))

    assert program_work(graph) == 2 * 4 * 16 * 8 + 4 * 16 + 4 * 16


def test_a_bias_is_added_by_the_library_that_multiplies_unless_something_is_made_of_it() -> None:
    def program(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return F.linear(F.gelu(F.linear(x, w, b)), w, b)

    args = normal(64, 256), normal(256, 256, seed=1), normal(256, seed=2)
    plan = Planner(prepare_graph(rw.capture(program, args))).plan()
    names = [plan.graph.nodes[s.position].op.name for s in plan.steps if isinstance(s, LibraryStep)]
    found = rw.optimize(program, args, target="torch")

    assert sorted(names) == ["add", "dot_general", "dot_general"] and len(plan.kernels) == 1
    assert found.status == "proved"
    torch.testing.assert_close(found(*args), program(*args), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("layers", [2, 3])
def test_equal_products_with_other_readers_are_each_left_to_the_library(layers: int) -> None:
    """They are one expression: before, the search for a plan left the first of them to a library for ever."""

    def program(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> Any:
        return [torch.relu(F.linear(x, w, b)) + k if k else F.linear(x, w, b) for k in range(layers)]

    args = normal(3, 2, 33), normal(31, 33, seed=1), normal(1, seed=2).expand(31)
    found = rw.optimize(program, args, target="torch")

    assert found.status == "proved"
    for mine, theirs in zip(found(*args), program(*args), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)


def test_a_search_that_does_not_end_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def again(*_: object) -> None:
        raise planner._Again

    monkeypatch.setattr(Planner, "_job", again)
    found = rw.optimize(lambda x: torch.softmax(x, -1), (normal(4, 8),), target="torch")

    assert found.reason == "the search for a plan does not come to an end"
    torch.testing.assert_close(found(normal(4, 8)), torch.softmax(normal(4, 8), -1))


def test_a_small_program_is_planned_as_the_large_one_that_it_is_tested_for() -> None:
    """Costs depend on sizes, and kernels that are tested have to be those that run."""
    small = normal(4, 8), normal(8, 12), normal(12, 8)
    large = Planner(prepare_graph(rw.capture(gated, PROGRAMS["gated layer"][1])))
    count = len(large.plan().kernels)
    graph = prepare_graph(rw.capture(gated, small))

    alike, alone = Planner(graph, like=large).plan(), Planner(graph).plan()

    assert len(alike.kernels) == count and sum(isinstance(s, LibraryStep) for s in alike.steps) == 3
    assert not any("a library multiplies faster" in d for d in alone.decisions)


def test_a_planner_of_another_program_says_nothing() -> None:
    large = Planner(prepare_graph(rw.capture(gated, PROGRAMS["gated layer"][1])))
    large.plan()
    program, args = PROGRAMS["sigmoid attention"]

    assert Planner(prepare_graph(rw.capture(program, args)), like=large).like is None
