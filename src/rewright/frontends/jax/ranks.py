"""The programs of all devices of a mesh: what XLA's SPMD partitioner makes of a JAX function."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from rewright.frontends.hlo.proto import read
from rewright.frontends.hlo.reading import Interface, lower
from rewright.frontends.hlo.wire import MODULE, blob, read_fields
from rewright.frontends.jax.compiling import only_passes
from rewright.frontends.jax.devices import device_mesh
from rewright.frontends.jax.library import jax
from rewright.frontends.jax.messages import capture_error
from rewright.frontends.jax.tracing import Traced, trace
from rewright.ir.errors import CaptureError, RewrightError
from rewright.ir.placement import Mesh, RankProgram

Build = Callable[[Any], Any]
"""Called once with a ``jax.sharding.Mesh``: ``(function, args)`` or ``(function, args, kwargs)``."""
_PASS = "spmd-partitioning"


def capture_ranks(
    build: Build, mesh: Mapping[str, int], *, backward: bool = False, validate: bool = True
) -> RankProgram:
    """Call ``build`` with a device mesh of these axes, which is JAX's current one, and capture what it returns.

    The function is under ``jit`` with shardings, or its arguments have them, or it is a ``shard_map``. XLA compiles it
    for as many virtual CPU devices of a client of our own, and the module is taken as the SPMD partitioner leaves it,
    before anything is optimised. How inputs and outputs are placed is read off the shardings. Nothing runs, and the
    devices of JAX itself stay as they are. The rest is as in :func:`capture`. Raises CaptureError, UnsupportedOperator.
    """
    axes = Mesh.of(mesh)
    devices = device_mesh(axes)
    try:
        with jax.set_mesh(devices):
            traced = _trace(build, devices, backward)
    except CaptureError as error:
        try:  # a program with a mesh of its own making, with explicit axes say, must not run in another one
            traced = _trace(build, devices, backward)
        except CaptureError:
            raise error from None
    module = replace(read(_partitioned(traced, axes)), name=traced.name)
    face = Interface(traced.inputs, traced.outputs, traced.input_shapes, traced.output_shapes, axes)
    found = lower(module, axes.size, face)
    assert isinstance(found, RankProgram)
    return found


def _trace(build: Build, devices: Any, backward: bool) -> Traced:
    function, args, kwargs = _build(build, devices)
    return trace(function, args, kwargs, backward=backward)


def _build(build: Build, devices: Any) -> tuple[Any, Sequence[Any], Mapping[str, Any]]:
    try:
        returned: Any = build(devices)
    except RewrightError:
        raise
    except Exception as error:
        raise capture_error(error, "building the program of the ranks") from error
    if not isinstance(returned, tuple) or len(cast("tuple[Any, ...]", returned)) not in (2, 3):
        kind = type(cast("object", returned)).__name__
        raise CaptureError(f"build(mesh) returned {kind}; return (function, args) or (function, args, kwargs)")
    function, args, *rest = cast("tuple[Any, ...]", returned)
    if isinstance(args, Mapping):
        return function, (), cast("Mapping[str, Any]", args)
    return function, cast("Sequence[Any]", args), rest[0] if rest else {}


def _partitioned(traced: Traced, mesh: Mesh) -> bytes:
    """The HloModuleProto after the partitioner; raises CaptureError where there is none."""
    count = traced.lowered._lowering.compile_args["num_devices"]
    if count != mesh.size:
        raise CaptureError(
            f"the function is for {count} of the {mesh.size} devices of the mesh; give its arguments shardings over "
            "the mesh, or use shard_map"
        )
    with tempfile.TemporaryDirectory() as folder:
        options = {"xla_dump_to": folder, "xla_dump_hlo_pass_re": _PASS, "xla_dump_hlo_as_proto": True}
        with only_passes(traced.lowered) as stopped:
            try:
                traced.lowered.compile(compiler_options=options)
            except Exception as error:
                if not stopped:
                    raise capture_error(error, "partitioning the program") from error
        names = [name for name in os.listdir(folder) if f".after_{_PASS}." in name and name.endswith(".hlo.pb")]
        if len(names) != 1:
            raise CaptureError("XLA wrote no module after its SPMD partitioner; use the versions in constraints.txt")
        with open(os.path.join(folder, names[0]), "rb") as file:
            found = blob(read_fields(file.read()), MODULE)
    if not found:
        raise CaptureError("XLA wrote an empty module after its SPMD partitioner; use the versions in constraints.txt")
    return found
