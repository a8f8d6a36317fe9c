"""Programs that name CUDA outright, on the CPU: streams that do nothing, and a current device that is the CPU.

A capture of ranks puts every tensor on the CPU, because it needs shapes only, and so does any capture on a machine
without a GPU. Code that asks for the current CUDA device, moves tensors with ``.cuda()`` or waits for a stream then
fails, and where there is a GPU it mixes devices.
"""

from __future__ import annotations

import importlib
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode

from rewright.frontends.torch.fakes import CPU
from rewright.frontends.torch.overwriting import finish_all


class _Idle:
    """A stream, or an event on one: everything that it is asked for is done at once."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _nothing


def _nothing(*args: object, **kwargs: object) -> None:
    """Do nothing."""


def _synchronize(*args: object) -> None:
    finish_all()


def _current_device() -> torch.device:
    return CPU


def _unavailable() -> bool:
    return False


def _get_state(*args: object, **kwargs: object) -> torch.Tensor:
    return torch.get_rng_state()


def _set_state(state: torch.Tensor, *args: object, **kwargs: object) -> None:
    torch.default_generator.set_state(state)


def _seed(seed: int) -> None:
    torch.default_generator.manual_seed(seed)


def _initial_seed() -> int:
    return torch.default_generator.initial_seed()


def _initialized() -> bool:
    return True


class _OneGenerator(tuple[torch.Generator, ...]):
    """The generators of all devices, which are one."""

    def __getitem__(self, _: object) -> Any:
        return torch.default_generator


def _stream(*args: object) -> _Idle:
    return _Idle()


def _in_order(*args: object) -> nullcontext[None]:
    return nullcontext()


_REPLACED: dict[str, Any] = {
    "is_available": _unavailable,
    "current_device": _current_device,
    "set_device": _nothing,
    "synchronize": _synchronize,
    "empty_cache": _nothing,
    "Stream": _Idle,
    "Event": _Idle,
    "current_stream": _stream,
    "default_stream": _stream,
    "stream": _in_order,
    "get_rng_state": _get_state,
    "set_rng_state": _set_state,
    "manual_seed": _seed,
    "manual_seed_all": _seed,
    "initial_seed": _initial_seed,
    "default_generators": _OneGenerator((torch.default_generator,)),
    "is_initialized": _initialized,  # what waits for that is done at once
}
"""Functions and classes of ``torch.cuda`` that name a device, a stream or a generator."""
_IN_RANDOM = ("get_rng_state", "set_rng_state", "manual_seed", "manual_seed_all", "initial_seed")


class _ToCpu(TorchFunctionMode):
    """Whatever is asked to be on a CUDA device is on the CPU."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.cuda:
            return args[0]
        if func is torch.device:
            return _on_cpu(func(*args, **(kwargs or {})))
        named: dict[str, Any] = kwargs or {}
        given = {name: _on_cpu(value) for name, value in named.items()}
        return func(*(_on_cpu(value) for value in args), **given)


def _on_cpu(value: Any) -> Any:
    """The CPU in place of a CUDA device; anything else unchanged."""
    if isinstance(value, torch.device):
        return CPU if value.type == "cuda" else value
    if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
        return CPU
    return value


@contextmanager
def without_cuda() -> Generator[None]:
    """Inside, code that names CUDA works on the CPU: build, capture and import such a program there.

    Only PyTorch is changed, and only inside of the block. What a program computes does not depend on it: streams order
    work that a trace has in order already. The generator of CUDA is that of the CPU: a program that draws from both has
    one stream of numbers instead of two. Custom CUDA kernels are not replaced.
    """
    importlib.import_module("torch._dynamo.device_interface")  # which derives classes from the real streams
    importlib.import_module("torch._dynamo.trace_rules").get_torch_obj_rule_map()  # which has one entry a function
    with ExitStack() as stack:
        for name, value in _REPLACED.items():
            stack.enter_context(mock.patch.object(torch.cuda, name, value))
        for name in _IN_RANDOM:
            stack.enter_context(mock.patch.object(torch.cuda.random, name, _REPLACED[name]))
        for name in ("range_push", "range_pop"):
            stack.enter_context(mock.patch.object(torch.cuda.nvtx, name, _nothing))
        stack.enter_context(_ToCpu())
        yield


__all__ = ["without_cuda"]
