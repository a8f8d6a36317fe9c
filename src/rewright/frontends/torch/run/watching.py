"""Ways to look at a tensor's value that no operator tells of."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.distributed.distributed_c10d as c10d
from torch.overrides import TorchFunctionMode

from rewright.frontends.torch.run.recorder import RunRecorder

_tensor: Any = torch.Tensor
_LOOKS = frozenset({_tensor.tolist, _tensor.numpy, _tensor.__array__})
_OBJECTS = (
    "all_gather_object",
    "gather_object",
    "send_object_list",
    "recv_object_list",
    "scatter_object_list",
    "broadcast_object_list",
)


class Watcher(TorchFunctionMode):
    """Tells the recorder of values that are copied into Python."""

    def __init__(self, recorder: RunRecorder) -> None:
        super().__init__()
        self._recorder = recorder

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _LOOKS and args and isinstance(args[0], torch.Tensor):
            self._recorder.look(args[0])
        return func(*args, **(kwargs or {}))


class _Active(threading.local):
    """The recorder of this thread, while it records."""

    def __init__(self) -> None:
        self.recorder: RunRecorder | None = None


_active = _Active()


@contextmanager
def recording(recorder: RunRecorder) -> Generator[None]:
    """Record what runs inside the block, on this thread."""
    _active.recorder = recorder
    try:
        with recorder, Watcher(recorder):
            yield
    finally:
        _active.recorder = None


@contextmanager
def surroundings() -> Generator[None]:
    """What must hold in the whole process while programs run: collectives give plain tensors, quietly.

    Exchanges of Python objects run and are not recorded: what a program makes of them is a value of the run.
    """
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(functional, "_are_we_tracing", return_value=True))
        for name in _OBJECTS:
            silent = _pause(getattr(c10d, name))
            for module in (c10d, dist):
                stack.enter_context(mock.patch.object(module, name, silent))
        yield


def _pause(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        active = _active.recorder
        if active is None:
            return function(*args, **kwargs)
        active.paused += 1
        try:
            return function(*args, **kwargs)
        finally:
            active.paused -= 1

    return run
