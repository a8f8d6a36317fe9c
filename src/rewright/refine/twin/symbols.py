"""Programs with symbolic sizes at chosen numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

from rewright.ir.dims import SizeExpr, evaluate
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.operator import Operator
from rewright.ir.placement import Placement, RankProgram
from rewright.ir.types import TensorType

PRIMES = (2, 3, 5, 7, 11, 13, 17, 19)
"""Sizes that are given to the symbols in alphabetical order: different, so that axes are not confused."""


def size_symbols(graph: Graph) -> set[str]:
    """Names of the size symbols in the types of a graph."""
    found: set[str] = set()
    for node in graph.nodes:
        for size in node.type.shape:
            if isinstance(size, SizeExpr):
                found |= size.symbols()
    return found


def default_sizes(names: set[str]) -> dict[str, int]:
    """A small number for every symbol."""
    return {name: PRIMES[i % len(PRIMES)] for i, name in enumerate(sorted(names))}


def at_sizes(graph: Graph, sizes: Mapping[str, int]) -> Graph:
    """The graph with its size symbols replaced in every attribute."""
    if not size_symbols(graph):
        return graph
    build = GraphBuilder(graph.name)
    names = {position: name for name, position in graph.inputs.items()}
    for position, node in enumerate(graph.nodes):
        op = _operator_at(node.op, sizes)
        build.span = node.span
        if position in names:
            build.input(names[position], op)
        else:
            build.add(op, *node.operands)
    for name, position in graph.outputs.items():
        build.output(name, position)
    return build.build()


def program_at_sizes(program: RankProgram, sizes: Mapping[str, int]) -> RankProgram:
    """All ranks, and the placements, with numbers for symbols."""

    def placed(table: Mapping[str, Placement]) -> dict[str, Placement]:
        return {name: placement_at_sizes(p, sizes) for name, p in table.items()}

    graphs = tuple(at_sizes(graph, sizes) for graph in program.graphs)
    return replace(program, graphs=graphs, inputs=placed(program.inputs), outputs=placed(program.outputs))


def placement_at_sizes(placement: Placement, sizes: Mapping[str, int]) -> Placement:
    """A placement with numbers for symbols."""
    return replace(placement, runs=_value_at(placement.runs, sizes))


def _operator_at(op: Operator, sizes: Mapping[str, int]) -> Operator:
    assert is_dataclass(op)
    changed = {f.name: _value_at(getattr(op, f.name), sizes) for f in fields(op)}
    return replace(op, **changed) if changed else op


def _value_at(value: Any, sizes: Mapping[str, int]) -> Any:
    if isinstance(value, SizeExpr):
        return evaluate(value, sizes)
    if isinstance(value, TensorType):
        return value.with_shape(tuple(evaluate(size, sizes) for size in value.shape))
    if isinstance(value, tuple):
        return tuple(_value_at(item, sizes) for item in cast("tuple[Any, ...]", value))
    return value
