"""Lowering of traced ATen graphs to the IR, in one pass that resolves aliases and in-place operators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.utils import _pytree as pytree

from rewright import ops
from rewright.frontends.aten.context import Context
from rewright.frontends.aten.pruning import prune_graph
from rewright.frontends.aten.ties import with_ties
from rewright.frontends.aten.views import Tensor
from rewright.frontends.torch.drawing.recording import draws_of
from rewright.frontends.torch.lower.placing import PlacingBuilder
from rewright.frontends.torch.lower.sizes import dim_of, type_of
from rewright.frontends.torch.lower.walk import Walk
from rewright.frontends.torch.names import ASSERTED
from rewright.frontends.torch.traced import TracedProgram
from rewright.frontends.unknowns import with_unknowns
from rewright.ir.draws import DRAWS, Draw, text_of
from rewright.ir.errors import CaptureError
from rewright.ir.graph import Graph
from rewright.ir.memory import pause_garbage_collection
from rewright.ops.reference.simplifying import SimplifyingBuilder
from rewright.proof.unwritten import unwritten_places

__all__ = ["finish", "lower", "run"]


def lower(traced: TracedProgram, *, guards_queries: bool = False, opaque: bool = False) -> Graph:
    """The IR graph of a traced program, with its input and output names.

    Views, in-place operators and ``out=`` arguments are resolved, identities dropped, composite functions written by
    their reference functions. Raises UnsupportedOperator naming the operator and its source line, and CaptureError
    where names and graph do not fit. ``guards_queries`` is that of :class:`Context`. With ``opaque`` a call without a
    lowering that only computes is an opaque one, for :func:`rewright.frontends.torch.lower.foreign.run`, and what the
    program asserts is an output, which is not zero where it raises no error.
    """
    builder = PlacingBuilder() if traced.ran else SimplifyingBuilder()
    context = Context(builder, traced.groups, traced.rank, guards_queries=guards_queries)
    with pause_garbage_collection():
        run(Walk(context, traced.spans, {}, opaque), traced)
        return finish(builder.build(), context, traced)


def run(walk: Walk, traced: TracedProgram) -> None:
    """Add a program to the builder of a walk, with its inputs and outputs; raises as :func:`lower` does."""
    builder = walk.c.b
    arguments = _inputs(builder, traced)
    given = {n: a.read(builder) for n, a in zip(traced.inputs, arguments, strict=True) if isinstance(a, Tensor)}
    result = walk.run(traced.module, arguments)
    tensors = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, Tensor)]
    if len(tensors) != len(traced.outputs) + len(traced.perhaps):
        raise CaptureError(f"the program returns {len(tensors)} tensors, and {len(traced.outputs)} names are given")
    for name, tensor in zip(traced.outputs + traced.perhaps, tensors, strict=True):
        position = tensor.read(builder)
        if name not in traced.perhaps or position != given[name.removeprefix("updated:")]:
            builder.output(name, position)
    for number, position in enumerate(walk.asserted):
        builder.output(f"{ASSERTED}{number}", position)


def finish(graph: Graph, context: Context, traced: TracedProgram) -> Graph:
    """The graph that was built, without what nothing needs, and with what it takes for granted."""
    superseded = context.b.superseded
    graph, ties = with_ties(graph, context.ties, superseded)
    graph = prune_graph(graph, superseded, reads=not traced.groups)
    graph = _with_draws(graph, list(draws_of(traced.module, traced.spans)))
    assumed = [*context.assumptions, *_memory(graph), *ties]
    return replace(graph, metadata=graph.metadata | ({"assumptions": "; ".join(assumed)} if assumed else {}))


def _with_draws(graph: Graph, found: Sequence[Draw]) -> Graph:
    """The graph with what it draws, without the numbers that nothing reads."""
    if not found:
        return graph
    counts: Counter[str] = Counter()
    made: dict[str, str] = {}
    for draw in found:
        what = f"random:{draw.kind} at {draw.place}"
        if draw.name not in made:
            counts[what] += 1
            made[draw.name] = f"{what} #{counts[what]}"
    whole = with_unknowns(graph, {name: what for name, what in made.items() if name in graph.inputs})
    return replace(whole, metadata=whole.metadata | {DRAWS: text_of(found)})


def _memory(graph: Graph) -> list[str]:
    """What is taken for granted of memory that is read before anything was written to it."""
    lines = {graph.nodes[position].span: None for position in unwritten_places(graph)}
    return [f"what the memory of {line} holds before it is written are finite numbers" for line in lines]


def _inputs(builder: SimplifyingBuilder, traced: TracedProgram) -> list[Any]:
    """The values of the placeholders: an input for each tensor, a size for each symbolic integer."""
    nodes = [node for node in traced.module.graph.nodes if node.op == "placeholder"]
    if len(nodes) != len(traced.inputs):
        raise CaptureError(f"the program takes {len(nodes)} arguments, and {len(traced.inputs)} names are given")
    values: list[Any] = []
    for node, name in zip(nodes, traced.inputs, strict=True):
        example = node.meta.get("val")
        if isinstance(example, torch.Tensor):
            values.append(Tensor.fresh(builder.input(name, ops.Input(name, type_of(example)))))
        elif isinstance(example, (int, torch.SymInt)) and not isinstance(example, bool):
            values.append(dim_of(example))
        else:
            values.append(example)
    return values
