"""Adversarial numbers: large logits, infinities, empty rows, functions at their edges."""

from __future__ import annotations

import pytest
import torch

import rewright as rw
from rewright.optimize.targets import Target
from tests.optimize.programs import PROGRAMS, normal


@pytest.fixture(scope="module")
def causal() -> rw.optimize:  # type: ignore[valid-type]
    program, args = PROGRAMS["causal"]()
    return rw.optimize(program, args)


@pytest.mark.parametrize("scale", [1.0, 10.0, 100.0, 1e4])
def test_no_scale_of_logits_makes_anything_infinite(causal: object, scale: float) -> None:
    program, args = PROGRAMS["causal"]()
    large = (args[0] * scale, args[1], args[2])
    exact = program(*(a.double() for a in large))

    for mine, expected in zip(causal(*large), exact, strict=True):  # type: ignore[operator]
        assert mine.isfinite().all()
        torch.testing.assert_close(mine.double(), expected, rtol=1e-3, atol=1e-3)


def test_scalar_functions_are_right_at_their_edges() -> None:
    def program(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.exp(x), torch.tanh(x), torch.log(x), torch.sigmoid(x), torch.rsqrt(x)

    edges = [0.0, 1e-40, 1e-30, 0.1, 0.624, 0.626, 1.0, 10.0, 88.0, 88.8, 104.0, 1e30, float("inf"), float("nan")]
    x = torch.tensor([*edges, *(-e for e in edges), *normal(100).tolist()])

    found = rw.optimize(program, (x,))

    assert found.status == "proved", found.reason
    for mine, expected in zip(found(x), program(x), strict=True):
        torch.testing.assert_close(mine, expected, rtol=3e-6, atol=1e-38, equal_nan=True)


def test_softmax_of_many_numbers_sums_to_one() -> None:
    x = normal(3, 5000) * 50

    found = rw.optimize(lambda x: torch.softmax(x, -1), (x,))

    assert found.status == "proved"
    torch.testing.assert_close(found(x).sum(-1), torch.ones(3), rtol=1e-5, atol=1e-5)


def test_integers_and_conditions_are_exact() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x + y * 3, (x > y) | (x == 2), x.sum(-1), (x % 5), torch.where(x > y, x, y).amax(-1)

    x, y = torch.arange(-12, 12).reshape(4, 6), torch.arange(24).reshape(4, 6) - 7

    found = rw.optimize(program, (x, y), allow="tested")

    assert found.status != "fallback", found.reason
    for mine, expected in zip(found(x, y), program(x, y), strict=True):
        assert torch.equal(mine, expected)


@pytest.mark.parametrize("target", ["torch", "cpu"])
def test_a_query_that_is_no_number_is_not_one_without_keys(target: Target) -> None:
    """A query whose keys are all masked gets zero, and NaN is no mask."""
    keep = torch.ones(1, 1, 1, 21, dtype=torch.bool)
    keep[..., 5:] = False
    q, k = normal(1, 2, 6, 16), normal(1, 2, 21, 16, seed=1)

    fast = rw.optimize(torch.nn.functional.scaled_dot_product_attention, (q, k, k, keep), target=target)
    q[0, 1, 2, 3] = float("nan")

    assert fast.status == "proved", fast.reason
    torch.testing.assert_close(
        fast(q, k, k, keep), torch.nn.functional.scaled_dot_product_attention(q, k, k, keep), equal_nan=True
    )
