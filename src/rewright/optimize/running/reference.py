"""Plans in plain torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from rewright.optimize.planning.outline import Outline
from rewright.optimize.planning.plan import Plan
from rewright.optimize.printing.reference.kernel import lower
from rewright.optimize.printing.reference.renderer import module_text
from rewright.optimize.running.bare import CPU
from rewright.optimize.running.execution import Launch, Runner


def runner(plan: Plan, device: torch.device = CPU) -> Runner:
    """A runner of the plan in plain torch."""
    scope: dict[str, Any] = {}
    exec(compile(module_text(plan), "<kernels>", "exec"), scope)  # text that was printed, and nothing else
    launches = {k.name: (lower(plan, k).tensors, _launch(scope[k.name], device)) for k in plan.kernels}
    return Runner(Outline.of(plan), launches, device=device)


def _launch(function: Any, device: torch.device) -> Launch:
    def launch(tensors: Sequence[torch.Tensor]) -> None:
        with device:  # what the kernel makes is there, whatever the caller's default is
            function(*tensors)

    return launch
