"""Forward and gradient of one program: eager, Inductor, and ``torch.compile(backend=backend)``."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from bench.optimize import outputs
from bench.optimize.clock import device_to_itself, in_turns
from bench.optimize.memory import peak_of
from bench.optimize.notes import Notes
from bench.optimize.peers import ALONE
from bench.optimize.program import Built, Function, Program
from bench.optimize.times import Wanted
from rewright.optimize.backend import backend

Tensors = list[torch.Tensor]


def measure(notes: Notes, program: Program, wanted: Wanted) -> None:
    """Note times of a step, and errors of its gradients against float64."""
    ends = time.monotonic() + wanted.seconds
    notes.doing("making the program")
    built = program.build(1.0, wanted.dtype, wanted.size, wanted.device)
    said = listening()
    steps: dict[str, Callable[[], Tensors]] = {}
    for peer in (p for p in _MAKERS if p in wanted.peers):
        notes.doing(f"the first steps of {peer}")
        started = time.monotonic()
        try:
            step = gradients_of(replace(built, function=_MAKERS[peer](built.function)))
            for _ in range(2):  # with the second one ours finds out what is fastest
                step()
        except Exception as failure:  # whatever a peer raises, the others are measured
            notes.know(failed={peer: f"{type(failure).__name__}: {str(failure).strip()[:200]}"})
            continue
        notes.know(first={peer: time.monotonic() - started})
        steps[peer] = step
    has_kernels = any(" kernels, " in line for line in said.lines)
    notes.know(status="gradients" if has_kernels else "fallback", reason="; ".join(said.lines))
    if not has_kernels:
        steps.pop(ALONE, None)  # it is Inductor's
    notes.doing("waiting for the device")
    with device_to_itself(wanted.device):
        seconds = 0.5 * max(ends - time.monotonic(), 0.0)
        notes.know(times=in_turns(steps, wanted.rounds, seconds, before=lambda p: notes.doing(f"a step of {p}")))
    notes.doing("memory")
    notes.know(megabytes={peer: peak_of(step, wanted.device) for peer, step in steps.items()})
    notes.doing("float64")
    exact = gradients_of(outputs.in_double(built))()
    notes.know(**{"error 1": {peer: error(step(), exact) for peer, step in steps.items()}})
    notes.doing("the end")


_MAKERS: Mapping[str, Callable[[Function], Function]] = {
    "eager": lambda function: function,
    "inductor": lambda function: torch.compile(function, dynamic=False),
    ALONE: lambda function: torch.compile(function, dynamic=False, backend=backend),
}


def gradients_of(built: Built) -> Callable[[], Tensors]:
    """A step: the outputs, and the gradients of their weighted sum by floating arguments and parameters, if any."""
    args = tuple(_leaf(a) for a in built.args)
    leaves = [a for a in args if isinstance(a, torch.Tensor) and a.requires_grad]
    if isinstance(built.function, torch.nn.Module):
        leaves += [p for p in built.function.parameters() if p.requires_grad]

    weights: Tensors = []

    def step() -> Tensors:
        results = [t for t in outputs.tensors(built.function(*args)) if t.requires_grad]
        if not weights:
            weights.extend(_weights(results))
        found = torch.autograd.grad(results, leaves, weights, allow_unused=True)
        return [*(r.detach() for r in results), *(g for g in found if g is not None)]

    return step


def error(found: Tensors, exact: Tensors) -> float:
    """The largest difference over the largest magnitude of all: some gradients are zero but for rounding."""
    return outputs.error(*([torch.cat([t.double().flatten() for t in every])] for every in (found, exact)))


def _leaf(value: Any) -> Any:
    is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
    return value.detach().clone().requires_grad_() if is_float else value


def _weights(results: Sequence[torch.Tensor]) -> Tensors:
    """What each output is weighted by, different from place to place."""
    rows = [torch.arange(r.numel(), dtype=r.dtype).remainder_(7).add_(1).div_(7) for r in results]
    return [row.view(r.shape) for row, r in zip(rows, results, strict=True)]


def listening() -> Said:
    """What the backend says from now on."""
    said, log = Said(), logging.getLogger("rewright.optimize")
    log.setLevel(logging.INFO)
    log.addHandler(said)
    return said


class Said(logging.Handler):
    """What the backend says of its graphs."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())
