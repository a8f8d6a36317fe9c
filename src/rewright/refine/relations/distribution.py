"""Rank programs that distribute nothing: a proof of these says nothing about a plan."""

from __future__ import annotations

from dataclasses import replace

from rewright import ops
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.refine.verdict import Verdict


def with_distribution(verdict: Verdict, sequential: Graph, program: RankProgram) -> Verdict:
    """A proof, if something is distributed; else ``unknown``, for whoever said nothing of how ranks hold tensors."""
    if program.inputs:
        return verdict  # the program itself says how ranks hold tensors
    graphs = program.graphs
    if verdict.status != "proved" or len(graphs) < 2 or any(_is_part(sequential, graph) for graph in graphs):
        return verdict
    reason = (
        f"nothing is distributed over {len(graphs)} ranks: none calls a collective, and each holds every tensor whole, "
        "as one device does; apply the plan, or state under [relations] that it is meant"
    )
    return replace(verdict, status="unknown", reason=reason, certify=None)


def _is_part(sequential: Graph, graph: Graph) -> bool:
    """Whether a rank holds a part of a tensor, or takes part in a collective."""
    pairs = (sequential.inputs, graph.inputs), (sequential.outputs, graph.outputs)
    shared = [(own[name], other[name]) for own, other in pairs for name in own if name in other]
    if any(sequential.nodes[p].type.shape != graph.nodes[q].type.shape for p, q in shared):
        return True
    return any(isinstance(node.op, ops.Collective) for node in graph.nodes)
