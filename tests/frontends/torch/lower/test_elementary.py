"""Elementary functions give what PyTorch gives: near zero, for large numbers, and where there is no number."""

from collections.abc import Callable

import pytest
import torch

from rewright.equiv.engine import equiv
from rewright.frontends.torch.capture import capture
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


@pytest.mark.parametrize(
    "function",
    [torch.atan, torch.erfc, torch.special.erfcx, torch.lgamma, torch.special.i0, torch.special.i0e, torch.special.i1,
     torch.special.i1e, torch.special.log_ndtr, lambda x: torch.mvlgamma(x.abs() + 3, 2)],
)  # fmt: skip
def test_special_functions_of_all_numbers(function: Function) -> None:
    agree(function, X * 5)
    agree(function, EVERYWHERE)


@pytest.mark.parametrize("function", [torch.asin, torch.acos, torch.erfinv], ids=lambda f: f.__name__)
def test_inverse_functions_have_no_value_out_of_range(function: Function) -> None:
    agree(function, torch.tensor([-2.0, -1.0, -0.9, -1e-9, 0.0, 0.3, 1 - 1e-9, 1.0, 1.1], dtype=torch.float64))


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_derivatives_of_the_gamma_function(n: int) -> None:
    agree(lambda x: torch.polygamma(n, x), X.abs().float() + 0.1)
    agree(torch.digamma, torch.tensor([-2.5, -1.0, -1e-9, 0.0, 30.0], dtype=torch.float64))


def test_angles_and_logarithms_of_two_numbers() -> None:
    zeros = torch.zeros(2, dtype=torch.float64)
    agree(torch.atan2, X, Y[0])
    agree(torch.atan2, zeros, zeros)
    agree(lambda x: torch.xlogy(0.0, x) + torch.xlogy(2.5, x), X.abs())
    agree(lambda x: torch.xlogy(x, 2.5), X)
    agree(lambda x, y: torch.special.zeta(x.abs() + 1.5, y.abs()), X, Y[0])


def test_no_number_below_the_range_of_a_large_argument() -> None:
    agree(torch.acosh, torch.tensor([-1e200, -1.0, 0.5, 1.0, 1e200], dtype=torch.float64))


def test_special_functions_inside_of_kernels_are_left_to_a_library() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (torch.atan2(x * 2, y) + torch.lgamma(x.abs() + 1)).softmax(-1) * torch.erfc(y + 1)

    x, y = X.float(), Y.float()

    found = optimize(program, (x, y), target="torch")

    assert found.status == "proved", found.reason
    torch.testing.assert_close(found(x, y), program(x, y))


def test_the_complement_of_the_error_function_is_what_it_is_called() -> None:
    def gelu(x: torch.Tensor) -> torch.Tensor:
        return 0.5 * x * torch.erfc(-x * 0.5)

    def other(x: torch.Tensor) -> torch.Tensor:
        return 0.5 * x * (1 - torch.erf(-x * 0.5))

    def wrong(x: torch.Tensor) -> torch.Tensor:
        return 0.5 * x * (1 - torch.erf(x * 0.5))

    first, second, third = (capture(f, (X,)) for f in (gelu, other, wrong))

    assert equiv(first, second).status == "proved"
    assert equiv(first, third).status == "refuted"


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
