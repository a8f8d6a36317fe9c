"""Programs of several ranks from graphs that were captured one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, Node
from rewright.ir.placement import Mesh, Placement, RankProgram, print_placement


def ranks(graphs: Sequence[Graph], mesh: Mapping[str, int]) -> RankProgram:
    """The program whose rank ``i`` runs ``graphs[i]``; ranks are row-major positions in the mesh.

    Nothing is said about how inputs and outputs are placed: give relations to ``refine``, or let it infer them.
    Raises RewrightError where the number of graphs is not the number of ranks.
    """
    named = Mesh.of(mesh)
    if len(graphs) != named.size:
        axes = ", ".join(f"{name}={size}" for name, size in named.axes)
        raise RewrightError(
            f"{len(graphs)} rank graphs for a mesh {axes} of {named.size} ranks; give one graph per rank"
        )
    return RankProgram(share_nodes(graphs), named, {}, {})


def share_nodes(graphs: Sequence[Graph]) -> tuple[Graph, ...]:
    """The same programs, in which equal nodes are one object, so that comparing them takes no time.

    Not so constants: 0.0 and -0.0 are equal, and different.
    """
    known: dict[Node, Node] = {}
    return tuple(
        replace(graph, nodes=tuple(known.setdefault(n, n) if n.operands else n for n in graph.nodes))
        for graph in graphs
    )


def on_mesh(program: RankProgram, mesh: Mapping[str, int]) -> RankProgram:
    """The same program with its ranks on another mesh of as many; placements keep what they say of each rank.

    Raises RewrightError where the number of ranks is another one, or where axes are joined that shardings tell apart.
    """
    named = Mesh.of(mesh)
    if named.size != program.mesh.size:
        raise RewrightError(f"a mesh of {named.size} ranks for the programs of {program.mesh.size}; name as many")
    if not _ends(program.mesh) <= _ends(named):
        axes = "x".join(str(size) for _, size in program.mesh.axes)
        raise RewrightError(f"the shardings of the program are over a mesh of {axes}; name a mesh with such axes")
    if any(placement.partial for table in (program.inputs, program.outputs) for placement in table.values()):
        raise RewrightError("addends over the axes of one mesh are not those of another; leave the mesh out")
    inputs, outputs = (
        {name: _on_mesh(placement, named) for name, placement in table.items()}
        for table in (program.inputs, program.outputs)
    )
    return RankProgram(program.graphs, named, inputs, outputs, program.notes)


def _on_mesh(placement: Placement, mesh: Mesh) -> Placement:
    printed: list[str] = []
    for name, _ in mesh.axes:
        held = [placement.runs[rank] for rank in mesh.group(0, (name,))]
        axes = [axis for axis in range(len(held[0])) if any(runs[axis] != held[0][axis] for runs in held)]
        printed.append(print_placement("shard", axes[0]) if axes else print_placement("replicate", 0))
    return Placement(placement.runs, tuple(printed), placement.partial, placement.reduction)


def _ends(mesh: Mesh) -> set[int]:
    """How far apart ranks along its axes are, and the number of ranks."""
    found = {1}
    total = 1
    for _, size in reversed(mesh.axes):
        total *= size
        found.add(total)
    return found
