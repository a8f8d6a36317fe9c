"""Elementwise ATen operators give what PyTorch gives."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from tests.frontends.torch.lower.executing import agree, gradients, integers, lowered, numbers, operators

X, Y, ROW = numbers(2, 3, 4), numbers(2, 3, 4, seed=1), numbers(4, seed=2)
POSITIVE = numbers(2, 5).abs() + 0.1
WHOLE, DIVISOR = integers(-9, 9, 3, 4), torch.tensor([3, -3, 2, -5])
FLAGS = integers(0, 2, 3, 4).bool()

UNARY: list[Callable[[torch.Tensor], torch.Tensor]] = [
    torch.abs, torch.neg, torch.exp, torch.expm1, torch.sigmoid, torch.tanh, torch.sin, torch.cos, torch.sign,
    torch.floor, torch.ceil, torch.round, torch.trunc, torch.erf, torch.square, torch.relu, torch.exp2,
    torch.isfinite, torch.isnan, torch.isinf, torch.logical_not, F.silu, F.gelu, F.softplus, F.mish, F.elu,
    F.leaky_relu, F.hardswish, F.logsigmoid, F.hardtanh, F.relu6, F.softsign,
]  # fmt: skip


@pytest.mark.parametrize("function", UNARY, ids=lambda f: f.__name__)
def test_unary(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    agree(function, X)


@pytest.mark.parametrize("function", [torch.log, torch.log1p, torch.sqrt, torch.rsqrt, torch.reciprocal])
def test_unary_of_positive_numbers(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    agree(function, POSITIVE)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 4, 0.5, -0.5, -1, 2.5, -2])
def test_powers(exponent: float) -> None:
    agree(lambda x: x**exponent, POSITIVE)


def test_powers_of_tensors() -> None:
    agree(lambda x, y: (x**y, torch.pow(2.0, y)), POSITIVE, POSITIVE.flip(0))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x + y,
        lambda x, y: torch.add(x, y, alpha=3),
        lambda x, y: torch.sub(x, y, alpha=0.5),
        lambda x, y: torch.rsub(x, y),
        lambda x, y: x * y - 1.5,
        lambda x, y: x / y,
        lambda x, y: x // y,
        lambda x, y: torch.div(x, y, rounding_mode="trunc"),
        lambda x, y: torch.remainder(x, y),
        lambda x, y: torch.fmod(x, y),
        lambda x, y: torch.maximum(x, y) + torch.minimum(x, y),
        lambda x, y: (x < y, x <= y, x > y, x >= y, x == y, x != y),
        lambda x, y: (x < 0.5, x >= 1),
        lambda x, y: torch.where(x > 0, x, y),
        lambda x, y: torch.where(x > 0, 0.0, y),
        lambda x, y: x.masked_fill(x > 0, float("-inf")),
        lambda x, y: torch.clamp(x, -0.5, 0.5) + torch.clamp(x, min=0) + x.clamp_max(1),
        lambda x, y: torch.addcmul(x, x, y, value=0.5) + torch.addcdiv(x, x, y),
        lambda x, y: torch.lerp(x, x * y, 0.25),
        lambda x, y: torch.logical_and(x > 0, y > 0) | torch.logical_xor(x, y),
    ],
)
def test_binary_with_broadcasting(function: Callable[..., torch.Tensor]) -> None:
    agree(function, X, ROW)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: (x + y, x * 2, x - y, 3 - x),
        lambda x, y: x / y,
        lambda x, y: (x // y, x // 2, x % y, x % 3),
        lambda x, y: torch.div(x, y, rounding_mode="trunc"),
        lambda x, y: torch.fmod(x, y),
        lambda x, y: (x & y, x | 4, x ^ y, ~x),
        lambda x, y: (x >> 2, x << 3, x >> 0),
        lambda x, y: (x < 0.5, x + 0.5, x == y),
        lambda x, y: (x.abs(), -x, x**2, x.clamp(-2, 2), x.float().floor()),
        lambda x, y: (x.to(torch.float64), x.double().mul(2).long(), x.bool()),
    ],
)
def test_integers(function: Callable[..., torch.Tensor]) -> None:
    agree(function, WHOLE, DIVISOR)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8], ids=str)
def test_bytes_hold_packed_weights(dtype: torch.dtype) -> None:
    """A shift drops what does not fit, and brings the sign of the lower half back."""
    values = torch.arange(256).to(dtype)
    agree(lambda x: (x << 4, (x << 4) >> 4, x >> 4, x % 16, x // 16, x + -1), values)
    agree(lambda x: (x >> 7, x << 7), values.to(torch.uint8))


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int32], ids=str)
def test_bytes_are_unpacked_by_several_shifts_at_once(dtype: torch.dtype) -> None:
    values = torch.arange(256).to(dtype).reshape(8, 32)
    by = torch.tensor([0, 4], dtype=dtype)
    agree(lambda x: (x[..., None] >> by & 15, x[:, None] >> torch.arange(0, 6, 2).to(dtype)[:, None]), values)
    agree(lambda x: (x & 1, x & 7, 15 & x, x & 100, x >> torch.tensor(3, dtype=dtype)), values)


def test_shifts_by_data_drop_what_does_not_fit() -> None:
    places = torch.tensor([0, 1, 5, 63, 64, 70])
    for values in (torch.arange(6) * 1001, -torch.arange(6) - 1):
        agree(lambda x, y: (x >> y, x << y), values, places)


def test_booleans() -> None:
    agree(lambda a: (a & ~a, a | a.flip(0), a ^ a.flip(1), a.long() + 1, a == a.flip(0), a * a.flip(0)), FLAGS)


@pytest.mark.parametrize(
    "function",
    [
        torch.relu, F.silu, F.gelu, lambda x: F.gelu(x, approximate="tanh"), F.softplus, torch.tanh, torch.sigmoid,
        lambda x: x.pow(3), torch.exp, lambda x: F.leaky_relu(x, 0.1), F.elu, lambda x: x.clamp(-1, 1),
    ],
)  # fmt: skip
def test_gradients_of_activations(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    agree(gradients(function), X)


def test_composites_name_their_scope() -> None:
    graph = lowered(F.gelu, X)
    assert {node.span.scope for node in graph.nodes} == {"", "gelu"}
    assert graph.nodes[graph.outputs["y0"]].span.scope == "gelu"


def test_a_small_power_is_a_product() -> None:
    assert operators(lowered(lambda x: x**2, X)) == ["input", "multiply"]


def test_neutral_constants_leave_nothing() -> None:
    assert operators(lowered(lambda x: (x * 1 + 0) / 1, X)) == ["input"]


def test_dropout_that_is_off_is_nothing() -> None:
    assert operators(lowered(lambda x: F.dropout(x, 0.0, training=True), X)) == ["input"]
    assert operators(lowered(lambda x: torch.native_dropout(x, 0.5, False)[0], X)) == ["input"]
