"""What of a plan is left to a library where it is not proved: look-ups first, and then all that a tensor is made of."""

from __future__ import annotations

from collections.abc import Collection

from rewright import ops
from rewright.optimize.planning.plan import LibraryStep, Plan


def look_ups(plan: Plan, tensors: Collection[int]) -> frozenset[int]:
    """What kernels look for, or else read at computed places, for some of the tensors that they store."""
    found: set[int] = set()
    seen: set[int] = set()
    stack = [p for tensor in tensors for p in (tensor, *plan.graph.nodes[tensor].operands)]
    while stack:
        position = stack.pop()
        if position in seen:
            continue
        seen.add(position)
        node = plan.graph.nodes[position]
        assert isinstance(node.op, ops.TensorOperator)
        if isinstance(node.op, ops.TopK) or node.op.indexed(len(node.operands)):
            found.add(position)
        if position not in plan.memory:
            stack.extend(node.operands)
    found -= {step.position for step in plan.steps if isinstance(step, LibraryStep)}
    return frozenset({p for p in found if isinstance(plan.graph.nodes[p].op, ops.TopK)} or found)


def computed_for(plan: Plan, tensors: Collection[int]) -> frozenset[int]:
    """All that kernels compute for some of the tensors that they store, from what is stored."""
    found: set[int] = set()
    stack = list(tensors)
    while stack:
        position = stack.pop()
        node = plan.graph.nodes[position]
        if position in found or not node.operands:
            continue
        if not isinstance(node.op, ops.View):
            found.add(position)
        stack.extend(p for p in node.operands if p not in plan.memory)
    return frozenset(found - {step.position for step in plan.steps if isinstance(step, LibraryStep)})
