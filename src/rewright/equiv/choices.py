"""Choices of the largest elements under functions that keep their order.

A router may choose among logits or among what a softmax makes of them: the choice is the same, since the
elements of a row grow together with what they are made of by one function. Where programs choose after different
functions, each ``top_k`` gets the tensor in front of them, and the functions are applied to the values that it chose.
This is exact over the real numbers; equal elements stay equal, so that the first of them is chosen either way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rewright import ops
from rewright.analysis.values import facts_where_defined
from rewright.equiv.building import rebuilt
from rewright.ir.dims import Shape
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ops.facts import Facts

_GROWING = (ops.Exponential, ops.Logistic, ops.Tanh)
_DEEPEST = 32


def chosen_alike(graphs: Sequence[Graph]) -> tuple[Graph, ...]:
    """The programs with their choices made among the tensors in front of functions that keep the order.

    They are returned as they are where all of them choose after the same functions.
    """
    known = facts_where_defined(graphs)
    found = [_Choices(graph, facts) for graph, facts in zip(graphs, known, strict=True)]
    if all(choices.functions == found[0].functions for choices in found):
        return tuple(graphs)
    return tuple(choices.rewritten() for choices in found)


class _Choices:
    """What a program chooses among."""

    def __init__(self, graph: Graph, known: Sequence[Facts]) -> None:
        self._graph, self._known = graph, known
        self._chains: dict[int, list[int]] = {}
        functions: set[tuple[str, ...]] = set()
        for position in sorted(graph.live()):
            node = graph.nodes[position]
            if isinstance(node.op, ops.TopK) and graph.nodes[node.operands[0]].type.dtype.is_float:
                chain = self._chains[position] = self._chain(node.operands[0])
                operators = [graph.nodes[p].op for p in chain[:-1]]
                functions.add(tuple(op.name for op in operators if not isinstance(op, ops.Convert)))
        self.functions = frozenset(functions)

    def _chain(self, position: int) -> list[int]:
        """Nodes back to the tensor in front of functions that grow with every element of a row, which is the last."""
        chain = [position]
        while len(chain) < _DEEPEST:
            before = self._before(chain[-1])
            if before is None:
                break
            chain.append(before)
        return chain

    def _before(self, position: int) -> int | None:
        """The operand that a node is a growing function of, element by element, all else being equal in a row."""
        node = self._graph.nodes[position]
        if isinstance(node.op, ops.Convert):
            return node.operands[0] if self._graph.nodes[node.operands[0]].type.dtype.is_float else None
        if isinstance(node.op, _GROWING):
            return node.operands[0]
        if not isinstance(node.op, ops.Add | ops.Subtract | ops.Multiply | ops.Divide):
            return None
        swaps = isinstance(node.op, ops.Add | ops.Multiply)
        for own, other in ((0, 1), (1, 0)) if swaps else ((0, 1),):
            factor = node.operands[other]
            keeps = self._known[factor].is_finite
            if isinstance(node.op, ops.Multiply | ops.Divide):
                keeps = keeps and self._known[factor].is_positive
            if keeps and self._is_even(factor, _DEEPEST):
                return node.operands[own]
        return None

    def _is_even(self, position: int, depth: int) -> bool:
        """Whether a tensor has equal elements along its last axis."""
        node = self._graph.nodes[position]
        if isinstance(node.op, ops.Constant):
            return len(node.op.values) == 1
        if isinstance(node.op, ops.BroadcastInDim):
            source, last = self._graph.nodes[node.operands[0]].type, node.type.rank - 1
            if last not in node.op.dimensions or source.shape[node.op.dimensions.index(last)] == 1:
                return True
            return bool(depth) and self._is_even_along(node, last, depth)
        if isinstance(node.op, ops.Elementwise) and depth:
            return all(self._is_even(p, depth - 1) for p in node.operands)
        return False

    def _is_even_along(self, node: Node, last: int, depth: int) -> bool:
        """Whether what is broadcast has equal elements along the axis that becomes the last one."""
        assert isinstance(node.op, ops.BroadcastInDim)
        source = self._graph.nodes[node.operands[0]].type
        return node.op.dimensions.index(last) == source.rank - 1 and self._is_even(node.operands[0], depth - 1)

    def rewritten(self) -> Graph:
        """The program with its choices among what is in front of growing functions."""
        places: dict[int, int] = {}
        names = {position: name for name, position in self._graph.inputs.items()}

        def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
            if position in names:
                places[position] = builder.input(names[position], node.op)
            elif isinstance(node.op, ops.TopK) and position in self._chains:
                chain = self._chains[position]
                best = builder.add(node.op, places[chain[-1]])
                places[position] = self._applied(builder, chain, best, places) if node.op.result == "values" else best
            else:
                places[position] = builder.add(node.op, *operands)
            return places[position]

        return rebuilt(self._graph, make)

    def _applied(self, builder: GraphBuilder, chain: list[int], value: int, places: Mapping[int, int]) -> int:
        """The functions of a chain, applied to some elements of each row of what they are functions of."""
        for before, position in zip(chain[:0:-1], chain[-2::-1], strict=True):
            node = self._graph.nodes[position]
            shape = builder.type(value).shape
            operands = [
                value if k == node.operands.index(before) else _first(builder, places[p], shape)
                for k, p in enumerate(node.operands)
            ]
            value = builder.add(node.op, *operands)
        return value


def _first(builder: GraphBuilder, position: int, shape: Shape) -> int:
    """A tensor whose rows have equal elements, with rows of another length."""
    kind = builder.type(position)
    limits, steps = (*kind.shape[:-1], 1), (1,) * kind.rank
    first = builder.add(ops.Slice((0,) * kind.rank, limits, steps), position)
    return builder.add(ops.BroadcastInDim(shape, tuple(range(kind.rank))), first)
