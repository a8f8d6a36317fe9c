"""Programs of several ranks from graphs that were captured one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, RankProgram


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
    return RankProgram(tuple(graphs), named, {}, {})
