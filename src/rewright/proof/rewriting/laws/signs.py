"""Integers that are not below zero, also where a choice leaves out those that would be.

``where(index < 8, 8, index - 8)`` is none below zero: the second number is taken where ``index`` is at least 8.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rewright import ops
from rewright.ir.graph import Graph, Node
from rewright.ops.facts import Facts
from rewright.proof.rewriting.laws.reading import LONG, number


@dataclass(frozen=True)
class Signs:
    """What the choices of a program leave of its integers."""

    graph: Graph
    known: Sequence[Facts]

    def is_nonnegative(self, position: int) -> bool:
        """Whether all elements of a node certainly are whole numbers from nought on."""
        known, node = self.known[position], self.graph.nodes[position]
        if known.whole and known.is_finite and known.low >= 0:
            return True
        if node.type.dtype not in LONG:
            return False
        if isinstance(node.op, ops.View):
            return self.is_nonnegative(node.operands[0])
        if not isinstance(node.op, ops.Select):
            return False
        test, yes, no = node.operands
        chosen = ((yes, True), (no, False))
        return all(self.is_nonnegative(p) or self._is_left(p, test, holds) for p, holds in chosen)

    def _is_left(self, position: int, test: int, holds: bool) -> bool:
        """Whether a number minus another is not below zero, wherever a test holds or does not."""
        node = self.graph.nodes[position]
        if not isinstance(node.op, ops.Subtract) or node.type.dtype not in LONG:
            return False
        source, least = node.operands[0], number(self.graph, self.known, node.operands[1])
        return least is not None and any(
            self._is_least(part, source, least, result) for part, result in self._parts(test, holds)
        )

    def _parts(self, position: int, holds: bool) -> Iterator[tuple[Node, bool]]:
        """The comparisons that a test is made of, each with what it is where the test holds, or does not."""
        node = self.graph.nodes[position]
        if isinstance(node.op, ops.Not):
            yield from self._parts(node.operands[0], not holds)
        elif isinstance(node.op, ops.And if holds else ops.Or):
            for operand in node.operands:
                yield from self._parts(operand, holds)
        elif isinstance(node.op, ops.Compare):
            yield node, holds

    def _is_least(self, node: Node, source: int, least: float, holds: bool) -> bool:
        """Whether a comparison that holds, or does not, says that a number is at least another."""
        assert isinstance(node.op, ops.Compare)
        limit = number(self.graph, self.known, node.operands[1])
        says = ("GE", "GT") if holds else ("LT", "LE")
        return node.operands[0] == source and node.op.direction in says and limit is not None and limit >= least


__all__ = ["Signs"]
