"""Convolutions by few elements as sums of products with shifted inputs.

``y[i] = w[0] x[i - 2] + w[1] x[i - 1] + w[2] x[i]`` is what a causal convolution by three elements means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rewright import ops
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ops.facts import Facts
from rewright.ops.reference import shifted_products as reference


class Convolutions:
    """A convolution is the sum over the places of its kernel of products with shifted inputs."""

    def __init__(self, graph: Graph, known: Sequence[Facts]) -> None:
        self._graph = graph

    def __call__(self, builder: GraphBuilder, position: int, places: Mapping[int, int]) -> int | None:
        """The sum in the place of a convolution by few elements."""
        node = self._graph.nodes[position]
        if not isinstance(node.op, ops.Convolution) or not all(map(self._is_static, node.operands)):
            return None
        x, kernel = (places[p] for p in node.operands)
        return reference.as_products(builder, node.op, x, kernel)

    def _is_static(self, position: int) -> bool:
        return self._graph.nodes[position].type.is_static()
