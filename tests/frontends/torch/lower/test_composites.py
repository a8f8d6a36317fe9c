"""Softmax, attention, normalisation and losses, with the gradients that PyTorch's own operators give."""

import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from rewright.frontends.torch.capture import capture
from rewright.interp.program import run
from rewright.ir.errors import UnsupportedOperator
from tests.frontends.torch.lower.executing import Function, agree, gradients, integers, lowered, numbers

X = numbers(2, 3, 6)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_softmax(dim: int) -> None:
    agree(gradients(lambda x: F.softmax(x, dim)), X)
    agree(gradients(lambda x: F.log_softmax(x, dim)), X)


def test_large_scores_do_not_overflow() -> None:
    agree(lambda x: (F.softmax(x * 1000, -1), F.log_softmax(x * 1000, -1)), X)


def test_rows_that_nothing_may_answer() -> None:
    masked = X.masked_fill(torch.tensor([True, False, False]).view(1, 3, 1), float("-inf"))
    agree(lambda x: torch.ops.aten._safe_softmax(x, -1), masked)


def attend(**options: object) -> Function:
    def function(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *mask: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, *mask, **options)  # type: ignore[arg-type]

    return function


@pytest.mark.parametrize("boolean", [True, False])
def test_a_query_that_no_key_answers_is_left_open_or_zero(boolean: bool) -> None:
    """PyTorch's kernels give zero, and ``softmax`` written out has no number there."""
    keep = torch.ones(5, 7, dtype=torch.bool)
    keep[2] = False
    mask = keep if boolean else torch.where(keep, 0.0, float("-inf")).double()
    args = QUERY, KEY, VALUE, mask
    inputs = {f"{n}": v.numpy() for n, v in zip(("q", "k", "v", "mask.0"), args, strict=True)}

    opened = run(capture(attend(), args), inputs)["output"]
    zero = run(capture(attend(), args, guards_queries=True), inputs)["output"]

    assert np.isnan(opened[:, :, 2]).all() and np.isfinite(np.delete(opened, 2, axis=2)).all()
    np.testing.assert_allclose(zero, attend()(*args).numpy(), atol=1e-12)


def test_a_query_that_no_key_answers_has_gradients_of_zero() -> None:
    """The backward recomputes the weights from the logarithm of their sum, which is zero for such a query."""
    keep = torch.ones(5, 7, dtype=torch.bool)
    keep[2] = False
    program, args = gradients(lambda q, k, v: attend()(q, k, v, keep)), (QUERY, KEY, VALUE)
    inputs = {f"arguments.{n}": v.numpy() for n, v in enumerate(args)}

    found = run(capture(program, args, guards_queries=True), inputs)

    for value, expected in zip(found.values(), torch.utils._pytree.tree_leaves(program(*args)), strict=True):
        np.testing.assert_allclose(value, expected.detach().numpy(), atol=1e-12)


QUERY, KEY, VALUE = numbers(2, 4, 5, 8), numbers(2, 4, 7, 8, seed=1), numbers(2, 4, 7, 8, seed=2)


@pytest.mark.parametrize(("causal", "scale"), list(itertools.product([False, True], [None, 0.3])))
def test_attention(causal: bool, scale: float | None) -> None:
    agree(gradients(attend(is_causal=causal, scale=scale)), QUERY, KEY[:, :, :5], VALUE[:, :, :5])


def test_attention_with_masks() -> None:
    added = numbers(2, 1, 5, 7, seed=3)
    allowed = torch.ones(5, 7, dtype=torch.bool).tril(2)

    def with_mask(mask: torch.Tensor) -> Function:
        return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, mask)

    agree(gradients(with_mask(allowed)), QUERY, KEY, VALUE)
    agree(lambda q, k, v, m: attend()(q, k, v, m), QUERY, KEY, VALUE, added)
    agree(lambda q, k, v, m: attend()(q, k, v, m), QUERY, KEY, VALUE, allowed)


def test_the_logarithm_of_the_sum_of_exponentials_is_returned() -> None:
    operator = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    agree(lambda q, k, v: operator(q, k, v, 0.0, True), QUERY[:, :, :5], KEY[:, :, :5], VALUE[:, :, :5])


def test_shared_key_and_value_heads() -> None:
    shared = (KEY[:, :2, :5], VALUE[:, :2, :5])
    agree(gradients(attend(enable_gqa=True, is_causal=True)), QUERY, *shared)


def test_attention_of_three_axes() -> None:
    agree(attend(), QUERY[0], KEY[0], VALUE[0])


def test_every_attention_kernel_meets_in_one_function() -> None:
    """The kernels that have no CPU implementation are lowered from their shapes alone."""
    aten = torch.ops.aten
    kernels: list[Function] = [
        lambda q, k, v: aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, True)[0],
        lambda q, k, v: aten._scaled_dot_product_flash_attention(q, k, v, 0.0, True)[0],
        lambda q, k, v: aten._scaled_dot_product_efficient_attention(q, k, v, None, True, 0.0, True)[0],
        lambda q, k, v: aten.scaled_dot_product_attention(q, k, v, None, 0.0, True),
    ]
    graphs = [lowered(kernel, QUERY, KEY[:, :, :5], VALUE[:, :, :5]) for kernel in kernels]
    assert all([n.op for n in graph.nodes] == [n.op for n in graphs[0].nodes] for graph in graphs)
    assert {node.span.scope for node in graphs[0].nodes[3:]} == {"attention"}


def test_causal_masks_are_comparisons_of_positions() -> None:
    graph = lowered(attend(is_causal=True), QUERY, KEY[:, :, :5], VALUE[:, :, :5])
    constants = [node.op for node in graph.nodes if node.op.name == "constant"]
    assert all(len(op.values) == 1 for op in constants)  # type: ignore[attr-defined]
    assert sum(node.op.name == "iota" for node in graph.nodes) == 2


def test_dropout_in_attention_is_refused() -> None:
    with pytest.raises(UnsupportedOperator, match=r"random.*set .* to 0"):
        lowered(attend(dropout_p=0.1), QUERY, KEY, VALUE)


NORMS: dict[str, tuple[Function, tuple[torch.Tensor, ...]]] = {
    "layer norm": (lambda x, w, b: F.layer_norm(x, (6,), w, b), (X, numbers(6), numbers(6, seed=1))),
    "layer norm over two axes": (lambda x, w: F.layer_norm(x, (3, 6), w), (X, numbers(3, 6))),
    "layer norm alone": (lambda x: F.layer_norm(x, (6,), eps=0.1), (X,)),
    "rms norm": (lambda x, w: F.rms_norm(x, (6,), w, 1e-5), (X, numbers(6))),
    "rms norm alone": (lambda x: F.rms_norm(x, (6,)), (X,)),
    "group norm": (lambda x, w, b: F.group_norm(x, 2, w, b), (numbers(3, 4, 5), numbers(4), numbers(4, seed=1))),
    "group norm alone": (lambda x: F.group_norm(x, 3), (numbers(2, 6, 2, 3),)),
}


@pytest.mark.parametrize(("function", "operands"), NORMS.values(), ids=NORMS)
def test_normalisation(function: Function, operands: tuple[torch.Tensor, ...]) -> None:
    agree(function, *operands)
    agree(gradients(function), *operands)


def test_batch_norm_with_known_statistics() -> None:
    mean, weight = numbers(4), numbers(4, seed=1)
    agree(lambda x, m, w: F.batch_norm(x, m, m.abs() + 1, w, w), numbers(3, 4, 2), mean, weight)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy(reduction: str) -> None:
    target = torch.tensor([1, -100, 0, 4])
    agree(gradients(lambda x: F.cross_entropy(x, target, reduction=reduction)), numbers(4, 5))
    ignored = target.clamp(min=0)
    agree(gradients(lambda x: F.cross_entropy(x, ignored, reduction=reduction, ignore_index=4)), numbers(4, 5))


def test_cross_entropy_with_weights_and_positions() -> None:
    weight = numbers(5).abs()
    target = integers(0, 5, 3)
    agree(gradients(lambda x: F.cross_entropy(x, target, weight)), numbers(3, 5))
    places = integers(0, 5, 2, 3)
    agree(gradients(lambda x: F.cross_entropy(x, places)), numbers(2, 5, 3))
    agree(lambda x: F.nll_loss(x, torch.tensor(2)), numbers(5))
    agree(gradients(lambda x: F.cross_entropy(x, target, label_smoothing=0.1)), numbers(3, 5))


def test_mean_squared_error() -> None:
    for reduction in ("mean", "sum", "none"):
        mean_squared = gradients(lambda x, y, how=reduction: F.mse_loss(x, y, reduction=how))
        agree(mean_squared, numbers(3, 4), numbers(3, 4, seed=1))
