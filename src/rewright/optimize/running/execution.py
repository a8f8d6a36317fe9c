"""Running a plan on torch tensors: kernels through their function pointers, the rest through torch."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from rewright import ops
from rewright.frontends.torch.eager.operators import TORCH, constant, library, numbers
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Node
from rewright.optimize.planning.plan import KernelStep, Plan, Step, base_of, reads_of, writes

Launch = Callable[[Sequence[torch.Tensor]], None]
"""A kernel on its tensors, in the order of its source."""


class Runner:
    """One plan with its compiled kernels; call it with tensors by input name."""

    def __init__(self, plan: Plan, launches: Mapping[str, tuple[tuple[int, ...], Launch]]) -> None:
        self.plan, self.launches = plan, launches
        self.constants = {p: constant(node) for p, node in enumerate(plan.graph.nodes) if ops.is_table(node.op)}
        self.last = _last_uses(plan)

    def __call__(self, inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """The outputs by name; raises RewrightError for a missing input or one of another type."""
        graph = self.plan.graph
        values = dict(self.constants)
        device: torch.device | None = None
        for name, position in graph.inputs.items():
            values[position] = _given_tensor(name, inputs, graph.nodes[position])
            device = values[position].device
        for number, step in enumerate(self.plan.steps):
            self._run(step, values, device or torch.device("cpu"))
            for position in self.last.get(number, ()):
                values.pop(position, None)
        return {name: self.view(position, values) for name, position in graph.outputs.items()}

    def _run(self, step: Step, values: dict[int, torch.Tensor], device: torch.device) -> None:
        if isinstance(step, KernelStep):
            tensors, launch = self.launches[step.kernel.name]
            written = writes(step)
            for position in written:
                kind = self.plan.graph.nodes[position].type
                values[position] = torch.empty(numbers(kind.shape), dtype=TORCH[kind.dtype], device=device)
            launch([values[t] for t in tensors])
            return
        node = self.plan.graph.nodes[step.position]
        operands = [self.view(p, values) for p in node.operands]
        values[step.position] = library(node, operands).contiguous()

    def view(self, position: int, values: dict[int, torch.Tensor]) -> torch.Tensor:
        """A stored tensor, or a view of one."""
        if position in values:
            return values[position]
        node = self.plan.graph.nodes[position]
        return library(node, [self.view(p, values) for p in node.operands])


def native(function: Any, threads: Callable[[], int]) -> Launch:
    """A function of a shared library as a launch."""
    function.restype = None

    def launch(tensors: Sequence[torch.Tensor]) -> None:
        pointers = (ctypes.c_void_p * len(tensors))(*[t.data_ptr() for t in tensors])
        function(pointers, ctypes.c_long(threads()))

    return launch


def _given_tensor(name: str, inputs: Mapping[str, torch.Tensor], node: Node) -> torch.Tensor:
    if name not in inputs:
        raise RewrightError(f"input {name!r} has no value; give a tensor of type {node.type} under that name")
    value = inputs[name]
    if tuple(value.shape) != numbers(node.type.shape) or value.dtype != TORCH[node.type.dtype]:
        raise RewrightError(
            f"input {name!r} must be a tensor of type {node.type} and is {value.dtype} of shape {list(value.shape)}; "
            "optimize the program for these sizes"
        )
    return value.detach().contiguous()


def _last_uses(plan: Plan) -> dict[int, list[int]]:
    """For every step the stored tensors that nothing needs after it."""
    pinned = {base_of(plan, p) for p in plan.graph.outputs.values()} | set(plan.graph.outputs.values())
    last: dict[int, int] = {}
    for number, step in enumerate(plan.steps):
        for position in (*reads_of(plan, step), *writes(step)):
            last[position] = number
    found: dict[int, list[int]] = {}
    for position, number in last.items():
        if position not in pinned and not ops.is_table(plan.graph.nodes[position].op):
            found.setdefault(number, []).append(position)
    return found
