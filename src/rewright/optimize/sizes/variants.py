"""Kernels in C++ that take sizes, compiled once for all that their guards let through."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from rewright.ir.dims import Dim, evaluate
from rewright.ir.errors import RewrightError
from rewright.ir.sizes import size_symbols, with_sizes
from rewright.optimize.planning.plan import Plan, widen_storage
from rewright.optimize.printing.cpp.renderer import Source, render, translation_unit
from rewright.optimize.printing.loops.kernel import choose_tiling, lower
from rewright.optimize.running import building
from rewright.optimize.running.bare import Launch
from rewright.optimize.running.execution import Runner, native
from rewright.optimize.running.isolation import Isolated

Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Compiled:
    """The kernels of a plan, by name with the tensors that each takes before the sizes."""

    launches: Mapping[str, tuple[tuple[int, ...], Launch]]
    guards: Sequence[Dim] = ()
    """What has to be at least zero of the sizes that they are for."""

    def take(self, sizes: Sizes) -> bool:
        """Whether they are for these sizes."""
        return all(evaluate(guard, sizes) >= 0 for guard in self.guards)

    def runner(self, plan: Plan, sizes: Sizes) -> Runner:
        """The plan at some sizes."""
        given = torch.tensor([sizes[name] for name in size_symbols(plan.graph)], device="cpu")
        fixed = widen_storage(replace(plan, graph=with_sizes(plan.graph, sizes)))
        return Runner(fixed, {n: (tensors, _with(launch, given)) for n, (tensors, launch) in self.launches.items()})


def print_sources(plan: Plan, is_guarded: bool) -> tuple[Source, ...]:
    """The kernels of a plan; guarded ones are faster, and for some sizes only."""
    wide = widen_storage(plan)
    tilings = [replace(choose_tiling(k), is_guarded=is_guarded) for k in plan.kernels]
    return tuple(render(lower(wide.graph, plan.table, k, t)) for k, t in zip(plan.kernels, tilings, strict=True))


def compile_sources(plan: Plan, sources: Sequence[Source], check: Callable[[Compiled], None]) -> Compiled:
    """Build kernels; ``check`` gets them in a process of their own first, and raises where they are wrong."""
    library = building.build(translation_unit(sources))
    guards = tuple(guard for source in sources for guard in source.guards)
    child = Isolated(Path(library._name))
    named = list(zip([k.name for k in plan.kernels], sources, strict=True))
    apart = {
        name: (s.tensors, child.launch(s.name, [s.tensors.index(t) for t in s.written], torch.get_num_threads))
        for name, s in named
    }
    check(Compiled(apart, guards))
    own = {name: (s.tensors, native(getattr(library, s.name), torch.get_num_threads)) for name, s in named}
    return Compiled(own, guards)


class Variants:
    """Kernels of a plan for several kinds of sizes: later ones are compiled where the guards of those before fail.

    What cannot be built, or is wrong, is not tried again. Raises RewrightError where the first ones are so.
    """

    def __init__(self, plan: Plan, builds: Sequence[Callable[[], Compiled]]) -> None:
        self.plan, self.waiting = plan, list(builds)
        self.built = [self.waiting.pop(0)()]
        self.lock = threading.RLock()

    def __call__(self, sizes: Sizes) -> Runner:
        """The plan at some sizes; raises RewrightError where no kernels are for these."""
        with self.lock:
            while not (found := [kernels for kernels in self.built if kernels.take(sizes)]):
                if not self.waiting:
                    raise RewrightError(f"there are no kernels for {', '.join(f'{n} = {s}' for n, s in sizes.items())}")
                self.built.append(self.waiting.pop(0)())
        return found[0].runner(self.plan, sizes)


def _with(launch: Launch, sizes: torch.Tensor) -> Launch:
    """A kernel at some sizes."""

    def run(tensors: Sequence[torch.Tensor]) -> None:
        launch([*tensors, sizes])

    return run


__all__ = ["Compiled", "Variants", "compile_sources", "print_sources"]
