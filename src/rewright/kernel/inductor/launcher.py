"""A program as Inductor compiles it for CUDA: a function of the same arguments that launches Triton kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from rewright.frontends.torch.fakes import Dynamic
from rewright.frontends.torch.trace import quiet, trace
from rewright.kernel.by_names import UPDATED, launcher_of
from rewright.kernel.inductor.executing import load
from rewright.kernel.inductor.generating import generate


def inductor(
    function: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic: Dynamic | None = None,
    edit: Callable[[str], str] | None = None,
) -> Callable[..., dict[str, torch.Tensor]]:
    """What ``torch.compile`` makes of a program for CUDA, as a function of tensors on the CPU.

    It is called with the arguments of ``function``, launches the kernels that Inductor generated, between calls of
    PyTorch's own, and returns results by name. Its attribute ``source`` is the module that Inductor generated, and
    ``assumptions`` what Inductor took for granted of sizes that are symbols. ``edit`` changes the source before it is
    read. Raises CaptureError where the program is not traced, or not compiled.
    """
    traced = trace(function, args, kwargs, dynamic=dynamic)
    generated, constants = generate(traced)
    source = generated.source if edit is None else edit(generated.source)
    with quiet():
        call = load(source)
    inputs, outputs = traced.program.inputs, traced.program.outputs

    def run(given: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        values = [given[name] for name in inputs]
        sizes = [values[number].shape[axis] for number, axis in generated.sizes]
        found = list(call([*sizes, *values, *constants]))
        for place, value in zip(generated.written, found, strict=False):
            values[place].copy_(value)
        results = zip(outputs, found[len(generated.written) :], strict=True)
        return {name: value for name, value in results if not name.startswith(UPDATED)}

    launcher = launcher_of(function, args, kwargs or {}, inputs, run)
    attributes: Any = launcher
    attributes.source, attributes.assumptions = source, generated.assumptions
    return launcher
