"""StableHLO in files, as text or bytecode, by way of the HloModuleProto that XLA makes of it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from rewright.ir.errors import RewrightError


def to_proto(source: bytes) -> bytes:
    """The HloModuleProto of a StableHLO module; raises RewrightError where it is none, or jaxlib is not installed."""
    try:
        library: Any = import_module("jaxlib._jax")
    except ImportError:
        raise RewrightError("reading StableHLO needs jaxlib; run pip install 'rewright[jax]'") from None
    try:
        found = library.mlir.mlir_module_to_xla_computation(source, use_tuple_args=False, return_tuple=False)
    except Exception as error:
        first = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise RewrightError(f"it is no StableHLO module ({first:.120}); write it again") from None
    return found.as_serialized_hlo_module_proto()
