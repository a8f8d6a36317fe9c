"""Packages that refuse to show their Triton kernels on a machine without a GPU."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Iterator
from typing import Any

from bench.kernel.rows import Row


def vllm(name: str) -> Any:
    """A module of vLLM with its Triton kernels, as on a machine with a GPU of no particular kind.

    The one of its modules that asks for a driver of Triton is told that there is one. Its kernels in C++ stay where
    they are: no row runs them, and a processor without AVX-512 cannot.
    """
    found = "vllm.triton_utils.importing"
    if found not in sys.modules:
        told: Any = types.ModuleType(found)
        told.HAS_TRITON, told.TritonPlaceholder, told.TritonLanguagePlaceholder = True, None, None
        sys.modules[found] = told
        platforms = importlib.import_module("vllm.platforms")
        interface = importlib.import_module("vllm.platforms.interface")
        own = {"get_device_name": lambda *_: "GPU", "num_compute_units": lambda *_: 4}
        own["import_kernels"] = lambda *_: None
        platforms._current_platform = type("Platform", (interface.UnspecifiedPlatform,), own)()
    try:
        return importlib.import_module(f"vllm.{name}")
    except AssertionError as error:  # two of its modules register layers under one name, and only one can be imported
        registry = importlib.import_module("vllm.model_executor.custom_op").op_registry
        if registry.pop(str(error).removeprefix("Duplicate op name: "), None) is None:
            raise
    return importlib.import_module(f"vllm.{name}")


FOLDERS = ("layers", "attention", "recurrent", "serving", "experts")


def rows() -> Iterator[Row]:
    """The functions, in order."""
    for folder in FOLDERS:
        for part in importlib.import_module(f"bench.kernel.vllm.{folder}").PARTS:
            yield from importlib.import_module(f"bench.kernel.vllm.{folder}.{part}").rows()
