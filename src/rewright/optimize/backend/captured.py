"""A graph that Dynamo guards, captured at the sizes of some arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from rewright.frontends.torch.capture import capture
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.optimize.backend.plain import Plain, plain_graph
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

    @staticmethod
    def of(module: torch.fx.GraphModule, arguments: Sequence[Any]) -> Captured:
        """Capture a graph; raises RewrightError where kernels cannot do what it does."""
        plain = plain_graph(module, arguments)
        examples = plain.examples(arguments)
        returned = returned_by(plain, examples)
        if not returned.computed:
            return Captured(plain, examples, returned, None)
        with CAPTURING:
            graph = capture(returned.module, examples, guards_queries=True, opaque=True)
        if any(name.startswith(UPDATED) for name in graph.outputs):
            raise RewrightError("it writes to its arguments")
        return Captured(plain, examples, returned, graph)

    @property
    def given(self) -> dict[str, torch.Tensor]:
        """The examples by name."""
        return dict(zip(self.plain.names, self.examples, strict=True))


__all__ = ["Captured"]
