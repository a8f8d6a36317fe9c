"""Which axes a reshape flattens, and products written on the axes before it."""

import pytest

from rewright import ops
from rewright.ir.dims import Shape, symbol
from rewright.ir.graph import GraphBuilder
from rewright.ir.types import DType, TensorType
from rewright.ops.reference.products import Operand, absorb, inserted_ones, merged_axes

B, S = symbol("b"), symbol("s")


@pytest.mark.parametrize(
    ("source", "target", "groups"),
    [
        ((2, 3, 4), (6, 4), ((0, 1), (2,))),
        ((2, 3, 4), (24,), ((0, 1, 2),)),
        ((B, S, 4), (B * S, 4), ((0, 1), (2,))),
        ((2, 1, 4), (2, 4), ((0,), (1, 2))),
        ((2, 4, 1), (2, 4), ((0,), (1, 2))),
        ((2, 4), (2, 1, 4), ((0,), (), (1,))),
        ((6, 4), (2, 3, 4), None),
        ((4, 6), (6, 4), None),
        ((1, 1), (), None),
    ],
)
def test_flattened_axes(source: Shape, target: Shape, groups: object) -> None:
    assert merged_axes(source, target) == groups


@pytest.mark.parametrize(
    ("source", "target", "places"),
    [
        ((2, 3), (2, 1, 3), (0, 2)),
        ((), (1, 1), ()),
        ((1, 3), (1, 1, 3), (0, 2)),
        ((2, 3), (6,), None),
        ((2,), (3,), None),
    ],
)
def test_new_axes_of_size_one(source: Shape, target: Shape, places: object) -> None:
    assert inserted_ones(source, target) == places


def test_a_product_of_merged_heads_keeps_batch_and_sequence() -> None:
    """(batch, heads, sequence, size) to (batch * sequence, heads * size), times a matrix over heads * size."""
    b = GraphBuilder()
    x = b.input("x", ops.Input("x", TensorType((2, 4, 16, 8), DType.F32)))
    w = b.input("w", ops.Input("w", TensorType((32, 32), DType.F32)))
    flat = b.add(ops.Reshape((32, 32)), b.add(ops.Transpose((0, 2, 1, 3)), x))
    found = absorb(ops.DotGeneral((), (), (1,), (1,)), Operand.of(b, flat), Operand.of(b, w))
    assert found is not None
    op, left, right = found
    assert op == ops.DotGeneral((), (), (2,), (1,))
    assert b.type(left).shape == (2, 16, 32)
    assert right == w


def test_a_product_that_cannot_be_written_earlier_stays() -> None:
    b = GraphBuilder()
    x = b.input("x", ops.Input("x", TensorType((4, 6), DType.F32)))
    split = b.add(ops.Reshape((2, 2, 6)), x)
    operand = Operand.of(b, split)
    assert absorb(ops.DotGeneral((), (), (2,), (2,)), operand, operand) is None
