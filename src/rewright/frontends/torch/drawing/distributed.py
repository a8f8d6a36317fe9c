"""What DTensor does with the generators of a GPU, on ranks that are traced on a CPU.

There DTensor would draw on every rank what that rank's own generator gives. On a GPU ranks draw their parts of one
tensor from one stream, each from its own stretch of it, and replicas draw the same (``OffsetBasedRNGTracker``).
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any
from unittest import mock

from rewright.frontends.torch.drawing.generators import Generators, Region


class _Regions:
    """Stands for DTensor's tracker: while a rank draws its part of a tensor, its generators know which part it is."""

    distribute_region_enabled = True

    def __init__(self, generators: Generators) -> None:
        self._generators = generators

    @contextmanager
    def _distribute_region(self, spec: Any, generator: Any = None) -> Generator[None]:
        before = self._generators.region
        self._generators.region = Region(_part(spec), tuple(int(size) for size in spec.shape))
        try:
            yield
        finally:
            self._generators.region = before


def _part(spec: Any) -> tuple[tuple[int, int], ...]:
    """Where a rank's part of a tensor is: its place along each axis, and how many there are."""
    place, count = [0] * len(spec.shape), [1] * len(spec.shape)
    own = spec.mesh.get_coordinate()
    for number, placement in enumerate(spec.placements):
        if not (placement.is_replicate() or placement.is_partial()):
            axis, size = placement.dim, spec.mesh.size(number)
            place[axis], count[axis] = place[axis] * size + int(own[number]), count[axis] * size
    return tuple(zip(place, count, strict=True))


def one_stream(generators: Generators) -> AbstractContextManager[Any]:
    """Inside, DTensor draws as it does on a GPU."""
    if "torch.distributed.tensor" not in sys.modules:
        return nullcontext()
    module = importlib.import_module("torch.distributed.tensor._random")
    return mock.patch.object(module, "_rng_tracker", _Regions(generators))
