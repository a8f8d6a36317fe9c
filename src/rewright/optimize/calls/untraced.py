"""Calls that Dynamo leaves as they are. A program that it does not compile never needs this module, nor Dynamo."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch


def _call(found: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    return found(*args, **kwargs)


_outside: Any = torch.compiler
call = _outside.disable(_call, reason="kernels are not traced; optimize(...).register(name) gives an operator")
