"""Where a program is defined: divisors of integers that are not zero, indices within their tensor, its assertions.

Elsewhere PyTorch raises an error. What the analysis of values shows needs no look; the rest is computed from a call's
inputs before the kernels run, and where it does not hold the program itself runs, and says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from rewright import ops
from rewright.analysis.values import facts_of
from rewright.frontends.torch.eager.operators import TORCH, constant, library
from rewright.frontends.torch.names import ASSERTED
from rewright.ir.dims import Dim
from rewright.ir.graph import Graph
from rewright.optimize.running.bare import holds
from rewright.optimize.scalars.expressions import number_of


@dataclass(frozen=True)
class Obligation:
    """What the elements of a node have to be: not zero, or at least zero and below a size."""

    position: int
    user: int
    below: int | None = None
    """None for a divisor. For indices the size; of a vector of several, for one of them."""
    part: tuple[int, int] | None = None
    """The axis of index vectors, and which of them."""
    is_asserted: bool = False
    """Whether the program itself says so."""

    def words(self, graph: Graph) -> str:
        """What goes wrong where it does not hold."""
        node = graph.nodes[self.user]
        if self.is_asserted:
            return f"an assertion of {node.op.name} at {node.span} does not hold"
        indexed = "writes out of range" if isinstance(node.op, ops.Scatter) else "reads out of range"
        return f"{node.op.name} at {node.span} {'divides by zero' if self.below is None else indexed}"


def without_assertions(graph: Graph) -> Graph:
    """What a program computes, without what it asserts."""
    outputs = {name: position for name, position in graph.outputs.items() if not name.startswith(ASSERTED)}
    if len(outputs) == len(graph.outputs):
        return graph
    live = graph.ancestors(outputs.values()) | frozenset(graph.inputs.values())
    place = {position: number for number, position in enumerate(sorted(live))}
    nodes = [graph.nodes[position] for position in place]
    return replace(
        graph,
        nodes=tuple(replace(node, operands=tuple(place[p] for p in node.operands)) for node in nodes),
        inputs={name: place[position] for name, position in graph.inputs.items()},
        outputs={name: place[position] for name, position in outputs.items()},
    )


@dataclass(frozen=True)
class Domain:
    """All that has to hold of a program's values, and the nodes that these depend on."""

    graph: Graph
    obligations: tuple[Obligation, ...]
    needed: tuple[int, ...]

    @staticmethod
    def of(graph: Graph) -> Domain:
        """What is not known to hold of any inputs."""
        facts = facts_of(graph)
        live = graph.live()
        found: list[Obligation] = []
        asserted = [Obligation(p, p, is_asserted=True) for n, p in graph.outputs.items() if n.startswith(ASSERTED)]
        for position in sorted(live):
            for obligation in (*_obligations(graph, position), *(o for o in asserted if o.position == position)):
                known = facts[obligation.position]
                if obligation.below is None and not known.zero:
                    continue
                if obligation.below is not None and known.low >= 0 and known.high < obligation.below:
                    continue
                behind = _behind(graph, [obligation.position])
                is_fixed = not any(isinstance(graph.nodes[p].op, (ops.Input, ops.CustomCall)) for p in behind)
                if is_fixed and not Domain(graph, (obligation,), behind).violation({}):
                    continue  # of constants, as a bias by distance is looked up: once is enough
                found.append(obligation)
        return Domain(graph, tuple(found), _behind(graph, [o.position for o in found]))

    def violation(self, inputs: Mapping[str, torch.Tensor]) -> str:
        """The first operator that is not defined on these inputs, in words; empty where all are."""
        if not self.obligations:
            return ""
        values: dict[int, torch.Tensor] = {}
        device = next((value.device for value in inputs.values()), torch.device("cpu"))
        for position in self.needed:
            node = self.graph.nodes[position]
            if isinstance(node.op, ops.Input):
                values[position] = inputs[node.op.label].detach()
            elif isinstance(node.op, ops.Constant):
                values[position] = constant(node).to(device)
            else:
                found = library(node, [values[p] for p in node.operands])
                values[position] = found.to(device=device, dtype=TORCH[node.type.dtype])
        for obligation in self.obligations:
            if not holds(values[obligation.position], obligation.below, obligation.part):
                return obligation.words(self.graph)
        return ""


def _obligations(graph: Graph, position: int) -> list[Obligation]:
    node = graph.nodes[position]
    if isinstance(node.op, (ops.Divide, ops.Remainder)) and node.type.dtype.is_integer:
        return [Obligation(node.operands[1], position)]
    if isinstance(node.op, ops.Gather):
        windows = dict(enumerate(node.op.slice_sizes))
        return _indices(graph, position, node.op.start_index_map, windows, node.op.index_vector_dim)
    if isinstance(node.op, ops.Scatter):
        axes = node.op.window_axes(graph.nodes[node.operands[0]].type.rank)
        updates = graph.nodes[node.operands[2]].type.shape
        windows = {axis: updates[place] for axis, place in zip(axes, node.op.update_window_dims, strict=True)}
        return _indices(graph, position, node.op.scatter_dims_to_operand_dims, windows, node.op.index_vector_dim)
    return []


def _indices(
    graph: Graph, position: int, axes: Sequence[int], windows: Mapping[int, Dim], vector: int
) -> list[Obligation]:
    """What index vectors have to be, where windows of some sizes, else of one element, begin at them."""
    operand, indices = graph.nodes[position].operands[:2]
    shape = graph.nodes[operand].type.shape
    is_vector = vector < graph.nodes[indices].type.rank
    return [
        Obligation(
            indices,
            position,
            number_of(shape[axis]) - number_of(windows.get(axis, 1)) + 1,
            (vector, number) if is_vector else None,
        )
        for number, axis in enumerate(axes)
    ]


def _behind(graph: Graph, roots: Sequence[int]) -> tuple[int, ...]:
    """The nodes that others depend on, in order."""
    found: set[int] = set()
    stack = list(roots)
    while stack:
        position = stack.pop()
        if position not in found:
            found.add(position)
            stack.extend(graph.nodes[position].operands)
    return tuple(sorted(found))
