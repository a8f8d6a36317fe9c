"""Sliding and running reductions by torch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as functional

from rewright import ops
from rewright.frontends.torch.lower.sizes import DTYPES
from rewright.ops.base import identity_value

_WIDER = {torch.bfloat16: torch.float32, torch.float16: torch.float32}


def reduce_window(op: ops.ReduceWindow, x: torch.Tensor) -> torch.Tensor | None:
    """The reductions of windows; None for a kind that torch has no call for."""
    shape = tuple(x.shape)
    if op.kind not in ("sum", "maximum", "minimum") or x.dtype is torch.bool or not x.ndim:
        return None
    if op.is_cumulative(shape):
        return _running(op, x)
    padding = [(int(str(low)), int(str(high))) for low, high in op.padding]
    identity = identity_value(op.kind, DTYPES[x.dtype])
    padded = functional.pad(x, [side for pair in reversed(padding) for side in pair], value=identity)
    for axis, (width, stride) in enumerate(zip(op.window, op.strides, strict=True)):
        padded = padded.unfold(axis, int(str(width)), stride)
    axes = tuple(range(x.ndim, 2 * x.ndim))
    if op.kind == "sum":
        return padded.sum(axes, dtype=_WIDER.get(x.dtype, x.dtype)).to(x.dtype)
    return padded.amax(axes) if op.kind == "maximum" else padded.amin(axes)


def _running(op: ops.ReduceWindow, x: torch.Tensor) -> torch.Tensor:
    """Totals, in float32 at least whatever is stored, or extrema so far."""
    axis = next((a for a, size in enumerate(op.window) if size != 1), 0)
    if op.kind == "sum":
        return torch.cumsum(x, axis, dtype=_WIDER.get(x.dtype, x.dtype)).to(x.dtype)
    return (torch.cummax if op.kind == "maximum" else torch.cummin)(x, axis).values


def reduce(op: ops.Reduce, x: torch.Tensor, kind: torch.dtype) -> torch.Tensor | None:
    """The reduction over axes, which disappear; None for one of bits, which torch has no call for."""
    axes: Sequence[int] = tuple(op.dimensions)
    if not axes:
        return x
    if op.kind == "product":
        for axis in sorted(axes, reverse=True):
            x = torch.prod(x, axis, dtype=x.dtype)
        return x.to(kind)
    if op.kind == "sum":
        return torch.sum(x, axes, dtype=kind)
    if 0 in (x.shape[a] for a in axes) and op.kind in ("maximum", "minimum"):
        rest = [size for a, size in enumerate(x.shape) if a not in axes]
        return x.new_full(rest, identity_value(op.kind, DTYPES[x.dtype]))
    if op.kind in ("maximum", "minimum"):
        return torch.amax(x, axes) if op.kind == "maximum" else torch.amin(x, axes)
    if x.dtype is not torch.bool:
        return None
    return torch.any(x, axes) if op.kind == "or" else torch.all(x, axes)
