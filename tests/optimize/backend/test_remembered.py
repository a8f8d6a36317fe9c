"""A graph of ``torch.compile`` that was planned, proved and timed before is taken from disk, as it was fastest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from rewright import ops
from rewright.ir.graph import Graph
from rewright.optimize import making
from rewright.optimize.backend import backend, choosing, fitted, graphs, kernels
from rewright.optimize.backend.captured import Captured
from rewright.optimize.backend.known import Known
from rewright.optimize.floor.timings import OURS, Floor, Timing
from rewright.optimize.sizes import plans
from tests.optimize.backend.training import Twins, layer_norm
from tests.optimize.programs import normal


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def refuse(*_: object, **__: object) -> None:
    raise AssertionError("planned again")


def program(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x @ w, -1) * 2


def run(floor: object, monkeypatch: pytest.MonkeyPatch, keeps: str = OURS) -> torch.Tensor:
    """Compile the program as a new process would, and call it; ``keeps`` is what is found to be fastest."""

    def measured(runner: Any, *_: object) -> Floor:
        return Floor(Timing("the program", {keeps: 1e-3}, keeps), [], [], runner)

    monkeypatch.setattr("rewright.optimize.floor.measuring.measure", measured)
    torch._dynamo.reset()
    compiled = torch.compile(
        program, backend=backend, options={"target": "cpu", "floor": floor, "verify": False}, dynamic=False
    )
    with torch.no_grad():
        return compiled(normal(4, 6), normal(6, 8))


@pytest.mark.parametrize("floor", [False, ["eager"]])
def test_a_graph_is_planned_once(
    floor: object, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first = run(floor, monkeypatch)
    monkeypatch.setattr(making, "Planner", refuse)

    assert torch.equal(run(floor, monkeypatch), first)
    assert "left to" not in caplog.text

    run(not floor, monkeypatch)  # which was not asked before
    assert "planned again" in caplog.text


@pytest.mark.parametrize("keeps", ["eager", "inductor"])
def test_what_was_fastest_runs_again(
    keeps: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made: list[object] = []
    for place in (kernels, graphs):
        monkeypatch.setattr(place, "by_inductor", lambda module, _: made.append(module) or module.forward)
    monkeypatch.setattr(kernels.Kernels, "__call__", refuse)
    expected = program(normal(4, 6), normal(6, 8))

    for _ in range(2):
        torch.testing.assert_close(run(["eager"], monkeypatch, keeps), expected)
        monkeypatch.setattr(making, "Planner", refuse)
    assert len(made) == 2 * (keeps == "inductor")
    assert "left to" not in caplog.text


def test_forward_and_backward_are_remembered(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        module, x = layer_norm()
        twins = Twins.of(module, target="cpu", floor=False, verify=False)
        twins.step(x)
        twins.agree()
        monkeypatch.setattr(making, "Planner", refuse)
    assert "left to" not in caplog.text


def growing(monkeypatch: pytest.MonkeyPatch) -> list[torch.Tensor]:
    """Compile the program as a new process would, and call it with three lengths."""
    torch._dynamo.reset()
    options = {"target": "cpu", "floor": False}
    compiled = torch.compile(program, backend=backend, options=options, dynamic=True)
    with torch.no_grad():
        return [compiled(normal(length, 6), normal(6, 8)) for length in (130, 40, 301)]


def test_kernels_that_take_sizes_are_planned_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first = growing(monkeypatch)
    for module, name in ((making, "Planner"), (plans, "Planner"), (fitted, "fit_graph")):
        monkeypatch.setattr(module, name, refuse)

    for one, again, length in zip(first, growing(monkeypatch), (130, 40, 301), strict=True):
        assert torch.equal(one, again)
        torch.testing.assert_close(one, program(normal(length, 6), normal(6, 8)))
    assert "left to" not in caplog.text and "planned again" not in caplog.text


def test_a_graph_without_a_proof_is_not_captured_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def once() -> torch.Tensor:
        torch._dynamo.reset()
        options = {"target": "cpu", "floor": False, "verify": False, "budget": 0.0}
        with torch.no_grad():
            return torch.compile(program, backend=backend, options=options, dynamic=False)(normal(4, 6), normal(6, 8))

    first = once()
    assert "the plan is not proved" in caplog.text
    monkeypatch.setattr(Captured, "of", refuse)
    torch.testing.assert_close(once(), first)
    assert "(so it was in an earlier process)" in caplog.text and "planned again" not in caplog.text


@pytest.mark.parametrize("runs", ["eager", "inductor"])
def test_a_graph_that_pytorch_runs_faster_is_not_captured_again(
    runs: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="rewright.optimize")
    first = run(True, monkeypatch, runs)
    monkeypatch.setattr(Captured, "of", refuse)

    torch.testing.assert_close(run(True, monkeypatch, runs), first)
    assert f"{runs} runs, as in an earlier process" in caplog.text
    with torch.no_grad():  # another option is another question
        torch._dynamo.reset()
        options = {"target": "cpu", "floor": ["eager"], "verify": False}
        torch.compile(program, backend=backend, options=options, dynamic=False)(normal(4, 6), normal(6, 8))
    assert "planned again" in caplog.text


def test_a_graph_that_draws_numbers_is_captured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x + torch.rand_like(x), -1) * 2

    monkeypatch.setitem(globals(), "program", lambda x, w: drawn(x @ w))
    for _ in range(2):
        torch.manual_seed(3)
        found = run(True, monkeypatch, "inductor")
        torch.manual_seed(3)
        torch.testing.assert_close(found, program(normal(4, 6), normal(6, 8)))


def test_a_remembered_graph_of_another_program_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    recall = Known.recall_graph
    changed: list[int] = []

    def wrong(known: Known) -> Graph | None:
        graph = recall(known)
        if graph is None:
            return None
        changed.extend(p for p, node in enumerate(graph.nodes) if isinstance(node.op, ops.Multiply))
        nodes = [replace(n, op=ops.Add()) if isinstance(n.op, ops.Multiply) else n for n in graph.nodes]
        return replace(graph, nodes=tuple(nodes))

    growing(monkeypatch)
    monkeypatch.setattr(Known, "recall_graph", wrong)

    for found, length in zip(growing(monkeypatch), (130, 40, 301), strict=True):
        torch.testing.assert_close(found, program(normal(length, 6), normal(6, 8)))
    assert changed


def test_which_way_to_take_a_step_is_timed_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="rewright.optimize")
    for _ in range(2):
        module, x = layer_norm()
        twins = Twins.of(module, target="cpu", floor=["eager"], verify=False)
        for _ in range(2):
            twins.step(x)
            twins.agree()
        monkeypatch.setattr(choosing, "timed", refuse)
    assert caplog.text.count("gradients: ") == 2 and "as in an earlier process" in caplog.text


def test_that_there_is_no_graph_for_all_sizes_is_remembered_for_the_sizes_of_the_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[object] = []

    def unlike(samples: object, _: object) -> None:
        asked.append(samples)
        raise fitted.NotAlike("at other sizes it is another program")

    monkeypatch.setattr(fitted, "fit_graph", unlike)
    for length in (130, 130, 40):
        torch._dynamo.reset()
        compiled = torch.compile(program, backend=backend, options={"target": "cpu", "floor": False}, dynamic=True)
        with torch.no_grad():
            torch.testing.assert_close(
                compiled(normal(length, 6), normal(6, 8)), program(normal(length, 6), normal(6, 8))
            )
    first, *others = asked
    assert others and others[0] != first, "once for each size"
