"""Operators by torch give what the operators themselves give in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rewright import ops
from rewright.frontends.torch.eager import operators
from rewright.frontends.torch.eager.operators import TORCH, library, tensor_of
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Node
from rewright.ir.types import DType, TensorType
from rewright.ops.base import TensorOperator
from tests.ops.cases import CASES

BY_TORCH = sorted(CASES)


def node_of(op: TensorOperator, *types: TensorType) -> Node:
    return Node(op, tuple(range(len(types))), op.infer(types))


@pytest.mark.parametrize("name", BY_TORCH)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_torch_and_numpy_agree(name: str, data: st.DataObject) -> None:
    case = data.draw(CASES[name])
    node = node_of(case.op, *case.types)
    operands = [tensor_of(x).to(TORCH[t.dtype]) for x, t in zip(case.operands, case.types, strict=True)]
    expected = case.op.execute([x.double().numpy() if x.is_floating_point() else x.numpy() for x in operands])

    found = library(node, operands)

    assert tuple(found.shape) == expected.shape and found.dtype is TORCH[node.type.dtype]
    np.testing.assert_allclose(found.double().numpy(), np.asarray(expected, np.float64), rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("spatial", [1, 2, 3])
@pytest.mark.parametrize("dtype", [DType.F64, DType.F32, DType.BF16])
def test_convolutions_of_floats_run_in_their_dtype_and_not_in_numpy(
    spatial: int, dtype: DType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("in NumPy")

    monkeypatch.setattr(operators, "_by_numpy", refuse)
    generator = np.random.default_rng(0)
    x = generator.standard_normal((2, 4, *(9,) * spatial))
    kernel = generator.standard_normal((6, 2, *(3,) * spatial))
    op = ops.Convolution((2,) * spatial, ((2, 1),) * spatial, (2,) * spatial, (1,) * spatial, 2)
    types = TensorType(x.shape, dtype), TensorType(kernel.shape, dtype)
    given_tensors = [tensor_of(a).to(TORCH[dtype]) for a in (x, kernel)]
    expected = op.execute([t.double().numpy() for t in given_tensors])

    found = library(node_of(op, *types), given_tensors)

    assert found.dtype is TORCH[dtype]
    bound = {DType.F64: 1e-10, DType.F32: 1e-4, DType.BF16: 0.15}[dtype]
    np.testing.assert_allclose(found.double().numpy(), expected, atol=bound, rtol=bound)


def test_of_updates_that_meet_the_last_one_stays_and_those_outside_are_skipped() -> None:
    op = ops.Scatter("replace", (), (0,), (), (), (0,), 1)
    types = TensorType((4,), DType.F32), TensorType((3000, 1), DType.I64), TensorType((3000,), DType.F32)
    places = torch.tensor([2, 1, 9, -1, 2, 1]).repeat(500)[:, None]

    found = library(node_of(op, *types), [torch.zeros(4), places, torch.arange(3000.0)])

    assert found.tolist() == [0, 2999, 2998, 0]


def test_many_small_updates_of_one_element_are_not_lost_in_sixteen_bits() -> None:
    op = ops.Scatter("sum", (), (0,), (), (), (0,), 1)
    types = TensorType((1,), DType.BF16), TensorType((4096, 1), DType.I64), TensorType((4096,), DType.BF16)
    ones = torch.ones(4096, dtype=torch.bfloat16)

    found = library(node_of(op, *types), [torch.zeros(1, dtype=torch.bfloat16), torch.zeros(4096, 1).long(), ones])

    assert found.tolist() == [4096]


def test_products_of_integers_are_exact_where_doubles_are_not_and_wrap() -> None:
    op = ops.DotGeneral((), (), (1,), (0,))
    types = TensorType((1, 2), DType.I64), TensorType((2, 1), DType.I64)
    big = 2**53 + 1

    found = library(node_of(op, *types), [torch.tensor([[big, 2**62]]), torch.tensor([[1], [4]])])

    assert found.tolist() == [[big]]


def test_a_read_outside_is_an_error_and_not_a_read_from_the_end() -> None:
    op = ops.Gather((), (0, 1), (), (), (0, 1), 1, (1, 1))
    types = TensorType((3, 3), DType.F32), TensorType((2, 2), DType.I64)

    with pytest.raises(RewrightError, match="outside of axis 1 of size 3"):
        library(node_of(op, *types), [torch.zeros(3, 3), torch.tensor([[0, 0], [0, -1]])])


def test_of_equal_elements_the_first_come_first_as_where_all_differ() -> None:
    op = ops.TopK(3, "indices")
    node = node_of(op, TensorType((2, 5), DType.F32))
    distinct, equal = (
        torch.tensor([[5.0, 1, 4, 2, 3]] * 2),
        torch.tensor([[1.0, 2, 2, 1, 2], [0, 0, float("nan"), 1, 0]]),
    )

    assert library(node, [distinct]).tolist() == [[0, 2, 4]] * 2
    assert library(node, [equal]).tolist() == op.execute([equal.double().numpy()]).tolist()
