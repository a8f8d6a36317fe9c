"""Complex tensors while a program is traced: real tensors with one more axis for the two parts.

``view_as_complex`` and ``view_as_real`` are no operators then, and a trace has real tensors only. What shares memory
goes on sharing it. A rotary embedding by complex products is what this is for: operators that it does not need, and
writing into a complex tensor, are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch

from rewright.ir.errors import UnsupportedOperator

_COMPLEX = {torch.float64: torch.complex128, torch.float32: torch.complex64, torch.float16: torch.complex32}
_REAL = {wide: parts for parts, wide in _COMPLEX.items()}
_aten: Any = torch.ops.aten


class Complex(torch.Tensor):
    """A complex tensor; ``parts`` is real, its last axis holds the real and the imaginary part."""

    parts: torch.Tensor

    @staticmethod
    def __new__(cls: type[Complex], parts: torch.Tensor) -> Complex:
        """Wrap a real tensor whose last axis has two elements."""
        made: Any = torch.Tensor._make_wrapper_subclass  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
        strides = tuple(stride // 2 for stride in parts.stride()[:-1])
        wrapped: Complex = made(
            cls, parts.shape[:-1], strides=strides, dtype=_COMPLEX[parts.dtype], device=parts.device
        )
        wrapped.parts = parts
        return wrapped

    def __init__(self, parts: torch.Tensor) -> None:
        super().__init__()

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Compute with the parts; raises UnsupportedOperator for what is not provided for."""
        function = _FUNCTIONS.get(func) or _FUNCTIONS.get(func.overloadpacket)
        if function is None or func._schema.is_mutable:
            raise UnsupportedOperator(
                f"{func} of complex numbers is not supported; compute with their parts (torch.view_as_real)"
            )
        return function(func, *args, **(kwargs or {}))


def parts(value: torch.Tensor) -> torch.Tensor:
    """A complex tensor as a real one with an axis for the parts; others as they are."""
    return torch.view_as_real(value.resolve_conj()) if value.is_complex() else value


def outer(value: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """The complex tensor of these parts where the other one is complex; as it is where that is real."""
    return Complex(value) if like.is_complex() else value


def inner(value: torch.Tensor) -> torch.Tensor:
    """The parts of a complex tensor of a trace; others as they are."""
    return value.parts if isinstance(value, Complex) else value


def decompositions() -> dict[Any, Callable[..., Any]]:
    """What makes complex tensors of real ones."""
    return {
        _aten.view_as_complex.default: Complex,
        _aten.complex.default: _joined,
        _aten.polar.default: _turned,
    }


def _turned(size: torch.Tensor, angle: torch.Tensor) -> Complex:
    return _joined(size * angle.cos(), size * angle.sin())


def _joined(real: torch.Tensor, imaginary: torch.Tensor) -> Complex:
    shape = (real + imaginary).shape
    return Complex(torch.stack([real.expand(shape), imaginary.expand(shape)], -1))


def _both(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    parts = cast("Complex", x).parts
    return parts.select(-1, 0), parts.select(-1, 1)


def _axis(axis: int, rank: int) -> int:
    """An axis counted from the front: behind the last one are the parts."""
    return axis + rank if axis < 0 else axis


# --- layouts


def _sized(func: Any, x: Complex, sizes: Sequence[Any], **keywords: Any) -> Complex:
    return Complex(func(x.parts, [*sizes, 2], **keywords))


def _along(func: Any, x: Complex, axis: int = 0, *rest: Any, **keywords: Any) -> Complex:
    return Complex(func(x.parts, _axis(axis, x.dim()), *rest, **keywords))


def _parted(func: Any, x: Complex, sizes: Any, axis: int = 0) -> list[Complex]:
    return [Complex(part) for part in func(x.parts, sizes, _axis(axis, x.dim()))]


def _new_axis(func: Any, x: Complex, axis: int) -> Complex:
    return Complex(func(x.parts, _axis(axis, x.dim() + 1)))


def _swapped(func: Any, x: Complex, first: int, second: int) -> Complex:
    return Complex(func(x.parts, _axis(first, x.dim()), _axis(second, x.dim())))


def _permuted(func: Any, x: Complex, order: Sequence[int]) -> Complex:
    return Complex(func(x.parts, [*(_axis(a, x.dim()) for a in order), x.dim()]))


def _looked_up(func: Any, x: Complex, indices: Sequence[Any]) -> Complex:
    return Complex(func(x.parts, indices))


def _gathered(func: Any, x: Complex, axis: int, index: torch.Tensor, **keywords: Any) -> Complex:
    both = index.unsqueeze(-1).expand(*index.shape, 2)
    return Complex(func(x.parts, _axis(axis, x.dim()), both, **keywords))


def _together(func: Any, every: Sequence[Complex], axis: int = 0) -> Complex:
    rank = every[0].dim() + (func.overloadpacket is _aten.stack)
    return Complex(func([x.parts for x in every], _axis(axis, rank)))


def _copied(func: Any, x: Complex, **keywords: Any) -> Complex:
    keywords.pop("memory_format", None)
    if func.overloadpacket is _aten._to_copy:
        dtype = keywords.get("dtype")
        if dtype is not None and dtype not in _REAL:
            raise UnsupportedOperator("a cast of complex numbers drops their imaginary parts; take .real")
        keywords["dtype"] = _REAL.get(cast("Any", dtype), x.parts.dtype)
    return Complex(func(x.parts, **keywords))


# --- arithmetic


def _product(func: Any, x: Any, y: Any) -> Complex:
    if not isinstance(x, Complex) or not isinstance(y, Complex):
        scaled, factor = (x, y) if isinstance(x, Complex) else (y, x)
        return Complex(func(scaled.parts, _spread(factor)))
    (a, b), (c, d) = _both(x), _both(y)
    return _joined(a * c - b * d, a * d + b * c)


def _quotient(func: Any, x: Any, y: Any) -> Complex:
    if isinstance(y, Complex):
        raise UnsupportedOperator("a quotient by complex numbers is not supported; compute with their parts")
    return Complex(func(x.parts, _spread(y)))


def _spread(factor: Any) -> Any:
    """A real factor of both parts."""
    if isinstance(factor, complex):
        raise UnsupportedOperator("a complex number as a constant is not supported; compute with its parts")
    return factor.unsqueeze(-1) if isinstance(factor, torch.Tensor) else factor


def _sum(func: Any, x: Any, y: Any, **keywords: Any) -> Complex:
    if not isinstance(x, Complex) or not isinstance(y, Complex):
        raise UnsupportedOperator("a sum of a complex and a real tensor is not supported; add to its real part")
    return Complex(torch.stack([func(a, b, **keywords) for a, b in zip(_both(x), _both(y), strict=True)], -1))


def _negated(func: Any, x: Complex) -> Complex:
    return Complex(func(x.parts))


def _conjugated(func: Any, x: Complex) -> Complex:
    real, imaginary = _both(x)
    return _joined(real, -imaginary)


def _real_parts(func: Any, x: Complex) -> torch.Tensor:
    return _aten.alias(x.parts)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    _aten.view: _sized,
    _aten._unsafe_view: _sized,
    _aten.reshape: _sized,
    _aten.expand: _sized,
    _aten.slice: _along,
    _aten.select: _along,
    _aten.index_select: _along,
    _aten.squeeze.dim: _along,
    _aten.chunk: _parted,
    _aten.split: _parted,
    _aten.split_with_sizes: _parted,
    _aten.unsqueeze: _new_axis,
    _aten.transpose: _swapped,
    _aten.permute: _permuted,
    _aten.index: _looked_up,
    _aten.gather: _gathered,
    _aten.cat: _together,
    _aten.stack: _together,
    _aten.clone: _copied,
    _aten.detach: _copied,
    _aten.alias: _copied,
    _aten._to_copy: _copied,
    _aten.mul.Tensor: _product,
    _aten.div.Tensor: _quotient,
    _aten.add.Tensor: _sum,
    _aten.sub.Tensor: _sum,
    _aten.neg: _negated,
    _aten._conj: _conjugated,
    _aten.conj_physical: _conjugated,
    _aten.resolve_conj: _copied,
    _aten.view_as_real: _real_parts,
}
