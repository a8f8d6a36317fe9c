"""GPUs to compile for that need not be there: what XLA's passes ask of a device.

The A100's and the H100's figures are those of the target files of XLA's sources; the H200 is an H100 with NVIDIA's
published memory. For any other device give a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rewright.ir.errors import RewrightError

_SUFFIX = ".txtpb"


@dataclass(frozen=True)
class Target:
    """A device; sizes in bytes, bandwidth in bytes per second."""

    description: str
    capability: int
    """Major version of the compute capability; the minor version is 0."""
    cores: int
    """Streaming multiprocessors."""
    units: int
    """Floating-point units of each."""
    shared: int
    """Shared memory of each."""
    shared_of_block: int
    """What one block may have of it at most."""
    cache: int
    memory: int
    bandwidth: int
    gigahertz: float

    def text(self) -> str:
        """The device as a GpuTargetConfigProto in text form."""
        numbers = {
            "threads_per_block_limit": 1024,
            "threads_per_warp": 32,
            "shared_memory_per_block": 48 << 10,
            "shared_memory_per_core": self.shared,
            "shared_memory_per_block_optin": self.shared_of_block,
            "threads_per_core_limit": 2048,
            "core_count": self.cores,
            "fpus_per_core": self.units,
            "block_dim_limit_x": 2**31 - 1,
            "block_dim_limit_y": 2**16 - 1,
            "block_dim_limit_z": 2**16 - 1,
            "thread_dim_limit_x": 1024,
            "thread_dim_limit_y": 1024,
            "thread_dim_limit_z": 64,
            "registers_per_core_limit": 65536,
            "registers_per_block_limit": 65536,
            "memory_bandwidth": self.bandwidth,
            "l2_cache_size": self.cache,
            "device_memory_size": self.memory,
            "clock_rate_ghz": self.gigahertz,
        }
        lines = [f"{name}: {value}" for name, value in numbers.items()]
        lines.append(f"cuda_compute_capability {{ major: {self.capability} }}")
        device = "gpu_device_info { " + " ".join(lines) + " }"
        library = "dnn_version_info { major: 9 minor: 10 }"
        return f'{device} platform_name: "CUDA" {library} device_description_str: "{self.description}"'


_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30
TARGETS: Mapping[str, Target] = {
    "a100": Target("NVIDIA A100 80GB", 8, 108, 64, 164 * _KIB, 163 * _KIB, 40 * _MIB, 80 * _GIB, 2039 * 10**9, 1.41),
    "h100": Target("NVIDIA H100 80GB", 9, 132, 128, 228 * _KIB, 227 * _KIB, 50 * _MIB, 80 * _GIB, 3352 * 10**9, 1.98),
    "h200": Target("NVIDIA H200", 9, 132, 128, 228 * _KIB, 227 * _KIB, 50 * _MIB, 141 * 10**9, 4800 * 10**9, 1.98),
}
"""Devices by name."""


def is_target(name: str) -> bool:
    """Whether a text names a device, or a file that describes one."""
    return name in TARGETS or name.endswith(_SUFFIX)


def target_text(name: str) -> str:
    """The description of a target: a name of :data:`TARGETS`, or a ``.txtpb`` file with a GpuTargetConfigProto.

    Raises RewrightError for any other name, and where the file cannot be read.
    """
    if name in TARGETS:
        return TARGETS[name].text()
    if not is_target(name):
        raise RewrightError(f"there is no GPU {name!r:.60}; name {', '.join(TARGETS)} or a {_SUFFIX} file")
    try:
        with open(name, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise RewrightError(f"cannot read {name}: {error!s:.80}; check the path") from None
