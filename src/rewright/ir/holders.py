"""Tensors that only some ranks of a mesh hold: those of one stage of a pipeline, say."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rewright.ir.graph import Graph
from rewright.ir.placement import AxisRuns, Mesh, Placement


@dataclass(frozen=True)
class Holders:
    """Some ranks of a mesh, as a mesh of their own with the same axes; ``coordinates`` says which of each axis."""

    whole: Mesh
    ranks: tuple[int, ...]
    mesh: Mesh
    coordinates: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(mesh: Mesh, ranks: Sequence[int]) -> Holders | None:
        """These ranks, or None where they are no box of coordinates."""
        places = [mesh.coordinates(rank) for rank in ranks]
        axes = tuple(tuple(sorted(set(along))) for along in zip(*places, strict=True))
        if list(itertools.product(*axes)) != places:
            return None
        sizes = [(name, len(along)) for (name, _), along in zip(mesh.axes, axes, strict=True)]
        return Holders(mesh, tuple(ranks), Mesh(tuple(sizes)), axes)

    def _cut(self) -> dict[str, tuple[int, ...]]:
        """The axes with missing coordinates."""
        every = zip(self.whole.axes, self.coordinates, strict=True)
        return {name: along for (name, size), along in every if len(along) < size}

    def restrict(self, placement: Placement) -> Placement | None:
        """A placement on all ranks, on these; None where it adds up over ranks that are missing."""
        if set(placement.partial) & set(self._cut()):
            return None
        return replace(placement, runs=tuple(placement.runs[rank] for rank in self.ranks))

    def extend(self, placement: Placement) -> Placement:
        """A placement on these ranks, as one on all: the others, where there are any, hold nothing of any axis."""
        if len(self.ranks) == self.whole.size:
            return placement
        nothing: tuple[AxisRuns, ...] = tuple(() for _ in placement.runs[0])
        runs: list[tuple[AxisRuns, ...]] = [nothing] * self.whole.size
        for rank, own in zip(self.ranks, placement.runs, strict=True):
            runs[rank] = own
        cut = self._cut()
        if "@" in placement.printed[0]:  # an equation, which names its ranks
            return replace(placement, runs=tuple(runs))
        printed = [
            f"{text} on {','.join(map(str, cut[name]))}" if name in cut else text
            for (name, _), text in zip(self.whole.axes, placement.printed, strict=True)
        ]
        return replace(placement, runs=tuple(runs), printed=tuple(printed))


def holders_of(name: str, graphs: Sequence[Graph], mesh: Mesh) -> Holders | None:
    """The ranks that return an output, where the others may leave it out; None where somebody has to return it.

    The gradient or the new value of a tensor is missing on a rank that reads the tensor.
    """
    ranks = [rank for rank, graph in enumerate(graphs) if name in graph.outputs]
    if len(ranks) == mesh.size:
        return Holders(mesh, tuple(ranks), mesh, tuple(tuple(range(size)) for _, size in mesh.axes))
    _, _, owner = name.partition(":") if name.startswith(("grad:", "updated:")) else ("", "", "")
    for graph in graphs:
        if name not in graph.outputs and owner in graph.inputs and _is_read(graph, graph.inputs[owner]):
            return None
    return Holders.of(mesh, ranks) if ranks else None


def _is_read(graph: Graph, position: int) -> bool:
    return position in graph.outputs.values() or any(position in node.operands for node in graph.nodes)
