"""Small building blocks of reference functions: broadcasting, splats, reductions, scopes, and those of ``views``.

Every function takes the builder first and positions of nodes, and returns the position of its result.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from rewright import ops
from rewright.ir.dims import Dim, Shape
from rewright.ir.errors import TypeMismatch
from rewright.ir.graph import GraphBuilder
from rewright.ir.operator import Operator
from rewright.ir.types import DType, TensorType
from rewright.ops.base import ReductionKind
from rewright.ops.functions.record import Direction
from rewright.ops.reference.views import Scalar, cast, pad, reshape, slice_axis, splat, swap, transpose

__all__ = [
    "Scalar",
    "add",
    "binary",
    "broadcast",
    "broadcast_along",
    "broadcast_shapes",
    "cast",
    "compare",
    "concatenate",
    "convert",
    "count",
    "divide",
    "dot",
    "insert_ones",
    "iota",
    "mean",
    "multiply",
    "pad",
    "power",
    "reduce",
    "reshape",
    "scale_by",
    "scope",
    "select",
    "shift_by",
    "slice_axis",
    "splat",
    "splat_like",
    "subtract",
    "swap",
    "transpose",
]


@contextmanager
def scope(builder: GraphBuilder, name: str) -> Generator[None]:
    """Mark the nodes added inside as parts of one reference function; the outermost name is kept."""
    outer = builder.span
    if not outer.scope:
        builder.span = replace(outer, scope=name)
    try:
        yield
    finally:
        builder.span = outer


def splat_like(builder: GraphBuilder, value: Scalar, x: int) -> int:
    """A constant of the shape and dtype of ``x``."""
    kind = builder.type(x)
    return splat(builder, value, kind.shape, kind.dtype)


def iota(builder: GraphBuilder, shape: Shape, axis: int, dtype: DType = DType.I64) -> int:
    """The index along ``axis``."""
    return builder.add(ops.Iota(TensorType(shape, dtype), axis))


def convert(builder: GraphBuilder, x: int, dtype: DType) -> int:
    """The same values in another dtype, those of 8 bits rounded; nothing is added where it is the same."""
    source, node = builder.type(x).dtype, builder.node(x)
    if source is dtype:
        return x
    if not dtype.is_byte_float:
        return builder.add(ops.Convert(dtype), x)
    if isinstance(node.op, ops.Convert) and source.is_float and builder.type(node.operands[0]).dtype is dtype:
        return node.operands[0]  # longer floats hold all of these
    return builder.add(ops.ROUNDING[dtype], x if source.is_float else builder.add(ops.Convert(DType.F64), x))


def insert_ones(builder: GraphBuilder, x: int, places: Sequence[int]) -> int:
    """New axes of size one at some places of the result.

    It is a broadcast and not a reshape, so that the new axis is told from a share of size one of a longer axis.
    """
    own = list(builder.type(x).shape)
    rank = len(own) + len(places)
    shape = tuple(1 if axis in places else own.pop(0) for axis in range(rank))
    kept = tuple(axis for axis in range(rank) if axis not in places)
    return builder.add(ops.BroadcastInDim(shape, kept), x) if places else x


def concatenate(builder: GraphBuilder, parts: Sequence[int], axis: int) -> int:
    """Parts one after the other; empty ones are left out."""
    kept = [p for p in parts if builder.type(p).shape[axis] != 0] or list(parts[:1])
    return kept[0] if len(kept) == 1 else builder.add(ops.Concatenate(axis), *kept)


def broadcast_shapes(*shapes: Shape) -> Shape:
    """The common shape under NumPy's rules; raises TypeMismatch where there is none."""
    result: list[Dim] = []
    for place in range(1, max((len(s) for s in shapes), default=0) + 1):
        sizes = [s[-place] for s in shapes if len(s) >= place]
        wide = [size for size in sizes if size != 1]
        if any(size != wide[0] for size in wide):
            raise TypeMismatch(f"shapes {' and '.join(map(str, shapes))} do not broadcast")
        result.append(wide[0] if wide else 1)
    return tuple(reversed(result))


def broadcast(builder: GraphBuilder, x: int, shape: Sequence[Dim]) -> int:
    """``x`` repeated to ``shape`` under NumPy's rules (axes align at the end)."""
    wanted, own = tuple(shape), builder.type(x).shape
    if own == wanted:
        return x
    offset = len(wanted) - len(own)
    return builder.add(ops.BroadcastInDim(wanted, tuple(range(offset, len(wanted)))), x)


def broadcast_along(builder: GraphBuilder, x: int, shape: Shape, axis: int) -> int:
    """A vector laid along one axis of ``shape`` and repeated along the others."""
    return builder.add(ops.BroadcastInDim(shape, (axis,)), x)


def binary(builder: GraphBuilder, op: Operator, x: int, y: int) -> int:
    """An elementwise operator on two tensors that broadcast."""
    shape = broadcast_shapes(builder.type(x).shape, builder.type(y).shape)
    return builder.add(op, broadcast(builder, x, shape), broadcast(builder, y, shape))


def add(builder: GraphBuilder, x: int, y: int) -> int:
    """x + y, broadcasting."""
    return binary(builder, ops.Add(), x, y)


def subtract(builder: GraphBuilder, x: int, y: int) -> int:
    """x - y, broadcasting."""
    return binary(builder, ops.Subtract(), x, y)


def multiply(builder: GraphBuilder, x: int, y: int) -> int:
    """x * y, broadcasting."""
    return binary(builder, ops.Multiply(), x, y)


def divide(builder: GraphBuilder, x: int, y: int) -> int:
    """x / y, broadcasting."""
    return binary(builder, ops.Divide(), x, y)


def scale_by(builder: GraphBuilder, x: int, factor: Scalar) -> int:
    """x times a number; nothing is added for a factor of one."""
    return x if factor == 1 else multiply(builder, x, splat_like(builder, factor, x))


def shift_by(builder: GraphBuilder, x: int, amount: Scalar) -> int:
    """x plus a number."""
    return x if amount == 0 else add(builder, x, splat_like(builder, amount, x))


def power(builder: GraphBuilder, x: int, exponent: Scalar) -> int:
    """x to a number; small whole exponents are products, so that proofs see polynomials."""
    if exponent == 1:
        return x
    if exponent == 0:
        return splat_like(builder, 1, x)
    if exponent in (2, 3, 4):
        square = multiply(builder, x, x)
        return {
            2: lambda: square,
            3: lambda: multiply(builder, square, x),
            4: lambda: multiply(builder, square, square),
        }[int(exponent)]()
    if exponent == 0.5:
        return builder.add(ops.Sqrt(), x)
    if exponent == -0.5:
        return builder.add(ops.Rsqrt(), x)
    if exponent == -1 and builder.type(x).dtype.is_float:
        return divide(builder, splat_like(builder, 1, x), x)
    return binary(builder, ops.Power(), x, splat_like(builder, exponent, x))


def compare(builder: GraphBuilder, direction: Direction, x: int, y: int) -> int:
    """A boolean tensor, broadcasting; direction is EQ, NE, LT, LE, GT or GE."""
    return binary(builder, ops.Compare(direction), x, y)


def select(builder: GraphBuilder, condition: int, on_true: int, on_false: int) -> int:
    """``on_true`` where the condition holds, else ``on_false``, broadcasting."""
    shape = broadcast_shapes(*(builder.type(p).shape for p in (condition, on_true, on_false)))
    return builder.add(ops.Select(), *(broadcast(builder, p, shape) for p in (condition, on_true, on_false)))


def reduce(builder: GraphBuilder, kind: ReductionKind, x: int, axes: Sequence[int], keep: bool = False) -> int:
    """Fold axes with sum, maximum, minimum, product, and, or; ``keep`` leaves them with size one."""
    shape = builder.type(x).shape
    folded = tuple(sorted(axis % len(shape) for axis in axes)) if shape else ()
    result = builder.add(ops.Reduce(kind, folded), x) if folded else x
    return insert_ones(builder, result, folded) if keep else result


def count(builder: GraphBuilder, x: int, axes: Sequence[int], less: float = 0) -> int:
    """How many elements a reduction over ``axes`` folds, minus ``less``, as a scalar of the dtype of ``x``.

    For a symbolic size it is a sum of ones, which is the size for every value of its symbols.
    """
    kind = builder.type(x)
    total, symbolic = 1, list[Dim]()
    for axis in axes:
        size = kind.shape[axis]
        if isinstance(size, int):
            total *= size
        else:
            symbolic.append(size)
    if not symbolic:
        return splat(builder, max(total - less, 0), (), kind.dtype)
    ones = splat(builder, total, tuple(symbolic), kind.dtype)
    return shift_by(builder, reduce(builder, "sum", ones, range(len(symbolic))), -less)


def mean(builder: GraphBuilder, x: int, axes: Sequence[int], keep: bool = False) -> int:
    """Sum over ``axes`` divided by the number of elements folded."""
    axes = [axis % max(builder.type(x).rank, 1) for axis in axes] if builder.type(x).rank else []
    return divide(builder, reduce(builder, "sum", x, axes, keep), count(builder, x, axes))


def dot(builder: GraphBuilder, x: int, y: int, contract: tuple[Sequence[int], Sequence[int]], batch: int = 0) -> int:
    """Sum of products over pairs of axes; the first ``batch`` axes of both go in parallel."""
    parallel = tuple(range(batch))
    return builder.add(ops.DotGeneral(parallel, parallel, tuple(contract[0]), tuple(contract[1])), x, y)
