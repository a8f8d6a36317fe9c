"""A graph that Dynamo guards, captured at the sizes of some arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from rewright.frontends.torch.capture import capture
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.optimize.backend.plain import Plain, is_flexible, plain_graph
from rewright.optimize.backend.returned import Returned, returned_by
from rewright.optimize.calls.dispatch import CAPTURING
from rewright.optimize.calls.results import UPDATED


@dataclass(frozen=True)
class Captured:
    """A graph at the sizes of its arguments, and as Rewright has it."""

    plain: Plain
    examples: Sequence[torch.Tensor]
    returned: Returned
    graph: Graph | None
    """None where it computes nothing."""
    program: torch.fx.GraphModule
    """What PyTorch runs in place of kernels: the graph itself, or where it draws or has symbols, the plain one."""
    arguments: tuple[Any, ...]
    """Its arguments."""

    @staticmethod
    def of(module: torch.fx.GraphModule, arguments: Sequence[Any]) -> Captured:
        """Capture a graph; raises RewrightError where kernels cannot do what it does."""
        plain = plain_graph(module, arguments)
        examples = plain.examples(arguments)
        returned = returned_by(plain, examples)
        own = not plain.draws and not is_flexible(module)
        program, given = (module, tuple(arguments)) if own else (plain.module, tuple(examples))
        if not returned.computed:
            return Captured(plain, examples, returned, None, program, given)
        with CAPTURING:
            graph = capture(returned.module, examples, guards_queries=True, opaque=True)
        if any(name.startswith(UPDATED) for name in graph.outputs):
            raise RewrightError("it writes to its arguments")
        return Captured(plain, examples, returned, graph, program, given)

    def call(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """What computes the program, called as the graph that was captured."""
        return self.plain.call(function) if self.program is self.plain.module else function

    @property
    def given(self) -> dict[str, torch.Tensor]:
        """The examples by name."""
        return dict(zip(self.plain.names, self.examples, strict=True))


__all__ = ["Captured"]
