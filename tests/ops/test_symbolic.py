"""Symbolic sizes: the formula for all sizes, at numbers for the symbols, is the formula for those numbers."""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from rewright import ops
from rewright.interp.arithmetic import Floats
from rewright.ir.dims import Dim, evaluate, symbol
from rewright.ir.errors import TypeMismatch
from rewright.ir.operator import Unsupported
from rewright.ir.types import DType, TensorType
from rewright.ops.base import Array, TensorOperator
from rewright.ops.digits import blocks, reshaped_index
from rewright.terms.evaluate import Evaluator
from rewright.terms.index import Variable, quotient, remainder, result_index

B, S, H = symbol("b"), symbol("s"), symbol("h")
SIZES = [dict(zip("bsh", sizes, strict=True)) for sizes in itertools.product((1, 2, 3), (1, 2, 4), (1, 3))]


def numbers(shape: Sequence[Dim], sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(evaluate(size, sizes) for size in shape)


def at_sizes(
    op: TensorOperator, shapes: Sequence[tuple[Dim, ...]], sizes: Mapping[str, int]
) -> tuple[Array, list[Array]]:
    """The result of a symbolic formula at numbers for its symbols, and the operands used."""
    types = [TensorType(shape, DType.F64) for shape in shapes]
    value = op.denote(types)
    assert not isinstance(value, Unsupported)
    operands = [np.arange(float(np.prod(s))).reshape(s) for s in (numbers(shape, sizes) for shape in shapes)]
    evaluator = Evaluator(Floats(), lambda number, index: float(operands[number][index]), sizes)
    result = np.zeros(numbers(op.infer(types).shape, sizes))
    for index in np.ndindex(*result.shape):
        result[index] = evaluator.scalar(value, {Variable(f"i{d}"): i for d, i in enumerate(index)})
    return result, operands


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ((B, S, 6), (B * S, 6)),
        ((B * S, 6), (B, S, 2, 3)),
        ((B, S, H, 4), (B, S, 4 * H)),
        ((B, S, 4 * H), (B, S, H, 4)),
        ((B, S), (S, B)),
        ((2 * B, S), (B, 2 * S)),
        ((B, 1, S), (1, B, S, 1)),
        ((6, B), (2, 3 * B)),
        ((4, 6), (6, 4)),
        ((B * S,), (S, 1, B)),
    ],
)
def test_reshape(source: tuple[Dim, ...], target: tuple[Dim, ...]) -> None:
    for sizes in SIZES:
        found, (operand,) = at_sizes(ops.Reshape(target), [source], sizes)
        assert np.array_equal(found, operand.reshape(numbers(target, sizes)))


def test_slice_pad_and_concatenate() -> None:
    for sizes in SIZES:
        s = sizes["s"]
        found, (x,) = at_sizes(ops.Slice((S - 1,), (2 * S,), (1,)), [(2 * S,)], sizes)
        assert np.array_equal(found, x[s - 1 : 2 * s])
        found, (x, fill) = at_sizes(ops.Pad((S,), (-1,), (1,)), [(S,), ()], sizes)
        dilated = np.full(2 * s - 1, fill)
        dilated[::2] = x
        assert np.array_equal(found, np.concatenate([np.full(s, fill), dilated])[:-1])
        found, (x, y) = at_sizes(ops.Concatenate(0), [(S,), (B,)], sizes)
        assert np.array_equal(found, np.concatenate([x, y]))


def test_products_and_prefix_sums() -> None:
    for sizes in SIZES:
        found, (x, y) = at_sizes(ops.DotGeneral((0,), (0,), (2,), (2,)), [(B, S, H), (B, 2, H)], sizes)
        assert np.array_equal(found, x @ y.swapaxes(1, 2))
        found, (x,) = at_sizes(ops.ReduceWindow("sum", (1, S), (1, 1), ((0, 0), (S - 1, 0))), [(B, S)], sizes)
        assert np.array_equal(found, x.cumsum(1))


def test_untouched_axes_are_read_at_their_own_index() -> None:
    i = result_index(4)
    assert reshaped_index((B, S, 4 * H), (B, S, H, 4), i) == (i[0], i[1], i[2] * 4 + i[3])
    assert reshaped_index((B, S, H), (B * S, H), i[:2]) == (quotient(i[0], S), remainder(i[0], S), i[1])
    assert blocks((2, 3, 4), (6, 4)) == [(2, 1), (3, 2)]
    assert blocks((B, 1), (1, B)) == [(2, 2)]


@pytest.mark.parametrize("stride", [3, 10**12])
def test_a_stride_that_does_not_divide_a_symbolic_axis_is_refused_at_once(stride: int) -> None:
    """Whoever writes a file may write any stride."""
    size = symbol("n") * 2 + 1
    kind = TensorType((size,), DType.F32)
    with pytest.raises(TypeMismatch, match="no size that is a polynomial"):
        ops.Slice((0,), (size,), (stride,)).infer([kind])
    with pytest.raises(TypeMismatch, match="no size that is a polynomial"):
        ops.ReduceWindow("sum", (1,), (stride,), ((0, 0),)).infer([kind])


def test_a_stride_that_divides_all_but_a_number() -> None:
    """Every third of 6 n + 4 elements, and windows of two at every third place."""
    kind = TensorType((symbol("n") * 6 + 4,), DType.F32)
    assert str(ops.Slice((0,), kind.shape, (3,)).infer([kind]).shape[0]) == "2*n+2"
    assert str(ops.ReduceWindow("sum", (2,), (3,), ((0, 0),)).infer([kind]).shape[0]) == "2*n+1"
