"""Claims about small programs, as the proofs of kernels state them."""

from __future__ import annotations

from collections.abc import Mapping

from rewright import ops
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import TensorType
from rewright.terms.claim import Claim


def key_of(claim: Claim) -> tuple[object, ...]:
    """A claim up to the names of its variables, by which those of layers that repeat are one."""
    order = {name: number for number, name in enumerate(claim.left.inputs)}
    sides = (claim.left, claim.right, *((claim.facts,) if claim.facts is not None else ()))
    return tuple((shape_of(side, order), tuple(side.outputs.items())) for side in sides)


def claim_of(sides: list[Graph], facts: Graph | None = None) -> Claim:
    """That two programs are one, given what boolean outputs of a third say; each has the inputs of all."""
    names = {**_inputs(sides[0]), **_inputs(sides[1]), **(_inputs(facts) if facts is not None else {})}
    facts = None if facts is None else _with_inputs(facts, names)
    return Claim(_with_inputs(sides[0], names), _with_inputs(sides[1], names), facts=facts)


def shape_of(graph: Graph, order: Mapping[str, int]) -> tuple[object, ...]:
    """A graph up to the names of its inputs, which are numbered by ``order`` in both sides alike."""
    return tuple(
        ((node.type, order[node.op.label]), ()) if isinstance(node.op, ops.Input) else (node.op, node.operands)
        for node in graph.nodes
    )


def _inputs(graph: Graph) -> dict[str, TensorType]:
    return {name: graph.nodes[position].type for name, position in graph.inputs.items()}


def _with_inputs(graph: Graph, names: Mapping[str, TensorType]) -> Graph:
    """The graph with inputs that it does not read."""
    missing = [n for n in names if n not in graph.inputs]
    if not missing:
        return graph
    builder = GraphBuilder(graph.name)
    places: list[int] = []
    for node in graph.nodes:
        if isinstance(node.op, ops.Input):
            places.append(builder.input(node.op.label, node.op))
        else:
            places.append(builder.add(node.op, *(places[p] for p in node.operands)))
    for name in missing:
        builder.input(name, ops.Input(name, names[name]))
    for name, position in graph.outputs.items():
        builder.output(name, places[position])
    return builder.build()
