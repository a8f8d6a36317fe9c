"""What is given as a program: a graph, or the graphs of several ranks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, RankProgram


def check_graph(given: object) -> Graph:
    """A program that is a graph; raises RewrightError for one that is something else."""
    if not isinstance(given, Graph):
        kind = type(given).__name__
        raise RewrightError(f"a program is a graph, and this is a {kind}; capture it: rw.capture(program, args)")
    return given


def program_of_ranks(given: object) -> RankProgram:
    """The program of one or several ranks: a graph, or several, are a mesh of one axis.

    Raises RewrightError for what is no graph, such as a function that was not captured.
    """
    if isinstance(given, RankProgram):
        return given
    graphs = tuple(cast("Iterable[object]", given)) if isinstance(given, Iterable) else (given,)
    found = tuple(check_graph(graph) for graph in graphs)
    return RankProgram(found, Mesh.of({"rank": len(found)}), {}, {})


__all__ = ["check_graph", "program_of_ranks"]
