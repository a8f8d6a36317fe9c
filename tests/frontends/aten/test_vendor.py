"""Vendor kernels against the formulas that their sources state, in numpy."""

from __future__ import annotations

import numpy as np
import pytest

from rewright.frontends.graph_json.reading import read_alone
from rewright.interp.program import run
from rewright.ir.errors import RewrightError
from tests.frontends.graph_json.captures import LONG, Capture

RANDOM = np.random.default_rng(0)


def kernel(name: str, writes: list[list[int]], **operands: object) -> list[np.ndarray]:
    """The results of a kernel that writes into operands, for arrays and plain arguments by name."""
    c = Capture()
    arrays = {key: value for key, value in operands.items() if isinstance(value, np.ndarray)}
    nodes = {
        key: c.input(key, list(value.shape), LONG if value.dtype.kind == "i" else "float32")
        for key, value in arrays.items()
    }
    call = c.call("auto_functionalized", name, **{**operands, **nodes})
    graph = read_alone(c.document([c.part(call, k + 1, shape) for k, shape in enumerate(writes)]))
    return list(run(graph, arrays).values())


def rms(x: np.ndarray, weight: np.ndarray, axis: int = -1) -> np.ndarray:
    return x / np.sqrt((x * x).mean(axis, keepdims=True) + 1e-6) * weight


def test_both_results_of_the_fused_norm() -> None:
    x, residual, weight = RANDOM.normal(size=(3, 4)), RANDOM.normal(size=(3, 4)), RANDOM.normal(size=4)
    found = kernel(
        "_C.fused_add_rms_norm.default", [[3, 4], [3, 4]], input=x, residual=residual, weight=weight, epsilon=1e-6
    )
    np.testing.assert_allclose(found[0], rms(x + residual, weight))
    np.testing.assert_allclose(found[1], x + residual)


def test_norm_and_gate() -> None:
    x, weight = RANDOM.normal(size=(3, 4)), RANDOM.normal(size=4)
    found = kernel("_C.rms_norm.default", [[3, 4]], result=0 * x, input=x, weight=weight, epsilon=1e-6)
    np.testing.assert_allclose(found[0], rms(x, weight))
    found = kernel("_C.silu_and_mul.default", [[3, 2]], out=0 * x[:, :2], input=x)
    np.testing.assert_allclose(found[0], x[:, :2] / (1 + np.exp(-x[:, :2])) * x[:, 2:])


@pytest.mark.parametrize("neox", [True, False])
@pytest.mark.parametrize("rotated", [4, 6])
def test_rotary_embedding_turns_pairs_by_the_angle_of_the_position(neox: bool, rotated: int) -> None:
    tokens, heads, size = 5, 2, 6
    angles = RANDOM.normal(size=(9, rotated // 2))
    cache = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
    positions = RANDOM.integers(0, 9, tokens)
    query = RANDOM.normal(size=(tokens, heads * size))
    found = kernel(
        "_C.rotary_embedding.default",
        [[tokens, heads * size]] * 2,
        positions=positions, query=query, key=query, head_size=size, cos_sin_cache=cache, is_neox=neox,
    )  # fmt: skip
    states = query.reshape(tokens, heads, size)
    pairs = states[..., :rotated].reshape(tokens, heads, *((2, -1) if neox else (-1, 2)))
    pairs = pairs.swapaxes(-1, -2) if neox else pairs
    turned = (pairs[..., 0] + 1j * pairs[..., 1]) * np.exp(1j * angles[positions])[:, None]
    both = np.stack([turned.real, turned.imag], axis=-2 if neox else -1)
    expected = np.concatenate([both.reshape(tokens, heads, rotated), states[..., rotated:]], axis=-1)
    for one in found:
        np.testing.assert_allclose(one, expected.reshape(tokens, -1), atol=1e-12)


def test_attention_of_tokens_is_causal_and_shares_keys() -> None:
    query, key = RANDOM.normal(size=(4, 4, 2)), RANDOM.normal(size=(4, 2, 2))
    (found,) = kernel(
        "vllm.unified_attention_with_output.default",
        [[4, 4, 2]],
        query=query, key=key, value=key, output=0 * query, layer_name="layers.0",
    )  # fmt: skip
    shared = key.repeat(2, axis=1)
    scores = np.einsum("qhd,khd->hqk", query, shared) / np.sqrt(2)
    scores = np.where(np.tril(np.ones((4, 4), bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = np.einsum("hqk,khd->qhd", weights / weights.sum(-1, keepdims=True), shared)
    np.testing.assert_allclose(found, expected)


def test_the_norm_along_the_axis_of_the_weight() -> None:
    x, weight = RANDOM.normal(size=(4, 2, 3)), RANDOM.normal(size=4)
    c = Capture()
    operands = c.input("x", [4, 2, 3]), c.input("w", [4])
    graph = read_alone(c.document([c.call("hlo.AwsNeuronRmsNorm", *operands, 1e-6, shape=[4, 2, 3])]))
    found = run(graph, {"x": x, "w": weight})["output.0"]
    np.testing.assert_allclose(found, rms(x, weight[:, None, None], 0))


def test_a_kernel_without_a_definition_is_named() -> None:
    with pytest.raises(RewrightError, match=r"kernel '_C\.made_up.default' has no reference definition"):
        kernel("_C.made_up.default", [[2]], input=np.zeros(2))
