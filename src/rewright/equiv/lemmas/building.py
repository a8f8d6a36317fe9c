"""Graphs made from other graphs: parts cut out, and parts put in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rewright import ops
from rewright.interp.program import run_nodes
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.rebuilding import pruned, rebuilt
from rewright.ir.types import TensorType
from rewright.ops.base import Array
from rewright.proof.rewriting.parts import converted, copy_nodes, depends_on_inputs


def values_of(graph: Graph, wanted: Iterable[int], inputs: Mapping[str, Array] | None = None) -> dict[int, Array]:
    """The float64 values of nodes, which depend on no inputs but these; none where an operator cannot be executed."""
    part = pruned(Graph(graph.nodes, {}, {str(p): p for p in wanted}), alone=True)
    needed = {node.op.label for node in part.nodes if isinstance(node.op, ops.Input)}
    given = {name: value for name, value in (inputs or {}).items() if name in needed}
    try:
        values = run_nodes(part, given, list(part.outputs.values()))
    except RewrightError:
        return {}
    return {int(name): values[position] for name, position in part.outputs.items()}


def cut(graph: Graph, positions: Sequence[int], leaves: Mapping[int, str], types: Mapping[str, TensorType]) -> Graph:
    """A part of a graph as a program of its own: ``positions`` in order, the last one its output.

    ``leaves`` names what it reads from outside; ``types`` are those of the inputs, which are reshaped and cast where
    the graph has another shape or float type. Raises TypeMismatch where the sizes do not agree.
    """
    builder = GraphBuilder("part")
    places: dict[int, int] = {}
    for position, name in leaves.items():
        known = builder.build().inputs.get(name)
        place = builder.input(name, ops.Input(name, types[name])) if known is None else known
        kind = graph.nodes[position].type
        shaped = place if types[name].shape == kind.shape else builder.add(ops.Reshape(kind.shape), place)
        places[position] = converted(builder, shaped, kind)
    copy_nodes(builder, graph, positions, places)
    builder.output("result", places[positions[-1]])
    return builder.build()


__all__ = ["converted", "copy_nodes", "cut", "depends_on_inputs", "pruned", "rebuilt", "values_of"]
