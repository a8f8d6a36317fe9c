"""One sequential torch program as a graph of the IR."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.export import ExportedProgram

from rewright.frontends.torch.fakes import Dynamic
from rewright.frontends.torch.flexible import dense_attention
from rewright.frontends.torch.lower import lower
from rewright.frontends.torch.run.running import run as run_once
from rewright.frontends.torch.run.watching import surroundings
from rewright.frontends.torch.trace import Trace, quiet, trace
from rewright.frontends.torch.validation import programs
from rewright.frontends.torch.validation.calls import Calls
from rewright.frontends.torch.world import without_network
from rewright.ir.errors import CaptureError
from rewright.ir.graph import Graph

Program = Callable[..., Any] | ExportedProgram | torch.fx.GraphModule | str | os.PathLike[str]


def capture(
    program: Program,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    backward: bool = False,
    dynamic: Dynamic | None = None,
    run: bool = False,
    guards_queries: bool = False,
    opaque: bool = False,
    validate: bool = True,
) -> Graph:
    """The graph of a module, a function, an ExportedProgram, a ``.pt2`` file or an fx.GraphModule.

    Inputs are parameters and buffers by qualified name and arguments by parameter name. Outputs are ``output`` or the
    path in what is returned (``logits``, ``loss``), and with ``backward``, or where the function calls ``backward``
    itself, ``grad:<parameter>``. ``dynamic`` keeps sizes symbolic: ``{"input_ids": {0: "batch", 1: "sequence"}}``.
    Arguments may be real, fake or meta tensors; no weight is read. Raises CaptureError and UnsupportedOperator.

    With ``run`` the program runs once on its real tensors and is recorded as it goes, for programs that look at
    values; it is then captured for inputs that give these values, and the graph says under assumptions which they are.

    ``guards_queries`` says what attention gives a query that a mask keeps all keys from: zero, as PyTorch's kernels
    do, where it is set, and else what ``softmax`` written out gives, which is no number. So it is with ``logsumexp``
    of what is infinite, which is infinite, and written out no number, with ``logsigmoid`` of it, and with the floor of
    a quotient, which is by the remainder, as PyTorch's is. With ``opaque`` an operator that is not
    supported is an opaque call, which PyTorch can run, where all that it does is to compute its results. With
    ``validate`` the capture is checked against PyTorch (:mod:`rewright.frontends.torch.validation`).
    """

    def recorded() -> Trace:
        with without_network():
            return trace(program, args, kwargs, backward=backward, dynamic=dynamic, opaque=opaque)

    def lowered(traced: Trace) -> Graph:
        graph = lower(traced.program, guards_queries=guards_queries, opaque=opaque)
        return with_metadata(graph, traced)

    if run:
        with without_network(), quiet(), surroundings(), dense_attention():
            traced = run_once(_runnable(program, dynamic), args, kwargs, backward=backward)
    else:
        traced = recorded()
    graph = lowered(traced)
    if not validate:
        return graph
    calls = Calls(guards_queries=guards_queries)
    calls.add(traced.program)
    with without_network():
        whole = programs.check(traced, graph, lambda: lowered(recorded()))
    return replace(calls.record(), program=whole).attach_to(graph)


def _runnable(program: Program, dynamic: Dynamic | None) -> Callable[..., Any]:
    """The program, if it can be run on real tensors; raises CaptureError where not."""
    if dynamic:
        raise CaptureError("a run has real tensors, whose sizes are numbers; leave dynamic out")
    if not callable(program) or isinstance(program, torch.fx.GraphModule):
        raise CaptureError("a graph that is captured already looks at no values; leave run out")
    return program


def with_metadata(graph: Graph, traced: Trace) -> Graph:
    """The graph with what the trace noted and assumed."""
    lowered = graph.metadata.get("assumptions")
    assumed = [*traced.assumptions, *([lowered] if lowered else [])]
    found = {"notes": "; ".join(traced.notes), "assumptions": "; ".join(assumed)}
    found["buffers"] = json.dumps(traced.buffers) if traced.buffers else ""
    return replace(graph, metadata=graph.metadata | {key: text for key, text in found.items() if text})
