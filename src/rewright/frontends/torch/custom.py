"""Custom operators of ``torch.library`` that are written in Python: the function is what the operator computes.

``@torch.library.custom_op`` hides a function from tracers. Where it is the only kernel, for every device, the recorder
runs it in the operator's place, so that what it does is recorded. A function that reads memory by itself (NumPy, a
pointer that it hands to other code) tells no operator of what it does, and its operator stays one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch._library import custom_ops
from torch.overrides import TorchFunctionMode

_KEYS: Any = torch._C.DispatchKey  # pyright: ignore[reportPrivateUsage]
_library: Any = custom_ops
_tensor: Any = torch.Tensor
_BY_MEMORY = frozenset(
    getattr(_tensor, name)
    for name in ("numpy", "tolist", "data_ptr", "storage", "untyped_storage", "__array__", "__dlpack__")
)


class _ReadsMemory(Exception):
    """A function reads the memory of a tensor by itself."""


class _Watch(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _BY_MEMORY:
            raise _ReadsMemory
        return func(*args, **(kwargs or {}))


def body_of(func: Any) -> Callable[..., Any] | None:
    """The function that a custom operator runs on every device; None where there is none, or another one on some.

    The function gives ``NotImplemented`` where it fails without values, or reads memory by itself.
    """
    schema = getattr(func, "_schema", None)  # of an operator, and of no higher-order one
    found = None if schema is None else _library.OPDEFS.get(schema.name)
    if found is None or found._opoverload is not func or set(found._backend_fns) != {None}:
        return None
    if any(func.has_kernel_for_dispatch_key(key) for key in (_KEYS.CPU, _KEYS.CUDA)):
        return None
    return partial(_run, found._backend_fns[None])


def _run(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    try:
        with _Watch():
            return function(*args, **kwargs)
    except Exception:
        return NotImplemented
