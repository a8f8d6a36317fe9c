"""The modes of PyTorch in which a program runs."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.autograd import forward_ad
from torch.nn.modules import module as modules

_torch: Any = torch
_C: Any = _torch._C
_ad: Any = forward_ad
_AS_IT_IS = nullcontext()
_DEVICES = ("cpu", "cuda")
_HOOKS = ("_global_forward_hooks", "_global_forward_pre_hooks", "_global_buffer_registration_hooks")


def modes() -> tuple[tuple[str, object], ...]:
    """What surrounds a call: the same program under other modes may be another one.

    Whether gradients are recorded is not among them: where one may be asked for kernels are not used, and a program
    that looks is refused.
    """
    cast = tuple([(d, torch.get_autocast_dtype(d)) for d in _DEVICES if torch.is_autocast_enabled(d)])
    hooks = tuple([id(hook) for name in _HOOKS for hook in getattr(modules, name, {}).values()])
    return (
        ("autocast", cast),
        ("default dtype", torch.get_default_dtype()),
        ("default device", str(torch.get_default_device()) if _C._len_torch_function_stack() else "cpu"),
        ("deterministic algorithms", torch.are_deterministic_algorithms_enabled()),
        ("precision of float32 products", torch.get_float32_matmul_precision()),
        ("hooks of all modules", hooks),
    )


def is_watched() -> str:
    """What looks at, or changes, every operator of a call; empty for nothing. The original program runs then."""
    functions = _C._len_torch_function_stack()
    if _C._len_torch_dispatch_stack() or (functions and functions > _devices()):
        return "a mode that sees every operator is active"
    if _C._functorch.peek_interpreter_stack() is not None:
        return "a transform of functions is active"
    if _ad._current_level >= 0:
        return "forward gradients are recorded"
    is_traced = _C._get_tracing_state() is not None or _torch.fx._symbolic_trace.is_fx_symbolic_tracing()
    return "the program is traced" if is_traced else ""


def _devices() -> int:
    """The modes of functions that only say which device is the default one."""
    kind: Any = _torch.utils._device.DeviceContext
    stack = [_C._get_function_stack_at(n) for n in range(_C._len_torch_function_stack())]
    return sum(isinstance(mode, kind) for mode in stack)


def without_gradients() -> AbstractContextManager[object]:
    """A context in which no gradients are recorded."""
    return _WITHOUT if torch.is_grad_enabled() else _AS_IT_IS


class _Without:
    """Gradients are not recorded in it, and are after it: what ``torch.no_grad`` does, at a tenth of its price."""

    def __enter__(self) -> None:
        _C._set_grad_enabled(False)

    def __exit__(self, *_: object) -> None:
        _C._set_grad_enabled(True)


_WITHOUT = _Without()
