"""A plan for all sizes, and the runner that it is at each tuple of numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from rewright.optimize.planning.plan import Plan
from rewright.optimize.running.execution import Runner
from rewright.optimize.sizes.inputs import BySizes


class FlexibleRunner:
    """A plan for all sizes, called with tensors by input name; ``make`` makes a runner for each tuple of sizes."""

    def __init__(self, plan: Plan, make: Callable[[Mapping[str, int]], Runner]) -> None:
        self.plan, self.make = plan, make
        self.runners = BySizes(plan.graph, make)
        stored = {store.tensor for kernel in plan.kernels for store in kernel.stores}
        self.fresh = frozenset(name for name, place in plan.graph.outputs.items() if place in stored)
        """The outputs that kernels write, to memory of their own."""

    def __call__(self, inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """The outputs by name; raises RewrightError for inputs that do not fit."""
        return self.at(inputs)(inputs)

    def at(self, inputs: Mapping[str, torch.Tensor]) -> Runner:
        """The runner for inputs of these sizes."""
        return self.runners.at(inputs)

    def replaced(self, change: Callable[[Runner], Runner], made: frozenset[str]) -> FlexibleRunner:
        """The same, with some parts of each runner computed otherwise, and these outputs by them."""
        found = FlexibleRunner(self.plan, lambda sizes: change(self.make(sizes)))
        found.fresh -= made
        return found


__all__ = ["FlexibleRunner"]
