"""Layouts of complex tensors: those of their parts, whose axis stays the last one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch

from rewright.frontends.torch.complexes.tensor import FUNCTIONS, REAL, Complex, axis_of
from rewright.ir.errors import UnsupportedOperator

_aten: Any = torch.ops.aten


def _resize(func: Any, x: Complex, sizes: Sequence[Any], **keywords: Any) -> Complex:
    return x.with_parts(func(x.parts, [*sizes, 2], **keywords))


def _along(func: Any, x: Complex, axis: int = 0, *rest: Any, **keywords: Any) -> Complex:
    return x.with_parts(func(x.parts, axis_of(axis, x.dim()), *rest, **keywords))


def _split_parts(func: Any, x: Complex, sizes: Any, axis: int = 0) -> list[Complex]:
    return [x.with_parts(part) for part in func(x.parts, sizes, axis_of(axis, x.dim()))]


def _new_axis(func: Any, x: Complex, axis: int) -> Complex:
    return x.with_parts(func(x.parts, axis_of(axis, x.dim() + 1)))


def _swap(func: Any, x: Complex, first: int, second: int) -> Complex:
    return x.with_parts(func(x.parts, axis_of(first, x.dim()), axis_of(second, x.dim())))


def _permute(func: Any, x: Complex, order: Sequence[int]) -> Complex:
    return x.with_parts(func(x.parts, [*(axis_of(a, x.dim()) for a in order), x.dim()]))


def _looked_up(func: Any, x: Complex, indices: Sequence[Any]) -> Complex:
    return x.with_parts(func(x.parts, indices))


def _gather(func: Any, x: Complex, axis: int, index: torch.Tensor, **keywords: Any) -> Complex:
    both = index.unsqueeze(-1).expand(*index.shape, 2)
    return x.with_parts(func(x.parts, axis_of(axis, x.dim()), both, **keywords))


def _together(func: Any, every: Sequence[Complex], axis: int = 0) -> Complex:
    rank = every[0].dim() + (func.overloadpacket is _aten.stack)
    return Complex(func([x.plain for x in every], axis_of(axis, rank)))


def _fill(func: Any, x: Complex, *sizes: Any, **keywords: Any) -> Complex:
    """Zeros or ones; of the second part a one is zero."""
    keywords = {key: value for key, value in keywords.items() if key not in ("dtype", "memory_format")}
    found = func(x.parts, *([*size, 2] for size in sizes), **keywords)
    if "ones" in str(func):
        found = found * torch.tensor([1.0, 0.0], dtype=found.dtype, device=found.device)
    return Complex(found)


def _pad(func: Any, x: Complex, pad: Sequence[int], value: float = 0) -> Complex:
    if value:
        raise UnsupportedOperator("padding of complex numbers with other than zero; pad their parts")
    return x.with_parts(func(x.parts, [0, 0, *pad]))


def _put_back(func: Any, x: Complex, sizes: Sequence[int], axis: int, *rest: Any) -> Complex:
    """The gradient of a slice, which is zero elsewhere."""
    return x.with_parts(func(x.parts, [*sizes, 2], axis_of(axis, len(sizes)), *rest))


def _reorder(func: Any, x: Complex, *rest: Any, **keywords: Any) -> Complex:
    """Axes counted from the end, in a list: flips and rolls."""
    *before, axes = rest
    return x.with_parts(func(x.parts, *before, [axis_of(axis, x.dim()) for axis in axes], **keywords))


def _copy(func: Any, x: Complex, **keywords: Any) -> Complex:
    keywords.pop("memory_format", None)
    if func.overloadpacket is _aten._to_copy:
        dtype = keywords.get("dtype")
        if dtype is not None and dtype not in REAL:
            raise UnsupportedOperator("a cast of complex numbers drops their imaginary parts; take .real")
        keywords["dtype"] = REAL.get(cast("Any", dtype), x.parts.dtype)
    return x.with_parts(func(x.parts, **keywords))


FUNCTIONS.update(
    {
        _aten.view: _resize,
        _aten._unsafe_view: _resize,
        _aten.reshape: _resize,
        _aten.expand: _resize,
        _aten.slice: _along,
        _aten.select: _along,
        _aten.narrow: _along,
        _aten.index_select: _along,
        _aten.squeeze.dim: _along,
        _aten.chunk: _split_parts,
        _aten.split: _split_parts,
        _aten.split_with_sizes: _split_parts,
        _aten.unsqueeze: _new_axis,
        _aten.transpose: _swap,
        _aten.permute: _permute,
        _aten.flip: _reorder,
        _aten.roll: _reorder,
        _aten.index: _looked_up,
        _aten.gather: _gather,
        _aten.cat: _together,
        _aten.stack: _together,
        _aten.clone: _copy,
        _aten.detach: _copy,
        _aten.alias: _copy,
        _aten.lift_fresh: _copy,
        _aten._to_copy: _copy,
        _aten.zeros_like: _fill,
        _aten.ones_like: _fill,
        _aten.new_zeros: _fill,
        _aten.new_ones: _fill,
        _aten.constant_pad_nd: _pad,
        _aten.slice_backward: _put_back,
        _aten.select_backward: _put_back,
        _aten.resolve_conj: _copy,
        _aten.resolve_neg: _copy,
    }
)
