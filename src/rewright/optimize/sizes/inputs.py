"""What is made once for each tuple of sizes: the sizes of inputs where a graph has symbols."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

import torch

from rewright.ir.graph import Graph
from rewright.ir.sizes import solve_sizes, with_sizes
from rewright.optimize.scalars.domains import Domain

T = TypeVar("T")
Shapes = tuple[torch.Size, ...]
MOST = 64
"""For so many tuples of sizes what was made is kept; then the oldest goes."""


def numbers_of(graph: Graph, inputs: Mapping[str, torch.Tensor]) -> dict[str, int]:
    """The numbers for the symbols of a graph, from its inputs by name; raises RewrightError where they are none."""
    types = {name: graph.nodes[position].type for name, position in graph.inputs.items()}
    return solve_sizes((name, kind, tuple(inputs[name].shape)) for name, kind in types.items())


class BySizes(Generic[T]):
    """For inputs of a graph, by name, what ``make`` makes of their sizes.

    Raises RewrightError where sizes contradict each other or are below one, and ValueError for a missing input.
    """

    def __init__(self, graph: Graph, make: Callable[[Mapping[str, int]], T]) -> None:
        self.make = make
        types = {name: graph.nodes[position].type for name, position in graph.inputs.items()}
        self.types = {name: kind for name, kind in types.items() if not kind.is_static()}
        self.known: dict[Shapes, T] = {}
        self.lock = threading.Lock()

    def at(self, inputs: Mapping[str, torch.Tensor]) -> T:
        """What there is for these inputs."""
        try:
            shapes = tuple([inputs[name].shape for name in self.types])
        except KeyError as error:
            raise ValueError(f"input {error.args[0]!r} has no value; give a tensor under that name") from None
        found = self.known.get(shapes)
        return self._add(shapes) if found is None else found

    def sizes(self, shapes: Shapes) -> dict[str, int]:
        """The numbers for the symbols."""
        pairs = zip(self.types.items(), shapes, strict=True)
        return solve_sizes((name, kind, tuple(shape)) for (name, kind), shape in pairs)

    def _add(self, shapes: Shapes) -> T:
        made = self.make(self.sizes(shapes))
        with self.lock:
            if len(self.known) >= MOST:
                del self.known[next(iter(self.known))]
            self.known[shapes] = made
        return made


class SizedDomain:
    """Where a program is defined, whatever its sizes are."""

    def __init__(self, captured: Graph) -> None:
        self.domains = BySizes(captured, lambda sizes: Domain.of(with_sizes(captured, sizes)))

    def violation(self, inputs: Mapping[str, torch.Tensor]) -> str:
        """The first operator that is not defined on these inputs, in words; empty where all are."""
        return self.domains.at(inputs).violation(inputs)


__all__ = ["BySizes", "SizedDomain", "numbers_of"]
