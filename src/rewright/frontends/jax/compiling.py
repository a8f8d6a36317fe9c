"""Compilations that end before machine code is made, which takes most of the time and is not needed."""

from __future__ import annotations

import uuid
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from rewright.frontends.hlo.wire import read_fields, string
from rewright.frontends.jax.library import ir, xla


class _Enough(Exception):
    """Ends a compilation."""


@contextmanager
def only_passes(lowered: Any) -> Generator[list[str]]:
    """Inside of the block, compiling this program raises as soon as its passes on HLO have run.

    The list that is given has an entry once that has happened. XLA calls back for every program that the process
    compiles meanwhile; a name of its own distinguishes this one.
    """
    name = f"jit_{uuid.uuid4().hex}"
    module: Any = lowered.compiler_ir("stablehlo")
    before: Any = module.operation.attributes["sym_name"]
    stopped: list[str] = []

    def stop(proto: bytes) -> None:
        if string(read_fields(proto), 1) == name:
            stopped.append(name)
            raise _Enough

    with module.context:
        module.operation.attributes["sym_name"] = ir.StringAttr.get(name)
    xla.register_hlo_module_transformation(stop, name=name, platforms="cpu")
    try:
        yield stopped
    finally:
        xla.clear_hlo_module_transformation(name, platforms="cpu")
        module.operation.attributes["sym_name"] = before
