"""What a program can read of a tensor beside its values."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any, cast

import torch
from torch._subclasses.fake_tensor import FakeTensor

_TOLD = frozenset(
    {
        *("shape", "dtype", "device", "layout", "requires_grad", "T", "mT", "H", "mH", "real", "imag", "data"),
        *("size", "stride", "dim", "ndimension", "numel", "nelement", "element_size", "get_device", "dim_order"),
        *("is_contiguous", "is_floating_point", "is_complex", "is_signed", "is_neg", "is_conj", "is_same_size"),
        *("type", "__class__", "result_type", "__len__", "__setitem__"),
        *("item", "tolist", "equal", "allclose", "is_nonzero", "__contains__"),
        *("__bool__", "__int__", "__float__", "__index__", "__complex__"),
    }
)
"""What follows from what :func:`describe` says, gives tensors of the same values, or asks stand-ins for values.

These have none but of constants, and raise.
"""
_MEMORY: Mapping[str, Callable[[Any], object]] = {
    "storage_offset": lambda t: t.storage_offset(),
    "is_inference": lambda t: t.is_inference(),
    "is_shared": lambda t: t.is_shared(),
    "is_pinned": lambda t: t.is_pinned(),
    **dict.fromkeys(("storage", "untyped_storage"), lambda t: t.untyped_storage().nbytes()),
    **dict.fromkeys(("data_ptr", "is_set_to"), lambda t: 0 if isinstance(t, FakeTensor) else t.data_ptr()),
}
"""Methods that tell what ``describe`` does not."""


def describe(value: torch.Tensor) -> tuple[Any, ...]:
    """What is known of a tensor without its values."""
    plain = value.layout is torch.strided
    strides = tuple(value.stride()) if plain else ()
    marks = (value.requires_grad, value.is_neg(), value.is_conj()) if plain else ()
    return type(value), tuple(value.shape), strides, value.dtype, str(value.device), str(value.layout), marks


def is_told(name: str) -> bool:
    """Whether what a tensor gives under a name follows from its values and what ``describe`` says."""
    return name in _TOLD


def can_ask(name: str) -> bool:
    """Whether :func:`state_of` can ask any tensor for it."""
    return name in _MEMORY or _is_attribute(name)


@cache
def _is_attribute(name: str) -> bool:
    """Whether a name is an attribute of all tensors, and no method of theirs."""
    found = inspect.getattr_static(torch.Tensor, name, None)
    return isinstance(found, (property, types.GetSetDescriptorType, types.MemberDescriptorType))


def state_of(value: torch.Tensor, names: Collection[str]) -> tuple[tuple[str, object], ...]:
    """What a tensor says under such names; another tensor is told by what it is."""
    return tuple((name, _read(value, name)) for name in names)


def _read(value: torch.Tensor, name: str) -> object:
    if name in ("grad", "_grad") and not (value.is_leaf or value.retains_grad):
        return repr(None)  # PyTorch warns who asks
    try:
        found: Any = _MEMORY[name](value) if name in _MEMORY else getattr(value, name)
    except Exception as error:  # an attribute that such tensors do not have
        return error.__class__.__name__
    if isinstance(found, torch.Tensor):
        return describe(found)
    return repr(found) if isinstance(found, (int, float, bool, str, torch.Size, type(None))) else _class_of(found)


def _class_of(found: Any) -> str:
    kind = cast("type[Any]", type(found))
    return f"{kind.__module__}.{kind.__qualname__}"


def other_tensor(value: torch.Tensor, names: Collection[str]) -> str:
    """The first name under which a tensor has another one, whose values no call has; empty for none."""
    return next((name for name, found in state_of(value, names) if isinstance(found, tuple)), "")


__all__ = ["can_ask", "describe", "is_told", "other_tensor", "state_of"]
