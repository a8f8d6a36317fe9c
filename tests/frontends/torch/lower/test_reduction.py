"""Reductions, cumulative sums, sorting and matrix products."""

import pytest
import torch
import torch.nn.functional as F

from rewright.ir.errors import UnsupportedOperator
from tests.frontends.torch.lower.executing import Function, agree, gradients, integers, lowered, numbers, operators

X = numbers(3, 4, 5)
WHOLE = integers(-3, 4, 3, 6)

REDUCTIONS: dict[str, Function] = {
    "sum": lambda x: (x.sum(), x.sum(1), x.sum((0, 2), keepdim=True), x.sum(-1, dtype=torch.float64)),
    "mean": lambda x: (x.mean(), x.mean(-1), x.mean((0, 1), keepdim=True)),
    "prod": lambda x: (x.prod(), x.prod(1)),
    "amax": lambda x: (x.amax(), x.amax((0, 2)), x.amin(1, keepdim=True), x.max(), x.min()),
    "max with index": lambda x: (*x.max(1), *x.min(-1, keepdim=True)),
    "argmax": lambda x: (x.argmax(), x.argmax(1), x.argmin(-1, keepdim=True)),
    "any and all": lambda x: ((x > 1).any(), (x > 0).all(1), (x > 2).any(-1, keepdim=True), x.any(0)),
    "variance": lambda x: (x.var(), x.var(1), x.var((0, 1), correction=0, keepdim=True), x.std(-1)),
    "var_mean": lambda x: torch.var_mean(x, dim=1, correction=0),
    "logsumexp": lambda x: (torch.logsumexp(x, 1), torch.logsumexp(x, -1, keepdim=True)),
    "norms": lambda x: (x.norm(), torch.linalg.vector_norm(x, 1, dim=1), x.norm(float("inf"))),
    "cumsum": lambda x: (x.cumsum(0), x.cumsum(-1)),
    "cumprod": lambda x: (x.cumprod(0), x.cumprod(-1)),
    "diff": lambda x: (x.diff(dim=1), x.diff(n=2, prepend=x[..., :1])),
    "topk": lambda x: (*x.topk(2), *x.topk(3, dim=1, largest=False)),
    "sort": lambda x: (*x.sort(), *x.sort(1, descending=True), x.argsort(0)),
    "histc": lambda x: torch.histc(x, bins=4, min=-2, max=2),
}


@pytest.mark.parametrize("function", REDUCTIONS.values(), ids=REDUCTIONS)
def test_reductions(function: Function) -> None:
    agree(function, X)


def test_reductions_of_integers() -> None:
    agree(lambda x: (x.sum(), x.sum(0), x.amax(1), x.cumsum(1), (x > 0).sum(), x.sort(stable=True)[1]), WHOLE)
    agree(lambda x: (x.cumprod(0), x.prod(1)), WHOLE)
    agree(lambda x: torch.histc(x.double(), bins=7, min=-3, max=3), WHOLE)
    agree(lambda x: x.double().mean(), WHOLE)


def test_scalars() -> None:
    scalar = torch.tensor(1.5, dtype=torch.float64)
    agree(lambda x: (x.sum(0), x.max(0)[0], x.cumsum(0), x.cumprod(0), x.argmax()), scalar)


def test_the_first_of_equal_elements_is_the_largest() -> None:
    agree(lambda x: (x.argmax(1), x.argmin(1)), torch.tensor([[1.0, 3, 3], [2, 0, 0]]))


GRADIENTS: dict[str, Function] = {
    "sum": lambda x: x.sum(1),
    "mean": lambda x: x.mean((0, 2)),
    "amax": lambda x: x.amax(1),
    "variance": lambda x: x.var(2),
    "cumsum": lambda x: x.cumsum(1),
    "cumprod": lambda x: x.cumprod(1),
    "norm": lambda x: x.norm(dim=1),
    "max": lambda x: x.max(1)[0],
    "logsumexp": lambda x: torch.logsumexp(x, 1),
}


@pytest.mark.parametrize("function", GRADIENTS.values(), ids=GRADIENTS)
def test_gradients(function: Function) -> None:
    agree(gradients(function), X)


def test_histc_needs_limits() -> None:
    with pytest.raises(UnsupportedOperator, match=r"aten.histc.default at model.py:7: histc with limits taken"):
        lowered(lambda x: torch.histc(x, bins=3), X)


PRODUCTS: dict[str, tuple[Function, tuple[torch.Tensor, ...]]] = {
    "mm": (torch.mm, (numbers(3, 4), numbers(4, 5))),
    "mm of transposes": (lambda x, y: x.t() @ y.t(), (numbers(4, 3), numbers(5, 4))),
    "mv": (torch.mv, (numbers(3, 4), numbers(4))),
    "dot": (torch.dot, (numbers(4), numbers(4, seed=1))),
    "bmm": (torch.bmm, (numbers(2, 3, 4), numbers(2, 4, 5))),
    "matmul": (torch.matmul, (numbers(2, 1, 3, 4), numbers(5, 4, 2))),
    "matmul with a vector": (torch.matmul, (numbers(2, 3, 4), numbers(4))),
    "matmul of a vector": (torch.matmul, (numbers(4), numbers(2, 4, 3))),
    "addmm": (lambda x, y, z: torch.addmm(z, x, y, beta=2, alpha=0.5), (numbers(3, 4), numbers(4, 5), numbers(5))),
    "baddbmm": (torch.baddbmm, (numbers(2, 3, 5), numbers(2, 3, 4), numbers(2, 4, 5))),
    "linear": (F.linear, (numbers(2, 3, 4), numbers(5, 4), numbers(5))),
    "linear without bias": (F.linear, (numbers(2, 3, 4), numbers(5, 4))),
    "einsum": (lambda x, y: torch.einsum("bij,bkj->bik", x, y), (numbers(2, 3, 4), numbers(2, 5, 4))),
}


@pytest.mark.parametrize(("function", "operands"), PRODUCTS.values(), ids=PRODUCTS)
def test_products(function: Function, operands: tuple[torch.Tensor, ...]) -> None:
    agree(function, *operands)
    agree(gradients(function), *operands)


def test_a_flattened_product_is_one_product() -> None:
    graph = lowered(F.linear, numbers(2, 3, 4), numbers(5, 4), numbers(5))
    assert operators(graph) == ["input", "input", "input", "dot_general", "broadcast_in_dim", "add"]


def test_the_gradient_of_a_weight_sums_over_batch_and_sequence_at_once() -> None:
    def weight_gradient(x: torch.Tensor, weight: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        leaf = weight.detach().requires_grad_()
        return torch.autograd.grad((F.linear(x, leaf) * y).sum(), leaf)[0]

    graph = agree(weight_gradient, numbers(2, 3, 4), numbers(5, 4), numbers(2, 3, 5))
    assert operators(graph) == ["input", "input", "input", "dot_general"]


@pytest.mark.parametrize(
    ("shape", "kernel", "stride", "padding", "dilation", "groups"),
    [
        ((2, 3, 8, 8), (5, 3, 4, 4), 4, 0, 1, 1),
        ((2, 3, 7, 6), (4, 3, 3, 2), 1, 1, 1, 1),
        ((2, 4, 9, 8), (6, 2, 3, 3), 2, 1, 1, 2),
        ((2, 3, 9), (4, 3, 2), 3, 0, 2, 1),
        ((2, 4, 6), (4, 1, 3), 1, 2, 1, 4),
    ],
)
def test_convolutions(
    shape: tuple[int, ...], kernel: tuple[int, ...], stride: int, padding: int, dilation: int, groups: int
) -> None:
    function = F.conv2d if len(shape) == 4 else F.conv1d

    def convolve(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return function(x, weight, bias, stride, padding, dilation, groups)

    operands = (numbers(*shape), numbers(*kernel), numbers(kernel[0]))
    agree(convolve, *operands)
    agree(gradients(convolve), *operands)


def test_a_patch_embedding_is_a_matrix_product() -> None:
    graph = lowered(lambda x, w: F.conv2d(x, w, stride=4), numbers(2, 3, 8, 8), numbers(5, 3, 4, 4))
    assert operators(graph) == ["input", "input", "reshape", "dot_general", "transpose"]


@pytest.mark.parametrize("settings", [{}, {"stride": 2, "output_padding": 1}, {"padding": 1, "groups": 2}])
def test_transposed_convolutions(settings: dict[str, int]) -> None:
    weight = numbers(2, 2, 2, 3, seed=1)
    agree(lambda x, w: F.conv_transpose2d(x, w, **settings), numbers(1, 2, 4, 4), weight)
    agree(gradients(lambda x, w: F.conv_transpose2d(x, w, **settings).cos()), numbers(1, 2, 4, 4), weight)
