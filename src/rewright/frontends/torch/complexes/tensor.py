"""The complex tensor of a trace, and which function computes which operator with its parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch

from rewright.frontends.torch.definitions.table import common_shape
from rewright.ir.errors import UnsupportedOperator

COMPLEX = {torch.float64: torch.complex128, torch.float32: torch.complex64, torch.float16: torch.complex32}
REAL = {wide: parts for parts, wide in COMPLEX.items()}
FUNCTIONS: dict[Any, Callable[..., Any]] = {}
"""By operator what computes with the parts; the modules beside this one enter theirs."""


class Complex(torch.Tensor):
    """A complex tensor; ``parts`` is real, its last axis holds the real and the imaginary part.

    One that shows the conjugates of what is in memory shares that memory, so that both see what is written.
    """

    parts: torch.Tensor
    conjugate: bool

    @staticmethod
    def __new__(cls: type[Complex], parts: torch.Tensor, conjugate: bool = False) -> Complex:
        """Wrap a real tensor whose last axis has two elements."""
        made: Any = torch.Tensor._make_wrapper_subclass  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
        strides = tuple(stride // 2 for stride in parts.stride()[:-1])
        wrapped: Complex = made(cls, parts.shape[:-1], strides=strides, dtype=COMPLEX[parts.dtype], device=parts.device)
        wrapped.parts, wrapped.conjugate = parts, conjugate
        return wrapped

    def __init__(self, parts: torch.Tensor, conjugate: bool = False) -> None:
        super().__init__()

    def with_parts(self, parts: torch.Tensor) -> Complex:
        """Other elements of the same memory, or a copy: conjugates where this one shows conjugates."""
        return Complex(parts, self.conjugate)

    @property
    def plain(self) -> torch.Tensor:
        """Real and imaginary parts: what is in memory, or a tensor of its own where that is conjugated."""
        return torch.stack(real_and_imaginary(self), -1) if self.conjugate else self.parts

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Compute with the parts; raises UnsupportedOperator for what is not provided for."""
        returning = _returning(func) if func._schema.is_mutable else func
        function = None
        if returning is not None:
            function = FUNCTIONS.get(returning) or FUNCTIONS.get(returning.overloadpacket)
        if function is None:
            raise UnsupportedOperator(
                f"{func} of complex numbers is not supported; compute with their parts (torch.view_as_real)"
            )
        result = function(returning, *args, **(kwargs or {}))
        return result if returning is func else _write(args[0], result)


def _returning(func: Any) -> Any:
    """The operator that returns what this one writes into its first operand; None where it does something else."""
    name = str(func._schema.name)
    packet: Any = getattr(torch.ops.aten, name.removeprefix("aten::")[:-1], None) if name.endswith("_") else None
    found: Any = getattr(packet, func._overloadname, None)
    if found is None or any(result.alias_info is not None for result in found._schema.returns):
        return None
    return found


def _write(target: Any, result: Any) -> Any:
    """A tensor after other elements were written into its memory."""
    if not isinstance(target, Complex) or not isinstance(result, Complex):
        raise UnsupportedOperator("writing complex numbers among real ones is not supported; compute with their parts")
    value = result.plain.expand(target.parts.shape)
    target.parts.copy_(Complex(value, True).plain if target.conjugate else value)
    return target


def parts(value: torch.Tensor) -> torch.Tensor:
    """A complex tensor as a real one with an axis for the parts; others as they are."""
    return torch.view_as_real(value.resolve_conj()) if value.is_complex() else value


def outer(value: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """The complex tensor of these parts where the other one is complex; as it is where that is real."""
    return Complex(value) if like.is_complex() else value


def inner(value: torch.Tensor) -> torch.Tensor:
    """The parts of a complex tensor of a trace; others as they are."""
    return value.plain if isinstance(value, Complex) else value


def real_and_imaginary(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    given = cast("Complex", x)
    real, imaginary = given.parts.select(-1, 0), given.parts.select(-1, 1)
    return real, -imaginary if given.conjugate else imaginary


def axis_of(axis: int, rank: int) -> int:
    """An axis counted from the front: behind the last one are the parts."""
    return axis + rank if axis < 0 else axis


def join_parts(real: torch.Tensor, imaginary: torch.Tensor) -> Complex:
    """The complex tensor of two real ones, which broadcast."""
    shape = common_shape(real.shape, imaginary.shape)
    return Complex(torch.stack([real.expand(shape), imaginary.expand(shape)], -1))
