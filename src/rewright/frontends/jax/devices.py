"""Any number of devices of a CPU client of our own.

JAX fixes the number of its CPU devices when its backends start. A second client leaves them as they are, so that a
capture needs no flag and no variable of the environment, and a program that runs beside it notices nothing.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from rewright.frontends.jax.library import sharding, xla_client
from rewright.ir.errors import CaptureError
from rewright.ir.placement import Mesh

MOST_DEVICES = 4096


def device_mesh(mesh: Mesh) -> Any:
    """A ``jax.sharding.Mesh`` with these axes; raises CaptureError for a mesh without ranks or with too many."""
    if not 0 < mesh.size <= MOST_DEVICES:
        axes = ", ".join(f"{name}={size}" for name, size in mesh.axes)
        raise CaptureError(f"the mesh {axes} has {mesh.size} ranks; give it between 1 and {MOST_DEVICES}")
    devices = np.array(_devices(mesh.size), dtype=object).reshape([size for _, size in mesh.axes])
    return sharding.Mesh(devices, tuple(name for name, _ in mesh.axes))


@functools.cache
def _devices(count: int) -> list[Any]:
    """Kept, because JAX keeps what it knows of a device as long as the process lives."""
    client: Any = xla_client.make_cpu_client(asynchronous=False, num_devices=count)
    return list(client.devices())
