"""Sizes and dtypes of PyTorch in the words of the IR."""

from __future__ import annotations

from typing import Any

import torch

from rewright.frontends.torch.fakes import SYMBOL_PREFIX
from rewright.ir.dims import Dim, Shape, at_most, ceil_quotient, symbol
from rewright.ir.errors import UnsupportedOperator
from rewright.ir.types import DType, TensorType

DTYPES: dict[torch.dtype, DType] = {
    torch.float64: DType.F64,
    torch.float32: DType.F32,
    torch.bfloat16: DType.BF16,
    torch.float16: DType.F16,
    torch.float8_e4m3fn: DType.F8E4M3FN,
    torch.float8_e5m2: DType.F8E5M2,
    torch.int64: DType.I64,
    torch.int32: DType.I32,
    torch.int16: DType.I16,
    torch.int8: DType.I8,
    torch.uint8: DType.U8,
    torch.bool: DType.BOOL,
}
TORCH = {dtype: kind for kind, dtype in DTYPES.items()}
"""torch's name of every dtype."""


def dtype_of(dtype: torch.dtype) -> DType:
    """The IR's dtype; raises UnsupportedOperator for complex and quantised ones, and for other floats of 8 bits."""
    found = DTYPES.get(dtype)
    if found is None:
        raise UnsupportedOperator(f"tensors of {dtype} are not supported; convert them to a real dtype of 16 bits")
    return found


def dim_of(size: Any) -> Dim:
    """An integer, or the polynomial of a symbolic integer; raises UnsupportedOperator for anything else."""
    if isinstance(size, torch.SymInt):
        symbolic: Any = size
        return dim_of_expression(symbolic.node.expr)
    return int(size)


def dim_of_expression(expression: Any) -> Dim:
    """The polynomial of a sympy expression."""
    total: Dim = 0
    for term, coefficient in expression.expand().as_coefficients_dict().items():
        product: Dim = _whole(coefficient, expression)
        for base, exponent in term.as_powers_dict().items():
            product = product * _power(base, exponent, expression)
        total = total + product
    return total


def _power(base: Any, exponent: Any, expression: Any) -> Dim:
    if base.is_Integer:
        return _whole(base**exponent, expression)
    own = _floor(base) if type(base).__name__ == "FloorDiv" else None
    if own is None and not base.is_Symbol:
        raise _not_polynomial(expression)
    factor: Dim = 1
    for _ in range(_whole(exponent, expression)):
        factor = factor * (symbol(str(base).removeprefix(SYMBOL_PREFIX)) if own is None else own)
    return factor


def _floor(quotient: Any) -> Dim | None:
    """A quotient rounded down, where it is known not to be negative."""
    numerator, divisor = (dim_of_expression(part) for part in quotient.args)
    if at_most(divisor, -1) and at_most(0, numerator):  # ``-(a // -b)`` rounds up
        return ceil_quotient(numerator, divisor * -1) * -1
    if not at_most(1, divisor) or not at_most(divisor - 1, numerator):
        return None
    return ceil_quotient(numerator - divisor + 1, divisor)


def _whole(number: Any, expression: Any) -> int:
    if not number.is_Integer:
        raise _not_polynomial(expression)
    return int(number)


def _not_polynomial(expression: Any) -> UnsupportedOperator:
    return UnsupportedOperator(
        f"the size {str(expression).replace(SYMBOL_PREFIX, '')} is no polynomial of the size symbols; capture with "
        "that size as a number, or name it as a multiple such as 2*half"
    )


def shape_of(tensor: torch.Tensor) -> Shape:
    """The shape of a (fake) tensor."""
    return tuple([size if type(size) is int else dim_of(size) for size in tensor.shape])


def type_of(tensor: torch.Tensor) -> TensorType:
    """Shape and dtype of a (fake) tensor."""
    return TensorType(shape_of(tensor), dtype_of(tensor.dtype))
