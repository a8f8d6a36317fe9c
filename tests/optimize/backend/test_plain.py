"""Graphs for the sizes of a call, and what they hold, draw and return besides tensors."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.optimize.api import Optimized
from rewright.optimize.backend import fitted, graphs, kernels
from rewright.optimize.backend.others import by_inductor_for_all_sizes
from rewright.optimize.backend.plain import is_flexible, plain_graph, sizes_of
from tests.optimize.backend.training import compiled
from tests.optimize.programs import normal


def test_one_plan_is_for_all_lengths(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="rewright.optimize")

    def program(x: torch.Tensor) -> tuple[torch.Tensor, int, None, int]:
        return torch.softmax(x, -1) * x.shape[0], x.shape[0], None, x.shape[0] + x.shape[1]

    run = compiled(program, dynamic=True)

    for length in [*range(2, 12), 3, 9, 1000]:
        torch.testing.assert_close(run(normal(length, 5)), program(normal(length, 5)))
    assert caplog.messages == ["inference: 1 kernels, proved"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Inductor's own
def test_what_is_no_program_of_symbols_has_kernels_for_eight_lengths(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="rewright.optimize")

    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x[: x.shape[0] // 2], -1)

    run = compiled(program, dynamic=True)

    for length in [*range(4, 14), 5, 12]:
        torch.testing.assert_close(run(normal(length, 5)), program(normal(length, 5)))
    first, *plans, last = caplog.messages
    assert first.startswith("inference has kernels for each size by itself: 63 at s")
    assert plans == ["inference: 1 kernels, proved"] * 8
    assert last == "inference left to Inductor: kernels were made for 8 tuples of sizes, and no more are"


def test_a_length_at_which_a_graph_is_another_one_has_kernels_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="rewright.optimize")

    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x[: min(x.shape[0], 9)], -1)

    run = compiled(program, dynamic=True)

    for length in (30, 31, 8, 9, 4, 30):
        torch.testing.assert_close(run(normal(length, 5)), program(normal(length, 5)))


def test_numbers_are_drawn_anew_at_each_length() -> None:
    dropout = torch.nn.Dropout(0.5).train()
    run = compiled(lambda x: dropout(x) * 3, dynamic=True)

    for length in (500, 501, 502):
        first, second = run(torch.ones(length, 5)), run(torch.ones(length, 5))
        assert set(first.unique().tolist()) == {0.0, 6.0}
        assert not torch.equal(first, second)


def test_gradients_of_several_lengths(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="rewright.optimize")
    norm = torch.nn.LayerNorm(6)
    run = compiled(norm, dynamic=True)

    for length in (3, 4, 3):
        given, other = (normal(length, 6).requires_grad_() for _ in range(2))
        torch.cos(run(given)).sum().backward()
        torch.cos(norm(other)).sum().backward()
        torch.testing.assert_close(given.grad, other.grad)

    assert sorted(line.split()[0] for line in caplog.messages) == ["backward:", "forward:"]


def test_one_plan_for_each_width_of_heads(caplog: pytest.LogCaptureFixture) -> None:
    """Four sizes are open: rows, heads, places, and the width, which the kernel needs to know."""
    caplog.set_level("INFO", logger="rewright.optimize")

    def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.softmax(q @ k.transpose(-1, -2), -1) @ v

    run = compiled(attention, dynamic=True)
    for rows, heads, places, width in ((2, 3, 20, 8), (3, 2, 30, 8), (2, 2, 7, 16), (2, 5, 9, 16), (4, 2, 11, 8)):
        given = [normal(rows, heads, places, width, seed=seed) for seed in range(3)]
        torch.testing.assert_close(run(*given), attention(*given))

    assert caplog.messages == ["inference: 1 kernels, proved"] * 2


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Inductor's own
def test_gradients_of_more_lengths_than_get_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "MOST_SIZES", 1)
    norm = torch.nn.LayerNorm(6)
    run = compiled(norm, dynamic=True)

    for length in (3, 4, 5):
        given, other = (normal(length, 6).requires_grad_() for _ in range(2))
        torch.cos(run(given)).sum().backward()
        torch.cos(norm(other)).sum().backward()
        torch.testing.assert_close(given.grad, other.grad)


@pytest.mark.parametrize("fastest", ["eager", "inductor"])
def test_what_is_faster_at_one_length_is_taken_at_others(fastest: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def find(captured: object, *_: object, **__: object) -> kernels.Fastest:
        asked.append(captured)
        return kernels.Fastest(fastest, compiled=lambda *given: (norm(*given),))

    def refuse(*_: object) -> None:
        raise RewrightError("no plan is for all lengths")

    norm = torch.nn.Softmax(-1)
    monkeypatch.setattr(kernels, "find_fastest", find)
    monkeypatch.setattr(fitted.Fitted, "of", refuse)
    monkeypatch.setattr(graphs, "by_inductor_for_all_sizes", lambda module: module.forward)
    run = compiled(norm.forward, dynamic=True)

    for length in (3, 4, 5):
        torch.testing.assert_close(run(normal(length, 6)), norm(normal(length, 6)))
    assert len(asked) == 1


def test_lengths_without_kernels(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING")
    monkeypatch.setattr(kernels.Request, "optimized", lambda _: Optimized("fallback", "nothing is fused"))

    def program(x: torch.Tensor) -> tuple[torch.Tensor, int]:
        return torch.softmax(x, -1) * x.shape[0], x.shape[0]

    run = compiled(program, dynamic=True)

    for length in (3, 4):
        torch.testing.assert_close(run(normal(length, 6)), program(normal(length, 6)))
    assert [line for line in caplog.messages if line] == ["inference left to Inductor: nothing is fused"] * 2


@pytest.mark.parametrize("value", [2, 0.5])
def test_a_number_that_changes(value: float) -> None:
    def program(x: torch.Tensor, n: float) -> torch.Tensor:
        return torch.softmax(x * n, -1)

    run = compiled(program, dynamic=True)

    for n in (value, value + 1, value + 2):
        torch.testing.assert_close(run(normal(3, 4), n), program(normal(3, 4), n))


@pytest.mark.parametrize(
    "program",
    [
        lambda x: (torch.softmax(x, -1), None, 3, x.shape),
        lambda x: torch.softmax(x + torch.tensor([1.0, 2.0, 3.0]), -1),
        lambda x: x.t(),
        lambda x: torch.softmax(torch.arange(4.0), -1),
        lambda x: (x, torch.softmax(x.t(), -1), x[1:]),
        lambda x: torch.softmax(x.cumsum(0).to(torch.float64), -1).to(torch.float16),
    ],
    ids=["no tensor", "a constant", "no computation", "no argument", "memory of the argument", "dtypes"],
)
def test_results_and_arguments_of_every_kind(program: Any) -> None:
    found, expected = compiled(program)(normal(4, 3)), program(normal(4, 3))

    torch.testing.assert_close(found, expected)
    assert type(found) is type(expected)


def graph_of(function: Any, *tensors: torch.Tensor) -> torch.fx.GraphModule:
    """A function as a graph of ATen's operators."""
    return make_fx(function, tracing_mode="fake")(*tensors)


def test_what_is_drawn_is_an_argument_and_drawn_in_order() -> None:
    module = graph_of(lambda x: x + torch.rand(3) - torch.rand(3), normal(3))

    plain = plain_graph(module, [normal(3)])

    assert len(plain.draws) == 2
    torch.manual_seed(5)
    expected = module(normal(3))
    torch.manual_seed(5)
    torch.testing.assert_close(plain.call(plain.module)(normal(3)), expected)


def test_operators_that_are_not_of_aten_are_put_in_its_terms() -> None:
    prims: Any = torch.ops.prims
    module = graph_of(
        lambda x: prims.convert_element_type(
            prims.fma(x, x, prims.iota(3, start=1, step=2, dtype=torch.int64, device="cpu", requires_grad=False)),
            torch.float64,
        ),
        normal(3),
    )

    plain = plain_graph(module, [normal(3)])

    assert not any("prims" in str(node.target) for node in plain.module.graph.nodes)
    torch.testing.assert_close(plain.module(normal(3)), module(normal(3)))


def test_sizes_are_looked_at_where_a_graph_keeps_them_open() -> None:
    assert not is_flexible(graph_of(torch.exp, normal(3)))
    assert is_flexible(make_fx(torch.exp, tracing_mode="symbolic")(normal(3)))


def test_numbers_that_are_equal_and_not_the_same_are_told_apart() -> None:
    assert sizes_of([normal(3, 2), 5, None]) == ((3, 2), "5", "None")
    assert sizes_of([0.0]) != sizes_of([-0.0])


def test_an_argument_that_is_no_tensor_and_no_number_is_refused() -> None:
    with pytest.raises(RewrightError, match="argument 1 is a list; kernels are for tensors and numbers"):
        plain_graph(graph_of(torch.exp, normal(3)), [normal(3), []])


def test_what_inductor_compiles_for_all_lengths_runs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that was compiled has no truth value where it has no length."""
    fastest = kernels.Fastest("inductor")
    monkeypatch.setattr(fitted.Fitted, "of", lambda module, *_: fitted.Fitted(module, Graph((), {}, {}), fastest))
    monkeypatch.setattr(graphs, "by_inductor_for_all_sizes", partial(by_inductor_for_all_sizes, backend="eager"))
    norm = torch.nn.Softmax(-1)
    run = compiled(norm.forward, dynamic=True)

    for length in (3, 4, 5, 3):
        torch.testing.assert_close(run(normal(length, 6)), norm(normal(length, 6)))
