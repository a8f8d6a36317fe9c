"""Elementary functions give what PyTorch gives: near zero, for large numbers, and where there is no number."""

from collections.abc import Callable

import pytest
import torch

from rewright.optimize import optimize
from tests.frontends.torch.lower.executing import agree, numbers

X, Y = numbers(3, 4), numbers(3, 4, seed=1)
EVERYWHERE = torch.tensor([-700.0, -30.0, -1.5, -1.0, -1e-3, -1e-9, 0.0, 1e-9, 1e-3, 0.5, 1.0, 2.0, 30.0, 700.0, 1e9],
                          dtype=torch.float64)  # fmt: skip
Function = Callable[[torch.Tensor], torch.Tensor]


@pytest.mark.parametrize("function", [torch.cosh, torch.sinh, torch.asinh, torch.tan], ids=lambda f: f.__name__)
def test_functions_of_all_numbers(function: Function) -> None:
    agree(function, X)
    agree(function, EVERYWHERE)


@pytest.mark.parametrize("function", [torch.acosh, torch.log2, torch.log10], ids=lambda f: f.__name__)
def test_functions_of_large_numbers(function: Function) -> None:
    agree(function, EVERYWHERE.abs() + 1)


def test_functions_of_small_numbers() -> None:
    agree(torch.atanh, torch.tensor([-0.99, -0.5, -1e-9, 0.0, 1e-4, 0.9], dtype=torch.float64))


@pytest.mark.parametrize("decimals", [-1, 0, 2])
def test_rounding_to_decimals(decimals: int) -> None:
    agree(lambda x: torch.round(x * 30, decimals=decimals), X)


@pytest.mark.parametrize("function", [torch.hypot, torch.fmax, torch.fmin], ids=lambda f: f.__name__)
def test_functions_of_two_numbers(function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> None:
    agree(function, X, Y[0])
    agree(function, torch.zeros(2, dtype=torch.float64), torch.zeros(2, dtype=torch.float64))


ZEROS = torch.tensor([-2.0, -0.0, 0.0, 3.0, float("inf"), float("-inf")], dtype=torch.float64)


def test_the_sign_of_zero_is_one() -> None:
    agree(torch.signbit, ZEROS)
    agree(torch.signbit, torch.arange(-2, 3))
    agree(torch.copysign, X, Y[0])
    agree(torch.copysign, torch.ones(6, dtype=torch.float64), ZEROS)
    agree(lambda x: torch.copysign(x, -1.0), X)


def test_the_randomised_rectifier_has_its_mean_slope() -> None:
    agree(lambda x: torch.nn.functional.rrelu(x, 0.1, 0.5), X)


def test_in_kernels_too_and_none_overflows_before_its_result() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.cosh(x) + torch.sinh(x) + torch.asinh(x * 1e30) + torch.hypot(x * 1e30, x * 1e30).log10()

    x = torch.tensor([[-88.5, -3.0, -1e-4, 1e-4, 0.3, 20.0, 88.0, 88.5]])

    found = optimize(program, (x,), target="torch")

    assert found.status == "proved", found.reason
    torch.testing.assert_close(found(x), program(x), rtol=1e-5, atol=0)
