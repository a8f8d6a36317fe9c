"""What runs on tensors by name, as a function of the arguments of the program that it stands for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import torch

from rewright.frontends.torch.names import bind_arguments, leaves
from rewright.frontends.torch.owners import Owners
from rewright.ir.errors import CaptureError

GRADIENT = "grad:"
UPDATED = "updated:"
Run = Callable[[Mapping[str, torch.Tensor]], Mapping[str, torch.Tensor]]


def launcher_of(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    inputs: Sequence[str],
    run: Run,
) -> Callable[..., dict[str, torch.Tensor]]:
    """A function of a program's arguments that gives ``run`` its inputs by name.

    Inputs and results are named as :func:`rewright.capture` names them. Gradients are left in ``grad``, and new values
    of inputs in them; all other results are returned by name. Raises CaptureError for an input that is no argument,
    parameter or buffer, when it is called.
    """
    forward = function.forward if isinstance(function, torch.nn.Module) else function
    owners = Owners.of(function, bind_arguments(forward, args, kwargs))

    @wraps(forward)
    def launcher(*args: Any, **kwargs: Any) -> dict[str, torch.Tensor]:
        bound = bind_arguments(forward, args, kwargs)
        given = dict(leaf for name, value in bound.items() for leaf in leaves(name, value))
        known: dict[str, Any] = {**owners.parameters(), **owners.buffers(), **given}
        missing = [name for name in inputs if name not in known]
        if missing:
            raise CaptureError(f"the state {', '.join(missing)} of a program is not handed to its kernels")
        with torch.no_grad():
            results = dict(run({name: known[name].detach() for name in inputs}))
            for name in [name for name in results if name.startswith(UPDATED)]:
                known[name.removeprefix(UPDATED)].copy_(results.pop(name))
        for name in [name for name in results if name.startswith(GRADIENT)]:
            known[name.removeprefix(GRADIENT)].grad = results.pop(name)
        return results

    attributes: Any = launcher
    attributes.owners = owners
    return launcher
