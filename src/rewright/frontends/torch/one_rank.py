"""The trace of one rank of a mesh, before it is lowered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.distributed.device_mesh import DeviceMesh

from rewright.frontends.torch.drawing.generators import watching_seeds
from rewright.frontends.torch.fakes import Dynamic
from rewright.frontends.torch.marks import read_mark
from rewright.frontends.torch.messages import capture_error
from rewright.frontends.torch.specs import RankPlacement, SpecReader
from rewright.frontends.torch.trace import Trace, trace
from rewright.frontends.torch.world import as_rank, groups, without_network
from rewright.ir.errors import CaptureError, RewrightError
from rewright.ir.placement import Mesh

Build = Callable[[DeviceMesh], Any]
"""Called once per rank: ``(module or function, args)`` or ``(module or function, args, kwargs)``."""


@dataclass(frozen=True)
class TracedRank:
    """One rank's trace with the placements that the rank sees, by input and output name."""

    trace: Trace
    inputs: dict[str, RankPlacement]
    outputs: dict[str, RankPlacement]
    collectives: int

    @staticmethod
    def of(traced: Trace, mesh: Mesh, rank: int) -> TracedRank:
        """A trace with what its rank, which this process has to be, sees of placements."""
        with unset_fake_temporarily():
            inputs, outputs = _placements(traced, mesh, rank)
        return TracedRank(traced, inputs, outputs, _count_collectives(traced))


def trace_rank(
    build: Build, mesh: Mesh, rank: int, *, backward: bool = False, dynamic: Dynamic | None = None
) -> TracedRank:
    """The trace of one rank of a mesh, before lowering; raises CaptureError."""
    with without_network(), watching_seeds(), as_rank(rank, mesh) as device_mesh:
        target, args, kwargs = build_program(build, device_mesh, rank)
        traced = trace(target, args, kwargs, backward=backward, dynamic=dynamic, groups=groups, rank=rank)
        return TracedRank.of(traced, mesh, rank)


def build_program(build: Build, device_mesh: DeviceMesh, rank: int) -> tuple[Any, Sequence[Any], Mapping[str, Any]]:
    """The program of a rank with its arguments; raises CaptureError where there is none."""
    try:
        returned: Any = build(device_mesh)
    except RewrightError:
        raise
    except Exception as error:
        raise capture_error(error, f"building the model of rank {rank}") from error
    if not isinstance(returned, tuple) or len(cast("tuple[Any, ...]", returned)) not in (2, 3):
        kind = type(cast("object", returned)).__name__
        raise CaptureError(f"build(mesh) returned {kind}; return (module, args) or (module, args, kwargs)")
    target, args, *rest = cast("tuple[Any, ...]", returned)
    if isinstance(args, Mapping):
        return target, (), cast("Mapping[str, Any]", args)
    return target, cast("Sequence[Any]", args), rest[0] if rest else {}


def _placements(traced: Trace, mesh: Mesh, rank: int) -> tuple[dict[str, RankPlacement], dict[str, RankPlacement]]:
    """What this rank knows of inputs and outputs: from DTensors, and from the attributes of plain parameters."""
    reader = SpecReader(mesh, rank)
    marked = {name: read_mark(mark, mesh, rank) for name, mark in traced.marks.items()}
    known = {name: placement for name, placement in marked.items() if placement is not None}
    return known | _read(reader, traced.input_specs), _read(reader, traced.output_specs)


def _read(reader: SpecReader, specs: Mapping[str, Any]) -> dict[str, RankPlacement]:
    found = {name: reader.read(spec) for name, spec in specs.items() if spec is not None}
    return {name: placement for name, placement in found.items() if placement is not None}


def _count_collectives(traced: Trace) -> int:
    """Number of collectives and point-to-point operations in a trace."""
    prefixes = ("_c10d_functional", "rewright.", "c10d.", "_dtensor.")
    targets = (str(node.target) for node in traced.program.module.graph.nodes if node.op == "call_function")
    return sum(target.startswith(prefixes) and "wait_tensor" not in target for target in targets)
