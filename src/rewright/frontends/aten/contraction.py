"""ATen matrix products and convolutions."""

from __future__ import annotations

from collections.abc import Sequence

from rewright import ops
from rewright.frontends.aten.context import Context, Number, Table, Value
from rewright.ir.errors import CaptureError, UnsupportedOperator
from rewright.ops.reference import building as rb
from rewright.ops.reference import convolution as reference
from rewright.ops.reference.grouped import ASCENDING, grouped_matrix, grouped_outer

TABLE = Table()


def _matrix(c: Context, x: int, y: int) -> int:
    return rb.dot(c.b, x, y, ([c.b.type(x).rank - 1], [0]))


def _factors(c: Context, *values: Value) -> list[int]:
    """The operands of a product; raises CaptureError where their dtypes differ.

    PyTorch promotes none of them, but says so only when it runs: tensors without values pass.
    """
    kinds = list(dict.fromkeys(c.b.type(value.position).dtype.value for value in values))
    if len(kinds) > 1:
        where = c.b.span or "unknown line"
        raise CaptureError(f"a matrix product of {' and '.join(kinds)} at {where}, which PyTorch refuses; cast one")
    return c.positions(*values)


@TABLE.register("aten.mm.default")
def mm(c: Context, x: Value, y: Value) -> int:
    return _matrix(c, *_factors(c, x, y))


@TABLE.register("aten.mv.default", "aten.dot.default", "aten.vdot.default")
def mv(c: Context, x: Value, y: Value) -> int:
    return _matrix(c, *_factors(c, x, y))


@TABLE.register("aten.bmm.default")
def bmm(c: Context, x: Value, y: Value) -> int:
    left, right = _factors(c, x, y)
    return rb.dot(c.b, left, right, ([2], [1]), batch=1)


@TABLE.register("aten.matmul.default")
def matmul(c: Context, x: Value, y: Value) -> int:
    left, right = _factors(c, x, y)
    if y.rank == 1:
        return _matrix(c, left, right)
    if y.rank == 2:
        return rb.dot(c.b, left, right, ([x.rank - 1], [0]))
    if x.rank == 1:
        product = rb.dot(c.b, right, left, ([y.rank - 2], [0]))
        return rb.reshape(c.b, product, c.result().shape)
    batch = rb.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    left = rb.broadcast(c.b, left, (*batch, *x.shape[-2:]))
    right = rb.broadcast(c.b, right, (*batch, *y.shape[-2:]))
    return rb.dot(c.b, left, right, ([len(batch) + 1], [len(batch)]), batch=len(batch))


@TABLE.register("aten._grouped_mm.default")
def grouped_mm(
    c: Context, x: Value, y: Value, offs: Value | None = None, bias: Value | None = None, out_dtype: object = None
) -> int:
    """Groups of rows of ``x``, of columns of ``y``, or of what both are summed over; ``offs`` says where each ends."""
    left, right = _factors(c, x, y)
    if bias is not None:
        raise UnsupportedOperator("a grouped product with a bias; add it afterwards")
    if offs is None:
        if (x.rank, y.rank) != (3, 3):
            raise UnsupportedOperator("a grouped product without offsets; give where each group ends")
        return rb.dot(c.b, left, right, ([2], [1]), batch=1)
    c.assume(ASCENDING)
    if (x.rank, y.rank) == (2, 2):
        return grouped_outer(c.b, rb.swap(c.b, left, 0, 1), right, offs.position)
    c.assume("rows and columns of a grouped product that are in no group are zero")
    if x.rank == 2:
        return grouped_matrix(c.b, left, right, offs.position)
    turned = grouped_matrix(c.b, rb.swap(c.b, right, 0, 1), rb.swap(c.b, left, 1, 2), offs.position)
    return rb.swap(c.b, turned, 0, 1)


def add_before_flattening(c: Context, product: int, addend: int) -> int:
    """product + addend; added before the product is flattened where the addend lies along its last axis only."""
    node = c.b.node(product)
    if isinstance(node.op, ops.Reshape) and c.b.type(addend).rank == 1:
        (inner,) = node.operands
        if c.b.type(inner).rank and c.b.type(inner).shape[-1] == node.type.shape[-1]:
            return rb.reshape(c.b, rb.add(c.b, inner, addend), node.type.shape)
    return rb.add(c.b, product, addend)


def _add_product(c: Context, addend: Value, x: Value, product: int, beta: Number, alpha: Number) -> int:
    scaled = rb.scale_by(c.b, product, alpha)
    if beta == 0:
        return scaled
    base, _ = _factors(c, addend, x)
    return c.spread(add_before_flattening(c, scaled, rb.scale_by(c.b, base, beta)))


@TABLE.register("aten.addmm.default", "aten.addmv.default")
def addmm(c: Context, addend: Value, x: Value, y: Value, *, beta: Number = 1, alpha: Number = 1) -> int:
    return _add_product(c, addend, x, mm(c, x, y), beta, alpha)


@TABLE.register("aten.baddbmm.default")
def baddbmm(c: Context, addend: Value, x: Value, y: Value, *, beta: Number = 1, alpha: Number = 1) -> int:
    return _add_product(c, addend, x, bmm(c, x, y), beta, alpha)


@TABLE.register("aten.linear.default")
def linear(c: Context, x: Value, weight: Value, bias: Value | None = None) -> int:
    left, right, *more = _factors(c, x, weight, *(() if bias is None else (bias,)))
    product = rb.dot(c.b, left, right, ([x.rank - 1], [weight.rank - 1]))
    return c.spread(rb.add(c.b, product, *more)) if more else product


@TABLE.register("aten.convolution.default", "aten._convolution.default")
def convolution(
    c: Context,
    x: Value,
    weight: Value,
    bias: Value | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    *_: object,
) -> int:
    window = reference.Window.of(x.rank - 2, stride, padding, dilation, groups)
    if transposed:  # it is the gradient of the input of a convolution
        result = reference.input_gradient(c.b, x.position, c.result().shape, weight.position, window)
    else:
        result = reference.convolution(c.b, x.position, weight.position, window)
    if bias is None:
        return result
    return rb.add(c.b, result, rb.broadcast_along(c.b, bias.position, c.b.type(result).shape, 1))


@TABLE.register("aten.conv1d.default", "aten.conv2d.default", "aten.conv3d.default")
def conv(
    c: Context,
    x: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Sequence[int] = (1,),  # one entry stands for all axes
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    groups: int = 1,
) -> int:
    return convolution(c, x, weight, bias, stride, padding, dilation, False, (), groups)


@TABLE.register("aten.convolution_backward.default")
def convolution_backward(
    c: Context,
    gradient: Value,
    x: Value,
    weight: Value,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[int | None, int | None, int | None]:
    window = reference.Window.of(x.rank - 2, stride, padding, dilation, groups)
    if transposed:
        return _transposed_gradients(c, gradient, x, weight, window, output_mask)
    others = [axis for axis in range(gradient.rank) if axis != 1]
    return (
        reference.input_gradient(c.b, gradient.position, x.shape, weight.position, window) if output_mask[0] else None,
        reference.kernel_gradient(c.b, gradient.position, x.position, weight.shape, window) if output_mask[1] else None,
        rb.reduce(c.b, "sum", gradient.position, others) if output_mask[2] else None,
    )


def _transposed_gradients(
    c: Context, gradient: Value, x: Value, weight: Value, window: reference.Window, output_mask: Sequence[bool]
) -> tuple[int | None, int | None, int | None]:
    """Those of a transposed convolution: the convolution, and the gradient of its kernel with both sides exchanged."""
    given, kernel, bias = None, None, None
    if output_mask[0]:
        given = reference.convolution(c.b, gradient.position, weight.position, window)
        for axis, size in enumerate(x.shape):  # an output padding may have made room for more
            given = rb.slice_axis(c.b, given, axis, 0, size)
    if output_mask[1]:
        kernel = reference.kernel_gradient(c.b, x.position, gradient.position, weight.shape, window)
    if output_mask[2]:
        bias = rb.reduce(c.b, "sum", gradient.position, [axis for axis in range(gradient.rank) if axis != 1])
    return given, kernel, bias
