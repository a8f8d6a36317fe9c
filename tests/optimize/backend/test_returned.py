"""Where results lie: in the memory of arguments, of each other, or in their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from rewright.ir.errors import RewrightError
from rewright.optimize.backend.plain import plain_graph
from rewright.optimize.backend.returned import Returned, returned_by
from tests.optimize.programs import normal

Function = Callable[[torch.Tensor], tuple[Any, ...]]


def looked_at(function: Function, x: torch.Tensor) -> Returned:
    """The results of a function of one tensor."""
    plain = plain_graph(make_fx(function, tracing_mode="fake")(x), [x])
    return returned_by(plain, [x])


def strides(results: list[Any]) -> list[Any]:
    """Where the elements of results lie."""
    return [(t.shape, t.stride(), t.storage_offset()) if isinstance(t, torch.Tensor) else t for t in results]


def parts_of_a_product(x: torch.Tensor) -> tuple[Any, ...]:
    y = x @ x.t()
    return y.t(), y[1:3], y.view(2, 2, 4).permute(2, 0, 1), None, 3


def of_the_argument(x: torch.Tensor) -> tuple[Any, ...]:
    return x, x.t(), x[1:], x + 1


def turned(x: torch.Tensor) -> tuple[Any, ...]:
    return (torch.exp(x.t()),)


@pytest.mark.parametrize(("function", "count"), [(parts_of_a_product, 1), (of_the_argument, 1), (turned, 1)])
@pytest.mark.parametrize("x", [normal(4, 4), normal(4, 4).t()], ids=["rows", "columns"])
def test_views_of_one_tensor_are_one_computation(function: Function, count: int, x: torch.Tensor) -> None:
    found = looked_at(function, x)

    made = found.make(found.module(x), [x])

    expected = list(function(x))
    assert len(found.computed) == count
    assert strides(made) == strides(expected)
    torch.testing.assert_close(made, expected)


def test_results_share_memory_as_they_do_in_the_graph() -> None:
    x = normal(4, 4)
    found = looked_at(parts_of_a_product, x)
    whole, part, *_ = found.make(found.module(x), [x])

    whole[0, 1] = 7

    assert part[0, 0] == 7
    assert not whole._is_view()


def test_an_argument_is_returned_itself_and_something_computed_is_not() -> None:
    x = normal(4, 4)
    found = looked_at(of_the_argument, x)

    same, *_, new = found.make([x], [x])  # as kernels have it that hand on what they were given

    assert same is x
    assert new.data_ptr() != x.data_ptr()
    assert found.arguments == {0: (4, 1)}


def test_a_part_of_memory_that_nothing_fills_is_refused() -> None:
    def broadcast(x: torch.Tensor) -> tuple[Any, ...]:
        return (torch.full_like(x.expand(3, 4), 2.0).as_strided((2, 2), (0, 1), 3),)

    assert len(looked_at(broadcast, normal(4)).computed) == 1

    with pytest.raises(RewrightError, match="read as something else"):
        looked_at(lambda x: (x.view(torch.int32),), normal(4))


def test_views_that_are_alike_have_gradients_of_their_own() -> None:
    """Both chunks of a row that is repeated lie at one place of memory."""

    def program(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.relu(), *x.chunk(2)

    def gradient(function: Any, x: torch.Tensor) -> torch.Tensor:
        results = function(x)
        weights = [torch.full_like(result, 1.0 + number) for number, result in enumerate(results)]
        return torch.autograd.grad(results, x, weights)[0]

    x = torch.tensor([[1.0, -2.0]]).expand(4, 2).detach().requires_grad_()
    fast = torch.compile(program, backend="rewright", options={"target": "cpu", "floor": False, "remember": False})
    assert torch.equal(gradient(fast, x), gradient(program, x))
