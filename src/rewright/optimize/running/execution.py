"""Running a plan on torch tensors: kernels through their function pointers, the rest through torch."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from rewright import ops
from rewright.frontends.torch.eager.operators import TORCH, Call, bind_at, constant, numbers
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Node
from rewright.optimize.kernel import Kernel
from rewright.optimize.planning.linear import linear_layers
from rewright.optimize.planning.plan import KernelStep, LibraryStep, Plan, base_of, reads_of, writes
from rewright.optimize.running.linear import bind_linear

Launch = Callable[[Sequence[torch.Tensor]], None]
"""A kernel on its tensors, in the order of its source."""


Values = dict[int, torch.Tensor]
"""Tensors in memory by position."""


class Runner:
    """One plan with its compiled kernels; call it with tensors by input name.

    ``others`` computes parts of the plan otherwise than by their kernels: for the number of a part's first step the
    numbers of its steps, what it reads, what it writes, and a function.
    """

    def __init__(
        self,
        plan: Plan,
        launches: Mapping[str, tuple[tuple[int, ...], Launch]],
        others: Mapping[int, Other] | None = None,
    ) -> None:
        self.plan, self.launches, self.others = plan, launches, dict(others or {})
        nodes = plan.graph.nodes
        self.constants = {p: constant(node) for p, node in enumerate(nodes) if ops.is_table(node.op)}
        self._bound: dict[int, Call] = {}
        library = {step.position for step in plan.steps if isinstance(step, LibraryStep)}
        self._linear = linear_layers(plan.graph, library)
        self.last = _last_uses(plan, self._linear)
        self.steps = [self._step(number) for number in range(len(plan.steps))]

    def __call__(self, inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """The outputs by name; raises RewrightError for a missing input or one of another type."""
        values = self.start(inputs)
        for number in range(len(self.steps)):
            self.run_step(number, values)
        return {name: self.view(position, values) for name, position in self.plan.graph.outputs.items()}

    def start(self, inputs: Mapping[str, torch.Tensor]) -> Values:
        """What is in memory before the first step."""
        values, graph = dict(self.constants), self.plan.graph
        for name, position in graph.inputs.items():
            values[position] = _given_tensor(name, inputs, graph.nodes[position])
        return values

    def run_step(self, number: int, values: Values) -> None:
        """Run one step, and let go of what nothing needs after it."""
        self.steps[number](values)
        for position in self.last.get(number, ()):
            values.pop(position, None)

    def _step(self, number: int) -> Callable[[Values], None]:
        step = self.plan.steps[number]
        if number in self.others:
            return self._other(self.others[number])
        if any(number in other.steps for other in self.others.values()):
            return lambda values: None
        return self._kernel(step.kernel) if isinstance(step, KernelStep) else self._library(step.position)

    def _other(self, other: Other) -> Callable[[Values], None]:
        def run(values: Values) -> None:
            found = other.function(*[values[p] for p in other.given])
            values.update(zip(other.made, found, strict=True))

        return run

    def _kernel(self, kernel: Kernel) -> Callable[[Values], None]:
        tensors, launch = self.launches[kernel.name]
        nodes = self.plan.graph.nodes
        written = [(s.tensor, numbers((kind := nodes[s.tensor].type).shape), TORCH[kind.dtype]) for s in kernel.stores]
        read = next((t for t in tensors if t not in writes(KernelStep(kernel))), None)

        def run(values: Values) -> None:
            device = torch.device("cpu") if read is None else values[read].device
            for position, shape, kind in written:
                values[position] = torch.empty(shape, dtype=kind, device=device)
            launch([values[t] for t in tensors])

        return run

    def _library(self, position: int) -> Callable[[Values], None]:
        node = self.plan.graph.nodes[position]
        if position in self._linear.values():
            return lambda values: None  # with what is added to it
        if position in self._linear:
            call, operands = bind_linear(self.plan.graph, position)
        else:
            call, operands = bind_at(self.plan.graph, position), node.operands

        def run(values: Values) -> None:
            values[position] = call([self.view(p, values) for p in operands]).contiguous()

        return run

    def view(self, position: int, values: Values) -> torch.Tensor:
        """A stored tensor, or a view of one."""
        found = values.get(position)
        if found is not None:
            return found
        node = self.plan.graph.nodes[position]
        if position not in self._bound:
            self._bound[position] = bind_at(self.plan.graph, position)
        return self._bound[position]([self.view(p, values) for p in node.operands])


@dataclass(frozen=True)
class Other:
    """A part of a plan that is computed otherwise than by its kernels."""

    steps: tuple[int, ...]
    given: tuple[int, ...]
    made: tuple[int, ...]
    function: Callable[..., Sequence[torch.Tensor]]


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


def _last_uses(plan: Plan, linear: Mapping[int, int]) -> dict[int, list[int]]:
    """For every step the stored tensors that nothing needs after it; a linear layer is computed where its sum is."""
    pinned = {base_of(plan, p) for p in plan.graph.outputs.values()} | set(plan.graph.outputs.values())
    last: dict[int, int] = {}
    for number, step in enumerate(plan.steps):
        read = reads_of(plan, step)
        if isinstance(step, LibraryStep) and step.position in linear:
            read |= {base_of(plan, p) for p in plan.graph.nodes[linear[step.position]].operands}
        for position in (*read, *writes(step)):
            last[position] = number
    found: dict[int, list[int]] = {}
    for position, number in last.items():
        if position not in pinned and not ops.is_table(plan.graph.nodes[position].op):
            found.setdefault(number, []).append(position)
    return found
