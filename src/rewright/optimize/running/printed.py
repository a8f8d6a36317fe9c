"""The Triton kernels that are printed for a plan, proved to compute the program: they are read as any others are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from rewright.frontends.torch.capture import capture
from rewright.kernel.by_names import launcher_of
from rewright.kernel.engine import KernelVerdict
from rewright.kernel.engine import kernel as prove_kernel
from rewright.optimize.kernel import Kernel
from rewright.optimize.planning.outline import Outline
from rewright.optimize.planning.plan import Plan
from rewright.optimize.planning.planner import Planner
from rewright.optimize.planning.preparing import prepare_graph
from rewright.optimize.printing.tiles.kernel import lower
from rewright.optimize.running.bare import Launch
from rewright.optimize.running.execution import Runner
from rewright.optimize.running.triton_launch import load_module, module_text
from rewright.optimize.running.triton_tuning import Tiles, tilings


def prove_printed(
    program: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    plan: Plan | None = None,
    tiles: Callable[[Kernel], Tiles] | None = None,
    budget: float | None = None,
) -> KernelVerdict:
    """Whether the Triton kernels that are printed for a program compute it, beside its calls of PyTorch.

    Args:
        program: a function or module in PyTorch.
        args: its arguments; the kernels are for these sizes.
        kwargs: arguments by name.
        plan: what is printed; by default the plan of the program as it is captured.
        tiles: the sizes of the tiles of each kernel, by default those that a GPU uses without trying others.
        budget: wall-clock seconds of the proof.

    Raises:
        RewrightError: where Triton is not installed, or the program cannot be captured or planned.
    """
    launcher = printed(program, args, kwargs, plan=plan, tiles=tiles)
    return prove_kernel(program, launcher, args, kwargs, budget=budget, explain=False)


def printed(
    program: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    plan: Plan | None = None,
    tiles: Callable[[Kernel], Tiles] | None = None,
) -> Callable[..., dict[str, torch.Tensor]]:
    """A function of a program's arguments that launches what is printed for it; arguments as of :func:`prove_printed`.

    Raises RewrightError where the program cannot be captured or planned.
    """
    given = dict(kwargs or {})
    found = Planner(prepare_graph(capture(program, args, given, guards_queries=True))).plan() if plan is None else plan
    runner = _runner(found, tiles or _first)
    return launcher_of(program, args, given, tuple(found.graph.inputs), runner)


def _first(kernel: Kernel) -> Tiles:
    return tilings(kernel)[0]


def _runner(plan: Plan, tiles: Callable[[Kernel], Tiles]) -> Runner:
    """What runs a plan by launches of its printed kernels, as they are printed for GPUs."""
    module = load_module(module_text(plan))
    launches = {k.name: (lower(plan, k).tensors, _launch(k, getattr(module, k.name), tiles(k))) for k in plan.kernels}
    return Runner(Outline.of(plan), launches)


def _launch(kernel: Kernel, function: Any, tiles: Tiles) -> Launch:
    grid = -(-kernel.row.count // tiles.rows) * math.prod(loop.count for loop in kernel.grid)

    def launch(tensors: Sequence[torch.Tensor]) -> None:
        function[(grid,)](*tensors, **tiles.constants(upcast=False))

    return launch
