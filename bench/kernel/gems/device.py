"""A CUDA device that is not there, for packages that ask for one when they are imported."""

from __future__ import annotations

import os
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import torch


class _Anywhere:
    """``with torch.cuda.device(..):`` on a machine without a GPU."""

    def __init__(self, *_: object) -> None: ...

    def __enter__(self) -> _Anywhere:
        return self

    def __exit__(self, *_: object) -> None: ...


class _Driver:
    """What Triton asks its driver for before a launch."""

    utils = SimpleNamespace(get_device_properties=lambda *_: {"max_shared_mem": 232448, "multiprocessor_count": 132})

    def get_current_target(self) -> Any:
        target: Any = import_module("triton.backends.compiler")
        return target.GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, *_: object) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")

    def is_active(self) -> bool:
        return True


def pretend() -> None:
    """Let packages find a device of the architecture that kernels are compiled for; tensors stay on the CPU."""
    cuda: Any = torch.cuda
    properties = SimpleNamespace(
        name="H100", major=9, minor=0, total_memory=80 << 30, multi_processor_count=132, L2_cache_size=50 << 20
    )
    cuda.device_count, cuda.current_device = _one, _zero
    cuda.get_device_properties, cuda.get_device_capability = lambda *_: properties, lambda *_: (9, 0)
    cuda.device = cuda._DeviceGuard = cuda.device_of = _Anywhere
    driver: Any = import_module("triton.runtime.driver")
    driver.driver.set_active(_Driver())
    os.environ["GEMS_VENDOR"] = "nvidia"  # which FlagGems asks for where it finds no device


def pretend_of_tensors() -> None:
    """Let tensors on the CPU say that they are on that device."""
    tensor: Any = torch.Tensor
    tensor.is_cuda = property(lambda _: True)


def _one() -> int:
    return 1


def _zero() -> int:
    return 0
