"""A plan without what its kernels compute: which stored tensors each step reads and writes, as runners need it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rewright.ir.graph import Graph
from rewright.ir.sizes import with_sizes
from rewright.optimize.planning.plan import KernelStep, LibraryStep, Plan, base_of, loads, writes


@dataclass(frozen=True)
class KernelOutline:
    """A kernel by its name, with the stored tensors that it reads and those that it writes."""

    name: str
    loads: frozenset[int]
    writes: tuple[int, ...]


@dataclass(frozen=True)
class Outline:
    """The steps of a plan in their order; sizes of its graph may be symbols."""

    graph: Graph
    memory: frozenset[int]
    steps: tuple[KernelOutline | LibraryStep, ...]

    @staticmethod
    def of(plan: Plan) -> Outline:
        """The outline of a plan."""
        steps: list[KernelOutline | LibraryStep] = []
        for step in plan.steps:
            if isinstance(step, KernelStep):
                steps.append(KernelOutline(step.kernel.name, frozenset(loads(step.kernel)), writes(step)))
            else:
                steps.append(step)
        return Outline(plan.graph, plan.memory, tuple(steps))

    @property
    def kernels(self) -> dict[int, KernelOutline]:
        """The kernels by the number of their step."""
        return {n: step for n, step in enumerate(self.steps) if isinstance(step, KernelOutline)}

    def at(self, sizes: Mapping[str, int]) -> Outline:
        """The same with numbers for symbols."""
        return replace(self, graph=with_sizes(self.graph, sizes))

    def base(self, position: int) -> int:
        """The stored tensor that a tensor is, or is a view of."""
        return base_of(self.graph, self.memory, position)

    def reads(self, step: KernelOutline | LibraryStep) -> set[int]:
        """The stored tensors that a step reads and does not write."""
        if isinstance(step, KernelOutline):
            return set(step.loads) - set(step.writes)
        return {self.base(p) for p in self.graph.nodes[step.position].operands}


__all__ = ["KernelOutline", "Outline"]
