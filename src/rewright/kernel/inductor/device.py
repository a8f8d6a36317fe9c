"""What Inductor asks of a CUDA device, answered on a machine that has none."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch

_PROPERTIES = SimpleNamespace(
    name="H100",
    major=9,
    minor=0,
    multi_processor_count=132,
    regs_per_multiprocessor=65536,
    max_threads_per_multi_processor=2048,
    max_threads_per_block=1024,
    warp_size=32,
    total_memory=80 << 30,
    shared_memory_per_block=49152,
    shared_memory_per_block_optin=232448,
    L2_cache_size=50 << 20,
    gcnArchName="",
)
"""A device by whose numbers Inductor chooses the sizes of blocks."""


def _properties(*_: object) -> Any:
    return _PROPERTIES


def _capability(*_: object) -> tuple[int, int]:
    return _PROPERTIES.major, _PROPERTIES.minor


def _yes(*_: object) -> bool:
    return True


def _zero(*_: object) -> int:
    return 0


def _one(*_: object) -> int:
    return 1


def _nothing(*_: object, **__: object) -> None:
    """Do nothing."""


def _state(*_: object) -> torch.Tensor:
    return torch.get_rng_state()


def _name(*_: object) -> str:
    return ""


_IN_CUDA: dict[str, Any] = {
    "is_available": _yes,
    "device_count": _one,
    "current_device": _zero,
    "set_device": _nothing,
    "synchronize": _nothing,
    "get_device_properties": _properties,
    "get_device_capability": _capability,
    "get_rng_state": _state,
    "set_rng_state": _nothing,
    "_exchange_device": _zero,
    "_maybe_exchange_device": _zero,
}
_IN_INTERFACE: dict[str, Any] = {
    "is_available": _yes,
    "device_count": _one,
    "current_device": _zero,
    "set_device": _nothing,
    "synchronize": _nothing,
    "get_device_properties": _properties,
    "exchange_device": _zero,
    "maybe_exchange_device": _zero,
}


def _forget() -> None:
    """Let go of what was remembered of devices."""
    for name in ("torch.utils._triton", "torch._inductor.utils"):
        for function in vars(import_module(name)).values():
            if hasattr(function, "cache_clear"):
                function.cache_clear()
    hints: Any = import_module("torch._inductor.runtime.hints")
    hints.DeviceProperties.create.cache_clear()


@contextmanager
def cuda_on_paper() -> Generator[None]:
    """Inside, Inductor compiles programs for a CUDA device, whether there is one or not; nothing can be run.

    Passes that build tensors on the device before they look for a pattern (fused attention, padded products) are left
    out. Inductor may remember what it was told of the device: use this in a process that ends soon.
    """
    interfaces: Any = import_module("torch._dynamo.device_interface")
    graphs: Any = import_module("torch._inductor.fx_passes.joint_graph")
    triton: Any = import_module("torch.utils._triton")
    with ExitStack() as stack:
        _forget()
        stack.callback(_forget)
        for name, value in _IN_CUDA.items():
            stack.enter_context(mock.patch.object(torch.cuda, name, value))
        for name, value in _IN_INTERFACE.items():
            stack.enter_context(mock.patch.object(interfaces.CudaInterface, name, staticmethod(value)))
        stack.enter_context(mock.patch.dict(interfaces.caching_worker_current_devices, {"cuda": 0}))
        stack.enter_context(mock.patch.dict(interfaces.caching_worker_device_properties, {"cuda": [_PROPERTIES]}))
        stack.enter_context(mock.patch.object(graphs, "lazy_init", _nothing))
        stack.enter_context(mock.patch.object(triton, "triton_hash_with_backend", _name))
        yield
