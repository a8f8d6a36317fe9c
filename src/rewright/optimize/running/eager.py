"""Operators that kernels could have, one by one by torch: what is left out of kernels for want of a proof."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import torch

from rewright import ops
from rewright.ir.types import DType

_TORCH: Any = torch  # whose functions of a name have no types
_REDUCED = {"sum": "sum", "maximum": "amax", "minimum": "amin", "or": "any", "and": "all"}


def by_torch(op: object, dtype: DType, kind: torch.dtype) -> Callable[[Sequence[torch.Tensor]], torch.Tensor] | None:
    """The function of an operator on its operands, with results of a dtype; None where torch has none of it."""
    record = op.record(dtype) if isinstance(op, ops.Elementwise) else None
    if record is not None and record.code.torch is not None:
        function = attrgetter(record.code.torch)(_TORCH)
        return lambda x: function(*x)
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
