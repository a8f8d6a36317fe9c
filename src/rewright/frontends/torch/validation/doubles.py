"""A program of PyTorch run in float64 whatever dtypes it names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from rewright.frontends.torch.validation.eager import REALS, refuse_trap, wide


class Doubles(TorchDispatchMode):
    """Every operator below autograd computes in float64: dtypes that it names, and what a program makes of numbers."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        each = _argument if func._schema.is_mutable else _operand
        keywords = {key: _each(value, each) for key, value in kwargs.items()} if kwargs else {}
        arguments = [_each(value, each) for value in args]
        refuse_trap(func, arguments, keywords)
        return _each(func(*arguments, **keywords), each)


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    if not isinstance(value, (list, tuple)):
        return change(value)
    found = [_each(item, change) for item in cast("Sequence[Any]", value)]
    return found if isinstance(value, list) else tuple(found)


def _argument(value: Any) -> Any:
    return wide(value) if isinstance(value, torch.dtype) else value


def _operand(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.double() if value.dtype is not torch.float64 and value.dtype in REALS else value
    return _argument(value)
