"""Convolutions written as sums of shifted products compute what convolutions compute."""

from __future__ import annotations

import numpy as np
import pytest

from rewright import ops
from rewright.interp.ranks import run
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, TensorType
from tests.equiv.rewriting import alone, law

CASES = {
    "causal": (ops.Convolution((1,), ((3, 0),), (1,), (1,), 1), (2, 4, 9), (6, 4, 4)),
    "one channel each": (ops.Convolution((1,), ((3, 0),), (1,), (1,), 4), (2, 4, 9), (4, 1, 4)),
    "groups": (ops.Convolution((1,), ((1, 1),), (1,), (1,), 2), (2, 4, 9), (6, 2, 3)),
    "two for each channel": (ops.Convolution((1,), ((0, 0),), (1,), (1,), 4), (2, 4, 9), (8, 1, 3)),
    "strides": (ops.Convolution((2,), ((1, 2),), (1,), (1,), 1), (2, 3, 9), (5, 3, 3)),
    "distances": (ops.Convolution((2,), ((2, 1),), (1,), (3,), 1), (2, 3, 12), (5, 3, 3)),
    "two axes": (ops.Convolution((2, 1), ((1, 0), (0, 2)), (1, 1), (1, 2), 2), (2, 4, 7, 8), (6, 2, 3, 2)),
}


def convolution(op: ops.Operator, x: tuple[int, ...], kernel: tuple[int, ...]) -> Graph:
    """A program of one convolution."""
    builder = GraphBuilder("convolution")
    operands = [
        builder.input(name, ops.Input(name, TensorType(shape, DType.F64)))
        for name, shape in (("x", x), ("kernel", kernel))
    ]
    builder.output("output", builder.add(op, *operands))
    return builder.build()


@pytest.mark.parametrize("name", CASES)
def test_the_sum_is_the_convolution(name: str) -> None:
    graph = convolution(*CASES[name])
    source = np.random.default_rng(0)
    inputs = {
        n: source.standard_normal([int(str(k)) for k in graph.nodes[p].type.shape]) for n, p in graph.inputs.items()
    }

    written = alone(law("convolutions"), graph)

    assert not any(isinstance(written.nodes[p].op, ops.Convolution) for p in written.live())
    np.testing.assert_allclose(run(written, inputs).outputs["output"], run(graph, inputs).outputs["output"])
