"""Custom operators of ``torch.library`` that are written in Python: the function is what the operator computes.

``@torch.library.custom_op`` hides a function from tracers. Where it is the only kernel, for every device, the recorder
runs it in the operator's place, so that what it does is recorded. That is so for a function that writes to no argument
and names nothing but PyTorch and Triton: other code (NumPy, an extension) reads memory by itself, which no operator
tells of.
"""

from __future__ import annotations

import builtins
import dis
import inspect
from collections.abc import Callable, Iterator
from functools import partial
from types import CodeType
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

    There is none either for an operator that writes, or whose function names other code than PyTorch. The function
    gives ``NotImplemented`` where it fails without values, or reads memory by itself.
    """
    schema = getattr(func, "_schema", None)  # of an operator, and of no higher-order one
    found = None if schema is None else _library.OPDEFS.get(schema.name)
    if found is None or found._opoverload is not func or set(found._backend_fns) != {None}:
        return None
    if any(func.has_kernel_for_dispatch_key(key) for key in (_KEYS.CPU, _KEYS.CUDA)):
        return None
    function: Any = inspect.getclosurevars(inspect.unwrap(found._backend_fns[None])).nonlocals.get("fn")
    is_own = function is found._init_fn
    if is_own and function.__module__ == "torch._library.triton":  # triton_op, which has one function around another
        function = inspect.getclosurevars(function).nonlocals.get("fn")
    is_own = is_own and _names_torch_alone(function)
    return partial(_run, function) if is_own and not func._schema.is_mutable else None


def _names_torch_alone(function: Any) -> bool:
    """Whether all that a function names is PyTorch, Triton, a kernel or a number."""
    code = getattr(function, "__code__", None)
    if code is None or code.co_freevars:
        return False
    known = {**vars(builtins), **function.__globals__}
    return all(_is_known(known.get(name)) for name in _named(code))


def _is_known(value: Any) -> bool:
    if value is None or isinstance(value, (bool, int, float, str)) or _root(type(value).__module__) == "triton":
        return True
    return _root(getattr(value, "__module__", None) or value) in ("torch", "builtins", "triton")


def _root(where: Any) -> str:
    """The first part of the name of a module; of a module itself too."""
    return str(getattr(where, "__name__", where)).partition(".")[0]


def _named(code: CodeType) -> Iterator[str]:
    """The globals and modules that a function names, with those of the functions inside of it."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME", "IMPORT_NAME"):
            yield str(instruction.argval)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _named(inner)


def _run(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    try:
        with _Watch():
            return function(*args, **kwargs)
    except Exception:  # whatever it is, the operator stays one, and the capture says that it has no lowering
        return NotImplemented
