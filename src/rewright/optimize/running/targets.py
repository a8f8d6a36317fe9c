"""Where kernels run: what prints them, builds them, and launches them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import torch

from rewright.frontends.torch.eager.operators import TORCH
from rewright.ir.errors import RewrightError
from rewright.optimize.planning import costs
from rewright.optimize.planning.costs import Machine
from rewright.optimize.planning.outline import Outline
from rewright.optimize.planning.plan import Plan
from rewright.optimize.printing.cpp.renderer import Source, render, translation_unit
from rewright.optimize.printing.loops.context import Tiling
from rewright.optimize.printing.loops.kernel import lower, with_few_rows
from rewright.optimize.printing.reference.renderer import module_text
from rewright.optimize.running import building, reference, triton_launch
from rewright.optimize.running.bare import CPU
from rewright.optimize.running.execution import Runner, native
from rewright.optimize.running.isolation import Isolated

Target = Literal["cpu", "cuda", "torch"]


@dataclass(frozen=True)
class Printed:
    """Generated code: files by name, and what the kernels of the plan are called in it."""

    target: Target
    files: Mapping[str, str]
    sources: tuple[Source, ...] = ()
    small: tuple[Source, ...] = ()
    library: Path | None = None
    """Where it was compiled to."""


def choose(target: Target | None, tensors: Sequence[torch.Tensor]) -> Target:
    """The target that was asked for, or the one where the tensors are; raises RewrightError for another word."""
    if target is None:
        return "cuda" if any(t.is_cuda for t in tensors) else "cpu"
    if target not in get_args(Target):
        raise RewrightError(f"target {target!r} is none of {', '.join(get_args(Target))}; use one of these")
    return target


def device_of(target: Target, tensors: Sequence[torch.Tensor]) -> torch.device:
    """Where a target computes: where the tensors are, else on a GPU for ``cuda``.

    Raises RewrightError where the tensors are elsewhere, or there is no GPU and kernels are not interpreted.
    """
    device = next((t.device for t in tensors if t.is_cuda), None)
    if target == "torch":
        return device or CPU
    if target == "cpu":
        if device is not None:
            raise RewrightError("target 'cpu' is for tensors of the CPU; move the arguments, or use target='cuda'")
        return CPU
    if os.environ.get("TRITON_INTERPRET") == "1":
        return device or CPU
    if not torch.cuda.is_available():
        raise RewrightError("target 'cuda' has no GPU here; run Python with TRITON_INTERPRET=1, or use target='cpu'")
    if device is None and tensors:
        raise RewrightError("target 'cuda' is for tensors of the GPU; move the arguments, or use target='cpu'")
    return device or torch.device("cuda", torch.cuda.current_device())


def machine(target: Target, device: torch.device = CPU) -> Machine:
    """The machine that the cost model of a target is about: rough figures; only their ratios matter."""
    if target == "cuda":
        cuda: Any = torch.cuda
        units = int(cuda.get_device_properties(device).multi_processor_count) if device.type == "cuda" else 108
        return Machine("the GPU", units, 1e12, 2e12, 5e-6, 64, 256, 3e12)
    units = torch.get_num_threads() if target == "cpu" else 1
    return replace(costs.CPU, name="the CPU" if target == "cpu" else "torch", units=units)


def is_timed(target: Target) -> bool:
    """Whether times on a target mean something: not those of plain torch, nor of kernels that are interpreted."""
    return target == "cpu" or (target == "cuda" and torch.cuda.is_available())


def print_kernels(target: Target, plan: Plan, small: Plan | None) -> Printed:
    """The code of all kernels, and of those of the small plan that they are tested with."""
    if target == "torch":
        return Printed("torch", {"kernels.py": module_text(plan)})
    if target == "cuda":
        return Printed("cuda", {"kernels.py": triton_launch.module_text(plan)})
    few = with_few_rows(plan.kernels)
    sources = tuple(render(lower(plan.graph, plan.table, k, reads_rows=k.name in few)) for k in plan.kernels)
    tests: tuple[Source, ...] = ()
    if small is not None:
        tiny = Tiling(6, 16)
        tests = tuple(render(lower(small.graph, small.table, k, tiny, "small_", k.name in few)) for k in small.kernels)
    return Printed("cpu", {"kernels.cpp": translation_unit(sources)}, sources, tests)


def runners(
    target: Target, plan: Plan, small: Plan | None, code: Printed, device: torch.device = CPU
) -> tuple[Runner, Runner | None, Printed]:
    """Runners of the plan and of the small one, whose kernels in C++ have their own process; and what was built."""
    if target == "torch":
        return reference.runner(plan, device), None if small is None else reference.runner(small, device), code
    if target == "cuda":
        tested = None if small is None else triton_launch.runner(small, device, tune=False)
        return triton_launch.runner(plan, device), tested, code
    library = building.build(translation_unit([*code.sources, *code.small]))
    first = {
        k.name: (s.tensors, native(getattr(library, s.name), torch.get_num_threads))
        for k, s in zip(plan.kernels, code.sources, strict=True)
    }
    built = replace(code, library=Path(library._name))
    if small is None:
        return Runner(Outline.of(plan), first), None, built
    child = Isolated(Path(library._name))
    second = {
        k.name: (s.tensors, child.launch(s.name, [s.tensors.index(t) for t in s.written], torch.get_num_threads))
        for k, s in zip(small.kernels, code.small, strict=True)
    }
    return Runner(Outline.of(plan), first), Runner(Outline.of(small), second), built


__all__ = ["TORCH", "Machine", "Printed", "Target", "choose", "machine", "print_kernels", "runners"]
