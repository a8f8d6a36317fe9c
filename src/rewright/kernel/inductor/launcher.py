"""A program as Inductor compiles it for CUDA: a function of the same arguments that launches Triton kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import torch

from rewright.frontends.torch.fakes import Dynamic
from rewright.frontends.torch.names import bind_arguments, leaves
from rewright.frontends.torch.owners import Owners
from rewright.frontends.torch.trace import trace
from rewright.ir.errors import CaptureError
from rewright.kernel.inductor.executing import load
from rewright.kernel.inductor.generating import generate

_GRADIENT = "grad:"


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
    call = load(source)
    forward = function.forward if isinstance(function, torch.nn.Module) else function
    owners = Owners.of(function, bind_arguments(forward, args, kwargs or {}))
    inputs, outputs = traced.program.inputs, traced.program.outputs

    @wraps(forward)
    def launcher(*args: Any, **kwargs: Any) -> dict[str, torch.Tensor]:
        bound = bind_arguments(forward, args, kwargs)
        given = dict(leaf for name, value in bound.items() for leaf in leaves(name, value))
        known: dict[str, Any] = {**owners.parameters(), **owners.buffers(), **given}
        missing = [name for name in inputs if name not in known]
        if missing:
            raise CaptureError(f"the state {', '.join(missing)} of a program is not handed to what Inductor generated")
        values = [known[name] for name in inputs]
        with torch.no_grad():
            sizes = [values[number].shape[axis] for number, axis in generated.sizes]
            found = list(call([*sizes, *(v.detach() for v in values), *constants]))
            for place, value in zip(generated.written, found, strict=False):
                values[place].copy_(value)
        results = dict(zip(outputs, found[len(generated.written) :], strict=False))
        for name in [name for name in results if name.startswith(_GRADIENT)]:
            known[name.removeprefix(_GRADIENT)].grad = results.pop(name)
        return {name: value for name, value in results.items() if not name.startswith("updated:")}

    attributes: Any = launcher
    attributes.source, attributes.assumptions = source, generated.assumptions
    attributes.owners = owners
    return launcher
