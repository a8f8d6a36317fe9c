"""Elementwise ATen operators."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rewright import ops
from rewright.frontends.aten.context import Context, Number, Operand, Table, Value
from rewright.interp.program import run_nodes
from rewright.ir.draws import Draw
from rewright.ir.errors import UnsupportedOperator
from rewright.ir.graph import Graph
from rewright.ir.operator import Operator
from rewright.ir.rebuilding import remove_dead_nodes
from rewright.ir.types import DType, TensorType
from rewright.ops.base import Array
from rewright.ops.functions import FUNCTIONS
from rewright.ops.functions.record import Direction
from rewright.ops.reference import activation, division, indexing
from rewright.ops.reference import building as rb
from rewright.ops.reference.tables import periodic_table

TABLE = Table()
_SHORT = 16
"""Integers of at most this many bits are packed weights, and shifts take them apart."""


def _unary(op: ops.Elementwise) -> Callable[[Context, Value], int]:
    def lower(c: Context, x: Value) -> int:
        record = op.record(x.dtype)
        is_itself = record is not None and record.has("keeps whole") and not x.dtype.is_float
        return x.position if is_itself else c.b.add(op, *c.positions(x))

    return lower


for _record in FUNCTIONS.values():
    if _record.curve is not None and (_torch := _record.code.torch) is not None:
        TABLE.register(f"aten.{_torch.replace('.', '_')}.default")(_unary(ops.ELEMENTWISE[_record.name]))


@TABLE.register("aten.sign.default", "aten.sgn.default")
def sign(c: Context, x: Value) -> int:
    return x.position if x.dtype is DType.BOOL else c.b.add(ops.Sign(), x.position)


@TABLE.register("aten.trunc.default", "aten.fix.default")
def trunc(c: Context, x: Value) -> int:
    return _truncate(c, x.position) if x.dtype.is_float else x.position


def _truncate(c: Context, x: int) -> int:
    return rb.multiply(c.b, c.b.add(ops.Sign(), x), c.b.add(ops.Floor(), c.b.add(ops.Abs(), x)))


def _binary(op: Operator, *, boolean: Operator | None = None) -> Callable[[Context, Operand, Operand], int]:
    def lower(c: Context, x: Operand, y: Operand) -> int:
        left, right = c.positions(x, y)
        use = boolean if boolean is not None and c.result().dtype is DType.BOOL else op
        return c.spread(rb.binary(c.b, use, left, right))

    return lower


def _and(c: Context, x: Operand, y: Operand) -> int:
    """The common bits of two numbers; the lowest bits of one that is not negative are a remainder."""
    both = _binary(ops.And())
    kind = c.result().dtype
    if isinstance(x, int) and not isinstance(x, bool):
        x, y = y, x
    if isinstance(y, bool) or not isinstance(y, int) or not isinstance(x, Value) or x.dtype is not kind:
        return both(c, x, y)
    is_low = kind.is_integer and 0 < y < 1 << int(kind.value.lstrip("ui")) - 1 and y & (y + 1) == 0
    is_low = is_low and (kind.is_unsigned or indexing.is_nonnegative(c.b, x.position))
    return c.spread(division.floor_remainder(c.b, x.position, y + 1)) if is_low else both(c, x, y)


TABLE.register("aten.mul.Tensor", "aten.mul.Scalar")(_binary(ops.Multiply(), boolean=ops.And()))
TABLE.register("aten.maximum.default")(_binary(ops.Maximum(), boolean=ops.Or()))
TABLE.register("aten.minimum.default")(_binary(ops.Minimum(), boolean=ops.And()))
TABLE.register("aten.fmod.Tensor", "aten.fmod.Scalar")(_binary(ops.Remainder()))
for _overload in ("Tensor", "Scalar", "Scalar_Tensor"):
    TABLE.register(f"aten.bitwise_and.{_overload}")(_and)
    TABLE.register(f"aten.bitwise_or.{_overload}")(_binary(ops.Or()))
    TABLE.register(f"aten.bitwise_xor.{_overload}")(_binary(ops.Xor()))
for _overload in ("Tensor", "Scalar"):
    TABLE.register(f"aten.__and__.{_overload}")(_and)
    TABLE.register(f"aten.__or__.{_overload}")(_binary(ops.Or()))
    TABLE.register(f"aten.__xor__.{_overload}")(_binary(ops.Xor()))


@TABLE.register("aten.add.Tensor", "aten.add.Scalar")
def add(c: Context, x: Operand, y: Operand, alpha: Number = 1) -> int:
    left, right = c.positions(x, y)
    op = ops.Or() if c.result().dtype is DType.BOOL else ops.Add()
    return c.spread(rb.binary(c.b, op, left, rb.scale_by(c.b, right, alpha)))


@TABLE.register("aten.sub.Tensor", "aten.sub.Scalar")
def sub(c: Context, x: Operand, y: Operand, alpha: Number = 1) -> int:
    left, right = c.positions(x, y)
    return c.spread(rb.subtract(c.b, left, rb.scale_by(c.b, right, alpha)))


@TABLE.register("aten.rsub.Scalar", "aten.rsub.Tensor")
def rsub(c: Context, x: Operand, y: Operand, alpha: Number = 1) -> int:
    return sub(c, y, x, alpha)


@TABLE.register("aten.div.Tensor", "aten.div.Scalar", "aten.true_divide.Tensor")
def div(c: Context, x: Operand, y: Operand) -> int:
    left, right = c.positions(x, y)
    return c.spread(rb.divide(c.b, left, right))


@TABLE.register("aten.div.Tensor_mode", "aten.div.Scalar_mode")
def div_mode(c: Context, x: Operand, y: Operand, *, rounding_mode: str | None = None) -> int:
    if rounding_mode is None:
        return div(c, x, y)
    left, right = c.positions(x, y)
    exact = rounding_mode == "trunc"
    if c.result().dtype.is_float:
        quotient = rb.divide(c.b, left, right)
        if c.guards_queries and not exact:
            return c.spread(_rounded_below(c, left, right, quotient))
        return c.spread(_truncate(c, quotient) if exact else c.b.add(ops.Floor(), quotient))
    return c.spread(rb.divide(c.b, left, right) if exact else division.floor_divide(c.b, left, right))


@TABLE.register("aten.floor_divide.default", "aten.floor_divide.Scalar")
def floor_divide(c: Context, x: Operand, y: Operand) -> int:
    return div_mode(c, x, y, rounding_mode="floor")


@TABLE.register("aten.__rshift__.Tensor", "aten.bitwise_right_shift.Tensor")
def right_shifts(c: Context, x: Value, y: Value) -> int:
    """Shifts by several numbers that depend on no input."""
    by = _close(c, y.position)
    if by is None or not by.size:
        raise UnsupportedOperator("a shift by numbers that are not known; divide")
    kind = c.result().dtype
    if (
        not kind.is_integer
        or kind is DType.U64
        or (by < 0).any()
        or (by >= min(63, int(kind.value.lstrip("ui")))).any()
    ):
        raise UnsupportedOperator("a shift of other than integers by a number of bits below their length; multiply")
    wide = rb.convert(c.b, c.spread(c.position(x, kind)), DType.I64)
    divisors = c.spread(periodic_table(c.b, np.left_shift(1, by.astype(np.int64)), DType.I64))
    return rb.convert(c.b, division.floor_divide(c.b, wide, divisors), kind)


def _close(c: Context, position: int) -> Array | None:
    """The numbers of a node that depends on no input; None of others."""
    part = remove_dead_nodes(Graph(c.b.build().nodes, {}, {"numbers": position}))
    if not part.nodes[-1].type.is_static() or any(isinstance(node.op, ops.Input) for node in part.nodes):
        return None
    (place,) = part.outputs.values()
    return run_nodes(part, {}, [place])[place]


@TABLE.register("aten.__rshift__.Scalar", "aten.bitwise_right_shift.Tensor_Scalar")
def right_shift(c: Context, x: Operand, y: Operand) -> int:
    """The quotient by a power of two, towards minus infinity."""
    left, right = c.positions(x, _power_of_two(c, y))
    return c.spread(division.floor_divide(c.b, left, right))


@TABLE.register("aten.__lshift__.Scalar", "aten.bitwise_left_shift.Tensor_Scalar")
def left_shift(c: Context, x: Operand, y: Operand) -> int:
    """The product by a power of two; from short integers it drops what does not fit, which is what it is used for."""
    kind = c.result().dtype
    factor, bits = _power_of_two(c, y), int(kind.value.lstrip("ui"))
    if bits > _SHORT:
        return c.spread(rb.multiply(c.b, *c.positions(x, factor)))
    wide = rb.convert(c.b, c.position(x, kind), DType.I64)
    low = division.floor_remainder(c.b, rb.scale_by(c.b, wide, factor), 1 << bits)
    if not kind.is_unsigned:
        half = rb.splat_like(c.b, 1 << (bits - 1), low)
        low = rb.select(c.b, rb.compare(c.b, "LT", low, half), low, rb.shift_by(c.b, low, -(1 << bits)))
    return c.spread(rb.convert(c.b, low, kind))


def _power_of_two(c: Context, places: Operand) -> int:
    """The factor of a shift by some places; raises UnsupportedOperator where it is no number of the type."""
    kind = c.result().dtype
    bits = int(kind.value.lstrip("ui")) - (0 if kind.is_unsigned else 1) if kind.is_integer else 0
    if not isinstance(places, int) or not 0 <= places < bits:
        raise UnsupportedOperator("a shift of other than integers by a number of bits below their length; multiply")
    return 1 << places


def _rounded_below(c: Context, x: int, y: int, quotient: int) -> int:
    """``floor(x / y)`` of floats, by the remainder, which is exact: the quotient may be rounded up to an integer."""
    rest = rb.binary(c.b, ops.Remainder(), x, y)
    multiple = rb.divide(c.b, rb.subtract(c.b, x, rest), y)
    below = rb.select(
        c.b, division.is_rounded_up(c.b, rest, y), rb.subtract(c.b, multiple, rb.splat_like(c.b, 1.0, x)), multiple
    )
    nearest = c.b.add(ops.RoundNearestEven(), below)
    return rb.select(c.b, rb.compare(c.b, "EQ", y, rb.splat_like(c.b, 0.0, y)), quotient, nearest)


@TABLE.register("aten.remainder.Tensor", "aten.remainder.Scalar", "aten.remainder.Scalar_Tensor")
def remainder(c: Context, x: Operand, y: Operand) -> int:
    left, right = c.positions(x, y)
    rest = rb.binary(c.b, ops.Remainder(), left, right)
    kind = c.result().dtype
    is_natural = kind.is_unsigned or all(indexing.is_nonnegative(c.b, p) for p in (left, right))
    if not kind.is_float and is_natural:
        return c.spread(rest)
    return c.spread(rb.select(c.b, division.is_rounded_up(c.b, rest, right), rb.add(c.b, rest, right), rest))


@TABLE.register("aten.pow.Tensor_Scalar", "aten.pow.Scalar", "aten.pow.Tensor_Tensor")
def pow_(c: Context, x: Operand, exponent: Operand) -> int:
    if isinstance(x, Value) and isinstance(exponent, (int, float)):
        return rb.power(c.b, c.position(x, c.result().dtype), exponent)
    left, right = c.positions(x, exponent)
    return c.spread(rb.binary(c.b, ops.Power(), left, right))


@TABLE.register("aten.square.default")
def square(c: Context, x: Value) -> int:
    return rb.multiply(c.b, x.position, x.position)


@TABLE.register("aten.reciprocal.default")
def reciprocal(c: Context, x: Value) -> int:
    (position,) = c.positions(x)
    return rb.divide(c.b, rb.splat_like(c.b, 1.0, position), position)


@TABLE.register("aten.exp2.default")
def exp2(c: Context, x: Value) -> int:
    (position,) = c.positions(x)
    return c.b.add(ops.Exponential(), rb.scale_by(c.b, position, math.log(2)))


def _comparison(direction: Direction) -> Callable[[Context, Operand, Operand], int]:
    def lower(c: Context, x: Operand, y: Operand) -> int:
        dtype = c.promote(x, y)
        if dtype is DType.BOOL and direction not in ("EQ", "NE"):
            dtype = DType.I64
        left, right = c.positions(x, y, dtype=dtype)
        return c.spread(rb.compare(c.b, direction, left, right))

    return lower


_DIRECTIONS: dict[str, Direction] = {"eq": "EQ", "ne": "NE", "lt": "LT", "le": "LE", "gt": "GT", "ge": "GE"}
for _name, _direction in _DIRECTIONS.items():
    TABLE.register(f"aten.{_name}.Tensor", f"aten.{_name}.Scalar")(_comparison(_direction))


def _truth(c: Context, x: Operand) -> int:
    if isinstance(x, Value) and x.dtype is not DType.BOOL:
        return rb.compare(c.b, "NE", x.position, rb.splat_like(c.b, 0, x.position))
    return c.position(x, DType.BOOL)


def _logical(op: Operator) -> Callable[[Context, Operand, Operand], int]:
    def lower(c: Context, x: Operand, y: Operand) -> int:
        return c.spread(rb.binary(c.b, op, _truth(c, x), _truth(c, y)))

    return lower


for _name, _op in {"logical_and": ops.And(), "logical_or": ops.Or(), "logical_xor": ops.Xor()}.items():
    TABLE.register(f"aten.{_name}.default")(_logical(_op))


@TABLE.register("aten.logical_not.default")
def logical_not(c: Context, x: Value) -> int:
    return c.b.add(ops.Not(), _truth(c, x))


@TABLE.register("aten.bitwise_not.default")
def bitwise_not(c: Context, x: Value) -> int:
    return c.b.add(ops.Not(), x.position)


@TABLE.register("aten.isfinite.default")
def isfinite(c: Context, x: Value) -> int:
    return c.b.add(ops.IsFinite(), x.position) if x.dtype.is_float else rb.splat(c.b, True, x.shape, DType.BOOL)


@TABLE.register("aten.isnan.default")
def isnan(c: Context, x: Value) -> int:
    return rb.compare(c.b, "NE", x.position, x.position)


@TABLE.register("aten.isinf.default")
def isinf(c: Context, x: Value) -> int:
    if not x.dtype.is_float:
        return rb.splat(c.b, False, x.shape, DType.BOOL)
    size = c.b.add(ops.Abs(), x.position)
    return rb.compare(c.b, "EQ", size, rb.splat_like(c.b, math.inf, size))


@TABLE.register("aten.where.self", "aten.where.ScalarOther", "aten.where.ScalarSelf", "aten.where.Scalar")
def where(c: Context, condition: Value, x: Operand, y: Operand) -> int:
    on_true, on_false = c.positions(x, y)
    return c.spread(rb.select(c.b, condition.position, on_true, on_false))


@TABLE.register("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def masked_fill(c: Context, x: Value, mask: Value, value: Operand) -> int:
    return where(c, mask, value, x)


@TABLE.register("aten.clamp.default", "aten.clamp.Tensor", "aten.clip.default")
def clamp(c: Context, x: Value, min: Operand | None = None, max: Operand | None = None) -> int:
    (result,) = c.positions(x)
    if min is not None:
        result = rb.binary(c.b, ops.Maximum(), result, *c.positions(min))
    if max is not None:
        result = rb.binary(c.b, ops.Minimum(), result, *c.positions(max))
    return c.spread(result)


@TABLE.register("aten.hardtanh.default")
def hardtanh(c: Context, x: Value, min_val: Number = -1, max_val: Number = 1) -> int:
    return clamp(c, x, min_val, max_val)


@TABLE.register("aten.clamp_min.default", "aten.clamp_min.Tensor")
def clamp_min(c: Context, x: Value, min: Operand) -> int:
    return clamp(c, x, min)


@TABLE.register("aten.clamp_max.default", "aten.clamp_max.Tensor")
def clamp_max(c: Context, x: Value, max: Operand) -> int:
    return clamp(c, x, None, max)


@TABLE.register("aten.relu.default")
def relu(c: Context, x: Value) -> int:
    return rb.binary(c.b, ops.Maximum(), x.position, rb.splat_like(c.b, 0, x.position))


@TABLE.register("aten.threshold_backward.default")
def threshold_backward(c: Context, gradient: Value, x: Value, threshold: Number) -> int:
    off = rb.compare(c.b, "LE", x.position, rb.splat_like(c.b, threshold, x.position))
    return rb.select(c.b, off, rb.splat_like(c.b, 0, gradient.position), gradient.position)


@TABLE.register("aten.silu.default")
def silu(c: Context, x: Value) -> int:
    return activation.silu(c.b, x.position)


@TABLE.register("aten.silu_backward.default")
def silu_backward(c: Context, gradient: Value, x: Value) -> int:
    return activation.silu_backward(c.b, gradient.position, x.position)


@TABLE.register("aten.gelu.default")
def gelu(c: Context, x: Value, *, approximate: str = "none") -> int:
    return activation.gelu(c.b, x.position, approximate)


@TABLE.register("aten.gelu_backward.default")
def gelu_backward(c: Context, gradient: Value, x: Value, *, approximate: str = "none") -> int:
    return activation.gelu_backward(c.b, gradient.position, x.position, approximate)


@TABLE.register("aten.softplus.default")
def softplus(c: Context, x: Value, beta: float = 1, threshold: float = 20) -> int:
    return activation.softplus(c.b, x.position, beta, threshold)


@TABLE.register("aten.log_sigmoid_forward.default")
def log_sigmoid(c: Context, x: Value) -> tuple[int, None]:
    """The logarithm of the logistic function; the second result is for the kernel of the gradient alone."""
    found = activation.log_sigmoid(c.b, x.position)
    if not c.guards_queries:
        return found, None
    zero = rb.splat_like(c.b, 0.0, x.position)  # written out, infinity less infinity is no number
    infinite = c.b.add(ops.Minimum(), x.position, zero)
    return rb.select(c.b, c.b.add(ops.IsFinite(), x.position), found, infinite), None


@TABLE.register("aten.log_sigmoid_backward.default")
def log_sigmoid_backward(c: Context, gradient: Value, x: Value, *_: object) -> int:
    return activation.log_sigmoid_backward(c.b, gradient.position, x.position)


@TABLE.register("aten.softplus_backward.default")
def softplus_backward(c: Context, gradient: Value, x: Value, beta: float, threshold: float) -> int:
    return activation.softplus_backward(c.b, gradient.position, x.position, beta, threshold)


@TABLE.register("aten.tanh_backward.default")
def tanh_backward(c: Context, gradient: Value, output: Value) -> int:
    square_ = rb.multiply(c.b, output.position, output.position)
    slope = rb.subtract(c.b, rb.splat_like(c.b, 1.0, square_), square_)
    return rb.multiply(c.b, gradient.position, slope)


@TABLE.register("aten.sigmoid_backward.default")
def sigmoid_backward(c: Context, gradient: Value, output: Value) -> int:
    rest = rb.subtract(c.b, rb.splat_like(c.b, 1.0, output.position), output.position)
    return rb.multiply(c.b, gradient.position, rb.multiply(c.b, output.position, rest))


@TABLE.register("aten.addcmul.default")
def addcmul(c: Context, x: Value, first: Value, second: Value, *, value: Number = 1) -> int:
    base, one, two = c.positions(x, first, second)
    return c.spread(rb.add(c.b, base, rb.scale_by(c.b, rb.multiply(c.b, one, two), value)))


@TABLE.register("aten.addcdiv.default")
def addcdiv(c: Context, x: Value, first: Value, second: Value, *, value: Number = 1) -> int:
    base, one, two = c.positions(x, first, second)
    return c.spread(rb.add(c.b, base, rb.scale_by(c.b, rb.divide(c.b, one, two), value)))


@TABLE.register("aten.lerp.Scalar")
def lerp(c: Context, start: Value, end: Value, weight: Number) -> int:
    low, high = c.positions(start, end)
    return c.spread(rb.add(c.b, low, rb.scale_by(c.b, rb.subtract(c.b, high, low), weight)))


@TABLE.register("aten.lerp.Tensor")
def lerp_tensor(c: Context, start: Value, end: Value, weight: Value) -> int:
    low, high, share = c.positions(start, end, weight)
    return c.spread(rb.add(c.b, low, rb.multiply(c.b, share, rb.subtract(c.b, high, low))))


@TABLE.register("aten._to_copy.default")
def to_copy(c: Context, x: Operand, **_: object) -> int:
    if isinstance(x, float) and not c.result().dtype.is_float:
        x = int(x)
    return c.convert(x)  # under vmap a number is copied too


@TABLE.register("aten.native_dropout.default")
def native_dropout(c: Context, x: Value, p: float, train: bool | None) -> tuple[int, int]:
    if not p or train is False:
        return x.position, rb.splat(c.b, True, x.shape, DType.BOOL)
    mask = c.random("dropout", TensorType(x.shape, DType.BOOL))
    if mask is None or p >= 1:
        raise _random_dropout(p)
    return _drop(c, x, mask, 1 / (1 - p)), mask


def _drop(c: Context, x: Value, mask: int, scale: float) -> int:
    (position,) = c.positions(x)
    return rb.scale_by(c.b, rb.multiply(c.b, position, rb.convert(c.b, mask, c.result().dtype)), scale)


@TABLE.register("aten.native_dropout_backward.default")
def native_dropout_backward(c: Context, gradient: Value, mask: Value, scale: float) -> int:
    return _drop(c, gradient, mask.position, scale)


@TABLE.register("aten.dropout.default")
def dropout(c: Context, x: Value, p: float, train: bool) -> int:
    return native_dropout(c, x, p, train)[0]


def _random_dropout(p: float) -> UnsupportedOperator:
    return UnsupportedOperator(f"dropout with p={p} is random; set the probability to 0 or call model.eval()")


@TABLE.register("rewright_random.drawn.default")
def drawn(c: Context, kind: str, before: str, value: str, after: str) -> int:
    return c.drawn(Draw(kind, before, value, after).name, c.result())


@TABLE.register(
    "aten.bernoulli.default",
    "aten.bernoulli.p",
    "aten.bernoulli_.float",
    "aten.rand.default",
    "aten.rand_like.default",
    "aten.randn.default",
    "aten.randn_like.default",
    "aten.randint.default",
    "aten.randint.low",
    "aten.randint.low_generator",
    "aten.randint_like.default",
    "aten.randint_like.low_dtype",
    "aten.randperm.default",
    "aten.normal.Tensor_Tensor",
    "aten.normal.Tensor_float",
    "aten.normal.float_Tensor",
    "aten.normal.float_float",
    "aten.uniform_.default",
    "aten.normal_.default",
    "aten.multinomial.default",
)
def random(c: Context, *_: object, **__: object) -> int:
    raise UnsupportedOperator(
        "random numbers have no defined value; call .eval(), set dropout to 0, or pass the numbers in as an argument"
    )
