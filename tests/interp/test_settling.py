"""What machines make of values."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewright import ops
from rewright.interp.ranks import run_ranks
from rewright.interp.settling import WholeNumbers, coarse, rounded_to, whole_nodes
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, TensorType


@pytest.mark.parametrize(
    ("dtype", "kind"), [(DType.BF16, torch.bfloat16), (DType.F16, torch.float16), (DType.F32, torch.float32)]
)
def test_floats_are_rounded_as_torch_rounds_them(dtype: DType, kind: torch.dtype) -> None:
    generator = np.random.default_rng(0)
    values = np.concatenate(
        [np.arange(-3000.0, 3000.0), generator.standard_normal(1000), [0.0, np.inf, 65519.0, 65520.0]]
    )

    expected = torch.from_numpy(values).float().to(kind).double().numpy()

    assert np.array_equal(rounded_to(values, dtype), expected)


def positions(dtype: DType, size: int) -> Graph:
    """Positions that pass through a type, times a number, beside a float input."""
    builder = GraphBuilder("positions")
    x = builder.input("x", ops.Input("x", TensorType((size,), DType.F32)))
    places = builder.add(ops.Convert(dtype), builder.add(ops.Iota(TensorType((size,), DType.I64), 0)))
    wide = builder.add(ops.Convert(DType.F32), places)
    builder.output("sum", builder.add(ops.Add(), wide, x))
    return builder.build()


def test_whole_numbers_are_those_that_are_made_of_integers() -> None:
    graph = positions(DType.BF16, 4)

    assert [graph.nodes[p].op.name for p in sorted(whole_nodes(graph))] == ["convert", "convert"]


def test_positions_are_rounded_and_what_is_computed_of_floats_is_not() -> None:
    graph = positions(DType.BF16, 300)
    machine = WholeNumbers(graph)
    x = np.full(300, 0.1)

    (ran,) = run_ranks((graph,), ({"x": x},), settle=(machine,))

    assert ran.outputs["sum"][:257].tolist() == (np.arange(257) + x[:257]).tolist()
    assert ran.outputs["sum"][257] == 256 + 0.1
    assert [graph.nodes[p].type.dtype for p in machine.changed] == [DType.BF16]


def test_coarse_rounding_keeps_ties_and_what_is_exact() -> None:
    values = np.array([0.1, 0.1, 0.5, -2.5, 1e6 + 1, 123456789.0, 0.0, np.inf, -np.inf, np.nan, 0.3])

    rounded = [coarse(seed)(0, values) for seed in range(1, 9)]

    for found in rounded:
        assert found[0] == found[1]
        assert np.array_equal(found[2:10], values[2:10], equal_nan=True)
        assert np.allclose(found, values, rtol=1e-5, equal_nan=True)
        assert np.array_equal(coarse(1)(0, found), found, equal_nan=True), "what is rounded is not rounded again"
    assert len({float(found[0]) for found in rounded}) > 4


def test_a_function_that_was_rounded_to_a_whole_number_is_rounded_at_random() -> None:
    """Before, ``1 - erf(x)`` was zero for large x however coarse, and ``erfc(x)``, its equal, another number."""
    b = GraphBuilder()
    x = b.input("x", ops.Input("x", TensorType((4,), DType.F32)))
    error = b.add(ops.Erf(), x)
    b.output("error", error)
    b.output("steps", b.add(ops.Floor(), x))
    graph = b.build()
    values = np.array([6.85, -7.5, 0.0, 2.0])

    runs = [run_ranks((graph,), ({"x": values},), settle=(coarse(seed, graph),))[0].outputs for seed in range(1, 9)]

    assert len({float(found["error"][0]) for found in runs}) > 4
    assert len({float(found["error"][1]) for found in runs}) > 4
    assert all(found["error"][2] == 0 for found in runs), "which is exact"
    assert all(found["steps"].tolist() == [6, -8, 0, 2] for found in runs), "a floor is whole by itself"
