"""What is saved for gradients, and what kernels keep in memory: nothing that has an element for each pair."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch.nn import functional

from rewright.optimize.backend import kernels, reassociating
from rewright.optimize.backend.kernels import Fastest
from rewright.optimize.planning.plan import Plan
from tests.optimize.backend.attentions import ATTENTIONS, LENGTH, causal, heads, scores
from tests.optimize.backend.training import compiled
from tests.optimize.programs import normal


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention_and_its_gradients_keep_nothing_for_each_pair(name: str, plans: list[Plan]) -> None:
    function, args = ATTENTIONS[name]()

    found, saved = step(compiled(function, floor=False), args)

    for mine, expected in zip(found, step(function, args)[0], strict=True):
        torch.testing.assert_close(mine, expected, rtol=1e-4, atol=1e-5)
    assert [len(plans), *(shape for shape in saved if is_wide(shape))] == [2]
    stored = (plan.graph.nodes[p] for plan in plans for p in plan.memory)
    assert [node.op.name for node in stored if node.operands and is_wide(node.type.shape)] == []


def test_a_sum_that_is_not_proved_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    function, args = ATTENTIONS["plain"]()
    tried: list[bool] = []
    made, proved = reassociating._made, reassociating._is_proved

    def negated(graph: torch.fx.Graph, total: torch.fx.Node, match: Any) -> torch.fx.Node:
        node = made(graph, total, match)
        with graph.inserting_after(node):
            wrong = graph.call_function(torch.ops.aten.neg.default, (node,))
        wrong.meta["val"] = node.meta["val"]
        return wrong

    def noting(*nodes: Any) -> bool:
        tried.append(proved(*nodes))
        return tried[-1]

    monkeypatch.setattr(reassociating, "_made", negated)
    monkeypatch.setattr(reassociating, "_is_proved", noting)

    found, _ = step(compiled(function, floor=False), args)

    assert tried == [False]
    for mine, expected in zip(found, step(function, args)[0], strict=True):
        torch.testing.assert_close(mine, expected, rtol=1e-4, atol=1e-5)


def test_between_products_of_16_bits_the_softmax_has_32(monkeypatch: pytest.MonkeyPatch, plans: list[Plan]) -> None:
    function, args = ATTENTIONS["plain"]()
    proved: list[bool] = []
    before = reassociating._is_proved
    monkeypatch.setattr(reassociating, "_is_proved", lambda *nodes: proved.append(before(*nodes)) or proved[-1])

    found, saved = step(compiled(function, floor=False), [a.bfloat16() for a in args])

    assert proved == [True]
    assert not any(map(is_wide, saved)) and all(len(plan.kernels) <= 2 for plan in plans)
    for mine, expected in zip(found, step(function, [a.bfloat16().double() for a in args])[0], strict=True):
        torch.testing.assert_close(mine.double(), expected, rtol=2e-2, atol=2e-2 * float(expected.abs().max()))


def test_what_is_returned_is_not_computed_again() -> None:
    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, ...]:
        weights = torch.softmax(scores(q, k), -1)
        return weights @ v, weights

    found, saved = step(compiled(run, floor=False), heads())

    assert sum(map(is_wide, saved)) == 1
    for mine, expected in zip(found, step(run, heads())[0], strict=True):
        torch.testing.assert_close(mine, expected, rtol=1e-4, atol=1e-5)


def test_what_is_dropped_is_saved_as_truth_values(caplog: pytest.LogCaptureFixture) -> None:
    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return functional.dropout(torch.softmax(causal(scores(q, k)), -1), 0.25) @ v

    fast, args = compiled(run, floor=False), [a.requires_grad_() for a in heads()]
    identity = torch.eye(LENGTH).expand(1, 2, LENGTH, LENGTH)

    weights = fast(args[0], args[1], identity.clone().requires_grad_())
    kept = weights != 0
    (gradient,) = torch.autograd.grad(weights.sum(), args[0])

    exact = torch.softmax(causal(scores(args[0], args[1])), -1) * kept / 0.75
    torch.testing.assert_close(weights, exact)
    torch.testing.assert_close(gradient, torch.autograd.grad(exact.sum(), args[0])[0], rtol=1e-4, atol=1e-6)


def test_a_linear_layer_is_saved(plans: list[Plan]) -> None:
    """It is a library's, which would have to be called again, however many rows there are."""
    x, weight = normal(300, 200), normal(200, 400, seed=1)

    _, saved = step(compiled(lambda x, w: torch.tanh(x @ w).sum(-1), floor=False), [x, weight])

    assert (300, 400) in saved


def test_the_fastest_way_stays(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Which one is seen from the second step on."""
    function, args = ATTENTIONS["capped"]()
    ways = (
        ("tensors are computed again", [1.0, 1.0, 1.0]),
        ("tensors are saved", [1.0, 0.5, 0.7]),
        ("eager", [1, 1, 0.9]),
    )
    for kept, times in ways:
        caplog.clear()
        caplog.set_level(logging.INFO, logger="rewright.optimize")
        monkeypatch.setattr("rewright.optimize.backend.choosing.timed", timed(times))
        fast = compiled(function, target="cpu", remember=False)

        first, second = step(fast, args)[1], step(fast, args)[1]

        assert kept in caplog.text
        assert not any(map(is_wide, first))
        assert any(map(is_wide, second)) == (kept != "tensors are computed again")


def test_a_product_of_a_tensor_with_itself(caplog: pytest.LogCaptureFixture) -> None:
    x, copy = (normal(20, 20).requires_grad_() for _ in range(2))

    torch.tanh(compiled(lambda x: x @ x, floor=False)(x)).sum().backward()
    torch.tanh(copy @ copy).sum().backward()

    torch.testing.assert_close(x.grad, copy.grad)
    assert "AOTAutograd does not take" not in caplog.text and "stay as they are" not in caplog.text


def test_who_asks_for_no_gradient_pays_for_none(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="rewright.optimize")
    function, args = ATTENTIONS["capped"]()
    fast = compiled(function)

    for _ in range(3):
        fast(*(a.requires_grad_() for a in args))

    assert "gradients:" not in caplog.text and "backward" not in caplog.text


@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")  # Dynamo's own
def test_arguments_that_a_step_writes_to_are_written_to_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="rewright.optimize")

    def run(x: torch.Tensor, w: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
        count.add_(1)
        x.mul_(2)
        return torch.tanh(x * w) * count

    fast = compiled(run, target="cpu")
    w, count = normal(40, seed=1).requires_grad_(), torch.zeros(())
    for number in range(3):
        x = normal(30, 40).requires_grad_()
        inner = x.clone()
        (mine,) = torch.autograd.grad(fast(inner, w, count).sum(), x)
        copy = x.clone()
        (exact,) = torch.autograd.grad(run(copy, w, torch.tensor(float(number))).sum(), x)
        assert count == number + 1
        torch.testing.assert_close(mine, exact)
        torch.testing.assert_close(inner, copy)
    assert caplog.text.count("gradients:") == 1


def test_random_numbers_are_those_of_the_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was drawn to find out what is faster; eager PyTorch, which would draw others, is not kept."""

    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.softmax(scores(functional.dropout(q, 0.5), k), -1) @ v

    fast, found = compiled(run), list[torch.Tensor]()
    for _ in range(3):
        torch.manual_seed(5)
        found += step(fast, heads())[0]
    size = len(found) // 3
    for number, one in enumerate(found[size:]):
        torch.testing.assert_close(one, found[number % size], rtol=1e-5, atol=1e-5)


def timed(seconds: Sequence[float]) -> Callable[..., dict[str, float]]:
    def measured(steps: dict[str, Callable[[], Any]], notes: list[str]) -> dict[str, float]:
        for run in steps.values():
            run()
        return dict(zip(steps, seconds, strict=True))

    return measured


def step(function: Callable[..., Any], args: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor], list[Sequence[int]]]:
    """Results and gradients by all arguments, and the shapes of what is saved in between."""
    given = [a.detach().clone().requires_grad_() for a in args]
    function(*given)  # the first call makes the kernels, and may find out what is faster
    saved: list[Sequence[int]] = []

    def note(tensor: torch.Tensor) -> torch.Tensor:
        saved.append(tuple(tensor.shape))
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        results = function(*given)
    results = results if isinstance(results, tuple) else (results,)
    total = sum((r * torch.linspace(0.5, 1, r.numel()).view(r.shape)).sum() for r in results)
    gradients = torch.autograd.grad(total, given)  # type: ignore[arg-type]
    return [*(r.detach() for r in results), *gradients], saved


def is_wide(shape: Sequence[Any]) -> bool:
    return math.prod(int(str(size)) for size in shape) >= LENGTH * LENGTH


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """The plans of all graphs, in the order in which they were made."""
    found: list[Plan] = []
    before = kernels.find_fastest

    def noting(*args: Any) -> Fastest:
        fastest = before(*args)
        assert fastest.found is not None and fastest.found.plan is not None, fastest.why
        assert fastest.found.status == "proved"
        found.append(fastest.found.plan)
        return fastest

    monkeypatch.setattr(kernels, "find_fastest", noting)
    return found
