"""One sequential torch program as a graph of the IR."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.export import ExportedProgram

from rewright.frontends.torch.fakes import Dynamic
from rewright.frontends.torch.lower import lower
from rewright.frontends.torch.trace import Trace, trace
from rewright.frontends.torch.world import without_network
from rewright.ir.graph import Graph

Program = Callable[..., Any] | ExportedProgram | torch.fx.GraphModule | str | os.PathLike[str]


def capture(
    program: Program,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    backward: bool = False,
    dynamic: Dynamic | None = None,
) -> Graph:
    """The graph of a module, a function, an ExportedProgram, a ``.pt2`` file or an fx.GraphModule.

    Inputs are parameters and buffers by qualified name and arguments by parameter name. Outputs are ``output`` or the
    path in what is returned (``logits``, ``loss``), and with ``backward``, or where the function calls ``backward``
    itself, ``grad:<parameter>``. ``dynamic`` keeps sizes symbolic: ``{"input_ids": {0: "batch", 1: "sequence"}}``.
    Arguments may be real, fake or meta tensors; no weight is read. Raises CaptureError and UnsupportedOperator.
    """
    with without_network():
        traced = trace(program, args, kwargs, backward=backward, dynamic=dynamic)
    return with_metadata(lower(traced.program), traced)


def with_metadata(graph: Graph, traced: Trace) -> Graph:
    """The graph with what the trace noted and assumed."""
    lowered = graph.metadata.get("assumptions")
    assumed = [*traced.assumptions, *([lowered] if lowered else [])]
    found = {"notes": "; ".join(traced.notes), "assumptions": "; ".join(assumed)}
    return replace(graph, metadata=graph.metadata | {key: text for key, text in found.items() if text})
