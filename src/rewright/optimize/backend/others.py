"""What runs where there are no kernels: the graph as Inductor compiles it, else as it is."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch

from rewright.ir.errors import RewrightError
from rewright.optimize.floor.peers import are_read_wrongly, compile_program

_LOG = logging.getLogger("rewright.optimize")
Call = Callable[..., Any]


def by_inductor(module: torch.fx.GraphModule, arguments: Sequence[Any]) -> Call:
    """The graph by Inductor for such arguments; as it is where that fails, or where an argument has no elements."""
    if any(isinstance(a, torch.Tensor) and not a.numel() for a in arguments):
        return module.forward
    try:
        return _by_inductor(module, arguments)
    except Exception as error:
        _LOG.warning("left to eager PyTorch: Inductor does not compile it (%s)", said(error))
        return module.forward


def _by_inductor(module: torch.fx.GraphModule, arguments: Sequence[Any]) -> Call:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what PyTorch says to itself
        return compile_program(module, arguments)


def by_inductor_for_all_sizes(module: torch.fx.GraphModule, backend: str = "inductor") -> Call:
    """The graph by Inductor, or another compiler, with guards of its own, where its sizes may be any."""
    compiled: Call = cast("Any", torch).compile(module, dynamic=True, backend=backend)

    def call(*arguments: Any) -> Any:
        if are_read_wrongly(arguments):
            return module.forward(*arguments)
        return compiled(*arguments)

    return call


def said(error: Exception) -> str:
    """An error in one line."""
    text = str(error).strip().partition("\n")[0]
    if isinstance(error, RewrightError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
