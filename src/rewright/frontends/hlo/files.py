"""Modules in files: HLO text, HloModuleProto, and StableHLO by way of the HloModuleProto that XLA makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from rewright.frontends.frontend import File
from rewright.frontends.hlo import proto, text
from rewright.frontends.hlo.module import Module
from rewright.frontends.hlo.reading import lower, lower_device
from rewright.ir.errors import RewrightError
from rewright.ir.files import prefix_errors
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.packages import missing

_STABLEHLO = (".mlir", ".stablehlo")


def read_file(file: File, devices: int | None, validate: bool) -> Graph | RankProgram:
    """The program in a file; see :func:`lower`."""
    return lower(_module(file), devices)


def read_files(files: Sequence[File], validate: bool) -> list[Graph]:
    """The programs of all devices, each in a file of its own; see :func:`lower_device`."""
    count = len(files)
    return [
        prefix_errors(file.path, lambda: lower_device(_module(file), count, device))  # noqa: B023
        for device, file in enumerate(files)
    ]


def _module(file: File) -> Module:
    """The module in a file: a HloModuleProto, StableHLO, or text."""
    if file.path.endswith(".pb"):
        return proto.read(file.data)
    return proto.read(_to_proto(file.data)) if file.path.endswith(_STABLEHLO) else text.parse(file.text)


def _to_proto(source: bytes) -> bytes:
    """The HloModuleProto of a StableHLO module; raises RewrightError where it is none, or jaxlib is not installed."""
    try:
        library: Any = import_module("jaxlib._jax")
    except ImportError:
        raise RewrightError(missing("jaxlib", "StableHLO")) from None
    try:
        found = library.mlir.mlir_module_to_xla_computation(source, use_tuple_args=False, return_tuple=False)
    except Exception as error:
        first = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise RewrightError(f"it is no StableHLO module ({first:.120}); write it again") from None
    return found.as_serialized_hlo_module_proto()
