"""What doors say of calls: memory, and the dtype of two operands."""

import itertools

import pytest
import torch

from rewright.frontends.aten.call import Layout, promote_dtypes
from rewright.frontends.torch.lower.sizes import DTYPES
from rewright.ir.dims import symbol
from rewright.ir.types import TensorType


def described(value: torch.Tensor | float) -> TensorType | float:
    return TensorType(tuple(value.shape), DTYPES[value.dtype]) if isinstance(value, torch.Tensor) else value


PROMOTED = [dtype for dtype in DTYPES if not (dtype.is_floating_point and dtype.itemsize == 1)]
"""PyTorch combines floats of 8 bits with nothing."""


@pytest.mark.parametrize("first", PROMOTED, ids=str)
def test_two_operands_are_combined_in_the_dtype_of_pytorch(first: torch.dtype) -> None:
    shapes: list[tuple[int, ...]] = [(2,), ()]
    others = [torch.zeros(shape, dtype=dtype) for shape in shapes for dtype in PROMOTED]
    for shape, other in itertools.product(shapes, [*others, True, 2, 2.5]):
        one = torch.zeros(shape, dtype=first)
        for pair in ((one, other), (other, one)):
            expected = DTYPES[torch.result_type(*pair)]
            assert promote_dtypes(*(described(x) for x in pair)) is expected, pair


def test_rows_that_lie_one_after_the_other_are_contiguous() -> None:
    n = symbol("n")
    assert Layout((n, 3, 1, 2), (6, 2, 9, 1), 0).is_contiguous
    assert not Layout((2, 3), (1, 2), 0).is_contiguous
    assert not Layout((2, 3), (6, 1), 0).is_contiguous
