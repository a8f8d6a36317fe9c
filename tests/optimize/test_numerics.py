"""Adversarial numbers: large logits, infinities, empty rows, functions at their edges."""

from __future__ import annotations

import pytest
import torch

import rewright as rw
from rewright.optimize.planning.planner import Planner
from rewright.optimize.planning.preparing import prepare_graph
from rewright.optimize.planning.splitting import split_plan
from rewright.optimize.running import targets
from rewright.optimize.running.targets import Target
from tests.optimize.programs import PROGRAMS, normal


@pytest.fixture(scope="module")
def causal() -> rw.optimize:  # type: ignore[valid-type]
    program, args = PROGRAMS["causal"]()
    return rw.optimize(program, args, floor=False, remember=False)


@pytest.mark.sample(3)
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
        several = torch.exp(x), torch.tanh(x), torch.log(x), torch.sigmoid(x), torch.rsqrt(x)
        return *several, torch.relu(x), x.clamp(-1, 2), torch.minimum(x, 3 * x), torch.sign(x)

    edges = [0.0, 1e-40, 1e-30, 0.1, 0.624, 0.626, 1.0, 10.0, 88.0, 88.8, 104.0, 1e30, float("inf"), float("nan")]
    x = torch.tensor([*edges, *(-e for e in edges), *normal(100).tolist()])

    found = rw.optimize(program, (x,), floor=False, remember=False)

    assert found.status == "proved", found.reason
    for mine, expected in zip(found(x), program(x), strict=True):
        torch.testing.assert_close(mine, expected, rtol=3e-6, atol=1e-38, equal_nan=True)


def test_softmax_of_many_numbers_sums_to_one() -> None:
    x = normal(3, 5000) * 50

    found = rw.optimize(lambda x: torch.softmax(x, -1), (x,), floor=False, remember=False)

    assert found.status == "proved"
    torch.testing.assert_close(found(x).sum(-1), torch.ones(3), rtol=1e-5, atol=1e-5)


def test_integers_and_conditions_are_exact() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x + y * 3, (x > y) | (x == 2), x.sum(-1), (x % 5), torch.where(x > y, x, y).amax(-1)

    x, y = torch.arange(-12, 12).reshape(4, 6), torch.arange(24).reshape(4, 6) - 7

    found = rw.optimize(program, (x, y), allow="tested", floor=False, remember=False)

    assert found.status != "fallback", found.reason
    for mine, expected in zip(found(x, y), program(x, y), strict=True):
        assert torch.equal(mine, expected)


@pytest.mark.parametrize("target", ["torch", "cpu"])
def test_a_query_that_is_no_number_is_not_one_without_keys(target: Target) -> None:
    """A query whose keys are all masked gets zero, and NaN is no mask."""
    keep = torch.ones(1, 1, 1, 21, dtype=torch.bool)
    keep[..., 5:] = False
    q, k = normal(1, 2, 6, 16), normal(1, 2, 21, 16, seed=1)

    fast = rw.optimize(
        torch.nn.functional.scaled_dot_product_attention, (q, k, k, keep), target=target, floor=False, remember=False
    )
    q[0, 1, 2, 3] = float("nan")

    assert fast.status == "proved", fast.reason
    torch.testing.assert_close(
        fast(q, k, k, keep), torch.nn.functional.scaled_dot_product_attention(q, k, k, keep), equal_nan=True
    )


@pytest.mark.parametrize("target", ["torch", "cpu"])
def test_a_query_that_is_no_number_is_no_number_whatever_the_width_of_values_is(target: Target) -> None:
    """PyTorch writes such attention out, with zeros inside of its sum where the maximum says that no key is left."""
    args = normal(1, 2, 6, 16), normal(1, 2, 21, 16, seed=1), normal(1, 2, 21, 24, seed=2)

    fast = rw.optimize(
        torch.nn.functional.scaled_dot_product_attention, args, target=target, floor=False, remember=False
    )
    args[0][0, 1, 2, 3] = float("nan")

    assert fast.status == "proved", fast.reason
    assert fast.plan is not None and [len(kernel.sweeps) for kernel in fast.plan.kernels] == [1]
    torch.testing.assert_close(fast(*args), torch.nn.functional.scaled_dot_product_attention(*args), equal_nan=True)


@pytest.mark.parametrize("target", ["torch", "cpu"])
def test_a_query_whose_scores_are_all_minus_infinity_gets_zero_without_a_mask_too(target: Target) -> None:
    def program(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.scaled_dot_product_attention(q, k, k, is_causal=True)

    q, k = normal(1, 1, 5, 16).abs(), -normal(1, 1, 5, 16, seed=1).abs()
    q[0, 0, 3, 3] = float("inf")

    found = rw.optimize(program, (q, k), target=target, floor=False, remember=False)

    assert found.status == "proved", found.reason
    assert not found(q, k)[0, 0, 3].any()


@pytest.mark.parametrize("target", ["torch", "cpu"])
def test_the_logarithm_of_a_sum_of_exponentials_may_be_infinite(target: Target) -> None:
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([[1.0, 2, 3], [inf, 1, 2], [-inf, -inf, -inf], [nan, 1, inf], [-inf, 2, -inf], [inf, -inf, inf]])

    found = rw.optimize(lambda x: torch.logsumexp(x, -1), (x,), target=target, floor=False, remember=False)

    assert found.status == "proved", found.reason
    torch.testing.assert_close(found(x), torch.logsumexp(x, -1), equal_nan=True)


def test_a_score_that_is_computed_again_is_no_larger_than_the_maximum_of_scores() -> None:
    """Sums of columns of weights, of scores in the thousands that are no multiples of a power of two."""
    program, _ = PROGRAMS["causal"]()
    args = tuple(normal(1, 1, 700, 32, seed=s) * 30 for s in range(3))
    exact, own = program(*(a.double() for a in args))[1], program(*args)[1]

    found = rw.optimize(program, args, target="cpu", floor=False, remember=False)

    assert found.status == "proved", found.reason
    assert (found(*args)[1].double() - exact).abs().max() <= 3 * (own.double() - exact).abs().max()


def test_sums_of_many_numbers_keep_their_digits() -> None:
    x = normal(3, 200_000).abs()

    found = rw.optimize(lambda x: (x.sum(-1), (1000 * x).var(-1)), (x,), target="cpu", floor=False, remember=False)

    assert found.status == "proved", found.reason
    for mine, expected in zip(found(x), (x.double().sum(-1), (1000 * x.double()).var(-1)), strict=True):
        torch.testing.assert_close(mine.double(), expected, rtol=2e-7, atol=0.0)


def test_a_mask_that_makes_weights_no_number_compiles() -> None:
    """Where the mask is known, what a tile is multiplied with depends on the key and the feature alone."""

    def program(x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        above = torch.arange(x.shape[1]) > torch.arange(x.shape[0])[:, None]
        return torch.softmax(-x.masked_fill(above, -torch.inf), -1) @ v

    x, v = torch.randn(5, 70), torch.randn(70, 8)

    optimized = rw.optimize(program, (x, v), target="cpu", floor=False, remember=False)

    assert optimized.status == "proved", optimized.reason
    torch.testing.assert_close(optimized(x, v), program(x, v), equal_nan=True)


@pytest.mark.sample(3)
@pytest.mark.parametrize("target", ["torch", "cpu"])
@pytest.mark.parametrize("pieces", [False, True])
def test_rows_of_nothing_but_infinity_are_no_number_where_the_program_has_none(target: Target, pieces: bool) -> None:
    def program(x: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, ...]:
        weights = torch.exp((x - x.amax(-1, keepdim=True)) * 0.3)  # not divided by their sum, which would be zero
        largest = x.amax(-1, keepdim=True)
        safe = torch.exp(x - torch.where(largest == -torch.inf, 0.0, largest))  # of such rows zero
        return weights.sum(-1), weights @ v, safe.sum(-1)

    x, v = normal(5, 130), normal(130, 8, seed=1)
    x[1], x[2, :100], x[3, 7] = -torch.inf, -torch.inf, torch.nan
    found = rw.optimize(program, (x, v), target=target, floor=False, remember=False)
    assert found.status == "proved" and found.plan is not None, found.reason
    run = found.run
    if pieces:
        split = split_plan(Planner(prepare_graph(rw.capture(program, (x, v)))).plan(), targets.machine(target), 3)
        assert len(split.kernels) > len(found.plan.kernels)
        run = targets.runners(target, split, None, targets.print_kernels(target, split, None))[0]

    for mine, own in zip(run({"x": x, "v": v}).values(), program(x, v), strict=True):
        torch.testing.assert_close(mine, own, equal_nan=True)


@pytest.mark.parametrize("target", ["torch", "cpu"])
def test_functions_of_infinity_and_floors_of_quotients_are_those_of_pytorch(target: Target) -> None:
    def program(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
        floor = torch.div(a, b, rounding_mode="floor")
        return torch.nn.functional.logsigmoid(x), floor, torch.floor_divide(b, a), torch.remainder(a, b)

    x = torch.tensor([-torch.inf, torch.inf, torch.nan, 0.0, -200.0, 88.7])
    tenths = torch.arange(-40, 41) / 10
    a, b = torch.cat([tenths, torch.tensor([5.0, 0.0, -1.0, torch.inf])]), torch.full((85,), 0.1)
    b[-4:] = torch.tensor([0.0, 0.0, torch.inf, 1.0])

    found = rw.optimize(program, (x, a, b), target=target, floor=False, remember=False)

    assert found.status == "proved", found.reason
    for mine, own in zip(found(x, a, b), program(x, a, b), strict=True):
        torch.testing.assert_close(mine, own, equal_nan=True, atol=1e-6, rtol=0)


@pytest.mark.parametrize("target", ["torch", "cpu"])
def test_a_quotient_by_what_all_rows_share_may_be_in_a_sum_that_others_follow(target: Target) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        weighed = x.roll(1, 1) * torch.softmax(x, 1)  # the divisor belongs to a column
        return torch.nn.functional.layer_norm(weighed, (8,))

    found = rw.optimize(program, (normal(2, 9, 8),), target=target, floor=False, remember=False)

    assert found.status == "proved", found.reason
    torch.testing.assert_close(found(normal(2, 9, 8)), program(normal(2, 9, 8)), atol=1e-5, rtol=1e-4)


@pytest.mark.sample(3)
@pytest.mark.parametrize("target", ["torch", "cpu"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_a_scale_that_is_a_tensor_makes_no_kernel_wider_than_the_others(target: Target, dtype: torch.dtype) -> None:
    """A number in float64 times a tensor in float32 is float32; scores are rounded alike wherever they are computed."""

    def program(q: torch.Tensor, k: torch.Tensor, t: torch.Tensor) -> tuple[torch.Tensor, ...]:
        p = torch.softmax(q @ k.transpose(-1, -2), -1)
        return (p * t) @ k, (p * t).sum(-2), p.sum(-2)

    args = normal(1, 2, 40, 16) * 3, normal(1, 2, 40, 16, seed=1) * 3, torch.tensor(0.37, dtype=dtype)

    found = rw.optimize(program, args, target=target, floor=False, remember=False)

    assert found.status == "proved", found.reason
    for mine, expected in zip(found(*args), program(*(a.double() for a in args)), strict=True):
        torch.testing.assert_close(mine.double(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8])
def test_what_fits_no_integer_is_converted_as_in_pytorch(dtype: torch.dtype) -> None:
    x = torch.tensor([float("nan"), float("inf"), -float("inf"), 3e9, -3e9, 1e20, 70000.0, -1.5, 300.0]).repeat(8)
    fast = rw.optimize(lambda x: (x + 0).to(dtype), (x,), target="cpu", floor=False, remember=False)
    assert fast.status == "proved", fast.reason
    assert torch.equal(fast(x), x.to(dtype))
