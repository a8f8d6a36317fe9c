"""Modules of vLLM whose packages import what is not installed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

from bench.kernel.vllm import vllm


def alone(name: str) -> Any:
    """A module as it is, read from its file, without the packages that it is in."""
    own = f"vllm_alone_{name.replace('.', '_')}"
    if own not in sys.modules:
        path = Path(vllm("triton_utils").__file__).parents[1].joinpath(*name.split(".")).with_suffix(".py")
        spec = importlib.util.spec_from_file_location(own, path)
        if spec is None or spec.loader is None:
            raise ImportError(name)
        sys.modules[own] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[own])
    return sys.modules[own]
