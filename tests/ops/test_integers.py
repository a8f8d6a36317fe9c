"""Integers are two's complement: every operator on every dtype against Python's integers modulo a power of two."""

import math
import operator
import warnings
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from rewright import ops
from rewright.interp.arithmetic import Floats
from rewright.interp.exact import evaluate
from rewright.ir.types import DType, TensorType
from rewright.ops.base import Array, TensorOperator, array_dtype, integer_limits

DTYPES = [dtype for dtype in DType if dtype.is_integer]
Numbers = Sequence[int]


def wrap(value: int, dtype: DType) -> int:
    """The last bits of a number, read as the dtype reads them."""
    bits = 8 * array_dtype(dtype).itemsize
    rest = value & ((1 << bits) - 1)
    return rest - (1 << bits) if integer_limits(dtype)[0] and rest >> (bits - 1) else rest


def edges(dtype: DType) -> list[int]:
    low, high = integer_limits(dtype)
    return sorted({wrap(v, dtype) for v in (0, 1, 2, 3, -1, -2, -7, low, high, low + 1, high - 1, high // 3, 5**20)})


def quotient(left: int, right: int) -> int:
    if not right:
        return -1
    found = abs(left) // abs(right)
    return found if (left < 0) == (right < 0) else -found


def power(base: int, exponent: int) -> int:
    if exponent >= 0:
        return pow(base, exponent, 1 << 64)
    return (1 if base == 1 or exponent % 2 == 0 else -1) if abs(base) == 1 else 0


ELEMENTWISE: dict[TensorOperator, Callable[..., int]] = {
    ops.Add(): operator.add,
    ops.Subtract(): operator.sub,
    ops.Multiply(): operator.mul,
    ops.Divide(): quotient,
    ops.Remainder(): lambda a, b: a - b * quotient(a, b) if b else a,
    ops.Power(): power,
    ops.Maximum(): max,
    ops.Minimum(): min,
    ops.And(): operator.and_,
    ops.Or(): operator.or_,
    ops.Xor(): operator.xor,
    ops.Negate(): operator.neg,
    ops.Abs(): abs,
    ops.Sign(): lambda a: (a > 0) - (a < 0),
    ops.Not(): operator.invert,
    ops.Clamp(): lambda low, a, high: min(max(a, low), high),
}
FOLDS: dict[str, Callable[[Numbers], int]] = {
    "sum": sum,
    "product": math.prod,
    "maximum": max,
    "minimum": min,
    "and": lambda row: int(np.bitwise_and.reduce(np.array(row, object))),
    "or": lambda row: int(np.bitwise_or.reduce(np.array(row, object))),
}


def check(op: TensorOperator, dtype: DType, operands: Sequence[Array], expected: Numbers) -> None:
    """Execution and formula both give these numbers, once they wrap, and no warning."""
    types = [TensorType(x.shape, dtype) for x in operands]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = op.execute(operands)
        formula = evaluate(op, types, [x.astype(object) for x in operands], Floats())
    kind = op.infer(types).dtype
    wanted = [wrap(int(value), kind) for value in expected]
    assert found.dtype == array_dtype(kind)
    assert found.reshape(-1).tolist() == wanted
    assert formula.reshape(-1).tolist() == wanted


def table(dtype: DType) -> Array:
    """Rows of edges."""
    own = edges(dtype)
    rows = [own, own[::-1], [*own[3:], *own[:3]]]
    return np.array(rows, array_dtype(dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("op", ELEMENTWISE, ids=str)
def test_functions_of_elements_wrap(op: TensorOperator, dtype: DType) -> None:
    if isinstance(op, ops.Not) and dtype.is_unsigned and dtype is not DType.U8:
        pytest.skip("subtraction from the largest number stands for it")
    own = edges(dtype)
    one = np.array(own, array_dtype(dtype))
    left, right = np.repeat(one, len(one)), np.tile(one, len(one))
    operands = [left, right, np.roll(left, 5)][: op.arity]
    rows = zip(*(x.tolist() for x in operands), strict=True)
    check(op, dtype, operands, [ELEMENTWISE[op](*row) for row in rows])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("kind", FOLDS)
def test_folds_wrap(kind: str, dtype: DType) -> None:
    x = table(dtype)
    columns = x.T.tolist()
    check(ops.Reduce(kind, (0,)), dtype, [x], [FOLDS[kind](column) for column in columns])
    rows = x.tolist()
    check(ops.Reduce(kind, (1,)), dtype, [x], [FOLDS[kind](row) for row in rows])
    size = len(rows[0])
    running = ops.ReduceWindow(kind, (1, size), (1, 1), ((0, 0), (size - 1, 0)))
    check(running, dtype, [x], [FOLDS[kind](row[: k + 1]) for row in rows for k in range(size)])
    pair = ops.ReduceWindow(kind, (1, 2), (1, 1), ((0, 0), (0, 0)))
    check(pair, dtype, [x], [FOLDS[kind](row[k : k + 2]) for row in rows for k in range(size - 1)])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_products_wrap(dtype: DType) -> None:
    x = table(dtype)
    y = x[:, ::-1].copy()
    expected = [sum(a * b for a, b in zip(r, c, strict=True)) for r in x.tolist() for c in y.tolist()]
    check(ops.DotGeneral((), (), (1,), (1,)), dtype, [x, y], expected)
    data, kernel = x[None], y[:1, None, :3].copy()
    windows = [x[:, k : k + 3].tolist() for k in range(x.shape[1] - 2)]
    weights = np.broadcast_to(kernel, (1, len(x), 3)).tolist()[0]
    expected = [
        sum(a * b for r, w in zip(rows, weights, strict=True) for a, b in zip(r, w, strict=True)) for rows in windows
    ]
    full = np.array([weights], x.dtype)
    check(ops.Convolution((1,), ((0, 0),), (1,), (1,), 1), dtype, [data, full], expected)


@pytest.mark.parametrize("kind", ["sum", "product", "maximum", "minimum"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_scattered_updates_wrap(dtype: DType, kind: str) -> None:
    own = edges(dtype)
    x = np.array([own[0], own[-1], 1], array_dtype(dtype))
    updates = np.array(own, array_dtype(dtype))
    places = np.array([k % 3 for k in range(len(own))])[:, None]
    op = ops.Scatter(kind, (), (0,), (), (), (0,), 1)
    types = [TensorType(x.shape, dtype), TensorType(places.shape, DType.I64), TensorType(updates.shape, dtype)]
    expected = [FOLDS[kind]([int(x[k]), *own[k::3]]) for k in range(3)]
    wanted = [wrap(value, dtype) for value in expected]
    operands = [x, places, updates]
    assert op.execute(operands).tolist() == wanted
    assert evaluate(op, types, [a.astype(object) for a in operands], Floats()).tolist() == wanted


@pytest.mark.parametrize("target", DTYPES, ids=str)
@pytest.mark.parametrize("source", DTYPES, ids=str)
def test_conversions_wrap(source: DType, target: DType) -> None:
    check(ops.Convert(target), source, [np.array(edges(source), array_dtype(source))], edges(source))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_limits_are_compared_and_kept(dtype: DType) -> None:
    low, high = integer_limits(dtype)
    x = np.array([low, high, high - 1], array_dtype(dtype))
    y = x[::-1].copy()
    check(ops.Compare("LT"), dtype, [x, y], [low < high - 1, False, high - 1 < low])
    constant = ops.Constant(TensorType((3,), dtype), (low, high, high - 1))
    assert constant.execute([]).tolist() == [low, high, high - 1]
