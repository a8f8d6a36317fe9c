"""A plan for all sizes, and the runner that it is at each tuple of numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import torch

from rewright.optimize.planning.outline import Outline
from rewright.optimize.running.execution import Runner
from rewright.optimize.sizes.inputs import BySizes

if TYPE_CHECKING:
    from rewright.optimize.sizes.variants import Variants


class FlexibleRunner:
    """A plan for all sizes, called with tensors by input name; ``make`` makes a runner for each tuple of sizes."""

    def __init__(
        self, plan: Outline, make: Callable[[Mapping[str, int]], Runner], variants: Variants | None = None
    ) -> None:
        self.plan, self.make = plan, make
        self.variants = variants
        """Where its kernels come from, if they are in C++."""
        self.runners = BySizes(plan.graph, make)
        self.by_torch: frozenset[tuple[int, ...]] = frozenset()
        """The parts that PyTorch computes, by their steps."""
        stored = {p for kernel in plan.kernels.values() for p in kernel.writes}
        self.fresh = frozenset(name for name, place in plan.graph.outputs.items() if place in stored)
        """The outputs that kernels write, to memory of their own."""

    def __call__(self, inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """The outputs by name; raises RewrightError for inputs that do not fit."""
        return self.at(inputs)(inputs)

    def at(self, inputs: Mapping[str, torch.Tensor]) -> Runner:
        """The runner for inputs of these sizes."""
        return self.runners.at(inputs)

    def replaced(
        self, change: Callable[[Runner], Runner], made: frozenset[str], by_torch: frozenset[tuple[int, ...]]
    ) -> FlexibleRunner:
        """The same, with some parts of each runner computed by PyTorch, and these outputs by them."""
        found = FlexibleRunner(self.plan, lambda sizes: change(self.make(sizes)), self.variants)
        found.fresh -= made
        found.by_torch = by_torch
        return found


__all__ = ["FlexibleRunner"]
