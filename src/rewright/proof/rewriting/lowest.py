"""The most negative number of a type, which stands for minus infinity unless it meets a number that is as large.

``-3.4e38 + x`` is minus infinity for every score x, and ``-3.4e38 / 1e30`` is none.
"""

from __future__ import annotations

import math

from rewright import ops
from rewright.analysis.ends import Bound
from rewright.ir.graph import Node
from rewright.ir.operator import Operator
from rewright.proof.rewriting.program import Program, passes_on

FARTHER = 100
"""A filling is this many times as far from zero as every number in the scores that it is added to."""


def meeting(program: Program, lowest: int) -> int | None:
    """The operator that brings the most negative number back to a usual one; None where there is none."""
    graph, own = program.graph, program.bounds[lowest]
    size = math.inf if own is None else -own[0]
    seen, stack = {lowest}, [lowest]
    while stack:
        position = stack.pop()
        for user in program.users[position]:
            node = graph.nodes[user]
            if not _goes_on(node, position):
                continue
            others = [p for p in node.operands if p != position]
            if any(_meets(node.op, found[p], size) for p in others for found in (program.bounds, program.at_zero)):
                return user
            if user not in seen:
                seen.add(user)
                stack.append(user)
    return None


def _goes_on(node: Node, position: int) -> bool:
    """Whether a low number is still one behind an operator, but for what else the operator reads."""
    if isinstance(node.op, ops.Binary):
        return isinstance(node.op, ops.Monoid) or node.operands[0] == position
    return isinstance(node.op, ops.Limiting) or passes_on(node, position)


def _meets(op: Operator, other: Bound | None, size: float) -> bool:
    """Whether an operand with these bounds makes a usual number of one that is of this size, and negative."""
    if other is None:
        return False
    (low, high), root = other, math.sqrt(size)
    largest = max(abs(low), abs(high))
    if isinstance(op, ops.Add):
        return size / FARTHER < high
    if isinstance(op, ops.Divide):
        return root < largest
    return isinstance(op, ops.Multiply) and 0 < largest < 1 / root
