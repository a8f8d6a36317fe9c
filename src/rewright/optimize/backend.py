"""``torch.compile(model, backend="rewright")``."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch

from rewright.optimize.api import optimize

_LOG = logging.getLogger("rewright.optimize")


def backend(
    module: torch.fx.GraphModule, examples: Sequence[Any], *, options: Mapping[str, Any] | None = None, **_: object
) -> Callable[..., Any]:
    """What ``torch.compile`` calls with each graph: the kernels, or where there are none, what Inductor makes of it.

    ``options`` are those of :func:`rewright.optimize.api.optimize`: ``target``, ``allow``, ``budget``, ``verify``.
    The reason for that is logged in one line. Backward is Inductor's: graphs that a gradient is asked of are left to
    it.
    """
    why = _unsupported(module, examples)
    if not why:
        found = optimize(module, list(examples), **dict(options or {}))
        if found.runner is not None and found.graph is not None:
            _LOG.info("%d kernels, %s%s", len(found.plan.kernels) if found.plan else 0, found.status, found.left_out)
            return found
        why = found.reason
    _LOG.warning("left to Inductor: %s", why)
    from torch._inductor.compile_fx import compile_fx

    return cast("Callable[..., Any]", compile_fx(module, list(examples)))


def _unsupported(module: torch.fx.GraphModule, examples: Sequence[Any]) -> str:
    """Why a graph is not taken, before it is looked at closely."""
    if not all(isinstance(e, torch.Tensor) for e in examples):
        return "sizes that change between calls; use dynamic=False"
    if torch.is_grad_enabled() and any(e.requires_grad for e in examples):
        return "a gradient may be asked for, and kernels have none; call it under torch.no_grad()"
    results = next(node for node in module.graph.nodes if node.op == "output").args[0]
    every = cast("Sequence[Any]", results if isinstance(results, (list, tuple)) else [results])
    for result in every:
        if not isinstance(result, torch.fx.Node) or not isinstance(
            result.meta.get("example_value", torch.empty(0)), torch.Tensor
        ):
            return "a result that is no tensor"
    return ""
