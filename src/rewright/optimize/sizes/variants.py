"""Kernels in C++ that take sizes, compiled once for all that their guards let through."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from rewright.ir.dims import Dim, evaluate
from rewright.ir.errors import RewrightError
from rewright.ir.sizes import size_symbols
from rewright.optimize.planning.outline import Outline
from rewright.optimize.planning.plan import Plan, widen_storage
from rewright.optimize.printing.cpp.renderer import Source, render, translation_unit
from rewright.optimize.printing.loops.kernel import choose_tiling, lower
from rewright.optimize.running import building
from rewright.optimize.running.bare import Launch
from rewright.optimize.running.execution import Runner, native
from rewright.optimize.running.isolation import Isolated

Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Function:
    """A printed kernel: its name in the plan and in the code, the tensors that it takes, and those it writes."""

    kernel: str
    name: str
    tensors: tuple[int, ...]
    written: tuple[int, ...]


@dataclass(frozen=True)
class Unit:
    """The kernels of a plan as they are printed once; ``guards`` have to be at least zero of the sizes."""

    text: str
    functions: tuple[Function, ...]
    guards: tuple[Dim, ...] = ()

    @staticmethod
    def of(plan: Plan, sources: Sequence[Source]) -> Unit:
        """The printed kernels of a plan."""
        functions = tuple(
            Function(k.name, s.name, s.tensors, tuple(sorted(s.written)))
            for k, s in zip(plan.kernels, sources, strict=True)
        )
        return Unit(translation_unit(sources), functions, tuple(guard for source in sources for guard in source.guards))

    def compiled(self, check: Callable[[Compiled], None] | None) -> Compiled:
        """The kernels; ``check`` gets them in a process of their own first, and raises where they are wrong."""
        library = building.build(self.text)
        if check is not None:
            child = Isolated(Path(library._name))
            apart: dict[str, tuple[tuple[int, ...], Launch]] = {}
            for f in self.functions:
                written = [f.tensors.index(t) for t in f.written]
                apart[f.kernel] = f.tensors, child.launch(f.name, written, torch.get_num_threads)
            check(Compiled(apart, self.guards))
        own = {f.kernel: (f.tensors, native(getattr(library, f.name), torch.get_num_threads)) for f in self.functions}
        return Compiled(own, self.guards)


@dataclass(frozen=True)
class Compiled:
    """The kernels of a plan, by name with the tensors that each takes before the sizes."""

    launches: Mapping[str, tuple[tuple[int, ...], Launch]]
    guards: Sequence[Dim] = ()
    """What has to be at least zero of the sizes that they are for."""

    def take(self, sizes: Sizes) -> bool:
        """Whether they are for these sizes."""
        return all(evaluate(guard, sizes) >= 0 for guard in self.guards)

    def runner(self, plan: Outline, sizes: Sizes) -> Runner:
        """The plan at some sizes."""
        given = torch.tensor([sizes[name] for name in size_symbols(plan.graph)], device="cpu")
        launches = {n: (tensors, _with(launch, given)) for n, (tensors, launch) in self.launches.items()}
        return Runner(plan.at(sizes), launches)


def print_sources(plan: Plan, is_guarded: bool) -> tuple[Source, ...]:
    """The kernels of a plan; guarded ones are faster, and for some sizes only."""
    wide = widen_storage(plan)
    tilings = [replace(choose_tiling(k), is_guarded=is_guarded) for k in plan.kernels]
    return tuple(render(lower(wide.graph, plan.table, k, t)) for k, t in zip(plan.kernels, tilings, strict=True))


class Variants:
    """Kernels of a plan for several kinds of sizes: later units are compiled where the guards of those before fail.

    ``check`` gets those beyond the first ``known`` ones, which were checked before. What cannot be built, or is wrong,
    is not tried again. Raises RewrightError where the first unit is so.
    """

    def __init__(self, plan: Outline, units: Sequence[Unit], check: Callable[[Compiled], None], known: int = 0) -> None:
        self.plan, self.units, self.check, self.known = plan, tuple(units), check, known
        self.built: list[Compiled] = []
        self.tried = 0
        """So many units were built, or could not be."""
        self.lock = threading.RLock()
        self._build()

    @property
    def checked(self) -> int:
        """So many units were built and checked, one after the other."""
        return max(self.known, len(self.built)) if self.tried == len(self.built) else self.known

    def __call__(self, sizes: Sizes) -> Runner:
        """The plan at some sizes; raises RewrightError where no kernels are for these."""
        with self.lock:
            while not (found := [kernels for kernels in self.built if kernels.take(sizes)]):
                if self.tried == len(self.units):
                    raise RewrightError(f"there are no kernels for {', '.join(f'{n} = {s}' for n, s in sizes.items())}")
                self._build()
        return found[0].runner(self.plan, sizes)

    def _build(self) -> None:
        unit, number = self.units[self.tried], self.tried
        self.tried += 1
        self.built.append(unit.compiled(None if number < self.known else self.check))


def _with(launch: Launch, sizes: torch.Tensor) -> Launch:
    """A kernel at some sizes."""

    def run(tensors: Sequence[torch.Tensor]) -> None:
        launch([*tensors, sizes])

    return run


__all__ = ["Compiled", "Function", "Unit", "Variants", "print_sources"]
