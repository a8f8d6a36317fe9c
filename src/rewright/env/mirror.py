"""The entry of a module as a graph of the IR, instruction by instruction.

Every instruction with one operator as its counterpart is that operator; any other is an input, of which a pattern can
say nothing but its type. So a place in the graph is a name in the module, and the other way round.
"""

from __future__ import annotations

from dataclasses import dataclass

from rewright import ops
from rewright.env.module import HloModule
from rewright.frontends.hlo.operators import operator_of
from rewright.frontends.hlo.shapes import DTYPES
from rewright.ir.errors import TypeMismatch
from rewright.ir.graph import Graph, GraphBuilder


@dataclass(frozen=True)
class Mirror:
    """The graph of an entry, and the name of the instruction at each place."""

    graph: Graph
    names: tuple[str, ...]


def mirror(module: HloModule) -> Mirror:
    """The entry of a module; values that the IR has no type for are left out, with what reads them an input."""
    builder = GraphBuilder(module.name)
    places: dict[str, int] = {}
    for i in module.program.main.in_order:
        if i.shape.element not in DTYPES or i.shape.is_dynamic:
            continue
        operator = operator_of(module.program, i)
        try:
            if operator is None or not all(name in places for name in i.operands):
                raise TypeMismatch("it has no counterpart")
            operands = [places[name] for name in i.operands[: operator.arity or len(i.operands)]]
            if operator.infer([builder.type(place) for place in operands]) != i.shape.type():
                raise TypeMismatch("it means another tensor")
            places[i.name] = builder.add(operator, *operands)
        except TypeMismatch:
            places[i.name] = builder.input(i.name, ops.Input(i.name, i.shape.type()))
    return Mirror(builder.build(), tuple(places))
