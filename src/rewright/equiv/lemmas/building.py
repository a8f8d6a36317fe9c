"""What nodes compute that depend on few inputs, or on none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rewright import ops
from rewright.interp.program import run_nodes
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.rebuilding import remove_dead_nodes
from rewright.ops.base import Array


def values_of(graph: Graph, wanted: Iterable[int], inputs: Mapping[str, Array] | None = None) -> dict[int, Array]:
    """The float64 values of nodes, which depend on no inputs but these; none where an operator cannot be executed."""
    part = remove_dead_nodes(Graph(graph.nodes, {}, {str(p): p for p in wanted}), alone=True)
    needed = {node.op.label for node in part.nodes if isinstance(node.op, ops.Input)}
    given = {name: value for name, value in (inputs or {}).items() if name in needed}
    try:
        values = run_nodes(part, given, list(part.outputs.values()))
    except RewrightError:
        return {}
    return {int(name): values[position] for name, position in part.outputs.items()}
