"""Operators that kernels could have, one by one by torch: what is left out of kernels for want of a proof."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from rewright import ops
from rewright.ir.types import DType
from rewright.ops.base import TensorOperator

_TORCH: Any = torch  # whose functions of a name have no types
_FLOATS: Mapping[type[TensorOperator], Callable[..., torch.Tensor]] = {
    ops.Exponential: torch.exp,
    ops.ExponentialMinusOne: torch.expm1,
    ops.Log: torch.log,
    ops.LogPlusOne: torch.log1p,
    ops.Sqrt: torch.sqrt,
    ops.Rsqrt: torch.rsqrt,
    ops.Tanh: torch.tanh,
    ops.Logistic: torch.sigmoid,
    ops.Sine: torch.sin,
    ops.Cosine: torch.cos,
    ops.Floor: torch.floor,
    ops.Ceil: torch.ceil,
    ops.Erf: torch.erf,
    ops.Divide: torch.div,
    ops.Power: torch.pow,
}
"""Those of floats; of integers, where there are such, they are left to the operator's own execution."""
_NUMBERS: Mapping[type[TensorOperator], Callable[..., torch.Tensor]] = {
    ops.Negate: torch.neg,
    ops.Abs: torch.abs,
    ops.IsFinite: torch.isfinite,
    ops.Add: torch.add,
    ops.Subtract: torch.sub,
    ops.Multiply: torch.mul,
    ops.Maximum: torch.maximum,
    ops.Minimum: torch.minimum,
    ops.And: torch.bitwise_and,
    ops.Or: torch.bitwise_or,
    ops.Xor: torch.bitwise_xor,
    ops.Not: torch.bitwise_not,
    ops.Select: torch.where,
}
_COMPARED = {"EQ": "eq", "NE": "ne", "LT": "lt", "LE": "le", "GT": "gt", "GE": "ge"}
_REDUCED = {"sum": "sum", "maximum": "amax", "minimum": "amin", "or": "any", "and": "all"}


def by_torch(op: object, kind: torch.dtype) -> Callable[[Sequence[torch.Tensor]], torch.Tensor] | None:
    """The function of an operator on its operands, with results of a dtype; None where torch has none of it."""
    function = _NUMBERS.get(type(op)) or (_FLOATS.get(type(op)) if kind.is_floating_point else None)  # type: ignore[arg-type]
    if function is not None:
        return lambda x: function(*x)
    if isinstance(op, ops.Compare):
        return lambda x: getattr(_TORCH, _COMPARED[op.direction])(*x)
    if isinstance(op, ops.Clamp):
        return lambda x: torch.minimum(torch.maximum(x[1], x[0]), x[2])
    if isinstance(op, ops.Convert):
        return lambda x: x[0].to(kind) if op.dtype is not DType.BOOL else x[0] != 0
    if isinstance(op, ops.Concatenate):
        return partial(_concatenated, axis=op.dimension)
    if isinstance(op, ops.Reduce) and op.kind in _REDUCED and op.dimensions:
        return lambda x: getattr(_TORCH, _REDUCED[op.kind])(x[0], dim=tuple(op.dimensions)).to(kind)
    return None


def _concatenated(parts: Sequence[torch.Tensor], axis: int) -> torch.Tensor:
    return torch.cat(list(parts), axis)
