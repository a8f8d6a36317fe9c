"""Running what a plan became, with PyTorch alone: packages carry this file as it is.

A manifest is JSON. ``inputs`` are ``[name, place, shape, dtype]``, ``outputs`` are places by name. A step is a kernel,
``{"kernel": name, "tensors": places, "writes": [[place, shape, dtype], ..]}``, or a call of a library,
``{"call": name, "arguments": .., "operands": places, "writes": [[place]]}``; ``gone`` are places that nothing needs
after it. A step that is neither does nothing. ``views`` are calls, by place, that take no memory.
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

Values = dict[int, torch.Tensor]
"""Tensors in memory by place."""
Step = Callable[[Values], None]
Launch = Callable[[Sequence[torch.Tensor]], None]
"""A kernel on its tensors, in the order of its source."""
Call = Callable[[Sequence[torch.Tensor]], torch.Tensor]
CPU = torch.device("cpu")


Part = Callable[[Mapping[str, torch.Tensor]], Mapping[str, torch.Tensor]]
"""What computes some steps otherwise, on tensors by name."""


def _nothing(values: Values) -> None:
    """A step whose work another one does."""


class Steps:
    """The steps of a manifest; ``launches`` are its kernels by name, and ``bind`` finds the function of a call.

    Everything is on one device, and inputs that are elsewhere are brought there.
    """

    def __init__(
        self,
        manifest: Mapping[str, Any],
        constants: Mapping[int, torch.Tensor],
        launches: Mapping[str, Launch],
        bind: Callable[[Mapping[str, Any]], Call],
        device: torch.device = CPU,
    ) -> None:
        self.device = device
        self.inputs = [
            (name, place, tuple(shape), getattr(torch, kind)) for name, place, shape, kind in manifest["inputs"]
        ]
        self.outputs: dict[str, int] = dict(manifest["outputs"])
        self.constants = {place: value.to(device) for place, value in constants.items()}
        self.gone: list[list[int]] = [list(step["gone"]) for step in manifest["steps"]]
        views: Mapping[Any, Any] = manifest["views"]
        self.views = {int(p): (self.bound(v, bind), tuple(v["operands"])) for p, v in views.items()}
        self.steps = [self.made(step, launches, bind) for step in manifest["steps"]]
        new = {place for step in manifest["steps"] if "kernel" in step for place, _, _ in step["writes"]}
        self.fresh = frozenset(name for name, place in self.outputs.items() if place in new)
        """The outputs that kernels write, to memory that nothing else has but another output of the same place."""

    def __call__(self, inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """The outputs by name, from inputs by name; raises ValueError for one that is missing or of another type."""
        values = self.start(inputs)
        for step, gone in zip(self.steps, self.gone, strict=True):
            step(values)
            for place in gone:
                values.pop(place, None)
        found: dict[str, torch.Tensor] = {}
        for name, place in self.outputs.items():
            value = values.get(place)
            found[name] = self.view(place, values) if value is None else value
        return found

    def start(self, inputs: Mapping[str, torch.Tensor]) -> Values:
        """What is in memory before the first step."""
        values = dict(self.constants)
        for name, place, shape, kind in self.inputs:
            value = inputs.get(name)
            if value is None:
                raise ValueError(f"input {name!r} has no value; give a tensor under that name")
            if value.shape != shape or value.dtype != kind:
                raise ValueError(
                    f"input {name!r} must be a tensor of {kind} of shape {list(shape)} and is {value.dtype} of shape "
                    f"{list(value.shape)}; optimize the program for these sizes"
                )
            is_plain = value.is_contiguous() and value.device == self.device and not value.requires_grad
            values[place] = value if is_plain else value.detach().to(self.device).contiguous()
        return values

    def run_step(self, number: int, values: Values) -> None:
        """Run one step, and let go of what nothing needs after it."""
        self.steps[number](values)
        for place in self.gone[number]:
            values.pop(place, None)

    def view(self, place: int, values: Values) -> torch.Tensor:
        """A tensor in memory, or a view of one."""
        found = values.get(place)
        if found is not None:
            return found
        call, operands = self.views[place]
        return call([self.view(p, values) for p in operands])

    def made(
        self,
        step: Mapping[str, Any],
        launches: Mapping[str, Launch],
        bind: Callable[[Mapping[str, Any]], Call],
    ) -> Step:
        """What runs a step."""
        if "kernel" in step:
            return self.kernel(step, launches[step["kernel"]])
        return self.call(step, bind) if "call" in step else _nothing

    def bound(self, entry: Mapping[str, Any], bind: Callable[[Mapping[str, Any]], Call]) -> Call:
        """The function of a call; one of no tensors makes its own on the device of all others."""
        function = bind(entry)
        if entry["operands"]:
            return function

        def make(operands: Sequence[torch.Tensor]) -> torch.Tensor:
            with self.device:
                return function(operands)

        return make

    def replace(self, steps: Sequence[int], given: Sequence[int], made: Sequence[int], part: Part) -> None:
        """Compute some steps otherwise, when the first of them is due: from tensors that are ``t`` and their place."""

        def run(values: Values) -> None:
            found = part({f"t{p}": values[p] for p in given})
            values.update({p: found[f"t{p}"] for p in made})

        self.fresh -= {name for name, place in self.outputs.items() if place in made}
        for number in steps:
            self.steps[number] = run if number == steps[0] else _nothing

    def kernel(self, step: Mapping[str, Any], launch: Launch) -> Step:
        """A kernel, which writes to new memory."""
        tensors: list[int] = step["tensors"]
        device, types = self.device, step["writes"]
        written = [(place, tuple(shape), _strides(shape), getattr(torch, kind)) for place, shape, kind in types]

        def run(values: Values) -> None:
            for place, shape, strides, kind in written:
                values[place] = torch.empty_strided(shape, strides, dtype=kind, device=device)
            launch([values[t] for t in tensors])

        return run

    def call(self, step: Mapping[str, Any], bind: Callable[[Mapping[str, Any]], Call]) -> Step:
        """A call of a library."""
        function, operands = self.bound(step, bind), tuple(step["operands"])
        ((place, *kinds),) = step["writes"]
        kind = getattr(torch, kinds[0]) if kinds else None

        def run(values: Values) -> None:
            found = function([self.view(p, values) for p in operands])
            values[place] = (found if kind is None else found.to(kind)).contiguous()

        return run


def _strides(shape: Sequence[int]) -> tuple[int, ...]:
    """The steps of a tensor that lies in memory row by row."""
    found, step = [0] * len(shape), 1
    for axis in reversed(range(len(shape))):
        found[axis], step = step, step * max(shape[axis], 1)
    return tuple(found)


def native(function: Any, threads: Callable[[], int]) -> Launch:
    """A function of a shared library as a launch."""
    function.restype, function.argtypes = None, (ctypes.c_void_p, ctypes.c_long)
    arrays: dict[int, Any] = {}

    def launch(tensors: Sequence[torch.Tensor]) -> None:
        kind = arrays.get(len(tensors))
        if kind is None:
            kind = arrays[len(tensors)] = ctypes.c_void_p * len(tensors)
        function(kind(*[t.data_ptr() for t in tensors]), threads())

    return launch


class Domain:
    """Where a program is defined, as far as that depends on values: a manifest, and conditions on its outputs.

    A condition is ``[output, size, part, words]``: the numbers of the output are not zero where there is no size, else
    they are indices below it; ``part`` is the axis and the number of one component of index vectors, or none.
    """

    def __init__(self, document: Mapping[str, Any], constants: Mapping[int, torch.Tensor], bind: Any) -> None:
        self.steps = Steps(document["manifest"], constants, {}, bind)
        self.conditions: list[Any] = list(document["conditions"])

    def violation(self, inputs: Mapping[str, torch.Tensor]) -> str:
        """The first condition that does not hold, in words; empty where all do."""
        found = self.steps(inputs) if self.conditions else {}
        for name, below, part, words in self.conditions:
            if not holds(found[name], below, part):
                return str(words)
        return ""


def holds(value: torch.Tensor, below: int | None, part: Sequence[int] | None) -> bool:
    """Whether no number is zero, or all are indices below a size; ``part`` is one component of index vectors."""
    if not value.numel():
        return True
    if below is None:
        return bool((value != 0).all())
    low, high = torch.aminmax(value if part is None else value.select(*part))
    return bool(low >= 0) and bool(high < below)


def processor() -> set[str]:
    """What compiled code may need of this processor: its type, and what Linux says it can do; elsewhere, its name."""
    try:
        with open("/proc/cpuinfo") as file:
            found = next((line for line in file if line.startswith(("flags", "Features"))), "")
    except OSError:
        found = ""
    features = set(found.partition(":")[2].split()) or {f"the name {platform.node()}"}
    return features | {f"type {platform.machine()}"}
