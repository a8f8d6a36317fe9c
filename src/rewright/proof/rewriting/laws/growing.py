"""The largest elements of a row are those that functions which grow with its elements make the largest.

A router may choose among logits or among what a softmax makes of them: the choice is the same, since the elements of a
row grow together with what they are made of by one function. ``top_k`` of the function is then the function of
``top_k``. This is exact over the real numbers, at infinities, and with NaN as the largest of all. Such functions keep
equal elements equal and make no others so, so that the first of equal ones is the same either way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rewright import ops
from rewright.analysis.evenness import Evenness
from rewright.ir.dims import Shape, at_most
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ops.facts import Facts

_DEEPEST = 32


class Growing:
    """``top_k(exp(x))`` is ``exp(top_k(x))``, and chooses at the same places."""

    def __init__(self, graph: Graph, known: Sequence[Facts]) -> None:
        self._graph, self._known = graph, known
        self._evenness = Evenness(graph)

    def __call__(self, builder: GraphBuilder, position: int, places: Mapping[int, int]) -> int | None:
        """A choice among what is in front of the functions, which are applied to the values that it gives."""
        op, chain = self._graph.nodes[position].op, self.chain(position)
        if not isinstance(op, ops.TopK) or len(chain) < 2:
            return None
        best = builder.add(op, places[chain[-1]])
        return self._of_chosen(builder, chain, best, places) if op.result == "values" else best

    def functions(self, chain: Sequence[int]) -> tuple[str, ...]:
        """The names of the growing functions of a chain, the last one first."""
        operators = [self._graph.nodes[p].op for p in chain[:-1]]
        return tuple(op.name for op in operators if not isinstance(op, ops.Convert))

    def chain(self, position: int) -> list[int]:
        """What a ``top_k`` of floats chooses among, back to what is in front of growing functions; else nothing."""
        node = self._graph.nodes[position]
        if not isinstance(node.op, ops.TopK):
            return []
        kind = self._graph.nodes[node.operands[0]].type
        if not kind.dtype.is_float or at_most(1, kind.shape[-1]) is not True:
            return []
        chain = [node.operands[0]]
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
        if not isinstance(node.op, ops.Elementwise):
            return None
        for own in node.op.grows_with([self._known[p] for p in node.operands]):
            last = (node.type.rank - 1,)
            if all(self._evenness.is_even(p, last) for k, p in enumerate(node.operands) if k != own):
                return node.operands[own]
        return None

    def _of_chosen(self, builder: GraphBuilder, chain: list[int], value: int, places: Mapping[int, int]) -> int:
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
