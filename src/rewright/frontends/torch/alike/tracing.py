"""The traces of all ranks of a mesh, from one trace of a program that does not look at where they differ."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from rewright.frontends.aten.context import Communicator
from rewright.frontends.torch.alike.numbers import Arguments, Differ, arguments_at, nodes_in
from rewright.frontends.torch.alike.world import Building, World, as_all_ranks
from rewright.frontends.torch.drawing.generators import watching_seeds
from rewright.frontends.torch.fakes import Dynamic
from rewright.frontends.torch.one_rank import Build, TracedRank, build_program
from rewright.frontends.torch.trace import Trace, trace
from rewright.frontends.torch.traced import TracedProgram
from rewright.frontends.torch.waiting import Waits
from rewright.frontends.torch.world import clear_rank_caches, groups, without_network
from rewright.ir.placement import Mesh


def have_one_group(mesh: Mesh) -> bool:
    """Whether all process groups of a mesh are of all its ranks, or of one."""
    return sum(size > 1 for _, size in mesh.axes) == 1


@dataclass(frozen=True)
class Alike:
    """One trace of all ranks."""

    world: World
    traced: Trace
    mesh: Mesh
    arguments: Arguments
    """Of the nodes in which ranks differ."""

    def program(self, rank: int) -> TracedProgram:
        """The program of a rank, whose graph module is one for all ranks."""
        program = self.traced.program
        return replace(program, rank=rank, groups=_groups_of(rank, program.groups, self.mesh))

    @contextmanager
    def at(self, rank: int) -> Generator[TracedRank]:
        """The trace of a rank, whose graph module has that rank's arguments as long."""
        clear_rank_caches()
        waits = _waits_of(rank, self.traced.waits, self.mesh)
        traced = replace(self.traced, program=self.program(rank), waits=waits)
        with self.world.only(rank), arguments_at(rank, self.arguments):
            yield TracedRank.of(traced, self.mesh, rank)


@contextmanager
def trace_alike(
    build: Build, mesh: Mesh, *, backward: bool = False, dynamic: Dynamic | None = None
) -> Generator[Alike]:
    """One trace of all ranks, which this process is as long.

    Raises Differ, or what the program makes of it, where ranks have to be traced one by one.
    """
    with without_network(), watching_seeds(), as_all_ranks(mesh) as (world, device_mesh):
        with Building(world.differences):
            target, args, kwargs = build_program(build, device_mesh, 0)
        traced = trace(target, args, kwargs, backward=backward, dynamic=dynamic, groups=groups)
        if world.differences.why:
            raise Differ(world.differences.why)
        nodes = traced.program.module.graph.nodes
        differing = [node for node in nodes if next(nodes_in((node.args, node.kwargs)), None) is not None]
        yield Alike(world, traced, mesh, {node: (node.args, node.kwargs) for node in differing})


def _groups_of(rank: int, groups: Mapping[str, Communicator], mesh: Mesh) -> dict[str, Communicator]:
    """The groups of the first rank as another one has them: the groups of one rank are each rank's own."""
    return {name: replace(group, ranks=_members(rank, group.ranks, mesh)) for name, group in groups.items()}


def _waits_of(rank: int, waits: Waits, mesh: Mesh) -> Waits:
    calls = [replace(call, ranks=_members(rank, call.ranks, mesh)) for call in waits.calls]
    return Waits(tuple(calls), tuple(replace(group, own=rank in group.ranks) for group in waits.groups))


def _members(rank: int, ranks: tuple[int, ...], mesh: Mesh) -> tuple[int, ...]:
    return (rank,) if len(ranks) == 1 < mesh.size else ranks
