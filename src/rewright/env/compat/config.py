"""What HloEnv tells of the compilation and of the device: ``HloModuleConfig``, ``DebugOptions`` and ``GpuBackend``."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from types import SimpleNamespace

from rewright.env.session import Session
from rewright.env.xla.targets import TARGETS
from rewright.ir.errors import RewrightError


@dataclass(frozen=True)
class HloModuleConfig:
    """How modules are compiled here: for one device, with the seed that HloEnv uses."""

    debug_options: SimpleNamespace = field(default_factory=SimpleNamespace)
    """XLA's flags that jaxlib shows, by name."""
    seed: int = 42
    launch_id: int = 0
    replica_count: int = 1
    num_partitions: int = 1
    use_spmd_partitioning: bool = False
    use_auto_spmd_partitioning: bool = False
    deduplicate_hlo: bool = False
    intra_op_parallelism_threads: int = -1
    has_static_device_assignment: bool = True
    alias_passthrough_params: bool = False
    content_aware_computation_sorting: bool = True
    phase_index: int = 0
    allow_spmd_sharding_propagation_to_output: bool = False


def module_config(session: Session) -> HloModuleConfig:
    """The configuration that modules of a session are compiled with."""
    flags = session.remember(("debug options",), lambda: session.worker.call("debug_options"))
    return HloModuleConfig(SimpleNamespace(**flags))


class CudaComputeCapability(IntEnum):
    """Major versions by name."""

    PASCAL = 6
    VOLTA = 7
    AMPERE = 8
    HOPPER = 9
    BLACKWELL = 10


class GpuBackend:
    """A device that need not be there, by its name in :data:`rewright.env.xla.targets.TARGETS`."""

    CudaComputeCapability = CudaComputeCapability
    stream_exec_platform = "CUDA"

    def __init__(self, target: str = "a100") -> None:
        if target not in TARGETS:
            raise RewrightError(f"there is no GPU {target!r:.60}; name {', '.join(TARGETS)}")
        self.target = target

    def cuda_is_at_least(self, capability: int, minor: int = 0) -> bool:
        """Whether the compute capability is no lower; the minor version of all these devices is 0."""
        return (TARGETS[self.target].capability, 0) >= (int(capability), minor)
