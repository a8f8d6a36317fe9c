"""Expressions over pattern variables: how the two sides of a rule are written.

An expression is an operator of the IR applied to expressions; sharing is by identity. Types are checked as it is
built, so an ill-typed side stops at the line that wrote it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from rewright import ops
from rewright.ir.dims import Dim, Shape, SizeExpr, divide
from rewright.ir.errors import TypeMismatch
from rewright.ir.operator import Operator, Unsupported
from rewright.ir.types import DType, TensorType
from rewright.ops.base import Array, Real
from rewright.ops.elementwise import Elementwise
from rewright.terms.index import Index
from rewright.terms.parameters import constant as constant_size
from rewright.terms.scalar import Apply, Read, Scalar

Attribute = Any
"""An integer, a size expression, or a tuple of them."""


@dataclass(frozen=True, slots=True)
class AnyElementwise(Elementwise):
    """A pattern variable for an elementwise operator: any function of the elements at one index."""

    label: str
    count: int = 1
    name: ClassVar[str] = "any_elementwise"

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        if len(operands) != self.count:
            raise TypeMismatch(f"operator {self.label} takes {self.count} operands and got {len(operands)}")
        if any(other != operands[0] for other in operands):
            raise TypeMismatch(f"operator {self.label} needs operands of one type")
        return operands[0]

    def denotation(
        self, operands: Sequence[TensorType], result: TensorType, index: tuple[Index, ...]
    ) -> Scalar | Unsupported:
        return Apply(f"?{self.label}", tuple(Read(k, index) for k in range(len(operands))))

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        raise NotImplementedError("a pattern variable is replaced before anything is executed")


class Tensor:
    """An expression: an operator applied to expressions, with the type that follows."""

    __slots__ = ("op", "operands", "type")

    def __init__(self, op: Operator, *operands: Tensor) -> None:
        self.op = op
        self.operands = operands
        self.type = op.infer([operand.type for operand in operands])

    @property
    def shape(self) -> Shape:
        """Its sizes."""
        return self.type.shape

    @property
    def rank(self) -> int:
        """Its number of axes."""
        return self.type.rank

    # --- elementwise; a number, a size or a scalar is repeated to the shape of the other operand

    def _with(self, op: Operator, other: Tensor | float | SizeExpr, swapped: bool = False) -> Tensor:
        left, right = fitted(self, other)
        return Tensor(op, right, left) if swapped else Tensor(op, left, right)

    def __add__(self, other: Tensor | float | SizeExpr) -> Tensor:
        return self._with(ops.Add(), other)

    def __radd__(self, other: float | SizeExpr) -> Tensor:
        return self._with(ops.Add(), other, True)

    def __sub__(self, other: Tensor | float | SizeExpr) -> Tensor:
        return self._with(ops.Subtract(), other)

    def __rsub__(self, other: float | SizeExpr) -> Tensor:
        return self._with(ops.Subtract(), other, True)

    def __mul__(self, other: Tensor | float | SizeExpr) -> Tensor:
        return self._with(ops.Multiply(), other)

    def __rmul__(self, other: float | SizeExpr) -> Tensor:
        return self._with(ops.Multiply(), other, True)

    def __truediv__(self, other: Tensor | float | SizeExpr) -> Tensor:
        return self._with(ops.Divide(), other)

    def __rtruediv__(self, other: float | SizeExpr) -> Tensor:
        return self._with(ops.Divide(), other, True)

    def __mod__(self, other: Tensor | float | SizeExpr) -> Tensor:
        return self._with(ops.Remainder(), other)

    def __neg__(self) -> Tensor:
        return Tensor(ops.Negate(), self)

    def __and__(self, other: Tensor | bool) -> Tensor:
        return self._with(ops.And(), other)

    def __or__(self, other: Tensor | bool) -> Tensor:
        return self._with(ops.Or(), other)

    def __xor__(self, other: Tensor | bool) -> Tensor:
        return self._with(ops.Xor(), other)

    def __invert__(self) -> Tensor:
        return Tensor(ops.Not(), self)

    def __lt__(self, other: Tensor | float | SizeExpr) -> Tensor:
        return self._with(ops.Compare("LT"), other)

    def __le__(self, other: Tensor | float | SizeExpr) -> Tensor:
        return self._with(ops.Compare("LE"), other)

    def __gt__(self, other: Tensor | float | SizeExpr) -> Tensor:
        return self._with(ops.Compare("GT"), other)

    def __ge__(self, other: Tensor | float | SizeExpr) -> Tensor:
        return self._with(ops.Compare("GE"), other)

    def equals(self, other: Tensor | float | SizeExpr) -> Tensor:
        """Elementwise equality, as booleans."""
        return self._with(ops.Compare("EQ"), other)

    def differs(self, other: Tensor | float | SizeExpr) -> Tensor:
        """Elementwise inequality, as booleans."""
        return self._with(ops.Compare("NE"), other)

    # --- layout

    def reshape(self, *shape: Dim) -> Tensor:
        """The elements in row-major order under another shape."""
        return Tensor(ops.Reshape(shape), self)

    def transpose(self, *permutation: int) -> Tensor:
        """Result axis d is axis ``permutation[d]``; without arguments: all axes in opposite order."""
        return Tensor(ops.Transpose(permutation or tuple(reversed(range(self.rank)))), self)

    def broadcast(self, shape: Sequence[Dim], dimensions: Sequence[int] = ()) -> Tensor:
        """Axis k becomes axis ``dimensions[k]`` of a larger shape."""
        return Tensor(ops.BroadcastInDim(tuple(shape), tuple(dimensions)), self)

    def slice(self, start: Attribute, limit: Attribute, stride: Attribute = 1) -> Tensor:
        """Elements ``start, start + stride, ...`` below ``limit``; tuples with one entry for each axis."""
        first, last, step = (_per_axis(value, self.rank) for value in (start, limit, stride))
        return Tensor(ops.Slice(first, last, _strides(first, last, step)), self)

    def pad(self, value: Tensor | float, low: Attribute, high: Attribute, interior: Attribute = 0) -> Tensor:
        """Copies of a scalar around, and ``interior`` copies between elements."""
        filling = value if isinstance(value, Tensor) else constant(value, (), self.type.dtype)
        attributes = (_per_axis(entry, self.rank) for entry in (low, high, interior))
        return Tensor(ops.Pad(*cast(Any, attributes)), self, filling)

    def reverse(self, *axes: int) -> Tensor:
        """Opposite order along axes; without arguments along all."""
        return Tensor(ops.Reverse(axes or tuple(range(self.rank))), self)

    def reduce(self, kind: Any, *axes: int) -> Tensor:
        """Combine along axes, which disappear; without arguments along all."""
        return Tensor(ops.Reduce(kind, axes or tuple(range(self.rank))), self)

    def sum(self, *axes: int) -> Tensor:
        """The sum along axes, which disappear; without arguments along all."""
        return self.reduce("sum", *axes)

    def max(self, *axes: int) -> Tensor:
        """The maximum along axes, which disappear; without arguments along all."""
        return self.reduce("maximum", *axes)

    def min(self, *axes: int) -> Tensor:
        """The minimum along axes, which disappear; without arguments along all."""
        return self.reduce("minimum", *axes)

    def product(self, *axes: int) -> Tensor:
        """The product along axes, which disappear; without arguments along all."""
        return self.reduce("product", *axes)

    def convert(self, dtype: DType) -> Tensor:
        """The same value in another dtype."""
        return Tensor(ops.Convert(dtype), self)


def fitted(left: Tensor, right: Tensor | float | SizeExpr) -> tuple[Tensor, Tensor]:
    """Two operands of one shape: a number, a size or a scalar is repeated to the shape of the other."""
    other = right if isinstance(right, Tensor) else constant(right, (), left.type.dtype)
    if left.shape == other.shape:
        return left, other
    if not other.rank:
        return left, other.broadcast(left.shape)
    if not left.rank:
        return left.broadcast(other.shape), other
    return left, other


def _fit(left: Tensor | float, right: Tensor | float) -> tuple[Tensor, Tensor]:
    """As ``fitted``, with a number on either side."""
    if isinstance(left, Tensor):
        return fitted(left, right)
    if not isinstance(right, Tensor):
        return constant(left), constant(right)
    last, first = fitted(right, left)
    return first, last


def constant(value: float | bool | SizeExpr, shape: Sequence[Dim] = (), dtype: DType = DType.F32) -> Tensor:
    """One number everywhere; a size expression becomes a number of the dtype."""
    if isinstance(value, SizeExpr):
        return size_as_number(value, dtype).broadcast(tuple(shape)) if shape else size_as_number(value, dtype)
    typed = float(value) if dtype.is_float else bool(value) if dtype is DType.BOOL else int(value)
    return Tensor(ops.Constant(TensorType(tuple(shape), dtype), (typed,)))


def size_as_number(value: Dim, dtype: DType) -> Tensor:
    """A size as a scalar: the sum of as many ones."""
    ones = Tensor(ops.Constant(TensorType((value,), dtype), (1.0 if dtype.is_float else 1,)))
    return ones.sum(0)


def floats(name: str, *shape: Dim) -> Tensor:
    """A pattern variable: a tensor of floats, of one dtype throughout the rule."""
    return Tensor(ops.Input(name, TensorType(shape, DType.F32)))


def integers(name: str, *shape: Dim) -> Tensor:
    """A pattern variable: a tensor of integers."""
    return Tensor(ops.Input(name, TensorType(shape, DType.I64)))


def boolean(name: str, *shape: Dim) -> Tensor:
    """A pattern variable: a tensor of truth values."""
    return Tensor(ops.Input(name, TensorType(shape, DType.BOOL)))


def scalar(name: str, dtype: DType = DType.F32) -> Tensor:
    """A pattern variable: a tensor without axes; constants match it."""
    return Tensor(ops.Input(name, TensorType((), dtype)))


def iota(shape: Sequence[Dim], axis: int = 0, dtype: DType = DType.I64) -> Tensor:
    """The index along an axis."""
    return Tensor(ops.Iota(TensorType(tuple(shape), dtype), axis))


def operator(name: str, count: int = 1) -> Operator:
    """A pattern variable for an elementwise operator with a number of operands of one type."""
    return AnyElementwise(name, count)


def apply(op: Operator, *operands: Tensor) -> Tensor:
    """Any operator of the IR applied to expressions."""
    return Tensor(op, *operands)


def exp(x: Tensor) -> Tensor:
    """e to the power x."""
    return Tensor(ops.Exponential(), x)


def log(x: Tensor) -> Tensor:
    """The natural logarithm."""
    return Tensor(ops.Log(), x)


def sqrt(x: Tensor) -> Tensor:
    """The square root."""
    return Tensor(ops.Sqrt(), x)


def rsqrt(x: Tensor) -> Tensor:
    """One over the square root."""
    return Tensor(ops.Rsqrt(), x)


def absolute(x: Tensor) -> Tensor:
    """The absolute value."""
    return Tensor(ops.Abs(), x)


def sigmoid(x: Tensor) -> Tensor:
    """``1 / (1 + exp(-x))``."""
    return Tensor(ops.Logistic(), x)


def tanh(x: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return Tensor(ops.Tanh(), x)


def negate(x: Tensor) -> Tensor:
    """``-x``."""
    return Tensor(ops.Negate(), x)


def maximum(x: Tensor | float, y: Tensor | float) -> Tensor:
    """The larger one, elementwise."""
    return Tensor(ops.Maximum(), *_fit(x, y))


def minimum(x: Tensor | float, y: Tensor | float) -> Tensor:
    """The smaller one, elementwise."""
    return Tensor(ops.Minimum(), *_fit(x, y))


def clamp(low: Tensor | float, x: Tensor, high: Tensor | float) -> Tensor:
    """``min(max(x, low), high)``; numbers and scalars are repeated to the shape of x."""
    return Tensor(ops.Clamp(), fitted(x, low)[1], x, fitted(x, high)[1])


def select(predicate: Tensor, on_true: Tensor | float, on_false: Tensor | float) -> Tensor:
    """One or the other, elementwise; numbers are repeated to the shape of the predicate."""
    dtype = next((side.type.dtype for side in (on_true, on_false) if isinstance(side, Tensor)), DType.F32)
    sides = [side if isinstance(side, Tensor) else constant(side, (), dtype) for side in (on_true, on_false)]
    full = [side.broadcast(predicate.shape) if predicate.rank and not side.rank else side for side in sides]
    return Tensor(ops.Select(), predicate, *full)


def concat(axis: int, *parts: Tensor) -> Tensor:
    """The parts one after the other along an axis."""
    return Tensor(ops.Concatenate(axis), *parts)


def dot(
    x: Tensor,
    y: Tensor,
    contract: tuple[Sequence[int], Sequence[int]] | None = None,
    batch: tuple[Sequence[int], Sequence[int]] = ((), ()),
) -> Tensor:
    """The general product; without axes the last axis of x is contracted with the first of y."""
    first, second = contract if contract is not None else ((x.rank - 1,), (0,))
    return Tensor(ops.DotGeneral(tuple(batch[0]), tuple(batch[1]), tuple(first), tuple(second)), x, y)


def dynamic_slice(x: Tensor, starts: Sequence[Tensor | int], sizes: Sequence[Dim]) -> Tensor:
    """A block at starts that are integer scalars, one for each axis."""
    return Tensor(ops.DynamicSlice(tuple(sizes)), x, *(_start(start) for start in starts))


def dynamic_update(x: Tensor, update: Tensor, starts: Sequence[Tensor | int]) -> Tensor:
    """x with a block replaced at starts that are integer scalars, one for each axis."""
    return Tensor(ops.DynamicUpdateSlice(), x, update, *(_start(start) for start in starts))


def take(x: Tensor, rows: Tensor, axis: int = 0) -> Tensor:
    """Elements of x along an axis at indices: ``result[..., j..., ...] = x[..., rows[j...], ...]``."""
    kept = [a for a in range(x.rank) if a != axis]
    offsets = tuple(a if a < axis else a + rows.rank - 1 for a in kept)
    sizes = tuple(1 if a == axis else size for a, size in enumerate(x.shape))
    return Tensor(ops.Gather(offsets, (axis,), (), (), (axis,), rows.rank, sizes), x, rows)


def _start(start: Tensor | int) -> Tensor:
    return start if isinstance(start, Tensor) else constant(start, (), DType.I64)


def _per_axis(value: Attribute, rank: int) -> tuple[Dim, ...]:
    if isinstance(value, (tuple, list)):
        return tuple(cast("Sequence[Dim]", value))
    return (value,) * rank


def _strides(first: Sequence[Dim], last: Sequence[Dim], step: Sequence[Dim]) -> tuple[int, ...]:
    """The strides, as symbols where the number of steps is no polynomial."""
    found: list[Dim] = []
    for low, high, stride in zip(first, last, step, strict=True):
        symbolic = isinstance(stride, int) and stride > 1 and isinstance(high - low, SizeExpr)
        if symbolic and all(divide(high - low + slack, stride) is None for slack in range(cast(int, stride))):
            stride = constant_size(cast(int, stride))
        found.append(stride)
    return cast("tuple[int, ...]", tuple(found))
