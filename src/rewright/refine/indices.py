"""Indices that a program is given: a claim may hold only where they are in range.

JAX counts a negative index from the end and moves one that is too large to the last element; a table that is split over
ranks gives zeros for both. Where that is all that keeps two programs apart, they are compared once more under the
assumption that the indices are in range, which the verdict names. What the assumption decides is read off the values'
analysis.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from rewright import ops
from rewright.analysis.values import Given, Setting, facts_of
from rewright.frontends.aten.pruning import pruned
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.placement import RankProgram
from rewright.ir.rebuilding import rebuilt
from rewright.ir.types import DType
from rewright.ops.facts import Facts, between

_Pair = tuple[Graph, RankProgram]


def in_range(sequential: Graph, program: RankProgram) -> tuple[Graph, RankProgram, tuple[str, ...]] | None:
    """Both programs where indices that they are given are in range, and that assumption; None if it decides nothing."""
    sizes = _indexed(sequential)
    given = {name: between(0, size - 1, whole=True) for name, size in sizes.items()}
    mine = _decided(sequential, given)
    ranks = [_decided(graph, given) for graph in program.graphs]
    if mine is None and not any(ranks):
        return None
    graphs = tuple(new or old for new, old in zip(ranks, program.graphs, strict=True))
    return mine or sequential, replace(program, graphs=graphs), tuple(_sentences(sizes))


def _sentences(sizes: Mapping[str, int]) -> Iterator[str]:
    for name, size in sizes.items():
        yield f"the indices in input {name!r} are in range: from 0 to {size - 1}, neither negative nor beyond"


def _indexed(graph: Graph) -> dict[str, int]:
    """Inputs that are indices as they are given, with the size of the smallest axis that they are indices of."""
    found: dict[str, int] = {}
    for node in graph.nodes:
        size = _size(graph, node)
        if size:
            for name in _given(graph, node.operands[1]):
                found[name] = min(size, found.get(name, size))
    return found


def _size(graph: Graph, node: Node) -> int | None:
    """The size of the one axis that a gather or scatter takes indices of, where it takes single elements of it."""
    axes = node.op.start_index_map if isinstance(node.op, ops.Gather) else None
    if isinstance(node.op, ops.Scatter):
        axes = node.op.scatter_dims_to_operand_dims
    size = graph.nodes[node.operands[0]].type.shape[axes[0]] if axes and len(axes) == 1 else None
    return size if isinstance(size, int) else None


def _given(graph: Graph, position: int) -> Iterator[str]:
    """Names of inputs whose elements a node has, moved or chosen."""
    stack, seen = [position], set[int]()
    while stack:
        at = stack.pop()
        node = graph.nodes[at]
        if at in seen:
            continue
        seen.add(at)
        if isinstance(node.op, ops.Input):
            yield node.op.label
        elif isinstance(node.op, ops.Convert) and graph.nodes[node.operands[0]].type.dtype.is_integer:
            stack.extend(node.operands)
        elif isinstance(node.op, ops.TensorOperator):
            stack.extend(node.operands[k] for k in node.op.moves(len(node.operands)))


def _decided(graph: Graph, given: Given) -> Graph | None:
    """The graph with every choice and comparison taken that is known with what is given; None where none is."""
    known = facts_of(graph, Setting({name: facts for name, facts in given.items() if name in graph.inputs}))
    taken: list[int] = []

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        if isinstance(node.op, ops.Select):
            truth = _truth(known[node.operands[0]])
            if truth is None:
                return None
            taken.append(position)
            return operands[1 if truth else 2]
        if node.type.dtype is DType.BOOL and node.operands and not isinstance(node.op, ops.Collective):
            truth = _truth(known[position])
            return None if truth is None else builder.add(ops.Constant(node.type, (truth,)))
        return None

    found = rebuilt(graph, make, whole=True)
    return pruned(found) if taken else None


def _truth(known: Facts) -> bool | None:
    return bool(known.low) if known.low == known.high else None
