"""What is made once for each tuple of sizes: the sizes of inputs where a graph has symbols."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

import torch

from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.sizes import solve_sizes, with_sizes
from rewright.optimize.scalars.domains import Domain

T = TypeVar("T")
Shapes = tuple[torch.Size | None, ...]
MOST = 64
"""For so many tuples of sizes what was made is kept; then the oldest goes."""


def numbers_of(graph: Graph, inputs: Mapping[str, torch.Tensor]) -> dict[str, int]:
    """The numbers for the symbols of a graph, from its inputs by name.

    Raises RewrightError where an input is missing, and where sizes contradict each other or are below one.
    """
    types = {name: graph.nodes[position].type for name, position in graph.inputs.items()}
    if missing := [name for name in types if name not in inputs]:
        raise RewrightError(f"input {missing[0]!r} has no value; give a tensor under that name")
    return solve_sizes((name, kind, tuple(inputs[name].shape)) for name, kind in types.items())


class BySizes(Generic[T]):
    """For inputs of a graph, by name, what ``make`` makes of their sizes; raises RewrightError as ``numbers_of``."""

    def __init__(self, graph: Graph, make: Callable[[Mapping[str, int]], T]) -> None:
        self.graph, self.make = graph, make
        self.open = [name for name, position in graph.inputs.items() if not graph.nodes[position].type.is_static()]
        self.known: dict[Shapes, T] = {}
        self.lock = threading.Lock()

    def at(self, inputs: Mapping[str, torch.Tensor]) -> T:
        """What there is for these inputs."""
        shapes = tuple([inputs[name].shape if name in inputs else None for name in self.open])
        found = self.known.get(shapes)
        if found is None:
            found = self.make(numbers_of(self.graph, inputs))
            with self.lock:
                if len(self.known) >= MOST:
                    del self.known[next(iter(self.known))]
                self.known[shapes] = found
        return found


class SizedDomain:
    """Where a program is defined, whatever its sizes are."""

    def __init__(self, captured: Graph) -> None:
        self.domains = BySizes(captured, lambda sizes: Domain.of(with_sizes(captured, sizes)))

    def violation(self, inputs: Mapping[str, torch.Tensor]) -> str:
        """The first operator that is not defined on these inputs, in words; empty where all are."""
        return self.domains.at(inputs).violation(inputs)


__all__ = ["BySizes", "SizedDomain", "numbers_of"]
