"""Running a plan on torch tensors: kernels through their function pointers, the rest through torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.optimize.planning.outline import Outline
from rewright.optimize.running.bare import CPU, Launch, Part, Steps, Values, native
from rewright.optimize.running.manifest import constants_of, manifest_of


@dataclass(frozen=True)
class Other:
    """A part of a plan that is computed otherwise than by its kernels."""

    steps: tuple[int, ...]
    given: tuple[int, ...]
    made: tuple[int, ...]
    graph: Graph
    """The part as a program of its own."""
    kinds: Mapping[str, torch.dtype]
    """The dtypes of its outputs in memory."""
    by: str
    function: Part


class Runner:
    """One plan with its compiled kernels; call it with tensors by input name.

    ``launches`` are its kernels, by name, each with the tensors that it takes; ``others`` are parts, by their first
    step, that are computed otherwise. All of it runs on one device.
    """

    def __init__(
        self,
        plan: Outline,
        launches: Mapping[str, tuple[tuple[int, ...], Launch]],
        others: Mapping[int, Other] | None = None,
        device: torch.device = CPU,
    ) -> None:
        self.device = device
        self.plan, self.launches, self.others = plan, launches, dict(others or {})
        self.manifest = manifest_of(plan, {name: tensors for name, (tensors, _) in launches.items()})
        calls = {name: launch for name, (_, launch) in launches.items()}
        self.bare = Steps(self.manifest.document, constants_of(plan.graph), calls, self.manifest.bind, device)
        for other in self.others.values():
            self.bare.replace(other.steps, other.given, other.made, other.function)
        self.fresh = self.bare.fresh
        """The outputs that are in memory of their own."""

    def __call__(self, inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """The outputs by name; raises RewrightError for a missing input or one of another type."""
        try:
            return self.bare(inputs)
        except ValueError as error:
            raise RewrightError(str(error)) from None


__all__ = ["Launch", "Other", "Runner", "Values", "native"]
